#!/usr/bin/env python3
"""The papers' rows at a commit beside those of this tree: how our numbers came about, and how far they are from the printed ones.

    python3 scripts/distances.py 72798d39          a table for the book: all papers, before and after
    python3 scripts/distances.py 72798d39 --rows   every row that is new, gone, or of another origin or distance

Both read the snapshots of `coldframe-lab papers --all` (`papers__*.snap`), which a test keeps. Distances are those of predictions.
"""

import argparse
import dataclasses
import os
import re
import statistics
import subprocess

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAPERS = {"swl": "SWL", "ddb": "DDB", "sap": "SAP", "drswap": "DR.Swap", "lobi": "LOBI"}
ORIGINS = ["printed input", "identity", "fitted", "carried over", "input", "reading", "predicted", "not printed"]


@dataclasses.dataclass
class Row:
    name: str
    paper: str
    ours: str
    origin: str
    distance: str
    reached: str

    def percent(self) -> float | None:
        return None if self.distance == "-" else float(self.distance.removesuffix(" %"))


def rows(text: str) -> dict[str, Row]:
    found = {}
    for line in text.splitlines():
        if match := re.fullmatch(r'(.+?) \| "(.*)" \| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (yes|no|-)', line):
            item, row, *rest = match.groups()
            found[f"{item}: {row}"] = Row(f"{item}: {row}", *rest)
    return found


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", TREE, *words], capture_output=True, text=True, check=True).stdout


def snapshots(commit: str) -> dict[str, str]:
    """By paper, at a commit or, without one, in this tree."""
    names = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files")
    paths = {m.group(1): m.group(0) for m in re.finditer(r"^.*/papers__(\w+)\.snap$", names, re.M)}
    return {paper: git("show", f"{commit}:{path}") if commit else open(os.path.join(TREE, path)).read() for paper, path in paths.items()}


def line(name: str, when: str, found: list[Row]) -> str:
    of = lambda origin: sum(row.origin == origin for row in found)
    far = [abs(row.percent()) for row in found if row.origin == "predicted" and row.percent() is not None]
    near = [str(sum(one <= band for one in far)) for band in (1, 5, 10, 25)]
    middle = f"{statistics.median(far):.0f} %" if far else "-"
    reached = sum(row.reached == "yes" for row in found)
    return f"| {name} | {when} | {' | '.join(str(of(origin)) for origin in ORIGINS)} | {reached} | {', '.join(near)} | {middle} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit before")
    parser.add_argument("--rows", action="store_true", help="every row that is another one")
    asked = parser.parse_args()
    before, after = ({paper: rows(text) for paper, text in snapshots(commit).items()} for commit in (asked.commit, ""))
    if not asked.rows:
        print(f"| paper | | {' | '.join(ORIGINS)} | reached | predictions within 1, 5, 10, 25 % | their median distance |")
        print(f"|---|---|{'--:|' * (len(ORIGINS) + 1)}---|--:|")
    everything = [[], []]
    for paper in PAPERS:
        old, new = before[paper], after[paper]
        if asked.rows:
            for name in [*old, *(name for name in new if name not in old)]:
                was, now = (one.get(name) for one in (old, new))
                brief = lambda row: f"{row.ours} ({row.origin}, {row.distance})" if row else "-"
                if brief(was) != brief(now):
                    print(f"{paper} | {name} | {(was or now).paper} | {brief(was)} -> {brief(now)}")
            continue
        for together, when, found in zip(everything, ("before", "after"), (old, new)):
            together += found.values()
            print(line(PAPERS[paper], when, list(found.values())))
    if not asked.rows:
        print(line("all", "before", everything[0]))
        print(line("all", "after", everything[1]))


if __name__ == "__main__":
    main()
