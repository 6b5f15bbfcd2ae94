#!/usr/bin/env python3
"""What libCacheSim counts for the trace that crates/cli/tests/outside.rs compares with, as crates/cli/tests/golden/libcachesim.json.

    pip install libcachesim
    coldframe cut data/traces/sqlite.parquet -o t.parquet --rows 60000 --compress 1
    coldframe convert t.parquet --to oracleGeneral -o t.bin --page 4KiB
    python3 scripts/peer_misses.py t.bin > crates/cli/tests/golden/libcachesim.json
"""

import importlib.metadata
import json
import sys

import libcachesim as lib

POLICIES = {"fifo": lib.FIFO, "clock:insert-bit=clear": lib.Clock, "lru": lib.LRU, "opt": lib.Belady}


def misses(policy, frames: int) -> int:
    reader = lib.TraceReader(trace=sys.argv[1], trace_type=lib.TraceType.ORACLE_GENERAL_TRACE)
    requests = reader.get_num_of_req()
    return round(policy(cache_size=frames * 4096).process_trace(reader)[0] * requests)


counts = {str(frames): {name: misses(policy, frames) for name, policy in POLICIES.items()} for frames in (4, 16, 64)}
print(json.dumps({"libcachesim": importlib.metadata.version("libcachesim"), "misses": counts}, indent=2))
