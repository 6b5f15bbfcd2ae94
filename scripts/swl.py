#!/usr/bin/env python3
"""What SWL brings to the live pager: the time of faults by policy and handler, in one run, in pairs. `make bench-swl`.

    swl.py COLDFRAME [--rounds N] [--ram SIZE] [-- PROGRAM ...]

The program (default: the shipped shop in 8 MiB of its 34) runs once for each row, then again, so that each round has
all rows next to each other. Rows are policies; the sequential handler looks for a frame before it loads, the parallel
one (SWL) while it loads. The clock searches until it finds a page; pa-clock ends at the time of a load.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import measure

ROWS = [("clock", "sequential"), ("clock", "parallel"), ("clock", "reserve"), ("pa-clock", "parallel"), ("fifo-sc", "parallel"), ("pa-fifo-sc", "parallel")]


def run(coldframe, policy, handler, ram, program, folder):
    stats = os.path.join(folder, "stats.json")
    words = [f"{coldframe}-lab", "-q", "run", "--ram", ram, "--policy", policy, "--handler", handler, "--stats", stats, "--", *program]
    done = measure.start(words)
    if done.code:
        sys.exit(f"{' '.join(words)}: {done.last}")
    with open(stats) as file:
        found = json.load(file)
    counts, fault = found["counts"], found["latency_ns"]["device_fault"]
    return {
        "seconds": found["program"]["seconds"],
        "faults": fault["count"],
        "hidden": 100 * (1 - counts["evict_exposed_ns"] / max(counts["evict_ns"], 1)),
        **{name: fault[f"{name}_ns"] / 1e3 for name in ("p50", "p99", "p999", "max")},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("coldframe")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ram", default="8MiB")
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    program = words[at + 1 :]
    asked = parser.parse_args(words[:at])
    coldframe = measure.program(parser, asked.coldframe)
    measure.stop_cleanly()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if not program:
            shop = os.path.join(folder, "shop")
            source = os.path.join(os.path.dirname(__file__), "../data/traces/shop.c")
            subprocess.run(["cc", "-O1", "-o", shop, source], check=True)
            program = [shop, "1000000", "400000"]
        ways = {row: lambda row=row: run(coldframe, *row, asked.ram, program, folder) for row in ROWS}
        found = measure.pairs(ways, asked.rounds)
    print(f"{os.path.basename(program[0])} in {asked.ram}, {asked.rounds} rounds, load {measure.load():.1f}; medians;")
    print("a fault from the device in us; time beside the first row's of the same round")
    print(f"{'policy':11} {'handler':10} {'faults':>6} {'p50':>6} {'p99':>6} {'p99.9':>7} {'longest':>8} {'hidden':>6} {'time':>5}")
    for policy, handler in ROWS:
        each = found[policy, handler]
        middle = {name: measure.median(one[name] for one in each) for name in each[0]}
        beside = measure.beside(*([one["seconds"] for one in runs] for runs in (each, found[ROWS[0]])))
        numbers = "{faults:6.0f} {p50:6.0f} {p99:6.0f} {p999:7.0f} {max:8.0f} {hidden:4.0f} %".format(**middle)
        print(f"{policy:11} {handler:10} {numbers} {beside:5.2f}")


if __name__ == "__main__":
    main()
