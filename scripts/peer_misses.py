#!/usr/bin/env python3
"""Counts misses with libCacheSim, for crates/lab/lab-cli/tests/it/outside.rs: writes crates/lab/lab-cli/tests/golden/libcachesim.json.

    pip install libcachesim
    coldframe-lab trace cut data/traces/sqlite.parquet -o t.parquet --rows 60000 --compress 1
    coldframe-lab trace convert t.parquet --to oracleGeneral -o t.bin --page 4KiB
    python3 scripts/peer_misses.py t.bin > crates/lab/lab-cli/tests/golden/libcachesim.json
"""

import importlib.metadata
import json
import struct
import sys
import tempfile

import libcachesim as lib

POLICIES = {"fifo": lib.FIFO, "clock:insert-bit=clear": lib.Clock, "lru": lib.LRU, "opt": lib.Belady}


def misses(policy, frames: int) -> int:
    reader = lib.TraceReader(trace=sys.argv[1], trace_type=lib.TraceType.ORACLE_GENERAL_TRACE)
    requests = reader.get_num_of_req()
    return round(policy(cache_size=frames * 4096).process_trace(reader)[0] * requests)


def arc_misses(frames: int) -> int:
    """Misses for requests of one byte each. libCacheSim's ARC moves its target by at least one byte at a ghost hit, not
    by one object. So it follows Megiddo and Modha (FAST 2003, figure 4) only if objects have one byte."""
    with open(sys.argv[1], "rb") as pages, tempfile.NamedTemporaryFile(suffix=".bin") as ones:
        for time, page, _, following in struct.iter_unpack("<IQIq", pages.read()):
            ones.write(struct.pack("<IQIq", time, page, 1, following))
        ones.flush()
        reader = lib.TraceReader(trace=ones.name, trace_type=lib.TraceType.ORACLE_GENERAL_TRACE)
        requests = reader.get_num_of_req()
        return round(lib.ARC(cache_size=frames).process_trace(reader)[0] * requests)


def all_misses(frames: int) -> dict:
    return {name: misses(policy, frames) for name, policy in POLICIES.items()} | {"arc": arc_misses(frames)}


counts = {str(frames): all_misses(frames) for frames in (4, 16, 64)}
print(json.dumps({"libcachesim": importlib.metadata.version("libcachesim"), "misses": counts}, indent=2))
