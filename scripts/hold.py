#!/usr/bin/env python3
"""Judges `coldframe squeeze --hold` by runs: redis, PostgreSQL and nginx in an emulated machine with cgroup v2. `make bench-hold`.

    python3 scripts/hold.py target/release [--only redis,postgres,nginx] [--hours N] [--hour SECONDS] [--slower TIMES]

Of each server four copies run at a time, each in a group of its own, all with the same requests, one after the other in
a new order each round, so that what disturbs one disturbs all: one without a limit, one held with its latencies (--latency-file,
--within 10%), one held by the group's stalls alone, and one under senpai's rule. What is asked for changes by the hour, and an
hour is compressed to --hour seconds; windows and intervals are a fifth of their defaults. Swap is a zram for all.

senpai's rule is written here from its README (interval 5, pressure 1000 us, max_probe 0.01, max_backoff 0.1, log_probe 1000,
log_backoff 10, as printed there), without its least size of 100 MiB. A fault takes some ten times as long in an emulated machine, so
that one or two would use up the stalls that either allows: both are allowed --slower times as much (1: as they are).

Prints for each server and way: the 99th percentile of the latencies beside that without a limit, over all and in the worst
hour; the mean RAM given back, less what the copy's pages take in zram; and how often the limit went up. The machine is
emulated, and its host may be busy: judge ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import vm  # noqa: E402

WAYS = ("alone", "hold", "stalls", "senpai")
CGROUPS = "/sys/fs/cgroup"
ROUNDS_A_SECOND = 40
# Rows, keys or files of a server, and the part of them that each hour asks for: begin and size.
ITEMS = {"redis": 7_000, "postgres": 40_000, "nginx": 2_400}
HOURS = [(0.0, 0.2), (0.2, 0.5), (0.1, 0.1), (0.5, 0.3), (0.0, 0.2), (0.3, 0.6)]
FASTER = 5


def read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def group(way: str) -> str:
    return f"{CGROUPS}/trial-{way}"


def charged(way: str) -> int:
    return int(read(f"{group(way)}/memory.current"))


# The servers: each starts its copy and gives a function that serves one request.


def enter(way: str):
    def inside() -> None:
        with open(f"{group(way)}/cgroup.procs", "w") as file:
            file.write("0")
        os.setsid()

    return inside


def drop() -> None:
    """Files leave the page cache, so that who reads them next pays for them."""
    subprocess.run(["sync"], check=True)
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("1")


def connected(place: str | int) -> socket.socket:
    end = time.time() + 120
    while True:
        try:
            if isinstance(place, int):
                return socket.create_connection(("127.0.0.1", place))
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(place)
            return peer
        except OSError:
            if time.time() > end:
                raise
            time.sleep(0.2)


def redis(way: str, folder: str):
    words = ["redis-server", "--unixsocket", f"{folder}/s", "--port", "0", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, preexec_fn=enter(way))
    peer = connected(f"{folder}/s").makefile("rwb")
    chance = os.urandom(1 << 20)
    for item in range(ITEMS["redis"]):
        # Half of a value is a repetition, so that it compresses about two to one, as heaps do.
        half = chance[item * 641 % 1_000_000 :][:4000]
        peer.write(b"*3\r\n$3\r\nSET\r\n$%d\r\n%d\r\n$8000\r\n%s%s\r\n" % (len(str(item)), item, half, half))
        if item % 100 == 99:
            peer.flush()
            assert peer.read(500) == b"+OK\r\n" * 100

    def request(items: list[int]) -> None:
        peer.write(b"MGET " + b" ".join(b"%d" % item for item in items) + b"\n")
        peer.flush()
        assert len(peer.read(4 + len(items) * 8009)) == 4 + len(items) * 8009

    return server, request


AS_POSTGRES = ["runuser", "-u", "postgres", "--"]


def query(peer, text: str) -> int:
    """Asks PostgreSQL, or only awaits it, and gives the number of rows."""
    if text:
        peer.write(b"Q" + struct.pack("!i", len(text) + 5) + text.encode() + b"\0")
        peer.flush()
    rows = 0
    while True:
        kind, size = struct.unpack("!ci", peer.read(5))
        body = peer.read(size - 4)
        assert kind != b"E", body
        rows += kind == b"D"
        if kind == b"Z":
            return rows


def started(folder: str, inside):
    binaries = "/usr/lib/postgresql/" + sorted(os.listdir("/usr/lib/postgresql"))[-1] + "/bin"
    if not os.path.isdir(f"{folder}/data"):
        make = [*AS_POSTGRES, f"{binaries}/initdb", "-A", "trust", "-D", f"{folder}/data", "--no-sync"]
        subprocess.run(make, stdout=subprocess.DEVNULL, check=True, cwd="/")
    words = [f"{binaries}/postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=", "-c", "shared_buffers=64MB"]
    words += ["-c", "fsync=off", "-c", "jit=off"]
    with open(f"{folder}/log", "w") as log:
        server = subprocess.Popen(["setpriv", "--reuid", "postgres", "--clear-groups", *words], cwd="/", stdout=log, stderr=log, preexec_fn=inside)
    start = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
    end = time.time() + 120
    while True:
        # It refuses until it has started.
        try:
            peer = connected(f"{folder}/.s.PGSQL.5432").makefile("rwb")
            peer.write(struct.pack("!i", len(start) + 4) + start)
            peer.flush()
            query(peer, "")
            return server, peer
        except (AssertionError, OSError, struct.error):
            assert time.time() < end, read(f"{folder}/log")
            time.sleep(0.5)


def postgres(way: str, folder: str):
    template = os.path.join(os.path.dirname(folder), "template")
    if not os.path.isdir(template):
        os.mkdir(template)
        shutil.chown(template, "postgres")
        server, peer = started(template, os.setsid)
        rows = f"SELECT g AS id, repeat(md5(g::text), 20) || md5(random()::text) AS v FROM generate_series(0, {ITEMS['postgres'] - 1}) g"
        for text in (f"CREATE TABLE a AS {rows}", "CREATE INDEX ON a (id)", "VACUUM ANALYZE a", "CHECKPOINT"):
            query(peer, text)
        peer.close()
        server.send_signal(signal.SIGINT)
        server.wait(120)
        for copy in WAYS:
            os.makedirs(os.path.join(os.path.dirname(folder), copy), exist_ok=True)
            shutil.chown(os.path.join(os.path.dirname(folder), copy), "postgres")
            subprocess.run(["cp", "-a", f"{template}/data", os.path.join(os.path.dirname(folder), copy)], check=True)
        drop()
    server, peer = started(folder, enter(way))
    query(peer, "CREATE EXTENSION pg_prewarm")
    query(peer, "SELECT pg_prewarm('a')")

    def request(items: list[int]) -> None:
        assert query(peer, f"SELECT v FROM a WHERE id IN ({','.join(map(str, items))})") == len(set(items))

    return server, request


def nginx(way: str, folder: str):
    if not os.path.isdir(f"{folder}/files"):
        for copy in WAYS:
            files = os.path.join(os.path.dirname(folder), copy, "files")
            os.makedirs(files)
            for item in range(ITEMS["nginx"]):
                with open(f"{files}/{item}", "wb") as file:
                    file.write(os.urandom(8192) * 2)
        drop()
    with open(f"{folder}/conf", "w") as file:
        file.write(
            f"daemon off; pid {folder}/pid; error_log {folder}/log; worker_processes 1; events {{}}\n"
            f"http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 1d; server {{ listen unix:{folder}/s; root {folder}/files; }} }}\n"
        )
    server = subprocess.Popen(["nginx", "-c", f"{folder}/conf", "-p", folder], stderr=subprocess.DEVNULL, preexec_fn=enter(way))
    peer = connected(f"{folder}/s").makefile("rwb")

    def request(items: list[int]) -> None:
        for item in items[:2]:
            peer.write(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % item)
            peer.flush()
            assert peer.readline().startswith(b"HTTP/1.1 200")
            size = 0
            while (line := peer.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            assert len(peer.read(size)) == 16384

    # All files are in the page cache, at the cost of the copy's group.
    for item in range(ITEMS["nginx"]):
        request([item])
    return server, request


SERVERS = {"redis": redis, "postgres": postgres, "nginx": nginx}


def senpai(folder: str, slower: float, ended: threading.Event, ups: list[float]) -> None:
    """The rule of senpai's README, faster."""
    pressure, interval = 1000 * slower / FASTER, 5

    def stalled() -> int:
        some = next(line for line in read(f"{folder}/memory.pressure").splitlines() if line.startswith("some"))
        return int(some.rsplit("total=", 1)[1])

    def write(limit: float) -> None:
        with open(f"{folder}/memory.high", "w") as file:
            file.write(str(int(limit) // 4096 * 4096))

    limit = float(read(f"{folder}/memory.current"))
    total, integral, to_probe = stalled(), 0, interval
    write(limit)
    while not ended.wait(1 / FASTER):
        now = stalled()
        integral, total = integral + now - total, now
        if integral > pressure:
            limit *= 1 + min(0.1 * math.log(integral / pressure, 10), 0.1)
            ups.append(time.monotonic())
            write(limit)
            integral, to_probe = 0, interval
        elif to_probe > 0:
            to_probe -= 1
        else:
            limit *= 1 - min(0.01 * math.log(pressure / max(integral, 1), 1000), 0.01)
            write(limit)
            integral, to_probe = 0, interval


def percentile(all_of_them: list[float], part: float) -> float:
    return sorted(all_of_them)[min(int(len(all_of_them) * part), len(all_of_them) - 1)]


def trial(kind: str, hours: int, hour: float, slower: float, say) -> dict:
    base = f"/var/tmp/{kind}"
    requests, servers, folders = {}, {}, {}
    for way in WAYS:
        folders[way] = f"{base}/{way}"
        os.makedirs(folders[way], exist_ok=True)
        os.makedirs(group(way), exist_ok=True)
        servers[way], requests[way] = SERVERS[kind](way, folders[way])
        say(f"{kind}: {way} is there, {time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s")
    # The first copy pays for the program's file, which all share.
    first = {way: charged(way) for way in WAYS}
    say(f"{kind}: " + ", ".join(f"{way} {first[way] >> 20} MiB" for way in WAYS))
    latencies = f"{base}/latencies"
    open(latencies, "w").close()
    keepers = {}
    for way, more in (("hold", ["--latency-file", latencies]), ("stalls", [])):
        words = ["/opt/vm/coldframe", "squeeze", group(way), "--hold", "--yes", "--for", f"{10 / FASTER}s", "--max-stall", f"{0.5 * slower}%"]
        words += ["--format", "json", "--state", f"{base}/{way}.json", *more]
        keepers[way] = subprocess.Popen(words, stdout=open(f"{base}/{way}.log", "w"), stderr=subprocess.STDOUT)
    ended, ups = threading.Event(), []
    rival = threading.Thread(target=senpai, args=(group("senpai"), slower, ended, ups))
    rival.start()
    random.seed(7)
    taken: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    used: dict[str, list[float]] = {way: [] for way in WAYS}
    with open(latencies, "a") as log:
        for number in range(hours):
            begin, size = HOURS[number % len(HOURS)]
            first, many = int(begin * ITEMS[kind]), int(size * ITEMS[kind])
            for way in WAYS:
                taken[way].append([])
            end, look = time.monotonic() + hour, 0.0
            while (now := time.monotonic()) < end:
                # Most ask for few of them.
                items = [first + int(many * random.random() ** 2) for _ in range(4)]
                for way in random.sample(WAYS, len(WAYS)):
                    asked = time.perf_counter()
                    requests[way](items)
                    taken[way][-1].append(1e3 * (time.perf_counter() - asked))
                log.write(f"{taken['hold'][-1][-1]:.4f}\n")
                log.flush()
                if now > look + 1:
                    look = now
                    stat = read("/sys/block/zram0/mm_stat").split()
                    held, compressed = max(int(stat[0]), 1), int(stat[2])
                    for way in WAYS:
                        swapped = int(read(f"{group(way)}/memory.swap.current"))
                        used[way].append(charged(way) + swapped * compressed / held)
                time.sleep(max(0.0, 1 / ROUNDS_A_SECOND - (time.monotonic() - now)))
            p99 = " ".join(f"{way} {percentile(taken[way][-1], 0.99):.2f} ms {used[way][-1] / 2**20:.0f} MiB;" for way in WAYS)
            say(f"{kind}: hour {number + 1}: p99 and RAM: {p99}")
    ended.set()
    rival.join()
    failures = {"senpai": len(ups)}
    for way, keeper in keepers.items():
        keeper.send_signal(signal.SIGTERM)
        code = keeper.wait(60)
        lines = read(f"{base}/{way}.log").splitlines()
        changes = [json.loads(line) for line in lines if line.startswith("{")]
        failures[way] = sum(change["limit_bytes"] is None and change["why"] != "stopped" for change in changes)
        back = read(f"{group(way)}/memory.high")
        say(f"{kind}: {way}: exit code {code}, memory.high is {back}; " + "; ".join(line for line in lines if not line.startswith("{")))
        whys = sorted({change["why"] for change in changes})
        counts = [f"{why} {sum(change['why'] == why for change in changes)}" for why in whys]
        say(f"{kind}: {way}: {len(changes)} changes, {', '.join(counts)}")
    for server in servers.values():
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    time.sleep(1)
    rows = {}
    everything = {way: sum(taken[way], []) for way in WAYS}
    alone = percentile(everything["alone"], 0.99)
    for way in WAYS:
        worst = max(percentile(one, 0.99) / percentile(of, 0.99) for one, of in zip(taken[way], taken["alone"]))
        seconds = len(used[way])
        given = 1 - sum(used[way]) / (sum(used["alone"]) - seconds * (first["alone"] - first[way]))
        rows[way] = {
            "p99_ms": percentile(everything[way], 0.99),
            "ratio": percentile(everything[way], 0.99) / alone,
            "p50_ratio": percentile(everything[way], 0.5) / percentile(everything["alone"], 0.5),
            "worst_hour": worst,
            "given_back": given,
            "mean_mib": sum(used[way]) / seconds / 2**20,
            "ups": failures.get(way, 0),
            "requests": len(everything[way]),
        }
        subprocess.run(["rmdir", group(way)], check=False)
    return rows


def inside(kinds: list[str], hours: int, hour: float, slower: float) -> None:
    with open("/dev/ttyS1", "w") as line:

        def say(text: str) -> None:
            line.write(text + "\n")
            line.flush()

        say(f"Linux {os.uname().release}, booted in {time.clock_gettime(time.CLOCK_BOOTTIME):.0f} s")
        for unit in ("redis-server", "postgresql", "nginx"):
            subprocess.run(["systemctl", "stop", unit], check=False)
        subprocess.run("modprobe zram num_devices=1; echo 768M > /sys/block/zram0/disksize; mkswap /dev/zram0; swapon /dev/zram0", shell=True, check=True)
        failed = 0
        for kind in kinds:
            try:
                for way, row in trial(kind, hours, hour, slower, say).items():
                    say(f"ROW {json.dumps({'server': kind, 'way': way, **row})}")
            except Exception as error:  # noqa: BLE001
                failed += 1
                say(f"{kind}: {type(error).__name__}: {error} (line {error.__traceback__.tb_lineno if error.__traceback__ else 0})")
                subprocess.run(f"for g in {CGROUPS}/trial-*; do echo 1 > $g/cgroup.kill; done; sleep 2; rmdir {CGROUPS}/trial-*", shell=True, check=False)
        say(f"{vm.END} {failed}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("built", nargs="?", default="target/release")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", default=",".join(SERVERS))
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--hour", type=float, default=90)
    parser.add_argument("--slower", type=float, default=10)
    parser.add_argument("--prepare", action="store_true")
    arguments = parser.parse_args()
    kinds = arguments.only.split(",")
    if arguments.inside:
        inside(kinds, arguments.hours, arguments.hour, arguments.slower)
        return 0
    missing = [package for tool, package in vm.TOOLS.items() if not shutil.which(tool, path=os.environ["PATH"] + ":/sbin:/usr/sbin")]
    if missing:
        print(f"hold: tools are missing; on Debian: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 3
    # A root of its own, so that the checks' root stays small; the newest kernel.
    vm.PLACE = os.path.join(os.path.dirname(HERE), "target", "vm-hold")
    vm.PACKAGES += " redis-server postgresql nginx-light"
    vm.KERNELS = vm.KERNELS[1:]
    folder = vm.made_root()
    if arguments.prepare:
        return 0
    disk = os.path.join(vm.PLACE, "job.tar")
    with tarfile.open(disk, "w") as archive:
        for file in (f"{arguments.built}/coldframe", os.path.abspath(__file__), vm.__file__):
            archive.add(file, os.path.join("vm", os.path.basename(file)))
    version = next(name[len("vmlinuz-") :] for name in os.listdir(folder) if name.startswith("vmlinuz-"))
    words = f"hold.py --inside --only {','.join(kinds)} --hours {arguments.hours} --hour {arguments.hour} --slower {arguments.slower}"
    failed = vm.boot(folder, version, disk, words, 600, machine=["-m", "2048"])
    return 4 if failed is None else int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
