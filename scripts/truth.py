#!/usr/bin/env python3
"""Compares predicted with measured run times: real programs under `coldframe -- PROGRAM`, and then with less RAM.

    python3 scripts/truth.py target/release/coldframe [--only NAME,NAME] [--quick] [--format json] [--keep FOLDER]

For each program in turn: `coldframe doctor --calibrate`, the answer, and a run at the sizes of its curve nearest to 75, 50, 33 and
25 % of its heap; as root, each size also with the kernel's swap on zram. Runs without coldframe come in between, so that all
runs see about the same load of the machine. A program that is not installed is skipped with a message. The script checks
no limits.

    off      predicted less measured run time, in percent of the measured
    RAM off  shift of the predicted curve that would meet the measured time, in percent of the RAM
    faults   predicted and measured true faults, or pages back from swap, and their difference in percent of the measured
    in       whether the measured time is in the predicted range
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

# A run is stopped after this many seconds. Runs predicted to take longer than two thirds of it are not tried.
PATIENCE_S = 60.0
QUICK_S = 30.0
# The sizes, in percent of the heap.
SIZES = (75, 50, 33, 25)
# The goals: within 40 % of the time, or within a twentieth of the RAM; an answer after 20 s or 5 times the program's own
# time.
NEAR_PERCENT = 40.0
NEAR_RAM_PERCENT = 5.0
ANSWER_S = 20.0
ANSWER_TIMES = 5.0
WIDTH = 80

M = """
import hashlib, random
random.seed(7); d = {}
for i in range(400000): d[random.getrandbits(60)] = str(i) * 3
h = hashlib.sha256()
for k in sorted(d): h.update(d[k].encode())
print(len(d), h.hexdigest())
"""
WORDFREQ = """
import random, collections, hashlib
random.seed(1)
words=[hashlib.md5(str(i).encode()).hexdigest()[:8] for i in range(120000)]
c=collections.Counter()
idx={}
for i in range(600000):
    w=words[int(random.paretovariate(0.8))%len(words)]
    c[w]+=1
    idx.setdefault(w,[]).append(i)
print(c.most_common(3), sum(len(v) for v in idx.values()))
"""
NUMPY = """
import numpy
chance = numpy.random.default_rng(7)
a = chance.random(4_000_000)
for i in range(3):
    order = numpy.argsort(a)
    a = a[order] + chance.random(len(a))
print(a.sum())
"""
PERL = """
srand(7); my %h; my $s = 0;
$h{int(rand(300000))} .= "entry $_ " for 1..1200000;
$s += length($h{$_}) for sort keys %h;
print "$s\\n";
"""
RUBY = """
chance = Random.new(7); h = {}
400000.times { |i| (h[chance.rand(200000)] ||= []) << "value #{i}" }
puts h.keys.sort.sum { |k| h[k].sum(&:size) }
"""
PHP = """<?php
mt_srand(7); $h = [];
for ($i = 0; $i < 1500000; $i++) { $h[mt_rand(0, 400000)][] = $i; }
ksort($h); $s = 0;
foreach ($h as $k => $v) { $s = ($s * 31 + count($v) + $k) % 1000003; }
echo $s, "\\n";
"""
LUA = """
math.randomseed(7)
local t = {}
for i = 1, 500000 do t[i] = { key = math.random(1, 1 << 40), name = "row " .. i } end
table.sort(t, function(a, b) return a.key < b.key end)
local s = 0
for i, row in ipairs(t) do s = (s * 31 + #row.name + row.key) % 1000003 end
print(s)
"""
NODE = """
let x = 7; const rand = () => (x = (x * 1103515245 + 12345) % 2147483648);
const m = new Map();
for (let i = 0; i < 900000; i++) { const k = rand() % 300000; const l = m.get(k); if (l) l.push('v' + i); else m.set(k, ['v' + i]); }
let s = 0;
for (let r = 0; r < 4; r++) for (const k of [...m.keys()].sort((a, b) => a - b)) s = (s * 31 + m.get(k).join().length) % 1000003;
console.log(s);
"""
SQL = """
create table t(id integer primary key, k integer, name text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500000)
insert into t select i, (i * 2654435761) % 1000003, 'name of row ' || i from n;
create index k on t(k);
select sum(length(b.name)) from t a join t b on b.k = (a.k * 7) % 1000003;
select count(*), sum(length(name)) from (select name from t order by k, name);
"""
REDIS = """
redis-server --save '' --port 0 --unixsocket $PWD/socket --loglevel warning &
server=$!
while ! redis-cli -s $PWD/socket ping > ping.txt 2>&1; do sleep 0.05; done
redis-benchmark -s $PWD/socket -n 150000 -r 60000 -d 700 -P 8 -t set,get -q > benchmark.txt
redis-cli -s $PWD/socket shutdown nosave
wait $server
"""


@dataclass
class Program:
    """A program; {data} is the folder of the inputs."""

    name: str
    needs: list
    command: list


PROGRAMS = [
    Program("sort", ["sort"], ["sort", "-S", "300M", "--parallel=1", "-o", "{data}/sorted.txt", "{data}/numbers.txt"]),
    Program("gawk", ["gawk"], ["gawk", "{ n[$1]++; s[$2 % 200000] += $1 } END { for (i in s) t += s[i]; print length(n), t }", "{data}/pairs.txt"]),
    Program("jq", ["jq"], ["jq", "[group_by(.group)[] | {n: length, v: (map(.value) | add)}] | length", "{data}/data.json"]),
    Program("perl", ["perl"], ["perl", "{data}/p.pl"]),
    Program("ruby", ["ruby"], ["ruby", "{data}/r.rb"]),
    Program("php", ["php"], ["php", "-d", "memory_limit=-1", "{data}/p.php"]),
    Program("lua", ["lua5.4"], ["lua5.4", "{data}/l.lua"]),
    Program("node", ["node"], ["node", "{data}/n.js"]),
    Program("sqlite3", ["sqlite3"], ["sqlite3", ":memory:", ".read {data}/s.sql"]),
    Program("redis", ["redis-server", "redis-benchmark", "redis-cli"], ["sh", "{data}/redis.sh"]),
    Program("xz", ["xz"], ["xz", "-6", "-T1", "-k", "-f", "-c", "{data}/data.bin"]),
    Program("bzip2", ["bzip2"], ["bzip2", "-9", "-k", "-c", "{data}/data.bin"]),
    Program("numpy", ["/usr/bin/python3", "numpy"], ["/usr/bin/python3", "{data}/numpy_sorts.py"]),
    Program("cc1", ["gcc"], ["{cc1}", "-quiet", "-O1", "{data}/big.c", "-o", "{data}/big.s"]),
    Program("m.py", ["/usr/bin/python3"], ["/usr/bin/python3", "{data}/m.py"]),
    Program("wordfreq", ["/usr/bin/python3"], ["/usr/bin/python3", "{data}/wordfreq.py"]),
]


def inputs(folder: str) -> None:
    """Writes the programs' input files, the same every time. Keeps those of an earlier run."""
    if os.path.exists(f"{folder}/whole"):
        return
    chance = random.Random(7)
    sources = {"m.py": M, "wordfreq.py": WORDFREQ, "numpy_sorts.py": NUMPY, "p.pl": PERL, "r.rb": RUBY, "p.php": PHP, "l.lua": LUA, "n.js": NODE, "s.sql": SQL, "redis.sh": REDIS}
    for name, text in sources.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)
    with open(f"{folder}/numbers.txt", "w") as file:
        file.writelines(f"{chance.getrandbits(60):019d} {i}\n" for i in range(1_000_000))
    with open(f"{folder}/pairs.txt", "w") as file:
        file.writelines(f"{int(300000 * chance.random() ** 2)} {chance.getrandbits(30)}\n" for _ in range(1_500_000))
    with open(f"{folder}/data.json", "w") as file:
        json.dump([{"id": i, "group": chance.randrange(20000), "value": chance.randrange(999)} for i in range(150_000)], file)
    with open(f"{folder}/data.bin", "wb") as file:
        for _ in range(1200):
            piece = chance.randbytes(4000)
            for _ in range(chance.randint(1, 5)):
                file.write(piece + chance.randbytes(300))
    with open(f"{folder}/big.c", "w") as file:
        for i in range(1500):
            calls = "\n".join(f"    for (int i = 0; i < a; i++) s += a * {chance.randrange(99)} ^ (b >> {k}) + i % {k + 2};" for k in range(6))
            file.write(f"int f{i}(int a, int b) {{\n    int s = 0;\n{calls}\n    return s;\n}}\n")
    open(f"{folder}/whole", "w").close()


def missing(program: Program) -> str | None:
    """The first thing that the program needs and that is not installed."""
    for need in program.needs:
        if need == "numpy":
            if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode != 0:
                return need
        elif shutil.which(need) is None:
            return need
    return None


class Ended(Exception):
    """A command that took too long or failed."""


class Bench:
    def __init__(self, coldframe: str, data: str, folder: str, quick: bool):
        self.coldframe, self.data, self.folder, self.quick = os.path.abspath(coldframe), data, folder, quick
        self.swap = ["--swap", "zram"] if os.geteuid() == 0 and os.path.exists("/sys/class/zram-control") else []
        self.patience = QUICK_S if quick else PATIENCE_S

    def words(self, program: Program) -> list:
        cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip() if program.name == "cc1" else ""
        return [word.replace("{data}", self.data).replace("{cc1}", cc1) for word in program.command]

    def timed(self, words: list, patience: float) -> float:
        """Runs a command in the folder; returns the seconds it takes."""
        environment = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0")
        environment.pop("LD_PRELOAD", None)
        began = time.monotonic()
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)
            try:
                code = child.wait(patience)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                raise Ended(f"took more than {patience:.0f} s")
            seconds = time.monotonic() - began
            if code != 0:
                said.seek(0)
                last = said.read()[-300:].decode(errors="replace").strip().splitlines() or [""]
                raise Ended(f"exit code {code}: {last[-1]}")
        return seconds

    def measure(self, program: Program) -> dict:
        """All measurements of one program."""
        words, alone = self.words(program), []
        before = load()
        # The first run fills caches and is not counted.
        self.timed(words, self.patience)
        native = lambda: alone.append(self.timed(words, self.patience))
        native()
        # The short calibration takes less than a second and is less exact.
        self.timed([self.coldframe, "-q", "doctor", "--calibrate", *self.swap] + (["--short"] if self.quick else []), 120)
        answer_seconds = self.timed([self.coldframe, "--", *words], 600)
        answer = json.load(open(f"{self.folder}/{os.path.basename(words[0])}.coldframe/advice.json"))
        native()
        runs, swapped = [], []
        kernel = answer.get("kernel") or {"kind": "none", "curve": []}
        for point in sizes(answer):
            runs.append(self.run(words, answer["curve"], point, []))
            same = [other for other in kernel["curve"] if other["ram_bytes"] == point["ram_bytes"]]
            if self.swap and kernel["kind"] == "zram":
                swapped += [self.run(words, kernel["curve"], other, ["--by", "kernel", *self.swap]) for other in same]
        native()
        seconds = statistics.median(alone)
        return {
            "name": program.name,
            "native_seconds": seconds,
            "native_all": alone,
            "program_seconds": answer["program_seconds"],
            "recorded_times": answer["recorded_seconds"] / seconds,
            "answer_seconds": answer_seconds,
            "answer_allowed": max(ANSWER_S, ANSWER_TIMES * seconds),
            "needed_bytes": answer["needed_bytes"],
            "not_paged_bytes": answer["not_paged_bytes"],
            "window_pages": answer["window_pages"],
            "share": (answer.get("sampled") or {"share": 1.0})["share"],
            "rows": answer["entries"],
            "load": [before, load()],
            "runs": runs,
            "swapped": swapped,
        }

    def run(self, words: list, curve: list, point: dict, by: list) -> dict:
        """One size, by our pager, or, with these options, by the kernel."""
        stats = f"{self.folder}/stats.json"
        start = [self.coldframe, "run", *by, "--ram", f"{point['ram_bytes'] // 1024}KiB", "--stats", stats, "--"]
        said, back = ("swap_ins", "refaults") if by else ("true_faults", "true_faults")
        run = {"ram_bytes": point["ram_bytes"], "predicted": point | {"faults": point[said]}}
        if point["seconds_high"] is None or point["seconds"] > self.patience / 1.5:
            return run | {"ended": "no range" if point["seconds_high"] is None else "not tried"}
        with contextlib.suppress(FileNotFoundError):
            os.unlink(stats)
        try:
            self.timed([*start, *words], self.patience)
        except Ended as ended:
            killed = os.path.exists(stats) and json.load(open(stats))["counts"].get("killed")
            return run | {"ended": "killed" if killed else str(ended)}
        measured = json.load(open(stats))
        seconds, faults = measured["program"]["seconds"], measured["counts"][back]
        return run | {
            "seconds": seconds,
            "faults": faults,
            "counts": measured["counts"],
            "off_percent": percent(point["seconds"], seconds),
            "ram_off_percent": across(curve, point["ram_bytes"], seconds),
            "faults_off_percent": percent(point[said], faults),
            "in_range": point["seconds_low"] <= seconds <= point["seconds_high"],
        }


def percent(predicted: float, measured: float) -> float:
    return 100.0 * (predicted - measured) / max(measured, 1e-9)


def sizes(answer: dict) -> list:
    """The points of the curve nearest to these parts of the heap, each once."""
    heap = answer["managed_bytes"]
    nearest = [min(answer["curve"], key=lambda point: abs(point["ram_bytes"] - heap * part / 100)) for part in SIZES]
    return list({point["ram_bytes"]: point for point in nearest}.values())


def across(curve: list, ram: int, seconds: float) -> float | None:
    """How far the curve would have to be shifted to meet the measured time, in percent of the RAM. None: it never does."""
    points = sorted((p["ram_bytes"], p["seconds"]) for p in curve)
    meets = []
    for (a, at_a), (b, at_b) in zip(points, points[1:]):
        if min(at_a, at_b) <= seconds <= max(at_a, at_b):
            part = (seconds - at_a) / (at_b - at_a) if at_a != at_b else 0.0
            meets.append(a + part * (b - a))
    if not meets and points and seconds < points[-1][1]:
        return None
    return min((100.0 * abs(meet - ram) / ram for meet in meets), default=None)


def load() -> str:
    try:
        return open("/proc/loadavg").read().split(" ")[0]
    except OSError:
        return "?"


def size(value: float) -> str:
    mib = value / 2**20
    return f"{mib:.1f}M" if mib < 10 else f"{mib:.0f}M"


def count(value: float) -> str:
    return f"{value:.0f}" if value < 10_000 else f"{value / 1e3:.0f}k" if value < 10_000_000 else f"{value / 1e6:.1f}M"


def signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.0f}"


def near(run: dict) -> bool:
    across = run["ram_off_percent"]
    return abs(run["off_percent"]) <= NEAR_PERCENT or (across is not None and across <= NEAR_RAM_PERCENT)


def judged(sizes: list) -> dict:
    """Figures over all runs that ended by themselves, and the share of sizes that have no range."""
    runs = [run for run in sizes if "seconds" in run]
    if not runs:
        return {"runs": 0}
    times = [abs(run["off_percent"]) for run in runs]
    return {
        "runs": len(runs),
        "without_range_percent": 100.0 * sum(run.get("ended") == "no range" for run in sizes) / len(sizes),
        "median_off_percent": statistics.median(times),
        "near_percent": 100.0 * sum(map(near, runs)) / len(runs),
        "faults_median_off_percent": statistics.median(abs(run["faults_off_percent"]) for run in runs),
        "in_range_percent": 100.0 * sum(run["in_range"] for run in runs) / len(runs),
        "killed": sum(run.get("ended") == "killed" for run in sizes),
    }


def summary(all: list) -> dict:
    if not all:
        return {"runs": 0}
    return judged([run for program in all for run in program["runs"]]) | {
        "swapped": judged([run for program in all for run in program["swapped"]]),
        "alone_median_off_percent": statistics.median(abs(percent(p["program_seconds"], p["native_seconds"])) for p in all),
        "recorded_times_median": statistics.median(p["recorded_times"] for p in all),
        "recorded_times_max": max(p["recorded_times"] for p in all),
        "answers_late": sum(p["answer_seconds"] > p["answer_allowed"] for p in all),
    }


RUNS = f"{'program':<9}{'--ram':>6}{'times':>6}{'predicted':>10}{'measured':>9}{'off %':>7}{'RAM %':>6}{'faults':>7}{'measured':>9}{'off %':>7}{'in':>4}"
ALONE = f"{'program':<9}{'needs':>6}{'alone':>7}{'said':>7}{'off %':>7}{'answer':>8}{'of':>6}{'recorded':>10}{'pages':>7}{'window':>8}{'load':>6}"


def rows(program: dict, runs: list) -> list:
    lines = []
    for run in runs:
        said = run["predicted"]
        head = f"{program['name']:<9}{size(run['ram_bytes']):>6}"
        if "ended" in run:
            lines.append(f"{head}{'':6}{said['seconds']:>9.2f}s  {run['ended']}"[:WIDTH])
            continue
        off, shift = signed(run["off_percent"]), "-" if run["ram_off_percent"] is None else f"{run['ram_off_percent']:.0f}"
        times = run["seconds"] / program["native_seconds"]
        lines.append(
            f"{head}{times:>6.1f}{said['seconds']:>9.2f}s{run['seconds']:>8.2f}s{off:>7}{shift:>6}"
            f"{count(said['faults']):>7}{count(run['faults']):>9}{signed(run['faults_off_percent']):>7}{'yes' if run['in_range'] else 'no':>4}"
        )
    return lines


def alone(program: dict) -> str:
    off = signed(percent(program["program_seconds"], program["native_seconds"]))
    return (
        f"{program['name']:<9}{size(program['needed_bytes']):>6}{program['native_seconds']:>6.2f}s{program['program_seconds']:>6.2f}s{off:>7}"
        f"{program['answer_seconds']:>7.1f}s{program['answer_allowed']:>5.0f}s{program['recorded_times']:>9.1f}x{100 * program['share']:>6.0f}%"
        f"{size(4096 * program['window_pages']):>8}{program['load'][1]:>6}"
    )


def verdict(s: dict, faults: str) -> list:
    return [
        f"{faults} off by {s['faults_median_off_percent']:.1f} % in the median; {s['in_range_percent']:.0f} % of run times in the predicted range",
        f"median error {s['median_off_percent']:.0f} % ({s['runs']} runs)",
        f"within {NEAR_PERCENT:.0f} % of the time or {NEAR_RAM_PERCENT:.0f} % of RAM: {s['near_percent']:.0f} %",
        f"sizes without a range: {s['without_range_percent']:.0f} %",
    ]


def words(all: list) -> str:
    lines = [RUNS] + [line for program in all for line in rows(program, program["runs"])]
    s = summary(all)
    if s["swapped"]["runs"]:
        lines += ["", f"with the kernel's swap on zram ({s['swapped']['killed']} killed)", RUNS]
        lines += [line for program in all for line in rows(program, program["swapped"])]
        lines += verdict(s["swapped"], "pages back from swap")
    lines += ["", ALONE] + [alone(program) for program in all]
    if s["runs"]:
        lines += [
            "",
            f"program alone off by {s['alone_median_off_percent']:.0f} % in the median; recorded {s['recorded_times_median']:.1f}x slower, at most {s['recorded_times_max']:.1f}x",
            f"answers later than {ANSWER_S:.0f} s or {ANSWER_TIMES:.0f} times the program: {s['answers_late']}",
            *verdict(s, "true faults"),
        ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--quick", action="store_true", help="short runs, a short calibration")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--keep", help="work in this folder, and leave the answers and traces there")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else [program.name for program in PROGRAMS]
    unknown = set(only) - {program.name for program in PROGRAMS}
    if unknown:
        parser.error(f"--only: no such program: {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PROGRAMS)}")
    if not os.access(arguments.coldframe, os.X_OK):
        parser.error(f"{arguments.coldframe}: no such program; build it (make build)")
    all = []
    print(f"load {load()} on {os.cpu_count()} CPUs", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="truth-", dir="/var/tmp") as made:
        folder = os.path.abspath(arguments.keep or made)
        data = f"{folder}/data"
        os.makedirs(data, exist_ok=True)
        inputs(data)
        for program in PROGRAMS:
            if program.name not in only:
                continue
            lacks = missing(program)
            if lacks:
                print(f"{program.name}: skipped: {lacks} is not installed", file=sys.stderr)
                continue
            work = f"{folder}/{program.name}"
            os.makedirs(work, exist_ok=True)
            try:
                all.append(Bench(arguments.coldframe, data, work, arguments.quick).measure(program))
            except Ended as ended:
                print(f"{program.name}: skipped: {ended}", file=sys.stderr)
                continue
            for line in rows(all[-1], all[-1]["runs"]) + rows(all[-1], all[-1]["swapped"]) + [alone(all[-1])]:
                print(line, file=sys.stderr, flush=True)
    if arguments.format == "json":
        print(json.dumps({"load": load(), "processors": os.cpu_count(), "summary": summary(all), "programs": all}, indent=1))
    else:
        print(words(all))
    return 0 if all else 1


if __name__ == "__main__":
    sys.exit(main())
