# A Redis that answers a benchmark of $1 requests.
rm -f redis.sock
redis-server --port 0 --unixsocket redis.sock --save '' --appendonly no > /dev/null &
server=$!
i=0; until redis-cli -s redis.sock ping > /dev/null 2>&1; do i=$((i + 1)); [ $i -lt 100 ] && kill -0 $server 2> /dev/null || exit 9; sleep 0.02; done
redis-benchmark -s redis.sock -q -n "$1" -r 100000 -d 300 -P 16 -t set,get > /dev/null || exit 8
redis-cli -s redis.sock shutdown nosave > /dev/null
wait $server || exit 7
echo "$1 requests"
