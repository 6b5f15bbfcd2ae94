#!/usr/bin/env python3
"""Asks coldframe about programs that no pager of ours can serve: Go, static and musl C, busybox, a JVM, node, a group of
three, another user's program, servers that run already. Needs root, for the runs in a memory cgroup.

    python3 scripts/anyone.py target/release/coldframe [--only NAME,NAME] [--patience S] [--out FILE.json]

    answer   seconds until `coldframe -- PROGRAM` (or `coldframe --pid N --for 15s`) has answered; x: times the plain run's
    by, swap r: recorded, b: from referenced bits; the kernel's swap that the answer is about, zram or a new file
    75 % ..  predicted less measured, in percent of the measured, of run time / of pages that came back from swap, at the
             curve's sizes next to 75, 50 and 33 % of the memory; measured by `coldframe run --by kernel`, the shorter of
             two runs; "killed", "late". Of a server: of the time of its work, without the start
    !        the answer took more than 20 s and more than 5 times the plain run

`coldframe doctor --calibrate` measures both kinds of swap first.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

C = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    size_t n = 6 << 20; uint64_t *heap = malloc(n * 8), x = 88172645463325252u, sum = 0;
    for (size_t i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; heap[i] = x; }
    for (int round = 0; round < 40; round++) for (size_t i = 0; i < n >> (round % 4); i++) sum = sum * 31 + heap[i];
    printf("%lx\n", (unsigned long)sum); return 0;
}
"""
GO = 'package main\nimport "fmt"\nfunc main() { m := map[int]int{}; for r := 0; r < 3; r++ { for i := 0; i < 1000000; i++ { m[i*7919%1000003] += i } }; fmt.Println(len(m), m[7]) }\n'
JAVA = "class Main { public static void main(String[] a) { var m = new java.util.HashMap<Integer, Integer>(); for (int r = 0; r < 4; r++) for (int i = 0; i < 700000; i++) m.merge((int) (i * 7919L % 700001), i, Integer::sum); System.out.println(m.size()); } }\n"
NODE = "const m = new Map(); for (let r = 0; r < 4; r++) for (let i = 0; i < 700000; i++) m.set(i * 7919 % 700001, i); console.log(m.size)"
PYTHON = "d = {i: str(i) for i in range(400000)}; print(sum(len(d[i * 7919 % 400000]) for _ in range(3) for i in range(400000)))"
SERVER = "import sys, time\nd = {i: str(i) for i in range(400000)}; began = time.monotonic()\nfor _ in range(int(sys.argv[1])): sum(len(d[i * 7919 % 100000]) for i in range(100000)); time.sleep(0.01)\nprint(time.monotonic() - began)"
# A name, the tools that it needs, what builds it, its words; a server runs until it is ended.
PROGRAMS = [
    ("go", ["go"], "go build -o go-map go.go", ["./go-map"]),
    ("static-c", ["gcc"], "gcc -O1 -static -o static-c c.c", ["./static-c"]),
    ("musl-c", ["musl-gcc"], "musl-gcc -O1 -o musl-c c.c", ["./musl-c"]),
    ("musl-static", ["musl-gcc"], "musl-gcc -O1 -static -o musl-static c.c", ["./musl-static"]),
    ("busybox", ["busybox"], None, ["busybox", "sort", "-o", "sorted", "numbers.txt"]),
    ("jvm", ["javac"], "javac Main.java", ["java", "-Xmx256m", "Main"]),
    ("node", ["node"], None, ["node", "-e", NODE]),
    ("group", ["gcc"], "gcc -O1 -static -o static-c c.c", ["sh", "-c", "./static-c & ./static-c & ./static-c; wait"]),
    ("other-user", ["setpriv", "gcc"], "gcc -O1 -static -o static-c c.c", ["setpriv", "--reuid", "65534", "--clear-groups", "./static-c"]),
    ("python-server", ["python3"], "server", ["python3", "-c", SERVER, "1000000"]),
    ("redis-server", ["redis-server"], "server", ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", ""]),
]
SHARES = [0.75, 0.5, 0.33]
# Rounds of a server's work that are measured.
ROUNDS = "200"


def run(words: list, folder: str, patience: float):
    """The seconds, the exit code and the output of a command; no code: it took too long."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.DEVNULL)
        try:
            code = child.wait(patience)
        except subprocess.TimeoutExpired:
            # coldframe passes the signal on, and takes away what it has made.
            child.terminate()
            child.wait()
            code = None
        seconds = time.monotonic() - began
        said.seek(0)
        return seconds, code, said.read()


def percent(predicted: float, measured: float) -> float:
    return 100 * (predicted - measured) / max(measured, 1e-9)


def compared(coldframe: str, words: list, folder: str, answer: dict, patience: float, work=None) -> list:
    """Predicted beside measured, at each share. work: the seconds of a server's work, alone."""
    bits, kernel, found = answer["method"] == "referenced-bits", answer.get("kernel"), []
    curve, swap = (answer["curve"], answer.get("swap")) if bits else (kernel["curve"], kernel["kind"])
    for share in SHARES:
        point = min(curve, key=lambda point: abs(point["ram_bytes"] - share * answer["managed_bytes"]))
        low, high = point["seconds_low"], point["seconds_high"] or float("inf")
        said = [point["seconds"], low, high] if work is None else [one / answer["program_seconds"] * work for one in (point["seconds"], low, high)]
        start = [coldframe, "-q", "run", "--by", "kernel", "--swap", "zram" if swap == "zram" else f"{folder}/swap"]
        start += ["--swap-size", "1GiB", "--ram", f"{point['ram_bytes'] // 1024}KiB", "--stats", f"{folder}/stats.json", "--"]
        runs = []
        for _ in range(2):
            _, code, text = run([*start, *words], folder, patience)
            stats = json.load(open(f"{folder}/stats.json")) if code is not None else None
            if stats and not stats["counts"]["killed"]:
                runs.append((stats["program"]["seconds"] if work is None else float(text), stats["counts"]["refaults"]))
        if not runs:
            found.append({"cell": "late" if code is None else "killed"})
            continue
        seconds, faults = min(runs)
        off, faults_off = percent(said[0], seconds), percent(point.get("swap_ins", point.get("device_reads", 0)), faults)
        one = {"cell": f"{off:+.0f}/{faults_off:+.0f}", "off": off, "in": low <= seconds <= high}
        # The pages of a server's start are not in the answer.
        found.append(one | ({"faults_off": faults_off} if work is None else {"cell": f"{off:+.0f}", "in": said[1] <= seconds <= said[2]}))
    return found


def answered(folder: str) -> dict | None:
    path = f"{folder}/answer.json"
    return json.load(open(path)) if os.path.exists(path) else None


def server(coldframe: str, words: list, folder: str, patience: float) -> dict:
    child = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        time.sleep(3)
        seconds, code, _ = run([coldframe, "-q", "--pid", str(child.pid), "--for", "15s", "--export", "answer.json"], folder, patience)
    finally:
        child.terminate()
        child.wait()
    answer, errors = answered(folder), []
    if answer and words[-1].isdigit():
        few = [*words[:-1], ROUNDS]
        errors = compared(coldframe, few, folder, answer, patience, work=float(run(few, folder, patience)[2]))
    return {"plain": None, "answer": seconds, "code": code, "advice": answer, "errors": errors}


def program(coldframe: str, words: list, folder: str, patience: float) -> dict:
    plain = min(run(words, folder, patience)[0] for _ in range(2))
    seconds, code, _ = run([coldframe, "--export", "answer.json", "--", *words], folder, patience)
    answer = answered(folder)
    errors = compared(coldframe, words, folder, answer, patience) if answer else []
    return {"plain": plain, "answer": seconds, "code": code, "advice": answer, "errors": errors}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only")
    parser.add_argument("--patience", type=float, default=120.0)
    parser.add_argument("--out")
    args = parser.parse_args()
    coldframe, results = os.path.abspath(args.coldframe), {}
    with tempfile.TemporaryDirectory(prefix="coldframe-anyone-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        for name, text in [("c.c", C), ("go.go", GO), ("Main.java", JAVA)]:
            open(f"{folder}/{name}", "w").write(text)
        open(f"{folder}/numbers.txt", "w").writelines(f"{i * 7919 % 300007}\n" for i in range(300000))
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        subprocess.run([coldframe, "-q", "doctor", "--calibrate", "--swap", "zram", "--swap", f"{folder}/swap"], check=True, stdout=subprocess.DEVNULL)
        print(f"{'program':13} {'plain':>6} {'answer':>7} {'x':>4}   {'by, swap':8} {'75 %':>9} {'50 %':>9} {'33 %':>9} load")
        for name, needs, build, words in PROGRAMS:
            if args.only and name not in args.only.split(","):
                continue
            if lacking := [need for need in needs if not shutil.which(need)]:
                print(f"{name:14} left out: {', '.join(lacking)} not installed")
                continue
            if build and build != "server":
                subprocess.run(build, shell=True, cwd=folder, check=True)
            ask = server if build == "server" else program
            results[name] = found = ask(coldframe, words, folder, args.patience)
            plain, answer, advice = found["plain"], found["answer"], found["advice"] or {"method": "-"}
            slow = "!" if answer > 20 and answer > 5 * (plain or 4) else " "
            times = f"{answer / plain:4.0f}" if plain else f"{'-':>4}"
            kind = advice.get("swap") or (advice.get("kernel") or {}).get("kind", "-")
            by = f"{'b' if advice['method'] == 'referenced-bits' else advice['method'][0]}, {'zram' if kind == 'zram' else 'file'}"
            cells = [one["cell"] for one in found["errors"]] or ["-"] * len(SHARES)
            found["load"] = os.getloadavg()[0]
            print(f"{name:13} {f'{plain:.2f}s' if plain else '-':>6} {answer:6.1f}s {times} {slow} {by:8} " + " ".join(f"{cell:>9}" for cell in cells) + f" {found['load']:4.1f}", flush=True)
            if found["advice"]:
                os.unlink(f"{folder}/answer.json")
    all = [error for found in results.values() for error in found["errors"]]
    runs = [error for error in all if "off" in error]
    if runs:
        faults = [abs(run["faults_off"]) for run in runs if "faults_off" in run]
        lost = ", ".join(f"{sum(error['cell'] == word for error in all)} {word}" for word in ("killed", "late"))
        print(f"median error: {statistics.median(abs(run['off']) for run in runs):.0f} % of the time, {statistics.median(faults):.0f} % of the pages; {sum(run['in'] for run in runs)} of {len(runs)} in the range; {lost}")
    if args.out:
        json.dump(results, open(args.out, "w"), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
