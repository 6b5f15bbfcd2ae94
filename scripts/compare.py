#!/usr/bin/env python3
"""Our pager beside the kernel's swap for about ten programs: `coldframe compare` for each, and means. `make bench-compare`.

    python3 scripts/compare.py target/release/coldframe [--only NAME,NAME] [--ram 75%,50%] [--runs 5]

The programs are some of scripts/catalogue.toml. A row has one size of RAM; a cell is the median time in plain runs, and in brackets
how many runs were killed, late or wrong. The last lines have the geometric mean of our pager's time beside each rival's,
over the rows in which all runs of both are good, and how often only one of the two is.
"""

import argparse
import json
import os
import sys
import tempfile

import measure
import samples

NAMES = "c++,numpy,python,perl,node,sqlite3,gawk,jq,php,ruby,lua,gcc"
OURS, RIVALS = "our pager", ["file", "zram"]


def cell(way: dict, plain: dict) -> tuple[float | None, str]:
    """The median in plain runs if all runs are good, and how it is shown."""
    good = [run["seconds"] for run in way["runs"] if run["alike"] and not run["too_long"] and run["status"] == 0]
    bad = len(way["runs"]) - len(good)
    times = measure.ratio(measure.median(good), plain["seconds"])
    shown = "failed" if way["refused"] else (f"{times:.2f}" if times else "none") + (f" ({bad})" if bad else "")
    return (None if bad or way["refused"] else times), shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", default=NAMES, help="names of programs, separated by commas")
    parser.add_argument("--ram", default="75%,50%", help="sizes of RAM, of the program's memory")
    parser.add_argument("--runs", default="5", help="runs of each kind")
    asked = parser.parse_args()
    try:
        programs = {program.name: samples.sized(program) for program in samples.find(asked.only)}
    except ValueError as error:
        parser.error(f"--only: {error}")
    coldframe = measure.program(parser, asked.coldframe)
    measure.stop_cleanly()
    pairs: dict[tuple[str, str], list[tuple[float | None, float | None]]] = {}
    with tempfile.TemporaryDirectory(prefix="compare-", dir="/var/tmp") as folder:
        samples.inputs(folder)
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        print(f"{'program':9}{'plain':>7} {'RAM':>10}" + "".join(f"{way:>16}" for way in [OURS, *RIVALS]), flush=True)
        for name in asked.only.split(","):
            if reason := samples.missing(programs[name], folder):
                print(f"{name}: skipped: {reason}", file=sys.stderr)
                continue
            words = [coldframe, "-q", "compare", "--ram", asked.ram, "--runs", asked.runs, "--format", "json"]
            ran = measure.start([*words, "--", *programs[name].words], folder)
            if ran.code not in (0, 1):
                print(f"{name}: {ran.last}", file=sys.stderr)
                continue
            found = json.loads(ran.text)
            for share, size in zip(asked.ram.split(","), found["sizes"]):
                cells = {way["name"]: cell(way, found["plain"]) for way in size["ways"]}
                for rival in RIVALS:
                    if OURS in cells and rival in cells:
                        pairs.setdefault((share, rival), []).append((cells[OURS][0], cells[rival][0]))
                shown = "".join(f"{cells.get(way, (None, '-'))[1]:>16}" for way in [OURS, *RIVALS])
                print(f"{name:9}{found['plain']['seconds']:6.2f}s {size['ram_bytes'] / measure.MIB:7.1f}MiB{shown}", flush=True)
    print()
    for (share, rival), both in pairs.items():
        good = [measure.ratio(ours, theirs) for ours, theirs in both if ours and theirs]
        mean = f"{measure.geometric(good):.2f} ({len(good)} rows)" if good else "unknown"
        only = sum(1 for ours, theirs in both if ours and not theirs), sum(1 for ours, theirs in both if theirs and not ours)
        print(f"{share}: {OURS} / {rival}: {mean}; only {OURS} is good: {only[0]}, only {rival}: {only[1]}")
    print(f"load {measure.load():.1f}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
