#!/usr/bin/env python3
"""Compares what `coldframe -- PROGRAM` and `coldframe check` say with runs from outside, in memory groups.

    python3 scripts/truth.py target/release/coldframe [--only NAME,NAME] [--seed 3] [--busy] [--five] [--format json]

A program that is not installed is skipped. The script checks no limits; an ! marks what is beyond its bound.
From outside, by scripts/limit.py, in groups without swap, files cold:

    plain    run time without a limit, in seconds
    peak     what the program's group is charged at most, in MiB
    fast     the least limit with which the program is at most 10 % slower
    lives    the least limit with which it lives
    took     the seconds of this search

What coldframe says:

    limit    the recommended limit (-: it cannot tell); of fast: in parts of *fast*; bound: 0.95 to 1.15
    lives    the least limit with which it lives, if that is said
    paste    the limit in the lines to paste; bound: three runs in a group of that size are not killed
    answer   seconds until the answer; bound: 30 or 8 times *plain*, whichever is longer
    check    the verdict of `check --max-slowdown 10%` at 1.2 and 0.8 times *fast*, which three runs in a group of that
             size contradict if it has an !; ?: cannot tell
    five     the largest of five recommended limits in a row, in parts of the smallest; bound: 1.10

Runs with and without a limit take turns. --busy: a loop keeps one processor busy while coldframe works.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import limit
import measure
import samples

SLOW = 1.10
OF_FAST = (0.95, 1.15)
ROUNDS = 3
ANSWERS = 5
CHECKED = (1.2, 0.8)
PATIENCE_S = 600
WORDS = {
    "limit": f"recommended limit {OF_FAST[0]} to {OF_FAST[1]} of *fast*",
    "times": "run time there within 1.10 and 5 % of plain",
    "lives": "*lives* is said, within a fifth",
    "paste": "the pasted limit does not kill",
    "answer": "answers within 30 s or 8 times plain",
    "check": "check agrees with runs from outside",
    "takes": "the answer's run time within 5 % of plain",
    "five": "five answers in a row within 10 %",
}


@dataclass
class Answer:
    """The figures of an answer; an older coldframe says no limit: RAM in all is taken for it."""

    seconds: float
    takes_seconds: float | None
    limit_bytes: int
    paste_bytes: int
    lives_bytes: int | None
    older: bool
    found: dict[str, Any] | None

    @staticmethod
    def of(seconds: float, answer: dict[str, Any]) -> "Answer":
        takes, found = answer.get("program_seconds"), answer.get("limit")
        if found is None:
            ram = (answer.get("ram_bytes") or answer.get("needed_bytes") or 0) + answer.get("not_paged_bytes", 0)
            return Answer(seconds, takes, ram, -(-ram // limit.MIB) * limit.MIB, None, True, None)
        recommended = found.get("recommended_bytes") or 0
        paste = found.get("paste_bytes") or recommended
        return Answer(seconds, takes, recommended, paste, found.get("lives_bytes"), False, found)


def call(words: list[str], folder: str, patience: float = PATIENCE_S) -> tuple[float, int | None, str, str]:
    """Seconds, exit code, standard output and last error line of a command. Without a code it took too long."""
    ran = measure.start(words, folder, os.environ | samples.ENVIRONMENT, patience)
    return ran.seconds, ran.code, ran.text, ran.last.replace(f"{folder}/", "")


class Bench:
    """One program, measured from outside and asked about."""

    def __init__(self, coldframe: str, folder: str, words: Sequence[str]):
        self.coldframe, self.folder, self.words = os.path.abspath(coldframe), folder, list(words)
        self.program = limit.Program(self.words, folder, os.environ | samples.ENVIRONMENT)

    def answer(self, *options: str) -> tuple[float, dict[str, Any]]:
        """The seconds until the answer, and the answer."""
        seconds, code, out, last = call(
            [self.coldframe, "-q", "--format", "json", *options, "--", *self.words], self.folder
        )
        try:
            found: dict[str, Any] = json.loads(out)
        except ValueError:
            raise limit.Failure(f"no answer, exit code {code}: {last}") from None
        return seconds, found

    def verdict(self, ram: int) -> str:
        """What `check` says about a limit."""
        asked = ["check", "--max-ram", f"{ram // 1024}KiB", "--max-slowdown", f"{100 * SLOW - 100:.0f}%"]
        code = call([self.coldframe, "-q", *asked, "--", *self.words], self.folder)[1]
        return {0: "yes", 1: "no", 6: "?", None: "late"}.get(code, f"({code})")

    def beside(self, sizes: Sequence[int], found: limit.Limits) -> tuple[float, dict[int, list[limit.Run]]]:
        """The run time without a limit, and runs with each of these limits, which take turns with it."""
        turns = {str(size): lambda size=size: self.program.run(size, found.patience()) for size in dict.fromkeys(sizes)}
        runs = measure.pairs({"plain": self.program.run} | turns, ROUNDS)
        plain = statistics.median(run.seconds for run in runs.pop("plain"))
        return plain, {int(size): found for size, found in runs.items()}

    def measure(self, load: bool, five: bool) -> dict[str, Any]:
        """All measurements of the program, and whether they are within their bounds."""
        self.program.run()
        found = limit.measure(self.program, SLOW)
        sizes = [int(found.fast_bytes * part) for part in CHECKED]
        with measure.busy(load):
            answers = [Answer.of(*self.answer()) for _ in range(ANSWERS if five else 1)]
            said = answers[0]
            verdicts = {size: self.verdict(size) for size in sizes}
        plain, runs = self.beside([size for size in (said.limit_bytes, said.paste_bytes, *sizes) if size], found)
        checks = []
        for size, verdict in verdicts.items():
            within = [found.lives(run) and run.seconds <= SLOW * plain for run in runs[size]]
            outside = "noise" if len(set(within)) == 2 else "yes" if within[0] else "no"
            checks.append({"limit_bytes": size, "verdict": verdict, "outside": outside, "runs": runs[size]})
        lived = [run for run in runs.get(said.limit_bytes, []) if found.lives(run)]
        times = statistics.median(run.seconds for run in lived) / plain if len(lived) == ROUNDS else None
        killed = sum(not found.lives(run) for run in runs.get(said.paste_bytes, []))
        share = said.limit_bytes / found.fast_bytes
        spread = max(one.limit_bytes for one in answers) / max(1, min(one.limit_bytes for one in answers))
        near = said.lives_bytes is not None and 0.8 <= said.lives_bytes / found.lives_bytes <= 1.2
        good = {
            "limit": [OF_FAST[0] <= share <= OF_FAST[1]],
            "times": [times is not None and times <= SLOW + measure.NOISE],
            "lives": [near],
            "paste": [bool(said.paste_bytes) and not killed],
            "answer": [one.seconds <= max(30, 8 * found.plain_seconds) for one in answers],
            "check": [check["verdict"] == check["outside"] for check in checks if check["outside"] != "noise"],
            "takes": [said.takes_seconds is not None and abs(said.takes_seconds / plain - 1) <= measure.NOISE],
        }
        if five:
            good["five"] = [spread <= 1.10]
        return {
            "outside": found,
            "answers": answers,
            "of_fast": share,
            "spread": spread if five else None,
            "plain_seconds": plain,
            "times": times,
            "paste_killed": killed,
            "checks": checks,
            "runs": [run for all_runs in runs.values() for run in all_runs],
            "good": good,
            "load": measure.load(),
        }


HEADER = (
    f"{'program':12} {'plain':>5} {'peak':>5} {'fast':>5} {'lives':>5} {'took':>4} {'limit':>6} {'of fast':>7}"
    f" {'lives':>5} {'paste':>6} {'answer':>7} check"
)


def row(name: str, found: dict[str, Any]) -> str:
    if "error" in found:
        return textwrap.fill(f"{name:12} {found['error']}", 80, subsequent_indent=" " * 13)
    mark = {key: " " if all(good) else "!" for key, good in found["good"].items()}
    outside: limit.Limits = found["outside"]
    said: Answer = found["answers"][0]
    verdicts = [
        check["verdict"] + ("" if check["outside"] in ("noise", check["verdict"]) else "!") for check in found["checks"]
    ]
    line = f"{name:12} {outside.plain_seconds:5.2f} {measure.mib(outside.peak_bytes):>5} {measure.mib(outside.fast_bytes):>5}"
    line += f" {measure.mib(outside.lives_bytes):>5} {outside.took_seconds:4.0f} {measure.mib(said.limit_bytes):>6}"
    line += (
        f" {found['of_fast']:6.2f}{mark['limit']} {measure.mib(said.lives_bytes):>5} {measure.mib(said.paste_bytes):>5}{mark['paste']}"
    )
    line += f" {said.seconds:6.1f}{mark['answer']} {' '.join(verdicts)}"
    return line + (f" {found['spread']:.2f}{mark['five']}" if found["spread"] else "")


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    good = {key: [one for row in rows for one in row["good"].get(key, [])] for key in WORDS}
    return [f"{words}: {sum(good[key])} of {len(good[key])}" for key, words in WORDS.items() if good[key]]


def main() -> None:
    lines = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=lines[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--seed", type=int, default=samples.USUAL, help="other sizes and inputs")
    parser.add_argument("--busy", action="store_true", help="one processor is kept busy while coldframe works")
    parser.add_argument("--five", action="store_true", help="ask five times in a row, and compare the answers")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    asked = parser.parse_args()
    try:
        chosen = [samples.sized(sample, asked.seed) for sample in samples.find(asked.only)]
    except ValueError as error:
        parser.error(f"--only: {error}")
    measure.program(parser, asked.coldframe)
    measure.stop_cleanly()
    shown = sys.stdout if asked.format == "table" else sys.stderr
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="truth-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        try:
            with limit.MemoryGroup(limit.MIB):
                samples.inputs(folder, asked.seed)
        except limit.Failure as failure:
            sys.exit(f"truth.py: {failure}")
        # This machine's costs are measured before the first answer, and not kept.
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        call([os.path.abspath(asked.coldframe), "-q", "doctor", "--calibrate"], folder)
        print(HEADER + (" five" if asked.five else ""), file=shown, flush=True)
        for sample in chosen:
            if reason := samples.missing(sample, folder, asked.seed):
                print(f"{sample.name}: skipped: {reason}", file=sys.stderr)
                continue
            try:
                rows[sample.name] = Bench(asked.coldframe, folder, sample.words).measure(asked.busy, asked.five)
            except limit.Failure as failure:
                failed = {key: [False] for key in WORDS if key not in ("check", "five")}
                rows[sample.name] = {"error": str(failure), "good": failed}
            print(row(sample.name, rows[sample.name]), file=shown, flush=True)
    ends = summary(list(rows.values()))
    ends.append(f"load {measure.load():.1f}, {os.cpu_count()} processors, seed {asked.seed}")
    if any(one.older for found in rows.values() for one in found.get("answers", [])):
        ends.append("This coldframe says no limit: RAM in all is shown as limit and paste.")
    if asked.format == "table":
        print("", *ends, sep="\n")
    else:
        print(measure.to_json({"summary": ends, "programs": rows}))


if __name__ == "__main__":
    main()
