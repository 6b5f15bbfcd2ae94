"""A parent builds a table and forks workers: all read the table, and each has a list of its own."""
import gc, os, sys
count, workers = int(sys.argv[1]), int(sys.argv[2])
table = [b"row %d of the table" % i for i in range(count)]
gc.freeze()
for worker in range(workers):
    if os.fork() == 0:
        mine, total = [], 0
        for i in range(worker, count * 4, workers):
            row = table[i * 7919 % count]
            total += len(row)
            if i % 64 < workers: mine.append(total)
        os._exit(0 if total and mine else 1)
failed = [code for code in (os.wait()[1] for _ in range(workers)) if code]
print(len(table), failed)
sys.exit(1 if failed else 0)
