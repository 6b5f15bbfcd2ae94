#!/usr/bin/env python3
"""Compares what `coldframe -- PROGRAM` and `coldframe check` say with runs from outside, for about twenty programs.

    python3 scripts/truth.py target/release/coldframe [--only NAME,NAME] [--format json]

A program that is not installed is skipped. The script checks no limits; an ! marks what is beyond its bound.

    plain    median of five runs without coldframe, before, between and after the others
    takes    the answer's run time; off: of plain; bound: 5 %
    answer   run time of `coldframe -- PROGRAM`; bound: 20 s or 5 times plain, whichever is longer
    RAM, by  the recommended size, and who pages it (plain: nobody, it needs all of its RAM); none is a miss
    times    median of three runs with it, in plain runs; bound: 1.15, which is the limit of 1.10 and 5 %
    check    the verdict of `check --max-slowdown 10%` at 1.5 and 0.5 times that size; after an ! that of three runs,
             if it is another one; noise: one run is within the limit, and one is not

The times with less RAM are the program's own, from `run --stats`. The kernel's swap takes time before and after.
"""

import argparse
import contextlib
import json
import math
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from typing import Any

LIMIT = 1.10
WORDS = {
    "takes": "takes within 5 % of plain",
    "ram": "recommended size within 1.10 and 5 % of plain",
    "wall": "the same with coldframe's start and end",
    "check": "check agrees with runs from outside",
    "answer": "answers within 20 s or 5 times plain",
}


@dataclass
class Program:
    """A program, and the shell's command that builds it."""

    name: str
    words: list[str]
    build: str = "true"


PROGRAMS = [
    Program("c", ["./heap"], "gcc -O1 -DARRAY=0 -o heap heap.c"),
    Program("c++", ["./words"], "g++ -std=c++17 -O1 -o words words.cc"),
    Program("static-c", ["./heap-static"], "gcc -O1 -DARRAY=0 -static -o heap-static heap.c"),
    Program("arrays", ["./heap-array"], "gcc -O1 -DARRAY=1 -o heap-array heap.c"),
    Program("fork", ["./heap", "two", "four"], "gcc -O1 -DARRAY=0 -o heap heap.c"),
    Program("shell", ["sh", "-c", "./heap & ./heap & wait"], "gcc -O1 -DARRAY=0 -o heap heap.c"),
    Program("make", ["make", "-s", "-B", "-j2"], "gcc --version"),
    Program("cc1", shlex.split("./cc1 -quiet -O1 big.c -o big.s"), "ln -sf $(gcc -print-prog-name=cc1) cc1"),
    Program("go", ["./table"], "GOCACHE=$PWD/go go build -o table table.go"),
    Program("java", ["java", "-Xmx256m", "Table"], "javac Table.java"),
    Program("node", ["node", "n.js"]),
    Program("m.py", ["/usr/bin/python3", "m.py"]),
    Program("numpy", ["/usr/bin/python3", "sorts.py"], "/usr/bin/python3 -c 'import numpy'"),
    Program("perl", ["perl", "p.pl"]),
    Program("ruby", ["ruby", "r.rb"]),
    Program("php", ["php", "-d", "memory_limit=-1", "p.php"]),
    Program("lua", ["lua5.4", "l.lua"]),
    Program("sqlite3", ["sqlite3", ":memory:", ".read s.sql"]),
    Program("gawk", ["gawk", "-f", "g.awk", "pairs.txt"]),
    Program("jq", ["jq", "-f", "j.jq", "data.json"]),
    Program("sort", shlex.split("sort -S 300M --parallel=1 -o sorted.txt numbers.txt")),
    Program("xz", ["xz", "-T1", "-k", "-c", "data.bin"]),
]


def inputs(folder: str) -> None:
    """Writes the programs and their input files, the same every time."""
    shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "truth-programs"), folder, dirs_exist_ok=True)
    chance = random.Random(7)

    def source(functions: int) -> str:
        line = "    for (int i = 0; i < a; i++) s += a * {} ^ (b >> {}) + i % {};\n"
        calls = ["".join(line.format(chance.randrange(99), k, k + 2) for k in range(6)) for _ in range(functions)]
        return "".join(f"int f{i}(int a, int b) {{\n    int s = 0;\n{lines}    return s;\n}}\n" for i, lines in enumerate(calls))

    texts = {"big.c": source(500)} | {f"part{i}.c": source(80) for i in range(8)}
    texts["numbers.txt"] = "".join(f"{chance.getrandbits(60):019d} {i}\n" for i in range(1_000_000))
    texts["pairs.txt"] = "".join(f"{int(300000 * chance.random() ** 2)} {chance.getrandbits(30)}\n" for _ in range(1_500_000))
    texts["data.json"] = json.dumps([{"id": i, "group": chance.randrange(20000), "value": chance.randrange(999)} for i in range(150_000)])
    texts["data.bin"] = "".join(f"{chance.getrandbits(400):x}" * chance.randint(1, 5) for _ in range(15_000))
    for name, text in texts.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)


def missing(program: Program, folder: str) -> str | None:
    """Builds a program; why it cannot be run."""
    built = subprocess.run(f"{program.build} && command -v {program.words[0]}", shell=True, cwd=folder, capture_output=True, text=True)
    return (built.stderr.strip().splitlines() or ["not installed"])[-1] if built.returncode else None


@dataclass
class Ran:
    """A process that has ended. Without a code it was ended, because it took too long."""

    seconds: float
    code: int | None
    out: str
    last_words: str


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a command and its processes. coldframe takes away what it has made."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(child.pid, number)
            child.wait(20)
            return


def run(words: list[str], folder: str, patience: float) -> Ran:
    """Runs a command in the folder, for so many seconds at most."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0", PERL_HASH_SEED="0")
    began, code = time.monotonic(), None
    child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = child.communicate(timeout=patience)
        code = child.returncode
    except subprocess.TimeoutExpired:
        out, err = b"", b"it took too long"
    finally:
        if code is None:
            end(child)
    last = err.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
    return Ran(time.monotonic() - began, code, out.decode(errors="replace"), last[-1].replace(f"{folder}/", ""))


def way(tried: list[dict[str, Any]], ram: int) -> list[str]:
    """The options of `run` for the fastest of coldframe's own runs with this RAM; none: it has not run it."""
    good = [one for one in tried if one["ram_bytes"] == ram and not one["failed"]]
    best: dict[str, Any] = min(good, key=lambda one: one["seconds"], default={"by": "auto", "swap": None})
    return ["--by", best["by"]] + (["--swap", best["swap"]] if best["swap"] else [])


class Bench:
    """One program, asked about and run."""

    def __init__(self, coldframe: str, folder: str, words: list[str]):
        self.coldframe, self.folder, self.words = os.path.abspath(coldframe), folder, words
        self.plain: list[float] = []

    def alone(self, runs: int = 1) -> None:
        for _ in range(runs):
            ran = run(self.words, self.folder, 60)
            if ran.code != 0:
                raise RuntimeError(f"fails without coldframe: {ran.last_words}")
            self.plain.append(ran.seconds)

    def answer(self, *options: str) -> tuple[float, dict[str, Any]]:
        """The seconds until the answer, and the answer."""
        path = f"{self.folder}/{os.path.basename(self.words[0])}.coldframe/advice.json"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        ran = run([self.coldframe, "-q", "--format", "json", *options, "--", *self.words], self.folder, 300)
        if not os.path.exists(path):
            raise RuntimeError(f"no answer: {ran.last_words}")
        with open(path) as file:
            return ran.seconds, json.load(file)

    def paged(self, ram: int, way: list[str]) -> dict[str, list[float]]:
        """Seconds of three runs with this RAM, the program's own and all; infinite: it failed, or took too long."""
        seconds: dict[str, list[float]] = {"ram": [], "wall": []}
        stats = f"{self.folder}/stats.json"
        for _ in range(3):
            # An earlier run's swap file is removed after its end.
            while os.path.exists(way[-1]):
                time.sleep(0.1)
            words = [self.coldframe, "-q", "run", *way, "--ram", f"{ram // 1024}KiB", "--stats", stats, "--", *self.words]
            ran = run(words, self.folder, max(10, 5 * statistics.median(self.plain)))
            counts = {"counts": {"killed": 1}}
            if ran.code == 0:
                with open(stats) as file:
                    counts = json.load(file)
            failed = counts["counts"].get("killed")
            seconds["ram"].append(math.inf if failed else counts["program"]["seconds"])
            seconds["wall"].append(math.inf if failed else ran.seconds)
        return seconds

    def check(self, ram: int, otherwise: list[str]) -> dict[str, Any]:
        """The verdict of `check`, and runs that are paged as `check` has paged them, if it says so."""
        asked = ["--max-ram", f"{ram // 1024}KiB", "--max-slowdown", "10%", "--format", "json"]
        ran = run([self.coldframe, "-q", "check", *asked, "--", *self.words], self.folder, 300)
        with contextlib.suppress(ValueError, KeyError, TypeError):
            ways = way([json.loads(ran.out)["paged"]], ram // 1024 * 1024)
            otherwise = otherwise if "auto" in ways else ways
        verdict = {0: "yes", 1: "no", None: "late"}.get(ran.code, f"code {ran.code}")
        return {"ram_bytes": ram, "verdict": verdict, "way": otherwise, "seconds": self.paged(ram, otherwise)["ram"]}

    def measure(self) -> dict[str, Any]:
        """All measurements of the program, and whether they are within their bounds."""
        # The first run fills caches.
        self.alone(3)
        del self.plain[0]
        seconds, answer = self.answer()
        self.alone()
        ram, by, tried = answer["ram_bytes"], answer.get("by"), answer.get("runs", [])
        ways = way([one for one in tried if one["by"] == by], ram)
        # Who is recommended all of a program's RAM runs it as it is.
        unpaged = [run(self.words, self.folder, 60).seconds for _ in range(3)] if by == "plain" else []
        paged = {"ram": unpaged, "wall": unpaged} if unpaged else self.paged(ram, ways) if ram else {}
        self.alone()
        checks = [self.check(int(ram * part), ways) for part in (1.5, 0.5)] if ram else []
        self.alone()
        plain = statistics.median(self.plain)
        times = {key: statistics.median(all) / plain for key, all in paged.items()}
        off = answer["program_seconds"] / plain - 1
        good = {key: [key in times and times[key] <= LIMIT + 0.05] for key in ("ram", "wall")}
        good |= {"takes": [abs(off) <= 0.05], "answer": [seconds <= max(20, 5 * plain)]}
        for check in checks:
            within = {one <= LIMIT * plain for one in check["seconds"]}
            check["outside"] = "noise" if len(within) == 2 else "yes" if True in within else "no"
        good["check"] = [one["verdict"] == one["outside"] for one in checks if one["outside"] != "noise"]
        found = {"plain_seconds": plain, "plain_all": self.plain, "takes_seconds": answer["program_seconds"], "off_percent": 100 * off}
        found |= {"answer_seconds": seconds, "ram_bytes": ram, "by": by, "tried": tried, "way": ways, "seconds": paged, "times": times}
        return found | {"checks": checks, "good": good, "load": os.getloadavg()[0]}


HEADER = f"{'program':9}{'plain':>7}{'takes':>7}{'off %':>6} {'answer':>7} {'RAM':>9}  {'by':6} {'times':>5} {'check 1.5':>9} {'and 0.5':>7}"


def row(name: str, found: dict[str, Any]) -> str:
    if "error" in found:
        return textwrap.fill(f"{name:9} {found['error']}", 80, subsequent_indent=" " * 10)
    mark = {key: " " if all(good) else "!" for key, good in found["good"].items()}
    line = f"{name:9}{found['plain_seconds']:6.2f}s{found['takes_seconds']:6.2f}s{found['off_percent']:+6.0f}{mark['takes']}"
    line += f"{found['answer_seconds']:6.1f}s{mark['answer']}"
    if not found["ram_bytes"]:
        return f"{line} none is recommended"
    cells = [one["outside"] if one["outside"] in ("noise", one["verdict"]) else f"{one['verdict']}!{one['outside']}" for one in found["checks"]]
    return f"{line}{found['ram_bytes'] / 2**20:6.1f}MiB  {found['by'] or '-':6} {found['times']['ram']:5.2f}{mark['ram']}{cells[0]:>9} {cells[1]:>7}"


def summary(rows: list[dict[str, Any]]) -> list[str]:
    good = {key: [one for row in rows for one in row["good"].get(key, [])] for key in WORDS}
    return [f"{words}: {sum(good[key])} of {len(good[key])}" for key, words in WORDS.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", default=",".join(program.name for program in PROGRAMS), help="names of programs, separated by commas")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    asked = parser.parse_args()
    names, table = asked.only.split(","), asked.format == "table"
    if unknown := set(names) - {program.name for program in PROGRAMS}:
        parser.error(f"--only: no such program: {', '.join(sorted(unknown))}; there are {', '.join(program.name for program in PROGRAMS)}")
    if not os.access(asked.coldframe, os.X_OK):
        parser.error(f"{asked.coldframe}: no such program; build it (make build)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="truth-", dir="/var/tmp") as folder:
        inputs(folder)
        # This machine's costs are measured before the first answer, and not kept.
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        run([os.path.abspath(asked.coldframe), "-q", "doctor", "--calibrate"], folder, 300)
        print(HEADER, file=sys.stdout if table else sys.stderr, flush=True)
        for program in (program for program in PROGRAMS if program.name in names):
            if reason := missing(program, folder):
                print(f"{program.name}: skipped: {reason}", file=sys.stderr)
                continue
            try:
                rows[program.name] = Bench(asked.coldframe, folder, program.words).measure()
            except RuntimeError as error:
                rows[program.name] = {"error": str(error), "good": {key: [False] for key in WORDS if key != "check"}}
            print(row(program.name, rows[program.name]), file=sys.stdout if table else sys.stderr, flush=True)
    lines = summary(list(rows.values()))
    if table:
        print("", *lines, sep="\n")
    else:
        # A run that failed has no seconds.
        print(json.dumps({"processors": os.cpu_count(), "summary": lines, "programs": rows}, indent=1).replace("Infinity", "null"))


if __name__ == "__main__":
    main()
