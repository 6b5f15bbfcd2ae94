#!/usr/bin/env python3
"""Asks coldframe about programs that no pager of ours can serve: Go, static and musl C, busybox, a JVM, node, a group of
three, another user's program, servers that run already. Needs root, for the runs in a memory cgroup.

    python3 scripts/anyone.py target/release/coldframe [--only NAME,NAME] [--patience S] [--out FILE.json]

    answer   seconds until `coldframe -- PROGRAM` (or `attach PID --for 15s`) has answered; x: times the plain run's
    75 % ..  the predicted run time less the measured one, in percent of the measured, at the curve's sizes next to 75, 50
             and 33 % of the memory; measured by `coldframe run --by kernel` with swap on a new file; "killed", "late"
    !        the answer took more than 20 s and more than 5 times the plain run
"""

import argparse
import json
import os
import shutil
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
SERVER = "import time\nd = {i: str(i) for i in range(400000)}\nwhile True: sum(len(d[i * 7919 % 100000]) for i in range(100000)); time.sleep(0.01)"
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
    ("python-server", ["python3"], "server", ["python3", "-c", SERVER]),
    ("redis-server", ["redis-server"], "server", ["redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save", ""]),
]
SHARES = [0.75, 0.5, 0.33]


def run(words: list, folder: str, patience: float):
    """The seconds and the exit code of a command; no code: it took too long."""
    began = time.monotonic()
    child = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        code = child.wait(patience)
    except subprocess.TimeoutExpired:
        # coldframe passes the signal on, and takes away what it has made.
        child.terminate()
        child.wait()
        code = None
    return time.monotonic() - began, code


def server(coldframe: str, words: list, folder: str, patience: float) -> dict:
    child = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        time.sleep(3)
        seconds, code = run([coldframe, "-q", "attach", str(child.pid), "--for", "15s"], folder, patience)
    finally:
        child.terminate()
        child.wait()
    return {"plain": None, "answer": seconds, "code": code, "errors": ["-"] * len(SHARES)}


def error(coldframe: str, words: list, folder: str, point: dict, patience: float) -> str:
    stats = f"{folder}/stats.json"
    ram = f"{point['ram_bytes'] // 1024}KiB"
    start = [coldframe, "-q", "run", "--by", "kernel", "--swap", f"{folder}/swap", "--backing-max", "1GiB", "--ram", ram, "--stats", stats, "--"]
    _, code = run([*start, *words], folder, patience)
    if code is None:
        return "late"
    found = json.load(open(stats))
    if found["counts"]["killed"]:
        return "killed"
    measured = found["program"]["seconds"]
    return f"{100 * (point['seconds'] - measured) / measured:+.0f}"


def program(coldframe: str, words: list, folder: str, patience: float) -> dict:
    plain, _ = run(words, folder, patience)
    answer = f"{folder}/answer.json"
    seconds, code = run([coldframe, "--export", answer, "--", *words], folder, patience)
    found = json.load(open(answer)) if os.path.exists(answer) else {"curve": []}
    errors = []
    for share in SHARES:
        near = min(found["curve"], key=lambda point: abs(point["ram_bytes"] - share * found["managed_bytes"]), default=None)
        errors.append(error(coldframe, words, folder, near, patience) if near else "-")
    if os.path.exists(answer):
        os.unlink(answer)
    return {"plain": plain, "answer": seconds, "code": code, "errors": errors}


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
        print(f"{'program':14} {'plain':>7} {'answer':>8} {'x':>6}   {'75 %':>7} {'50 %':>7} {'33 %':>7}")
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
            plain, answer = found["plain"], found["answer"]
            slow = "!" if answer > 20 and answer > 5 * (plain or 4) else " "
            times = f"{answer / plain:6.1f}" if plain else f"{'-':>6}"
            print(f"{name:14} {f'{plain:.2f} s' if plain else '-':>7} {answer:6.1f} s {times} {slow} " + " ".join(f"{one:>7}" for one in found["errors"]), flush=True)
    if args.out:
        json.dump(results, open(args.out, "w"), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
