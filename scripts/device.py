#!/usr/bin/env python3
"""Judges `coldframe device` by runs: a whole Debian in an emulated machine, with the work of five programs.

    python3 scripts/device.py target/release [--seconds S] [--ram MIB,MIB]

The machine is watched with RAM for everything. Then the same work runs in less RAM: with the zram that was recommended for
that RAM, with Fedora's (half of the RAM, at most 4 GiB, zstd), with a swap file on the disk that is read a page at a time, as
predicted, and eight at a time, as Linux does by itself (vm.page-cluster), and without swap. Prints what was predicted beside
what was measured. The machine is emulated: judge counts, not times.
"""

import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import vm  # noqa: E402

MIB = 1 << 20
# Five programs: a cache of text in Python, a database in RAM (SQLite), sort, zstd, and words in Perl. Each uses a part of
# its memory all the time, some of it now and then, and some of it never again; each does some steps a second.
CACHE = """
import random, time
words = ['user%%d name%%d street%%d ' %% (i, i * 7919 %% 104729, i * 31 %% 997) for i in range(4096)]
random.seed(1)
rows = [''.join(random.sample(words, 60)) for i in range(%d)]
while True:
    began = time.monotonic()
    for _ in range(40):
        row = int(len(rows) * random.random() ** 6)
        rows[row] = rows[row][1:] + 'x'
    time.sleep(max(0, 0.1 - (time.monotonic() - began)))
"""
BASE = """
import random, sqlite3, time
base = sqlite3.connect(':memory:')
base.execute('create table a (id integer primary key, name text, notes text)')
random.seed(2)
base.executemany('insert into a values (?, ?, ?)', ((i, 'name %%d' %% (i * 7919), 'note %%d ' %% i * 20) for i in range(%d)))
while True:
    began = time.monotonic()
    for _ in range(20):
        row = int(%d * random.random() ** 5)
        base.execute('update a set name = name || 1 where id = ?', (row,))
        base.execute('select notes from a where id between ? and ?', (row, row + 5)).fetchall()
    time.sleep(max(0, 0.1 - (time.monotonic() - began)))
"""
PERL = """
srand 3; for my $i (1 .. %d) { $of{"word" . $i} = "value of $i " x 8 }
while (1) { for (1 .. 30) { my $i = 1 + int(%d * rand() ** 6); $of{"word$i"} .= "y" } select undef, undef, undef, 0.1 }
"""
SORT = "seq 1 %d | awk '{ print ($1 * 7919) %% 1000003, $1, \"line\" }' > lines; while :; do sort -S 24M lines > sorted; sleep 20; done"
ZSTD = "while :; do zstd -q -f -T1 -6 lines -o lines.zst; sleep 15; done"


def work(folder: str) -> list[subprocess.Popen]:
    """Starts the five programs."""
    all_of_them = [
        ["python3", "-c", CACHE % 120000],
        ["python3", "-c", BASE % (400000, 400000)],
        ["perl", "-e", PERL % (500000, 500000)],
        ["sh", "-c", SORT % 400000],
        ["sh", "-c", ZSTD],
    ]
    # Each in a scope of its own: systemd ends a unit in which the kernel has killed a process.
    names = ("cache", "base", "words", "sort", "zstd")
    scopes = [["systemd-run", "--scope", "-q", f"--unit={name}-{time.monotonic_ns()}", "--"] for name in names]
    all_of_them = [scope + words for scope, words in zip(scopes, all_of_them)]
    return [subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True) for words in all_of_them]


def end(programs: list[subprocess.Popen]) -> int:
    """Ends them. How many had been killed."""
    killed = sum(program.poll() is not None for program in programs)
    for program in programs:
        subprocess.run(["pkill", "-KILL", "-s", str(program.pid)])
        program.wait()
    return killed


def vmstat() -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in open("/proc/vmstat"))}


def watched(seconds: int) -> dict:
    programs = work(os.getcwd())
    settle(programs)
    command = ["/opt/vm/coldframe", "device", "--for", f"{seconds}s", "--every", "5s", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True)
    end(programs)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}


def settle(programs: list[subprocess.Popen]) -> None:
    """Until they have their memory: it grows no more."""
    before, since = 0, time.monotonic()
    while time.monotonic() - since < 15 and any(program.poll() is None for program in programs):
        fields = dict(line.split(":") for line in open("/proc/meminfo"))
        own = int(fields["AnonPages"].split()[0]) + int(fields["SwapTotal"].split()[0]) - int(fields["SwapFree"].split()[0])
        if own > before * 1.02:
            before, since = own, time.monotonic()
        time.sleep(1)


def measured(kind: str, plan: dict | None, seconds: int) -> dict:
    """The work with this kind of swap."""
    subprocess.run("swapoff -a; test -e /dev/zram0 && echo 1 > /sys/block/zram0/reset; rm -f /var/swap; modprobe zram", shell=True)
    ram = os.sysconf("SC_PHYS_PAGES") * 4096
    if kind in ("recommended", "fedora"):
        size, algorithm, limit = ram // 2, "zstd", 0
        if kind == "recommended":
            size, algorithm, limit = plan["disk_bytes"], plan["algorithm"], plan["limit_bytes"]
        for name, value in (("comp_algorithm", algorithm), ("disksize", size), ("mem_limit", limit)):
            with open(f"/sys/block/zram0/{name}", "w") as file:
                file.write(str(value))
        subprocess.run("mkswap /dev/zram0 > /dev/null; swapon -p 100 /dev/zram0", shell=True)
    if kind.startswith("flash"):
        subprocess.run("fallocate -l 768M /var/swap; chmod 600 /var/swap; mkswap /var/swap > /dev/null; swapon /var/swap", shell=True)
    with open("/proc/sys/vm/page-cluster", "w") as file:
        file.write("3" if kind == "flash by 8" else "0")
    programs = work(os.getcwd())
    settle(programs)
    before, began = vmstat(), time.monotonic()
    while time.monotonic() - began < seconds and any(program.poll() is None for program in programs):
        time.sleep(1)
    after, took = vmstat(), time.monotonic() - began
    stat = [int(word) for word in open("/sys/block/zram0/mm_stat").read().split()] if kind in ("recommended", "fedora") else [0, 0, 0]
    killed = end(programs) + after.get("oom_kill", 0) - before.get("oom_kill", 0)
    out, back = (after[name] - before[name] for name in ("pswpout", "pswpin"))
    return {"kind": kind, "seconds": took, "killed": killed, "out": out / took, "back": back / took, "data": stat[0], "ram": stat[2]}


def inside(arguments: argparse.Namespace) -> None:
    """In the machine: prints lines of JSON."""
    os.environ["PATH"] = "/opt/vm:/usr/sbin:/usr/bin:/sbin:/bin"
    os.makedirs("/var/tmp/work", exist_ok=True)
    os.chdir("/var/tmp/work")
    with open("/dev/ttyS1", "w") as line:
        say = lambda text: (line.write(text + "\n"), line.flush())  # noqa: E731
        if arguments.plan is None:
            say("JSON " + json.dumps(watched(arguments.seconds)))
        else:
            plan = json.loads(bytes.fromhex(arguments.plan))
            for kind in ("recommended", "fedora", "flash", "flash by 8", "none"):
                say("JSON " + json.dumps(measured(kind, plan, arguments.seconds)))
        say(f"{vm.END} 0")


def machine(folder: str, version: str, disk: str, ram: int, words: str) -> list[dict]:
    """Boots a machine with so many MiB, and collects its lines."""
    lines: list[dict] = []
    vm.print = lambda text, **_: lines.append(json.loads(text[5:])) if text.startswith("JSON ") else print(text, file=sys.stderr)
    if vm.boot(folder, version, disk, f"device.py - --inside {words}", 900, ["-m", str(ram)]) is None:
        sys.exit(4)
    return lines


def percent(got: float, expected: float) -> str:
    return f"{100 * (got / expected - 1):+.0f} %" if expected else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("built")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--ram", default="512,256")
    parser.add_argument("--save", help="keep what was watched in this file, for coldframe device --from")
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments)
        return 0
    folder = vm.made_root()
    disk = vm.job(arguments.built, os.path.abspath(__file__))
    version = sorted(name[len("vmlinuz-") :] for name in os.listdir(folder) if name.startswith("vmlinuz-"))[-1]
    [device] = machine(folder, version, disk, 1024, f"--seconds {arguments.seconds}")
    if "error" in device:
        sys.exit(device["error"])
    seen = device["seen"]
    if arguments.save:
        with open(arguments.save, "w") as file:
            json.dump(seen, file)
    own = 100 * seen["own_seconds"] / seen["seconds"]
    half, most_of_it, most = (bytes_ // MIB for bytes_ in device["needed_bytes"] or (0, 0, 0))
    print(f"Linux {version}, 1024 MiB, watched for {seen['seconds']:.0f} s: {own:.1f} % of a processor; own {device['own_bytes'] // MIB} MiB,")
    print(f"needed {half} MiB half of the time, {most_of_it} for 95 %, {most} at most; sizes in MiB, pages a second")
    print(f"{'RAM':>5} {'swap':12} {'killed':>6} {'in zram':>8} {'share':>6} {'predicted':>9} {'':>6} {'out/s':>7} {'back/s':>7} {'predicted':>14}")
    for ram in (int(word) for word in arguments.ram.split(",")):
        size = min(device["sizes"], key=lambda one: abs(one["ram_bytes"] - ram * MIB))
        plan = size["zram"]["plan"]
        for row in machine(folder, version, disk, ram, f"--seconds {arguments.seconds} --plan {json.dumps(plan).encode().hex()}"):
            swap = size["flash"] if row["kind"].startswith("flash") else size["zram"]
            low, about, high = swap["back_per_second"]
            share = row["ram"] / row["data"] if row["data"] else 0
            predicted = f"{low:.0f}-{'?' if high is None else f'{high:.0f}'} ({about:.0f})"
            algorithm = "zstd" if row["kind"] == "fedora" else plan["algorithm"]
            expected = seen["pages"][algorithm]["stored_bytes"] / (seen["pages"]["pages"] * 4096)
            shares = (f"{share:.2f}", f"{expected:.2f}", percent(share, expected)) if share else ("-", "-", "")
            print(
                f"{ram:5} {row['kind']:12} {row['killed']:6} {row['data'] // MIB:8} {shares[0]:>6} {shares[1]:>9} {shares[2]:>6} {row['out']:7.0f} {row['back']:7.0f} {predicted:>14}",
                flush=True,
            )
        fits = "fits" if size["zram"]["fits"] else "too small, it says"
        print(f"      for {size['ram_bytes'] // MIB} MiB: zram of {plan['disk_bytes'] // MIB} MiB by {plan['algorithm']}, {fits}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
