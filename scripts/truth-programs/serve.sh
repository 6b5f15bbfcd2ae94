# A server that writes its port into the file `port`, and ends when it is asked for /end, answers $1 requests.
count=$1; shift
rm -f port
"$@" &
server=$!
i=0; until [ -s port ]; do i=$((i + 1)); [ $i -lt 250 ] && kill -0 $server 2> /dev/null || exit 9; sleep 0.02; done
curl -sf -o /dev/null "http://127.0.0.1:$(cat port)/item?[1-$count]" || exit 8
curl -sf "http://127.0.0.1:$(cat port)/end" || exit 7
wait $server
