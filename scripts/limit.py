#!/usr/bin/env python3
"""How little RAM does a program live with? Runs it in memory groups without swap, and bisects their limit.

    python3 scripts/limit.py [--slow 10%] [--warm] [--format json] [-v] -- PROGRAM

    peak        what the kernel has charged the group at most, in runs without a limit
    fast from   the least limit with which the program is at most so much slower than without a limit
    lives from  the least limit with which it ends as it does without one: same exit code, nothing killed, and within
                five times its run time and two seconds

A group is charged for all that the kernel counts: anonymous memory, pages of files, tmpfs, shared memory once, and the
kernel's own tables. Before each run the files that the program maps leave the page cache, so that its group pays for
them as a fresh container does; --warm: they stay, and whoever has read them first has paid. Files that another process
maps stay in either case.

Both limits are upper ends of an interval of a sixteenth, or 1 MiB. A size that is somewhat too slow is run twice more,
in turns with runs without a limit, and the medians count. Needs root, and cgroup v1 or v2 (Linux 5.19 or newer).
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

MIB = 1 << 20
# Between two looks at the files that the processes map.
LOOK_MS = 50
RUNS_ALONE = 3


class Failure(Exception):
    """No memory group can be made, or the program cannot be measured."""


def read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def write(path: str, text: object) -> None:
    try:
        with open(path, "w") as file:
            file.write(str(text))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}; needs root, and a memory controller") from error


@dataclass(frozen=True)
class Tree:
    """Where memory groups are made, and how this version of cgroups names their files."""

    root: str
    limit: str
    peak: str
    # The file that counts kills, in lines of a name and a number.
    events: str

    @staticmethod
    def here() -> "Tree":
        """The tree of this machine: version 2 if it has the memory controller."""
        two = "/sys/fs/cgroup"
        if "memory" in read(f"{two}/cgroup.controllers").split():
            if "memory" not in read(f"{two}/cgroup.subtree_control").split():
                write(f"{two}/cgroup.subtree_control", "+memory")
            return Tree(two, "memory.max", "memory.peak", "memory.events")
        one = "/sys/fs/cgroup/memory"
        if os.path.exists(f"{one}/memory.limit_in_bytes"):
            return Tree(one, "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control")
        raise Failure("this machine has no memory groups")


class MemoryGroup:
    """A memory group with a limit, without swap. Its end kills what is left in it, and removes it."""

    numbers = itertools.count(1)

    def __init__(self, limit: int | None):
        self.tree = Tree.here()
        self.path = f"{self.tree.root}/limit-{os.getpid()}-{next(self.numbers)}"
        self.limit = limit

    def __enter__(self) -> "MemoryGroup":
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise Failure(f"{self.path}: {error.strerror}; needs root") from error
        if self.limit is not None:
            try:
                write(f"{self.path}/{self.tree.limit}", self.limit)
                self.without_swap(self.limit)
            except Failure:
                self.__exit__()
                raise
        return self

    def without_swap(self, limit: int) -> None:
        """Version 1 limits memory and swap together; where it does not count swap, it is told to avoid it."""
        values = {"memory.swap.max": 0, "memory.memsw.limit_in_bytes": limit, "memory.swappiness": 0}
        if known := [name for name in values if os.path.exists(f"{self.path}/{name}")]:
            write(f"{self.path}/{known[0]}", values[known[0]])

    def __exit__(self, *_: object) -> None:
        for _attempt in range(200):
            for process in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.01)
        print(f"{self.path} cannot be removed", file=sys.stderr)

    def join(self) -> None:
        """Puts the calling process into the group."""
        write(f"{self.path}/cgroup.procs", os.getpid())

    def processes(self) -> list[int]:
        return [int(word) for word in read(f"{self.path}/cgroup.procs").split()]

    def peak(self) -> int:
        text = read(f"{self.path}/{self.tree.peak}")
        if not text:
            raise Failure(f"{self.path}/{self.tree.peak} cannot be read: the kernel is too old")
        return int(text)

    def kills(self) -> int:
        """Processes that the kernel has killed in the group for want of memory."""
        lines = [line.split() for line in read(f"{self.path}/{self.tree.events}").splitlines()]
        return sum(int(number) for name, number in lines if name == "oom_kill")

    def files(self) -> set[str]:
        """Regular files that the group's processes map now."""
        lines = "".join(read(f"/proc/{process}/maps") for process in self.processes()).splitlines()
        paths = {words[5] for words in (line.split(None, 5) for line in lines) if len(words) == 6}
        return {path for path in paths if path.startswith("/") and os.path.isfile(path)}


def chill(files: Iterable[str]) -> None:
    """Takes the files out of the page cache, as far as nobody maps them."""
    for path in files:
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


@dataclass
class Run:
    """A run in a group. Without a code it was ended, since it took too long."""

    limit_bytes: int | None
    seconds: float
    code: int | None
    kills: int
    peak_bytes: int
    files: set[str] = field(default_factory=set, repr=False)


class Program:
    """A command, and how it is run: where, with which environment, and which files are cold at its start."""

    def __init__(self, words: Sequence[str], folder: str = ".", environment: dict[str, str] | None = None):
        self.words, self.folder, self.environment = list(words), folder, environment
        self.cold: set[str] = set()

    def run(self, limit: int | None = None, patience: float | None = None, look: bool = False) -> Run:
        """Runs it once, for so many seconds at most. `look`: the files that it maps are noted."""
        chill(self.cold)
        with MemoryGroup(limit) as group:
            began = time.monotonic()
            try:
                child = subprocess.Popen(
                    self.words,
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=group.join,
                )
            except OSError as error:
                raise Failure(f"{self.words[0]}: {error.strerror}") from error
            files: set[str] = set()
            ended = select.poll()
            process = os.pidfd_open(child.pid)
            try:
                ended.register(process, select.POLLIN)
                while True:
                    left = None if patience is None else 1000 * max(0.0, patience - time.monotonic() + began)
                    if ended.poll(LOOK_MS if look else left):
                        break
                    if look:
                        files |= group.files()
                    if left is not None and left <= LOOK_MS:
                        break
                seconds = time.monotonic() - began
            finally:
                os.close(process)
                code = child.poll()
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            return Run(limit, seconds, code, group.kills(), group.peak(), files)


@dataclass
class Limits:
    """What a program needs, and how that was found."""

    code: int
    plain_seconds: float
    peak_bytes: int
    fast_bytes: int = 0
    lives_bytes: int = 0
    took_seconds: float = 0.0
    runs: list[Run] = field(default_factory=list)

    def lives(self, run: Run) -> bool:
        return run.code == self.code and run.kills == 0

    def patience(self) -> float:
        return 5 * self.plain_seconds + 2


class Search:
    """The search for the two limits of a program."""

    def __init__(self, program: Program, slow: float, warm: bool, say: Callable[[str], None]):
        self.program, self.slow, self.say = program, slow, say
        began = time.monotonic()
        first = program.run(look=not warm)
        if first.code is None:
            raise Failure("it has no exit code")
        program.cold = first.files
        alone = [program.run() for _ in range(RUNS_ALONE)]
        if wrong := [run.code for run in alone if run.code != first.code]:
            raise Failure(f"it ends with exit code {first.code} once, and with {wrong[0]} once, without a limit")
        seconds = statistics.median(run.seconds for run in alone)
        self.found = Limits(first.code, seconds, max(run.peak_bytes for run in alone), runs=[first, *alone])
        self.found.fast_bytes = self.bisect(self.fast)
        self.found.lives_bytes = self.bisect(self.lives)
        self.found.took_seconds = time.monotonic() - began

    def run(self, limit: int) -> Run:
        run = self.program.run(limit, self.found.patience())
        self.found.runs.append(run)
        how = "" if self.found.lives(run) else " too long" if run.code is None else f" exit code {run.code}"
        self.say(f"{limit / MIB:7.1f} MiB {run.seconds:6.2f} s{how}")
        return run

    def lives(self, limit: int) -> bool:
        """Runs that the search for the other limit has made are not made again."""
        limited = [run for run in self.found.runs if run.limit_bytes is not None]
        if any(run.limit_bytes <= limit and self.found.lives(run) for run in limited if run.limit_bytes):
            return True
        if any(run.limit_bytes >= limit and not self.found.lives(run) for run in limited if run.limit_bytes):
            return False
        return self.found.lives(self.run(limit))

    def fast(self, limit: int) -> bool:
        """Other programs make a run slower, but seldom two, and none twice as slow: such runs are made again, in turns
        with runs without a limit."""
        plain, runs = [self.found.plain_seconds], [self.run(limit)]
        if self.slow < runs[0].seconds / plain[0] < 2 * self.slow and self.found.lives(runs[0]):
            for _ in range(2):
                self.found.runs.append(self.program.run())
                plain.append(self.found.runs[-1].seconds)
                runs.append(self.run(limit))
        ratio = statistics.median(run.seconds for run in runs) / statistics.median(plain)
        return all(map(self.found.lives, runs)) and ratio <= self.slow

    def bisect(self, good: Callable[[int], bool]) -> int:
        """The upper end of the interval in which the least good limit lies. The peak counts as good."""
        low, high = 0, self.found.peak_bytes
        while high - low > max(high // 16, MIB):
            middle = (low + high) // 2
            if good(middle):
                high = middle
            else:
                low = middle
        return high


def measure(
    program: Program, slow: float = 1.10, warm: bool = False, say: Callable[[str], None] = lambda _: None
) -> Limits:
    """The program's peak, and its two limits. `program.cold` has the files that are cold in later runs, too."""
    return Search(program, slow, warm, say).found


def percent(text: str) -> float:
    return 1 + float(text.removesuffix("%")) / 100


def main() -> None:
    lines = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=lines[0], usage="limit.py [options] -- PROGRAM")
    parser.add_argument("--slow", type=percent, default=1.10, help="the allowed slowdown (10%%)")
    parser.add_argument("--warm", action="store_true", help="files stay in the page cache")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("-v", action="store_true", help="print each run, on stderr")
    parser.add_argument("program", nargs="+")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        say = (lambda line: print(line, file=sys.stderr)) if asked.v else (lambda _: None)
        found = measure(Program(asked.program), asked.slow, asked.warm, say)
    except Failure as failure:
        sys.exit(f"limit.py: {failure}")
    if asked.format == "json":
        print(json.dumps(dataclasses.asdict(found), indent=1, default=sorted))
        return
    sizes = {"peak": found.peak_bytes, "fast from": found.fast_bytes, "lives from": found.lives_bytes}
    words = ", ".join(f"{name} {size / MIB:.1f} MiB" for name, size in sizes.items())
    print(f"takes {found.plain_seconds:.2f} s; {words}; {len(found.runs)} runs, {found.took_seconds:.1f} s")


if __name__ == "__main__":
    main()
