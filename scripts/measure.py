"""What the measuring scripts share: start a program and time it, runs in turns, medians and noise, tables, JSON.

    times = measure.pairs({"plain": lambda: run(), "paged": lambda: run("--ram", "8MiB")}, rounds=3)
    print(*measure.table(["way", "seconds"], [[way, f"{measure.median(runs):.2f}"] for way, runs in times.items()]), sep="\\n")

Nothing here knows of a program, a limit or coldframe.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

MIB = 1 << 20
# One run time differs from the next by so much on a machine that does nothing else.
NOISE = 0.05
# The seconds in which a program can end by itself, when it is told to.
GRACE_S = 20.0

Figure = TypeVar("Figure")
Number = float | None


@dataclass
class Ran:
    """A run. Without a code it was ended, since it took too long."""

    seconds: float
    code: int | None
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")

    @property
    def last(self) -> str:
        """The last line of its errors, or how it ended."""
        lines = self.errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


def stop_cleanly() -> None:
    """SIGTERM ends a script as Ctrl-C does: what it has started ends with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def end(child: "subprocess.Popen[bytes]", grace: float = GRACE_S) -> None:
    """Ends a program and the processes of its session: by SIGTERM, so that it takes away what it has made, then by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def start(
    words: Sequence[str],
    folder: str = ".",
    environment: Mapping[str, str] | None = None,
    patience: float | None = None,
    enter: Callable[[], object] | None = None,
    grace: float = GRACE_S,
) -> Ran:
    """Runs a command without input, for so many seconds at most. `enter`: what its process does before the program starts."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began, code = time.monotonic(), None
        child = subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
            start_new_session=True, preexec_fn=enter,
        )  # fmt: skip
        try:
            code = child.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        finally:
            seconds = time.monotonic() - began
            if code is None:
                end(child, grace)
            else:
                # What it has left behind.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
        out.seek(0)
        errors.seek(0)
        return Ran(seconds, code, out.read(), errors.read())


def pairs(ways: Mapping[str, Callable[[], Figure]], rounds: int) -> dict[str, list[Figure]]:
    """The figures of the ways, which take turns, so that what the machine does meanwhile meets all of them alike."""
    found: dict[str, list[Figure]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return found


def median(values: Iterable[Number]) -> Number:
    """Of the values that are there."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def geometric(values: Iterable[Number]) -> Number:
    """The geometric mean of the ratios that are there."""
    logs = [math.log(value) for value in values if value]
    return math.exp(sum(logs) / len(logs)) if logs else None


def ratio(over: Number, under: Number) -> Number:
    """None: one of them is not known, or not a number that can be divided."""
    if not over or not under or not math.isfinite(over + under):
        return None
    return over / under


def beside(ours: Sequence[Number], theirs: Sequence[Number]) -> Number:
    """The median of ratios of one round each."""
    return median(ratio(one, other) for one, other in zip(ours, theirs))


def spread(values: Iterable[Number]) -> Number:
    """How far equal runs lie apart: the longest beyond the shortest, in parts of the median. None: there are not two."""
    known = [value for value in values if value is not None]
    middle = median(known)
    return (max(known) - min(known)) / middle if len(known) > 1 and middle else None


def noise(*runs: Sequence[Number]) -> float:
    """The largest spread of these ways' runs, and at least that of a machine that does nothing else."""
    return max([NOISE, *(far for far in map(spread, runs) if far is not None)])


def within(value: Number, low: float, high: float) -> bool:
    return value is not None and low <= value <= high


def mib(size: Number) -> str:
    """A size in MiB; -: there is none."""
    if not size:
        return "-"
    return f"{size / MIB:.0f}" if size >= 99.95 * MIB else f"{size / MIB:.1f}"


def show(value: Number, form: str = ".2f", after: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{after}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines with columns as wide as they must be; the first `left` columns stand at their left end."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    align = lambda row: "  ".join(f"{cell:{'<' if i < left else '>'}{width}}" for i, (cell, width) in enumerate(zip(row, widths)))
    return [align(row).rstrip() for row in [header, *rows]]


def to_json(value: Any) -> str:
    def other(thing: Any) -> Any:
        if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            return dataclasses.asdict(thing)
        return sorted(thing)

    return json.dumps(value, indent=1, default=other)


def choose(asked: str | None, known: Sequence[str]) -> list[str]:
    """The names of a list with commas, in the order of the known ones; ValueError with a message if one is not known."""
    if asked is None:
        return list(known)
    wanted = [name.strip() for name in asked.split(",") if name.strip()]
    if unknown := sorted(set(wanted) - set(known)):
        raise ValueError(f"no such program: {', '.join(unknown)}; there are {', '.join(known)}")
    return [name for name in known if name in wanted]


def program(parser: argparse.ArgumentParser, path: str) -> str:
    """The whole path of a program, or the end."""
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        parser.error(f"{path}: no such program; build it (make build)")
    return os.path.abspath(path)


def load() -> float:
    """How many processes ran or waited for a processor in the last minute."""
    return os.getloadavg()[0]


def machine() -> dict[str, Any]:
    """What the figures belong to."""

    def first(path: str, pattern: str) -> str:
        with contextlib.suppress(OSError), open(path) as file:
            if found := re.search(pattern, file.read(), re.M):
                return found[1].strip()
        return ""

    return {
        "processors": os.cpu_count() or 0,
        "processor": first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "memory_bytes": int(first("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) * 1024,
        "kernel": platform.release(),
        "groups": "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1",
        "system": first("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
    }


@contextlib.contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """Keeps one processor busy, if that is wanted."""
    if not wanted:
        yield
        return
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


class Progress:
    """What is done, and how long the rest will take, on standard error if that is a terminal."""

    def __init__(self, count: int, now: Callable[[], float] = time.monotonic):
        self.count, self.done, self.now, self.began = count, 0, now, now()

    def line(self, name: str) -> str:
        """Before a thing of this name."""
        left = ""
        if self.done:
            minutes = (self.now() - self.began) / self.done * (self.count - self.done) / 60
            left = f", about {max(1, round(minutes))} min left"
        return f"{self.done + 1} of {self.count}: {name}{left}"

    def say(self, name: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{self.line(name)}", end="", file=sys.stderr, flush=True)

    def step(self) -> None:
        self.done += 1

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
