#!/usr/bin/env python3
"""Runs real programs with half and a third of their memory: without a tier, with a compressed tier, and with kernel swap.

    python3 scripts/tier.py target/release/coldframe [--only NAME,NAME] [--shares 50,30] [--tier lz4] [--no-kernel] [--patience S] [--out FILE.json]

Each program runs plain, then under `coldframe run` with all of its memory (which measures how much that is), and then
with each share of it: without tier, with tier, and, as root, in a memory cgroup with swap on a file, on zram (lz4), and
on a file behind zswap (lz4, or another compressor that the kernel has).

The cgroup's limit is the memory that the program has under coldframe: the share, and the private memory that coldframe
does not page. A plain run in a cgroup without a limit measures that private memory: the memory charged, less pages of
files, less the pages that coldframe manages. A cgroup of version 1 does not charge the memory of zram and zswap. So the
limit is lowered by what they used, and the run is repeated. The script checks no limits.

    times    run time, as a multiple of the plain run's
    flash    MiB written to the swap file, or to the disk below
    =        the output equals the plain run's; ! it differs; - the run was stopped
    failed   the program ended with an error; with too little memory, the kernel kills it
    +        the kernel had more memory than coldframe; with equal memory it killed the program

A program that sizes its memory by the limit of its cgroup (node) does less paging there than under coldframe.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import swap as kernel_swap
import truth
from swap import MIB, Group, meminfo, private, read, write

CHOSEN = ["sort", "gawk", "jq", "perl", "ruby", "php", "lua", "node", "numpy", "cc1", "m.py", "wordfreq", "sort-2", "zstd-2", "numpy-2"]
# Two threads at work at the same time; numpy sorts without Python's lock.
SORT_NUMBERS = """
import threading, numpy
found = {}
def work(seed):
    numbers = numpy.random.default_rng(seed).integers(0, 100_000, 4_000_000)
    for _ in range(2):
        numbers = numpy.sort(numbers)[::-1].copy()
    found[seed] = int(numbers[::1000].sum())
threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(found[1], found[2])
"""
TWO_THREADS = [
    truth.Program("sort-2", ["sort"], ["sort", "-S", "300M", "--parallel=2", "-o", "{data}/sorted.txt", "{data}/numbers.txt"]),
    truth.Program("zstd-2", ["zstd"], ["zstd", "-T2", "-9", "--long=25", "-c", "{data}/data.bin"]),
    truth.Program("numpy-2", ["/usr/bin/python3", "numpy"], ["/usr/bin/python3", "-c", SORT_NUMBERS]),
]
PATIENCE_S = 150.0
TOO_LONG = "took too long"
# The limit of a cgroup is lowered at most this many times; then the last run counts.
TRIES = 3
# The limit and the compressed memory together may exceed the intended memory by this factor.
SLACK = 1.05


class Run:
    """A command that has ended: its seconds, a digest of its output, its peak memory."""

    def __init__(self, words: list, folder: str, patience: float, group: str | None = None):
        environment = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0")
        environment.pop("LD_PRELOAD", None)
        self.ended = self.digest = None
        self.zswap = self.charged = 0
        join = (lambda: kernel_swap.join(group)) if group else None
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        began = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=said, start_new_session=True, preexec_fn=join)
            try:
                usage = self.wait(child, began + patience, group)
            except BaseException:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                raise
            self.seconds = time.monotonic() - began
            self.peak = usage.ru_maxrss * 1024 if usage else before * 1024
            if self.ended is None and child.returncode != 0:
                said.seek(0)
                last = said.read()[-300:].decode(errors="replace").strip().splitlines() or [""]
                self.ended = f"exit code {child.returncode}: {last[-1]}"
            out.seek(0)
            self.digest = hashlib.sha256(out.read()).hexdigest()

    def wait(self, child: subprocess.Popen, until: float, group: str | None):
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return usage
            if group:
                self.zswap = max(self.zswap, meminfo("Zswap"))
                self.charged = max(self.charged, private(group))
            if time.monotonic() > until:
                self.ended = TOO_LONG
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return None
            time.sleep(0.01)


class Bench:
    def __init__(self, coldframe: str, data: str, folder: str, kernel: dict, patience: float, tier: str):
        self.coldframe, self.data, self.folder, self.kernel = os.path.abspath(coldframe), data, folder, kernel
        self.patience, self.tier = patience, tier
        self.words = truth.Bench(coldframe, data, folder, False).words

    def measure(self, program: truth.Program, shares: list) -> dict:
        words = self.words(program)
        Run(words, self.folder, self.patience)
        plain = Run(words, self.folder, self.patience)
        if plain.ended:
            raise truth.Ended(plain.ended)
        whole = self.paged(words, 4 << 30, "none", plain)
        if "ended" in whole:
            raise truth.Ended(whole["ended"])
        memory = whole["counts"]["resident_max"] * 4096
        beside = self.beside(words, memory) if self.kernel else 0
        found = {"name": program.name, "plain_seconds": plain.seconds, "memory_bytes": memory, "beside_bytes": beside, "peak_bytes": plain.peak, "load": truth.load(), "shares": {}}
        for share in shares:
            ram = max(memory * share // 100, 1 << 20) // 4096 * 4096
            arms = {"none": self.paged(words, ram, "none", plain), "tier": self.paged(words, ram, self.tier, plain)}
            for name, place in self.kernel.items():
                arms[name] = self.swapped(words, place, ram, beside, memory, plain)
            found["shares"][str(share)] = {"ram_bytes": ram, "arms": arms}
        return found

    def beside(self, words: list, memory: int) -> int:
        """Bytes of private memory that coldframe does not page."""
        with Group() as group:
            return max(Run(words, self.folder, self.patience, group).charged - memory, MIB)

    def paged(self, words: list, ram: int, tier: str, plain: Run) -> dict:
        stats = f"{self.folder}/stats.json"
        start = [self.coldframe, "run", "--ram", f"{ram // 1024}KiB", "--tier", tier, "--backing", self.folder, "--stats", stats, "--"]
        run = Run([*start, *words], self.folder, self.patience)
        if run.ended:
            return {"ended": run.ended, "seconds": run.seconds}
        counts = json.load(open(stats))["counts"]
        return {"seconds": run.seconds, "equal": run.digest == plain.digest, "flash_bytes": counts["device_bytes_written"], "counts": counts}

    def swapped(self, words: list, place, ram: int, beside: int, memory: int, plain: Run) -> dict:
        limit, found, earlier = ram + beside, {}, None
        for _ in range(TRIES):
            try:
                with place(self.folder, 2 * memory + 64 * MIB) as swap, Group(limit) as group:
                    run = Run(words, self.folder, self.patience, group)
                    compressed, flash = swap.compressed(run), swap.flash()
            except (OSError, subprocess.CalledProcessError) as error:
                return {"ended": str(error), "seconds": 0.0}
            found = {"seconds": run.seconds, "limit_bytes": limit, "compressed_bytes": compressed, "flash_bytes": flash}
            found |= {"ended": run.ended} if run.ended else {"equal": run.digest == plain.digest}
            if run.ended and earlier:
                # With less memory the kernel kills the program, so the run before counts, which had more memory than it should.
                return {**earlier, "over": True}
            if limit + compressed <= (ram + beside) * SLACK or run.ended:
                break
            earlier = found
            limit = max(ram + beside - compressed, (ram + beside) // 8)
        return found


def mark(arm: dict) -> str:
    if "ended" in arm:
        return "-"
    return ("=" if arm["equal"] else "!") + ("+" if arm.get("over") else "")


def multiple(arm: dict, plain: float) -> str:
    if arm.get("ended", TOO_LONG) != TOO_LONG:
        return f"{'failed':9}"
    return f"{arm['seconds'] / plain:6.1f}x{mark(arm):2}"


def table(found: list, arms: list) -> str:
    """The results, 80 columns wide."""
    lines = [f"{'program':9} {'RAM':>10} " + " ".join(f"{arm:>8} " for arm in arms) + " flash: none  tier"]
    for one in found:
        for share, at in one["shares"].items():
            times = [multiple(at["arms"][arm], one["plain_seconds"]) for arm in arms]
            flash = [f"{at['arms'][arm].get('flash_bytes', 0) / MIB:6.0f}M" for arm in ("none", "tier")]
            lines.append(f"{one['name']:9} {share:>3}% {truth.size(at['ram_bytes']):>5} " + " ".join(times) + " " + "".join(flash))
    return "\n".join(lines)


def summary(found: list, arms: list) -> str:
    """How many times faster the tier is than each other arm with equal memory: the median over all programs and shares."""
    lines = []
    for arm in (arm for arm in arms if arm != "tier"):
        pairs = [at["arms"] for one in found for at in one["shares"].values()]
        # Where both were stopped, nothing is known.
        pairs = [p for p in pairs if "ended" not in p["tier"] or "ended" not in p[arm]]
        # A run that failed has no time. A run that took too long has at least its time.
        fair = [p for p in pairs if p[arm].get("ended", TOO_LONG) == TOO_LONG and not p[arm].get("over")]
        ratios = sorted(p[arm]["seconds"] / p["tier"]["seconds"] for p in fair)
        if ratios:
            cut, own, other = sum("ended" in p[arm] for p in fair), sum("ended" in p["tier"] for p in fair), len(pairs) - len(fair)
            at_least = f", {cut} stopped" if cut else ""
            at_least += f", {own} with the tier stopped" if own else ""
            at_least += f"; {other} failed or had more memory" if other else ""
            lines.append(f"with the tier {statistics.median(ratios):.2f} times as fast as {arm}, median of {len(ratios)} ({ratios[0]:.2f} to {ratios[-1]:.2f}{at_least})")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", default=",".join(CHOSEN))
    parser.add_argument("--shares", default="50,30")
    parser.add_argument("--tier", default="lz4", help="the tier, as in `coldframe run --tier`")
    parser.add_argument("--no-kernel", action="store_true")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds until a run is stopped")
    parser.add_argument("--out")
    parser.add_argument("--keep", help="a folder on the disk to measure; it is kept")
    args = parser.parse_args()
    # If the script is stopped, it still removes its cgroups and swap devices.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    kernel, lacking = ({}, []) if args.no_kernel else kernel_swap.kinds()
    folder = args.keep or tempfile.mkdtemp(prefix="coldframe-tier-", dir="/var/tmp")
    os.makedirs(folder, exist_ok=True)
    truth.inputs(folder)
    bench, found = Bench(args.coldframe, folder, folder, kernel, args.patience, args.tier), []
    wanted = args.only.split(",")
    for program in (p for p in [*truth.PROGRAMS, *TWO_THREADS] if p.name in wanted):
        if need := truth.missing(program):
            lacking.append(f"{program.name}: {need} is not installed")
            continue
        print(f"{program.name} ...", file=sys.stderr)
        try:
            found.append(bench.measure(program, [int(share) for share in args.shares.split(",")]))
        except truth.Ended as ended:
            lacking.append(f"{program.name}: {ended}")
        # A script that is stopped after an hour leaves its results so far.
        if args.out:
            write(args.out, json.dumps({"programs": found, "left_out": lacking}, indent=1))
    arms = ["none", "tier", *kernel]
    print(table(found, arms))
    two = [program.name for program in TWO_THREADS]
    print(summary([one for one in found if one["name"] not in two], arms))
    if of_two := summary([one for one in found if one["name"] in two], arms):
        print(f"two threads:\n{of_two}")
    for line in lacking:
        print(line)
    if not args.keep:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
