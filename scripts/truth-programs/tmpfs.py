"""Writes a file in /dev/shm, which is charged as memory, reads it several times and removes it."""
import os, sys, zlib
path, mib, total = "/dev/shm/truth-tmpfs.bin", int(sys.argv[1]), 0
with open(path, "wb") as file:
    for i in range(mib): file.write(os.urandom(4096) * 256)
for _ in range(int(sys.argv[2])):
    with open(path, "rb") as file:
        while block := file.read(1 << 18): total = zlib.crc32(block, total)
os.unlink(path)
print(mib, total > 0)
