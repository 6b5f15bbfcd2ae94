#!/usr/bin/env python3
"""Three servers take turns in less RAM than they need: time from the switch to the 100th answer. `make bench-park`, root.

Redis, a server in Python and one in Node, those that are here: 120,000 values of 1,000 bytes each.
A request asks for 8 of them, by Zipf's law (exponent 1), one request after the other; a turn has 400 requests, and
half-way through it the next server may be told that its turn comes soon. Rounds take turns between three ways: SIGCONT,
`coldframe resume`, and `coldframe resume --soon` before it; each on zram, then on a swap file, which are made and taken
away. A parked server's group is pressed empty, as other programs would do it. The clock starts when the server may run:
what the commands take until then (kill, and coldframe, measured on a name that is not there) is taken off.

With `--turns` the servers take turns by the clock, each with a client that asks without a pause: SIGSTOP and SIGCONT by
this script, then `coldframe turns`, in blocks, one after the other. The clock starts at the last answer of the server
before, so that all that a switch takes counts.

With `--restart` each round starts a server anew, fills it, parks it and presses it out, and times its first turn: with SIGCONT,
with `resume --soon` and `resume` by no list, and by the list that an earlier start has left on disk.
"""

import argparse
import bisect
import itertools
import os
import random
import shutil
import tempfile
import socket
import statistics
import subprocess
import sys
import signal
import threading
import time

import measure

KEYS, BYTES, EACH = 120_000, 1000, 8
WAYS = ("SIGCONT", "resume", "--soon")

PYTHON = """
import os, socket, sys
values = {b"%d" % i: os.urandom(500) * 2 for i in range(120000)}
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    peer = server.accept()[0].makefile("rwb")
    for line in peer:
        peer.write(b"".join(values[key] for key in line.split())); peer.flush()
"""
NODE = """
const values = new Map();
for (let i = 0; i < 120000; i++) values.set(String(i), Buffer.alloc(1000, require("crypto").randomBytes(500)));
require("net").createServer(peer => { let text = ""; peer.on("data", data => {
    text += data; const lines = text.split("\\n"); text = lines.pop();
    for (const line of lines) peer.write(Buffer.concat(line.split(" ").map(key => values.get(key)))); }); })
    .listen(Number(process.argv[1]), "127.0.0.1");
"""
# Half of a value is a repetition, so that it compresses about two to one, as heaps do.
FILL = """EVAL "for i = 0, 119999 do local t = {} for j = 1, 64 do t[j] = string.format('%08x', math.random(2^30)) end
local half = table.concat(t):sub(1, 500) redis.call('SET', i, half .. half) end" 0"""


class Group:
    """A memory group, so that what a parked server leaves in RAM can be pressed out, as other programs would do it."""

    def __init__(self, name):
        one = "/sys/fs/cgroup/memory"
        self.folder = os.path.join(one if os.path.isdir(one) else "/sys/fs/cgroup", name)
        self.file = "memory.force_empty" if os.path.isdir(one) else "memory.reclaim"
        os.mkdir(self.folder)

    def write(self, file, text):
        try:
            with open(os.path.join(self.folder, file), "w") as to:
                to.write(text)
        except OSError:
            # Not all could leave.
            assert file == self.file

    def press(self):
        self.write(self.file, "1G")

    def end(self):
        for _ in range(100):
            try:
                return os.rmdir(self.folder)
            except OSError:
                time.sleep(0.05)


class Server:
    def __init__(self, kind, port, alone):
        port = str(port)
        words = {
            "redis": ["redis-server", "--port", port, "--save", "", "--appendonly", "no"],
            "python": [sys.executable, "-c", PYTHON, port],
            "node": ["node", "-e", NODE, port],
        }[kind]
        self.kind, self.random, self.order = kind, random.Random(port), list(range(KEYS))
        self.random.shuffle(self.order)
        # Its program stays in the page cache, which this process pays for.
        subprocess.run(["cat", os.path.realpath(shutil.which(words[0]))], stdout=subprocess.DEVNULL, check=True)
        self.group = Group(f"bench-park-{port}") if alone else None
        enter = lambda: self.group and self.group.write("cgroup.procs", "0")
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=enter)
        self.port, self.pid = int(port), str(self.process.pid)

    def fill(self):
        end = time.time() + 60
        while True:
            try:
                self.peer = socket.create_connection(("127.0.0.1", self.port)).makefile("rwb")
                break
            except OSError:
                assert time.time() < end, f"{self.kind} does not answer"
                time.sleep(0.05)
        self.verb, self.size = b"", EACH * BYTES
        if self.kind == "redis":
            self.peer.write(FILL.replace("\n", " ").encode() + b"\n")
            self.peer.flush()
            assert self.peer.readline() == b"$-1\r\n"
            self.verb, self.size = b"MGET ", len("*8\r\n") + EACH * (len("$1000\r\n") + BYTES + len("\r\n"))

    def request(self, weights):
        at = [bisect.bisect(weights, self.random.random() * weights[-1]) for _ in range(EACH)]
        self.peer.write(self.verb + " ".join(str(self.order[i]) for i in at).encode() + b"\n")
        self.peer.flush()
        assert len(self.peer.read(self.size)) == self.size


def takes(*words):
    """Milliseconds of a command."""
    def once():
        begin = time.perf_counter()
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1e3 * (time.perf_counter() - begin)

    return measure.median(once() for _ in range(31))


def measure_rounds(coldframe, servers, rounds, length, starts):
    weights = list(itertools.accumulate(1 / (i + 1) for i in range(KEYS)))
    call = lambda *words: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    for server in servers:
        for _ in range(length):
            server.request(weights)
        call(coldframe, "park", server.pid)
    found = {}
    # The first three rounds are for the lists: the first resume has none.
    for turn in range(-3, rounds * len(WAYS)):
        way = WAYS[turn % len(WAYS)]
        for server, following in zip(servers, servers[1:] + servers[:1]):
            # The way of the server that follows: in the last place of a round it is the next round's.
            after = way if following is not servers[0] else WAYS[(turn + 1) % len(WAYS)]
            begin = time.perf_counter()
            command = ("kill", "-CONT", server.pid) if way == "SIGCONT" else (coldframe, "resume", server.pid)
            running, times = subprocess.Popen(command, stdout=subprocess.DEVNULL), []
            soon = None
            for i in range(length):
                server.request(weights)
                times.append(1e3 * (time.perf_counter() - begin) - starts[way])
                if i == length // 2 and after == "--soon":
                    soon = subprocess.Popen((coldframe, "resume", "--soon", following.pid), stdout=subprocess.DEVNULL)
            running.wait()
            if soon:
                soon.wait()
            call(coldframe, "park", server.pid)
            if server.group:
                server.group.press()
            if turn >= 0:
                found.setdefault((server.kind, way), []).append((times[0], times[99], times[-1]))
    return found


def major_faults(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[9])


class Client(threading.Thread):
    """Asks one server without a pause, and keeps the time of each answer."""

    def __init__(self, server, weights):
        super().__init__(daemon=True)
        self.server, self.weights, self.times = server, weights, []
        # At each answer, major faults of the server so far: read at all of the first of a turn, then now and then.
        self.faults, self.since = [], 0

    def run(self):
        try:
            while True:
                self.server.request(self.weights)
                now = time.perf_counter()
                self.since = 0 if self.times and now - self.times[-1] > 0.3 else self.since + 1
                read = self.since < 120 or self.since % 16 == 0
                self.faults.append(major_faults(self.server.pid) if read else self.faults[-1])
                self.times.append(now)
        except (OSError, AssertionError):
            pass


def stop_and_continue(servers, seconds, until):
    """Turns with nothing but signals."""
    for server in servers[1:]:
        server.process.send_signal(signal.SIGSTOP)
    for runs, following in itertools.cycle(zip(servers, servers[1:] + servers[:1])):
        time.sleep(seconds)
        runs.process.send_signal(signal.SIGSTOP)
        following.process.send_signal(signal.SIGCONT)
        if time.perf_counter() > until:
            break
    for server in servers:
        server.process.send_signal(signal.SIGCONT)


def measure_turns(coldframe, servers, blocks, seconds):
    weights = list(itertools.accumulate(1 / (i + 1) for i in range(KEYS)))
    clients = [Client(server, weights) for server in servers]
    for client in clients:
        client.start()
    found, length = {}, 4 * len(servers) * seconds
    for block in range(2 * blocks):
        begin, way = time.perf_counter(), ("SIGCONT", "turns")[block % 2]
        if way == "SIGCONT":
            stop_and_continue(servers, seconds, begin + length)
        else:
            words = [coldframe, "-q", "turns", "--slice", f"{seconds}s", *(server.pid for server in servers)]
            turns = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            time.sleep(length)
            turns.send_signal(signal.SIGINT)
            assert turns.wait() == 0
        answers = sorted((at, i, n) for i, client in enumerate(clients) for n, at in enumerate(client.times) if at > begin)
        runs = [(i, [(at, n) for at, _, n in run]) for i, run in itertools.groupby(answers, key=lambda one: one[1])]
        # Between blocks all of them run.
        runs = [run for run in runs if run[1][-1][0] - run[1][0][0] > seconds / 2]
        # The first round is for the lists, and the last turn is cut short.
        for (_, before), (i, run) in list(zip(runs, runs[1:]))[len(servers):-1]:
            times = [1e3 * (at - before[-1][0]) for at, _ in run]
            if len(times) > 99:
                first, faults = run[0][1], clients[i].faults
                waits = faults[run[99][1]] - faults[first - 1] if first else 0
                found.setdefault((servers[i].kind, way), []).append((times[0], times[99], 1e3 * len(times) / times[-1], waits))
    return found


RESTARTS = ("SIGCONT", "no list", "list")


def measure_restarts(coldframe, kinds, rounds, length, starts):
    weights = list(itertools.accumulate(1 / (i + 1) for i in range(KEYS)))
    found = {}
    for number, kind in enumerate(kinds):
        with tempfile.TemporaryDirectory() as folder:
            kept, used = os.path.join(folder, "kept"), os.path.join(folder, "used")
            # The first start makes the list, in two turns.
            for turn in range(-1, rounds * len(RESTARTS)):
                way = RESTARTS[turn % len(RESTARTS)]
                shutil.rmtree(used, ignore_errors=True)
                if turn >= 0 and way == "list":
                    shutil.copytree(kept, used)
                environment = os.environ | {"XDG_CACHE_HOME": kept if turn < 0 else used}
                call = lambda *words: subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)
                server = Server(kind, 21000 + number, True)
                try:
                    server.fill()
                    # Another start asks for other values of the same distribution.
                    server.random.seed(turn)
                    for _ in range(2 if turn < 0 else 0):
                        call(coldframe, "park", server.pid)
                        server.group.press()
                        call(coldframe, "resume", server.pid)
                        for _ in range(length):
                            server.request(weights)
                    call(coldframe, "park", server.pid)
                    if turn < 0:
                        continue
                    server.group.press()
                    if way != "SIGCONT":
                        call(coldframe, "resume", "--soon", server.pid)
                    begin = time.perf_counter()
                    command = ("kill", "-CONT", server.pid) if way == "SIGCONT" else (coldframe, "resume", server.pid)
                    running, times = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment), []
                    for _ in range(length):
                        server.request(weights)
                        times.append(1e3 * (time.perf_counter() - begin) - starts["SIGCONT" if way == "SIGCONT" else "resume"])
                    running.wait()
                    found.setdefault((kind, way), []).append((times[0], times[99], times[-1]))
                finally:
                    server.process.kill()
                    server.process.wait()
                    server.group.end()
    return found


def show_turns(kind, found, servers):
    print(f"{kind}, load {measure.load():.1f}; medians in ms (quartiles of the 100th answer), major faults until it, answers in a second")
    print(f"{'server':8} {'way':8} {'turns':>5} {'first':>7} {'100th':>7} {'':15} {'ratio':>6} {'majors':>7} {'answers/s':>10} {'ratio':>6}")
    middle = lambda rows, i: measure.median(row[i] for row in rows)
    for server in servers:
        plain = found[server.kind, "SIGCONT"]
        for way in ("SIGCONT", "turns"):
            rows = found[server.kind, way]
            low, _, high = statistics.quantiles((row[1] for row in rows), n=4)
            sooner, more = middle(plain, 1) / middle(rows, 1), middle(rows, 2) / middle(plain, 2)
            print(f"{server.kind:8} {way:8} {len(rows):5} {middle(rows, 0):7.1f} {middle(rows, 1):7.1f} "
                  f"{f'({low:.1f}-{high:.1f})':15} {sooner:6.2f} {middle(rows, 3):7.0f} {middle(rows, 2):10.0f} {more:6.2f}")


def show(kind, found, kinds, ways=WAYS):
    load = measure.load()
    print(f"{kind}, load {load:.1f}; medians in ms (quartiles of the 100th answer), and the 100th beside SIGCONT's")
    print(f"{'server':8} {'way':8} {'first':>7} {'100th':>7} {'':15} {'last':>7} {'ratio':>6}")
    for server in kinds:
        for way in ways:
            rows = found[server, way]
            first, hundredth, last = ([row[i] for row in rows] for i in range(3))
            low, _, high = statistics.quantiles(hundredth, n=4)
            # Of rounds next to each other, as the load changes.
            beside = [found[server, "SIGCONT"][i][1] / rows[i][1] for i in range(len(rows))]
            middle = measure.median
            quartiles = f"({low:.1f}-{high:.1f})"
            print(f"{server:8} {way:8} {middle(first):7.1f} {middle(hundredth):7.1f} {quartiles:15} "
                  f"{middle(last):7.1f} {middle(beside):6.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("coldframe")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--on", choices=["zram", "file"])
    parser.add_argument("--turn", type=int, default=400, help="requests of a turn")
    parser.add_argument("--turns", type=float, metavar="SECONDS", help="turns by `coldframe turns` of so many seconds")
    parser.add_argument("--restart", action="store_true", help="the first turn of servers that are started anew")
    parser.add_argument("--ram", help="all servers in one group with so much RAM, and nothing presses them out")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench-park makes swap; run it as root")
    coldframe = measure.program(parser, asked.coldframe)
    measure.stop_cleanly()
    if not asked.inside:
        for on in [asked.on] if asked.on else ["zram", "file"]:
            # It makes swap and takes it away. The servers are in groups of their own.
            where = f"/var/tmp/bench-park-{os.getpid()}" if on == "file" else on
            words = [sys.executable, *sys.argv, "--inside", "--on", on]
            ram = asked.ram or "4GiB"
            subprocess.run([coldframe, "-q", "run", "--by", "kernel", "--ram", ram, "--swap", where, "--", *words])
        return
    kinds = [kind for kind, tool in (("redis", "redis-server"), ("python", sys.executable), ("node", "node"))
             if shutil.which(tool) or print(f"{tool} is not here")]
    starts = {"SIGCONT": takes("kill", "-CONT", "4194305"), "resume": takes(coldframe, "resume", "4194305")}
    starts["--soon"] = starts["resume"]
    print(f"starting kill takes {starts['SIGCONT']:.1f} ms, coldframe {starts['resume']:.1f} ms")
    if asked.restart:
        return show(asked.on, measure_restarts(coldframe, kinds, asked.rounds, asked.turn, starts), kinds, RESTARTS)
    servers = []
    try:
        for kind in kinds:
            servers.append(Server(kind, 21000 + len(servers), not asked.ram))
            servers[-1].fill()
        if asked.turns:
            return show_turns(asked.on, measure_turns(coldframe, servers, asked.rounds, asked.turns), servers)
        show(asked.on, measure_rounds(coldframe, servers, asked.rounds, asked.turn, starts), kinds)
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
            if server.group:
                server.group.end()


main()
