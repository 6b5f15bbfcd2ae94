# A MariaDB that answers $1 queries of four clients. `mariadb.sh build`: makes its data.
if [ "$1" = build ]; then
    rm -rf maria; mkdir maria
    exec mariadb-install-db --no-defaults --datadir="$PWD/maria" --user="$(id -un)" --skip-test-db --auth-root-authentication-method=normal > /dev/null
fi
rm -f maria.sock
mariadbd --no-defaults --datadir="$PWD/maria" --user="$(id -un)" --socket="$PWD/maria.sock" --pid-file="$PWD/maria.pid" --skip-networking --innodb-flush-log-at-trx-commit=0 > maria.said 2>&1 &
server=$!
i=0; until mariadb-admin --no-defaults -u root --socket="$PWD/maria.sock" ping > /dev/null 2>&1; do i=$((i + 1)); [ $i -lt 200 ] && kill -0 $server 2> /dev/null || exit 9; sleep 0.05; done
mariadb-slap --no-defaults -u root --socket="$PWD/maria.sock" --auto-generate-sql --auto-generate-sql-load-type=mixed --concurrency=4 --number-of-queries="$1" > /dev/null 2>&1 || exit 8
mariadb-admin --no-defaults -u root --socket="$PWD/maria.sock" shutdown || exit 7
wait $server
