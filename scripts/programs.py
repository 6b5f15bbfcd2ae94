#!/usr/bin/env python3
"""Runs real programs plain and under `coldframe run` in less RAM than they use. Output and exit code must be equal.

    python3 scripts/programs.py target/release/coldframe [--only NAME,NAME] [--backing FOLDER] [--patience SECONDS] [--kernel] [--encrypt ...]

The programs are in programs.toml beside this file. A program is skipped if one of its commands is not installed.
Unknown options are passed to `coldframe run`. The exit code is 1 if a program differs.

--kernel, as root: each program also runs in a memory cgroup with the kernel's swap, on zram or else on a file. Its
limit is the private memory of a plain run, less what coldframe kept out of RAM. So there are two more runs: a plain one
in a cgroup without a limit, and one under coldframe with all memory. All outputs must be equal. If the kernel kills the
program with swap free, the run is repeated while the cgroup's statistics are read every 5 ms, and marked: ! the second
run passed, "killed" it did not.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import measure
import swap

PATIENCE_S = 120.0


def inputs(folder: str) -> None:
    """Writes the programs' input files, the same every time."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(30000)]
    skewed = lambda: words[int(len(words) * chance.random() ** 3)]
    with open(f"{folder}/words.txt", "w") as file:
        for _ in range(60000):
            file.write(" ".join(skewed() for _ in range(5)) + "\n")
    with open(f"{folder}/numbers.txt", "w") as file:
        file.writelines(f"{chance.getrandbits(40)}\n" for _ in range(120000))
    with open(f"{folder}/data.csv", "w") as file:
        file.write("id,name,group,value\n")
        file.writelines(f"{i},{skewed()},{chance.randrange(50)},{chance.random():.6f}\n" for i in range(50000))
    with open(f"{folder}/data.json", "w") as file:
        json.dump([{"id": i, "name": skewed(), "list": [chance.randrange(999) for _ in range(6)]} for i in range(30000)], file)
    with open(f"{folder}/data.xml", "w") as file:
        file.write("<all>\n")
        file.writelines(f'<row id="{i}"><name>{skewed()}</name><v>{chance.randrange(999)}</v></row>\n' for i in range(30000))
        file.write("</all>\n")
    with open(f"{folder}/data.bin", "wb") as file:
        for _ in range(200):
            piece = chance.randbytes(5000)
            for _ in range(chance.randint(1, 8)):
                file.write(piece + chance.randbytes(500))


def run(command: list, folder: str, data: str, patience: float = PATIENCE_S, group: str | None = None) -> measure.Ran:
    """Runs a command in an empty folder, always with the same name. $DATA has the inputs, $MADE the output of `prepare`."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    environment = dict(os.environ, DATA=data, MADE=os.path.join(os.path.dirname(folder), "made"), HOME=folder, LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0")
    environment.pop("LD_PRELOAD", None)
    return measure.start(command, folder, environment, patience, (lambda: swap.join(group)) if group else None, grace=0)


def first_difference(plain: bytes, other: bytes) -> str:
    for number, (a, b) in enumerate(zip(plain.split(b"\n"), other.split(b"\n")), 1):
        if a != b:
            return f"line {number}: {a[:100]!r}, here {b[:100]!r}"
    return f"{len(plain)} bytes, here {len(other)}"


def why_unequal(plain: measure.Ran, other: measure.Ran) -> str:
    return ("hung" if other.code is None else f"exit {other.code}") if plain.code != other.code else first_difference(plain.output, other.output)


class Judged:
    """A program's runs: the verdict, its line of the table, and what differs."""

    def __init__(self, verdict: str, figures: str = "", words: str = ""):
        self.verdict, self.figures, self.words = verdict, figures, words


class Programs:
    """Runs programs, each plain, paged and, if asked, under the kernel's swap."""

    def __init__(self, arguments, data: str, folder: str, kernel: "Kernel | None"):
        self.arguments, self.data, self.folder, self.kernel = arguments, data, folder, kernel
        self.made = os.path.join(os.path.dirname(folder), "made")

    def run(self, words: list, group: str | None = None) -> measure.Ran:
        return run(words, self.folder, self.data, self.arguments.patience, group)

    def paged(self, words: list, ram: str) -> tuple[measure.Ran, dict]:
        """A run under coldframe, and its counters."""
        statistics = self.folder + ".json"
        if os.path.exists(statistics):
            os.unlink(statistics)
        start = [os.path.abspath(self.arguments.coldframe), "run", "--ram", ram, "--stats", statistics]
        if self.arguments.backing:
            start += ["--backing", os.path.abspath(self.arguments.backing)]
        ran = self.run(start + self.arguments.more + ["--"] + words)
        return ran, json.load(open(statistics))["counts"] if os.path.exists(statistics) else {}

    def judge(self, program: dict) -> Judged:
        words = ["sh", "-c", program["run"]]
        shutil.rmtree(self.made, ignore_errors=True)
        if "prepare" in program:
            prepared = self.run(["sh", "-c", program["prepare"]])
            if prepared.code != 0:
                return Judged("broken", "", f"`prepare` ends with {prepared.code}: {tail(prepared)}")
            os.rename(self.folder, self.made)
        plain = self.run(words)
        paged, counts = self.paged(words, program["ram"])
        ratio = paged.seconds / max(plain.seconds, 0.001)
        figures = f"{program['ram']:>7} {plain.seconds:6.2f} {paged.seconds:6.2f} {ratio:4.1f}"
        figures += f" {counts.get('true_faults', 0):>7} {counts.get('device_bytes_written', 0) / 2**20:6.1f}"
        if plain.code != program.get("code", 0):
            return Judged("broken", figures, f"the plain run ends with {plain.code}: {tail(plain)}")
        wrong = []
        if (plain.output, plain.code) != (paged.output, paged.code):
            said = [line for line in paged.errors.decode(errors="replace").splitlines() if line.startswith(("coldframe", "error"))]
            wrong.append(f"paged: {why_unequal(plain, paged)}; {' | '.join(said[:2])}")
        if self.kernel:
            text, unequal = self.kernel.judge(self, words, plain, counts)
            figures += text
            wrong += [f"kernel: {unequal}"] if unequal else []
        return Judged("DIFFERENT" if wrong else "equal", figures, "; ".join(wrong))


def tail(ran: measure.Ran) -> str:
    return ran.errors[-300:].decode(errors="replace").strip()


class Kernel:
    """The kernel's own pager as a judge. Counts the runs that it killed with swap free, and the bytes that it moved."""

    def __init__(self):
        self.equal, self.killed, self.awake, self.still = 0, 0, 0, 0

    def judge(self, programs: Programs, words: list, plain: measure.Ran, counts: dict) -> tuple[str, str]:
        """The columns of the table, and what differs."""
        free = swap.Group(awake=True)
        with free as group:
            again = programs.run(words, group)
        if (again.output, again.code) != (plain.output, plain.code):
            return "", f"two plain runs differ: {why_unequal(plain, again)}"
        whole = programs.paged(words, "4GiB")[1]
        kept_out = (whole.get("resident_max", 0) - counts.get("resident_max", 0)) * 4096
        limit = max(free.peak - kept_out, swap.MIB)
        moved = swapped_out()
        ran, killed = self.run(programs, words, limit, False)
        mark = "!" if killed else ""
        if killed:
            self.killed += 1
            ran, killed = self.run(programs, words, limit, True)
            if killed:
                return " killed", ""
            self.awake += 1
        self.still += swapped_out() == moved
        figures = f" {ran.seconds:6.2f} {ran.seconds / max(plain.seconds, 0.001):4.1f}{mark}"
        if (ran.output, ran.code) != (plain.output, plain.code):
            return figures, why_unequal(plain, ran)
        self.equal += 1
        return figures, ""

    def run(self, programs: Programs, words: list, limit: int, awake: bool) -> tuple[measure.Ran, bool]:
        """A run in a cgroup of this size, and whether the kernel killed a process of it."""
        with swap.Group(limit, awake) as group:
            ran = programs.run(words, group)
            return ran, swap.kills(group) > 0

    def summary(self) -> str:
        return (f"kernel swap: {self.equal} equal, in {self.still} of them nothing was swapped; {self.killed} killed with swap free, "
            f"{self.awake} of them not while the statistics were read")


def swapped_out() -> int:
    """Pages that the kernel has written to swap since the machine started."""
    return next(int(line.split()[1]) for line in swap.read("/proc/vmstat").splitlines() if line.startswith("pswpout "))


def place(kind: str, folder: str | None):
    """Swap for the whole table: far more than any of the programs has memory."""
    return swap.kinds()[0][kind](folder or "/var/tmp", 1 << 30)


HEADER = f"{'program':14} {'verdict':9} {'RAM':>7} {'plain':>6} {'paged':>6} {'x':>4} {'faults':>7} {'MiBout':>6}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--backing", help="the folder of the swap files")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds after which a run counts as hung")
    parser.add_argument("--kernel", action="store_true", help="run each program under the kernel's swap, too (root)")
    arguments, arguments.more = parser.parse_known_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.toml"), "rb") as file:
        programs = tomllib.load(file)["program"]
    if arguments.only:
        chosen = arguments.only.split(",")
        unknown = set(chosen) - {program["name"] for program in programs}
        if unknown:
            parser.error(f"--only: no program is called {', '.join(sorted(unknown))}")
        programs = [program for program in programs if program["name"] in chosen]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("ended"))
    kinds, lacking = swap.kinds() if arguments.kernel else ({}, [])
    kernel = Kernel() if kinds else None
    if arguments.kernel and not kernel:
        print(f"--kernel: {lacking[0]}", file=sys.stderr)
    top = tempfile.mkdtemp(prefix="coldframe-programs-", dir=None if os.path.isdir("/tmp") else ".")
    try:
        with place("zram" if "zram" in kinds else "file", arguments.backing) if kernel else contextlib.nullcontext():
            return table(programs, arguments, top, kernel)
    finally:
        shutil.rmtree(top, ignore_errors=True)


def table(programs: list, arguments, top: str, kernel: Kernel | None) -> int:
    """Prints the table; returns the exit code."""
    data, counted = os.path.join(top, "data"), {}
    os.mkdir(data)
    os.chmod(top, 0o755)
    inputs(data)
    runs = Programs(arguments, data, os.path.join(top, "run"), kernel)
    print(HEADER + (f" {'kernel':>6} {'x':>4}" if kernel else ""))
    for program in programs:
        missing = [need for need in program["needs"] if not shutil.which(need)]
        if "test" in program and not missing and subprocess.run(["sh", "-c", program["test"]], capture_output=True).returncode:
            missing = [program["test"]]
        judged = Judged("skipped", f"missing: {', '.join(missing)}") if missing else runs.judge(program)
        counted[judged.verdict] = counted.get(judged.verdict, 0) + 1
        print(f"{program['name']:<14} {judged.verdict:<9} {judged.figures}", flush=True)
        if judged.words:
            print(f"    {judged.words}", flush=True)
    print(", ".join(f"{counted[verdict]} {verdict}" for verdict in sorted(counted)))
    if kernel:
        print(kernel.summary())
    return 1 if counted.get("DIFFERENT") or counted.get("broken") else 0


if __name__ == "__main__":
    sys.exit(main())
