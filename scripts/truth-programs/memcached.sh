# A memcached into which $1 values are written, and from which they are read.
rm -f mem.sock
memcached -U 0 -s mem.sock -m 256 -u "$(id -un)" &
server=$!
i=0; until [ -S mem.sock ]; do i=$((i + 1)); [ $i -lt 100 ] || exit 9; sleep 0.02; done
/usr/bin/python3 -c "
import socket, sys
peer = socket.socket(socket.AF_UNIX); peer.connect('mem.sock'); file = peer.makefile('rwb')
value = lambda i: (str(i) * 200).encode()[:1000]
for i in range($1): file.write(b'set k%d 0 0 %d noreply\r\n%s\r\n' % (i, len(value(i)), value(i)))
file.flush()
good = 0
for i in range(0, $1, 4):
    file.write(b'get k%d\r\n' % i); file.flush()
    file.readline(); good += file.readline()[:-2] == value(i); file.readline()
print(good)
" || exit 8
kill $server; wait $server
exit 0
