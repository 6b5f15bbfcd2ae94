"""Prints the references a second of libCacheSim's Clock over an oracleGeneral file: libcachesim_clock.py FILE FRAMES."""

import sys
import time

import libcachesim as lcs

path, frames = sys.argv[1], int(sys.argv[2])
best = 0.0
for _ in range(3):
    reader = lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE, lcs.ReaderInitParam(ignore_obj_size=True))
    cache = lcs.Clock(cache_size=frames)
    n = reader.get_num_of_req()
    began = time.perf_counter()
    cache.process_trace(reader)
    best = max(best, n / (time.perf_counter() - began))
print(best)
