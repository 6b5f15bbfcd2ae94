#!/usr/bin/env python3
"""LOBI's block-aligned swap-in live: a swap file on the disk, without and with blocks, and the kernel's swap.

    python3 scripts/ahead.py target/release/coldframe [--only NAME,NAME] [--runs 3] [--format json]

Needs root, for the kernel's swap on a file, with its own read-ahead (vm.page-cluster 3). The programs are those of
scripts/catalogue.toml, at 50 and 33 % of their heap; the three ways take turns: `--read-ahead 16` (streams only, the default),
`--read-ahead block:8`, `--by kernel`.

    with      time with streams only over time with blocks: above 1, blocks pay
    kernel    time of the kernel's swap over time with blocks: above 1, ours is faster
"""

import argparse
import math
import os
import sys
import tempfile
import time

import measure
import samples
import truth

NAMES = ["sort", "gawk", "jq", "perl", "php", "sqlite3", "python", "numpy"]
PATIENCE_S = 60.0
PARTS = (50, 33)
# What takes turns, and its --read-ahead. A sequential stream is read ahead with both of ours.
WAYS = {"stream": "16", "block:8": "block:8", "kernel": None}


def heap(bench: truth.Bench) -> int:
    """The program's heap, in bytes, as the answer about the program has it."""
    answer = bench.answer("--once")[1]
    return (answer.get("prediction") or answer)["managed_bytes"]


def seconds(bench: truth.Bench, way: str, ram: int) -> float | None:
    """One run; infinite: longer than the patience. None: it failed, or the kernel killed it."""
    by = ["--by", "kernel", "--swap", f"{bench.folder}/swap", "--swap-size", "1GiB"] if way == "kernel" else ["--backing", bench.folder, "--read-ahead", WAYS[way]]
    program = bench.coldframe if way == "kernel" else f"{bench.coldframe}-lab"
    words = [program, "run", "-q", *by, "--ram", f"{ram // 1024}KiB", "--", *bench.words]
    spent, code, _, _ = truth.call(words, bench.folder, PATIENCE_S)
    # The guard takes the swap away, and that takes its time.
    while os.path.exists(f"{bench.folder}/swap") and way == "kernel":
        time.sleep(0.1)
    return spent if code == 0 else math.inf if code is None else None


def show(value: float | None, after: str = "") -> str:
    if value is None:
        return "-"
    return f"{value:.2f}{after}" if math.isfinite(value) else f">{PATIENCE_S:.0f}s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", default=",".join(NAMES), help="names of programs, separated by commas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    asked = parser.parse_args()
    try:
        programs = [samples.sized(program) for program in samples.find(asked.only)]
    except ValueError as error:
        parser.error(f"--only: {error}")
    measure.program(parser, asked.coldframe)
    measure.stop_cleanly()
    if os.geteuid() != 0:
        sys.exit("ahead.py: needs root, for the kernel's swap on a file")
    if open("/proc/sys/vm/page-cluster").read().strip() != "3":
        print("ahead.py: vm.page-cluster is not 3: `sysctl vm.page-cluster=3` gives the kernel its usual read-ahead", file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory(prefix="ahead-", dir="/var/tmp") as folder:
        samples.inputs(folder)
        for program in programs:
            if reason := samples.missing(program, folder):
                print(f"{program.name}: skipped: {reason}", file=sys.stderr)
                continue
            bench = truth.Bench(asked.coldframe, folder, program.words)
            whole = heap(bench)
            for part in PARTS:
                times = measure.pairs({way: lambda way=way: seconds(bench, way, whole * part // 100) for way in WAYS}, asked.runs)
                row = {way: measure.median(times[way]) for way in WAYS} | {"name": program.name, "percent": part, "all": times}
                row |= {"with": measure.ratio(row["stream"], row["block:8"]), "kernel_over_with": measure.ratio(row["kernel"], row["block:8"])}
                rows.append(row)
                print(f"{program.name} at {part} %: {' '.join(show(row[way], 's') for way in WAYS)}", file=sys.stderr, flush=True)
    if asked.format == "json":
        print(measure.to_json({"runs": asked.runs, "load": measure.load(), "rows": rows}))
        return
    print(f"medians of {asked.runs} runs; a swap file on the disk; load {measure.load():.2f}")
    print(f"{'program':9} {'RAM':>4} {'stream':>8} {'block:8':>8} {'kernel':>8} {'with':>6} {'kernel':>7}")
    for row in rows:
        print(f"{row['name']:9} {row['percent']:3}% {show(row['stream'], 's'):>8} {show(row['block:8'], 's'):>8} {show(row['kernel'], 's'):>8} {show(row['with']):>6} {show(row['kernel_over_with']):>7}")
    print(f"median: with {show(measure.median([row['with'] for row in rows]))}, kernel {show(measure.median([row['kernel_over_with'] for row in rows]))}")
    failed = [time for row in rows for time in row["all"]["kernel"]].count(None)
    print(f"runs with the kernel's swap that failed or were killed: {failed}")


if __name__ == "__main__":
    main()
