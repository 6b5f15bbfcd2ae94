# A PostgreSQL that answers pgbench: four clients of $1 transactions each. `postgres.sh build`: makes its data.
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
if [ "$(id -u)" = 0 ]; then as="setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=$PWD/pg"; else as=; fi
run() { rm -f pg/data/postmaster.pid pg/.s.*; $as postgres -D pg/data -c "unix_socket_directories=$PWD/pg" -c listen_addresses= -c fsync=off -c autovacuum=off > /dev/null 2>&1 & server=$!
    i=0; until psql -h "$PWD/pg" -U pg -d postgres -c 'select 1' > /dev/null 2>&1; do i=$((i + 1)); [ $i -lt 200 ] && kill -0 $server 2> /dev/null || exit 9; sleep 0.05; done; }
stop() { kill -INT $server; wait $server; }
if [ "$1" = build ]; then
    rm -rf pg; mkdir pg; [ -z "$as" ] || chown 65534:65534 pg
    $as initdb -D pg/data -A trust -U pg --no-sync > pg.said 2>&1 || { tail -1 pg.said >&2; exit 1; }
    run; pgbench -h "$PWD/pg" -U pg -i -s 2 -q postgres > pg.said 2>&1 || { tail -1 pg.said >&2; exit 1; }
    stop; exit
fi
run
pgbench -h "$PWD/pg" -U pg -n -c 4 -t "$1" --random-seed=7 postgres > /dev/null 2>&1 || exit 8
psql -h "$PWD/pg" -U pg -d postgres -At -c 'select count(*) from pgbench_accounts' || exit 7
stop
