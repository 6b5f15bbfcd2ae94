#!/usr/bin/env python3
"""DR.Swap live against the kernel's swap on zram, at equal DRAM, a heap of 256 MiB in 64 MiB; and against a heap that
lies in the slow memory and is not paged.

    python3 scripts/slow.py target/release/coldframe [--runs 3] [--delay 200] [--format json]

Needs root, zram and a C compiler. The stand-in for slow memory is DRAM, so a delay is added: a second run counts the
accesses to pages outside DRAM (bit 61 of /proc/self/pagemap), and each counts as --delay nanoseconds more. Pages that are
written in slow memory look as those in DRAM do: of the accesses to both, the share counts that such pages have beyond a
quarter of the heap, as if the pages in DRAM were used no more than the others. zram's own memory
is outside the 64 MiB; slow memory's 256 MiB, too.

Without a pager, all in slow memory (`numactl --membind`), each access is outside DRAM; interleaved with a quarter of the
pages in DRAM, three in four are. On a machine with one node the program runs in DRAM, and the same delay is added to its
accesses; with two, `--place node:1 --delay 0` measures that node. The ways take turns in each run.

    zipf 80/20    4 in 5 accesses go to a fifth of the pages, at random; 1 in 10 writes
    zipf 95/5     the same, 19 in 20 to a twentieth
    index         a binary search in a sorted array, which is only read
    copied        bytes that came back into DRAM, for each operation
    often         pages that did so since they were read often: they take minutes to be found, which --warm gives
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import measure

PATIENCE_S = 600.0
HEAP_MIB, RAM_MIB = 256, 64
SOURCE = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { PAGE = 4096 };
static uint64_t x = 88172645463325252u, outside, private, probes; static int pagemap = -1;
static uint64_t chance(void) { x ^= x << 13; x ^= x >> 7; return x ^= x << 17; }
static void probe(const void *at) {
    if (pagemap < 0) return;
    if (pagemap == 0) {
        void *page = (void *)((uintptr_t)at & -PAGE); int node = 0; syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0);
        outside += node == 1; probes++; return;
    }
    uint64_t entry = 0; if (pread(pagemap, &entry, 8, (uintptr_t)at / PAGE * 8) != 8) exit(3);
    if (entry >> 61 & 1) outside++; else private++;
    probes++;
}
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(int argc, char **argv) {
    unsigned long nodes = argc > 7 ? atol(argv[7]) : 0;
    if (nodes && syscall(SYS_set_mempolicy, atoi(argv[6]), &nodes, 64ul)) { perror("set_mempolicy"); return 4; }
    int hot = atoi(argv[1]), part = atoi(argv[2]); long ops = atol(argv[3]); size_t bytes = (size_t)(getenv("HEAP_MIB") ? atoi(getenv("HEAP_MIB")) : 256) << 20, words = bytes / 8, pages = bytes / PAGE;
    long warm = ops / 5 * atol(argv[5]); int file = -1; if (atoi(argv[4])) file = atoi(argv[4]) == 2 ? 0 : open("/proc/self/pagemap", O_RDONLY);
    uint64_t *a = malloc(bytes), sum = 0;
    for (size_t i = 0; i < words; i++) a[i] = i % 4 ? i << 8 : (i << 8) | (chance() & 255);
    double began = now();
    for (long op = -warm; op < ops; op++) {
        if (op == 0) { began = now(); pagemap = file; }
        if (hot == 0) {
            uint64_t key = chance() % words << 8; size_t low = 0, high = words;
            while (low < high) { size_t mid = (low + high) / 2; uint64_t got = a[mid]; probe(a + mid); if (got < key) low = mid + 1; else high = mid; }
            sum += low;
            continue;
        }
        size_t among = (int)(chance() % 100) < hot ? pages * part / 100 : pages;
        uint64_t *at = a + (chance() % among * 40503u % pages) * 512 + chance() % 512;
        if (chance() % 10 == 0) *at += op; else sum += *at;
        probe(at);
    }
    double ns = (now() - began) / ops, slow = 0;
    if (pagemap > 0) {
        size_t own = 0; for (size_t i = 0; i < pages; i++) { uint64_t entry = 0; if (pread(pagemap, &entry, 8, ((uintptr_t)a / PAGE + i) * 8) == 8) own += entry >> 61 == 4; }
        if (own > pages / 4) slow = 1 - pages / 4.0 / own;
    }
    fprintf(stderr, "{\"ns\": %.1f, \"outside\": %.4f, \"probes\": %.4f, \"sum\": %lu}\n", ns, (outside + private * slow) / ops, (double)probes / ops, (unsigned long)sum);
    return 0;
}
"""
# Name, percent of the accesses, to this percent of the pages, operations.
WORK = [("zipf 80/20", 80, 20, 400_000), ("zipf 95/5", 95, 5, 400_000), ("index", 0, 0, 30_000)]


def run_alone(policy: list, program: str, work: tuple, warm: int, probed: int = 0) -> dict:
    """The program's own figures without a pager."""
    _, hot, part, ops = work
    done = measure.start([program, str(hot), str(part), str(ops), str(probed), str(warm), *policy], patience=PATIENCE_S)
    if done.code != 0:
        sys.exit(f"slow.py: {program} ended with {done.code}: {done.last[-400:]}")
    return json.loads(done.last)


def run(coldframe: str, program: str, how: list, work: tuple, probed: int, warm: int, ram: int = RAM_MIB) -> tuple:
    """The program's own figures, and the pager's statistics."""
    _, hot, part, ops = work
    with tempfile.NamedTemporaryFile() as stats:
        program_of = f"{coldframe}-lab" if "--slow" in how else coldframe
        command = [program_of, "run", "-q", "--stats", stats.name, "--ram", f"{ram}MiB", *how, "--", program, str(hot), str(part), str(ops), str(probed), str(warm)]
        done = measure.start(command, patience=PATIENCE_S)
        errors = done.errors.decode(errors="replace")
        lines = [line for line in errors.splitlines() if line.startswith("{\"ns\"")]
        if done.code != 0 or not lines:
            sys.exit(f"slow.py: `{' '.join(command)}` ended with {done.code}: {errors[-400:]}")
        with open(stats.name) as file:
            return json.loads(lines[0]), json.load(file)


BALLOON = """import mmap, os, sys, ctypes
mask = ctypes.c_ulong(1)
ctypes.CDLL(None).syscall(238, 2, ctypes.byref(mask), 64)
taken = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x2000 | 0x8000)
print("taken", flush=True); sys.stdin.read()
"""


def counted(name: str) -> int:
    return sum(int(line.split()[1]) for line in open("/proc/vmstat") if line.startswith(name))


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def where(coldframe: str, program: str) -> None:
    """On a machine with two nodes: which part of the accesses goes to node 1, also under the kernel's demotion. An emulated
    machine takes milliseconds for a fault of ours, so that the heaps are an eighth, but for the kernel's."""
    free = lambda: int(re.search(r"MemFree:\s+(\d+)", open("/sys/devices/system/node/node0/meminfo").read()).group(1)) << 10
    show = lambda work, way, own, more="": print(f"{work[0]:11} {way:10} {own['outside'] / own['probes']:6.3f} of {own['probes']:.1f} accesses in node 1{more}", flush=True)
    for work in (WORK[0][:3] + (20_000,),):
        os.environ["HEAP_MIB"] = str(HEAP_MIB // 8)
        write("/proc/sys/kernel/numa_balancing", "0")
        own, stats = run(coldframe, program, ["--slow", "node:1", "--device", "LPDDR2-PCM"], work, 2, 1, RAM_MIB // 8)
        show(work, "copied", own, f", {stats['counts']['device_bytes_read'] >> 12} pages copied")
        own, stats = run(coldframe, program, ["--slow", "node:1"], work, 2, 1, RAM_MIB // 8)
        show(work, "ours", own, f", {stats['swapped_pages']} pairs of pages changed places")
        for way, policy in policies("1").items():
            show(work, way, run_alone(policy, program, work, 1, 2))
        work = (*work[:3], 40 * work[3])
        os.environ["HEAP_MIB"] = str(HEAP_MIB)
        write("/sys/kernel/mm/numa/demotion_enabled", "1")
        write("/proc/sys/kernel/numa_balancing", "2")
        write("/proc/sys/vm/drop_caches", "3")
        taking = [sys.executable, "-c", BALLOON, str(free() - (RAM_MIB << 20))]
        with subprocess.Popen(taking, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as balloon:
            assert balloon.stdout.readline() == "taken\n"
            before = counted("pgdemote"), counted("pgpromote_success")
            own = run_alone([], program, work, 1, 2)
            down, up = counted("pgdemote") - before[0], counted("pgpromote_success") - before[1]
            balloon.stdin.close()
        show(work, "demotion", own, f", {down} pages moved down, {up} up")
        write("/proc/sys/kernel/numa_balancing", "0")
        write("/sys/kernel/mm/numa/demotion_enabled", "0")


WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave/node{}"


def policies(node: str) -> dict:
    """The program's own policies: MPOL_BIND to the slow node, and MPOL_WEIGHTED_INTERLEAVE (Linux 6.9) with a quarter in DRAM; before,
    MPOL_INTERLEAVE, which puts half of the pages there. With the nodes as a mask."""
    weighted = os.path.exists(WEIGHTS.format(0))
    for each, weight in (("0", RAM_MIB), (node, HEAP_MIB - RAM_MIB)) if weighted else ():
        write(WEIGHTS.format(each), str(weight * 4 // HEAP_MIB))
    both = str(1 << int(node) | 1)
    return {"membind": ["2", str(1 << int(node))], "interleave": ["6" if weighted else "3", both]}


def rivals(coldframe: str, program: str, asked: argparse.Namespace) -> None:
    """On a machine with two nodes: `--slow node:1`, membind and interleaving at equal DRAM in one table. The ways take turns. Only ours
    changes with time, so --warm is for it alone; an emulated machine takes a heap of a quarter."""
    os.environ["HEAP_MIB"] = str(HEAP_MIB // 4)
    ways = {"ours": None} | policies("1")
    go = lambda way, work, probed: (run(coldframe, program, ["--slow", "node:1"], work, probed, asked.warm, RAM_MIB // 4)
                                    if way == "ours" else (run_alone(ways[way], program, work, 1, probed), {}))
    print(f"medians of {asked.runs} runs; ns an operation here, accesses outside DRAM an operation, and both with {asked.delay:.0f} ns for each of these")
    print(f"{'':11} {'operations':>10} {'way':10} {'here':>8} {'outside':>8} {'with delay':>10} {'ours beside':>11}")
    for work in ((*one[:3], asked.times * one[3]) for one in WORK if asked.only in one[0]):
        times, last = {way: [] for way in ways}, {}
        for _ in range(asked.runs):
            for way in ways:
                own, stats = go(way, work, 0)
                times[way].append(own["ns"])
                last = stats or last
        # A probe is a system call: as many operations as before would take minutes.
        short = (*work[:3], max(work[3] // 8, 1))
        outside = {}
        for way in ways:
            own, stats = run(coldframe, program, ["--slow", "node:1"], short, 2, 8 * asked.warm, RAM_MIB // 4) if way == "ours" else go(way, short, 2)
            outside[way], last = own["outside"], stats or last
        whole = {way: measure.median(times[way]) + outside[way] * asked.delay for way in ways}
        for way in ways:
            beside = "" if way == "ours" else f"{whole['ours'] / whole[way]:.2f}"
            print(f"{work[0]:11} {work[3]:10} {way:10} {measure.median(times[way]):8.0f} {outside[way]:8.3f} {whole[way]:10.0f} {beside:>11}", flush=True)
        print(f"{'':11} {last['filled_pages']} pages moved to DRAM, {last['swapped_pages']} pairs changed places, {last['move_us']:.0f} us a page", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("coldframe")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--delay", type=float, default=200, help="nanoseconds more for an access outside DRAM")
    parser.add_argument("--warm", type=int, default=1, help="fifths of the operations that go before the measured ones")
    parser.add_argument("--times", type=int, default=1, help="so many times as many operations, without zram, which would take hours")
    parser.add_argument("--only", default="", help="patterns with this word")
    parser.add_argument("--where", metavar="PROGRAM", help="count where accesses go, with this program (--write makes it), on a machine with two nodes")
    parser.add_argument("--rivals", metavar="PROGRAM", help="ours, membind and interleaving in one table, with this program, on a machine with two nodes")
    parser.add_argument("--write", metavar="PROGRAM", help="compile the program, and end")
    parser.add_argument("--place", default="node:0", help="slow memory")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    asked = parser.parse_args()
    if asked.write:
        return subprocess.run([os.environ.get("CC", "cc"), "-O1", "-xc", "-o", asked.write, "-"], input=SOURCE, text=True, check=True) and None
    if asked.where:
        return where(asked.coldframe, asked.where)
    if asked.rivals:
        return rivals(asked.coldframe, asked.rivals, asked)
    if os.geteuid() != 0 or not os.path.exists("/sys/class/zram-control"):
        sys.exit("slow.py: needs root and zram (modprobe zram), for the kernel's swap to compare with")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, program = f"{folder}/slow.c", f"{folder}/slow"
        with open(source, "w") as file:
            file.write(SOURCE)
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", program, source], check=True)
        slow, zram = ["--slow", asked.place], ["--by", "kernel", "--swap", "zram"]
        node = asked.place.removeprefix("node:")
        two = node.isdigit() and node != "0"
        alone = policies(node) if two else {"membind": [], "interleave": []}
        for work in ((*one[:3], asked.times * one[3]) for one in WORK if asked.only in one[0]):
            times = {"slow": [], "zram": [], "membind": [], "interleave": []}
            for _ in range(asked.runs):
                # A long warm-up would take zram hours.
                for name, how in (("slow", slow), ("zram", zram))[: 2 if asked.warm == asked.times == 1 else 1]:
                    own, stats = run(asked.coldframe, program, how, work, 0, asked.warm)
                    times[name].append(own["ns"])
                    if name == "slow":
                        counts = stats.get("counts") or {"device_bytes_read": stats["swapped_pages"] << 12, "promotions": stats["swapped_pages"]}
                        copied = counts["device_bytes_read"] / (work[3] * (1 + asked.warm / 5))
                        promoted = counts["promotions"]
                for name, policy in alone.items():
                    times[name].append(run_alone(policy, program, work, asked.warm)["ns"])
            probed = run(asked.coldframe, program, slow, work, 2 if two else 1, asked.warm)[0]
            ours, theirs, bound, mixed = (measure.median(times[name] or [float("nan")]) for name in ("slow", "zram", "membind", "interleave"))
            delayed = ours + probed["outside"] * asked.delay
            bound += probed["probes"] * asked.delay
            mixed += (1 - RAM_MIB / HEAP_MIB) * probed["probes"] * asked.delay
            rows.append({"work": work[0], "slow_ns": ours, "outside": probed["outside"], "delayed_ns": delayed, "zram_ns": theirs,
                         "membind_ns": bound, "interleave_ns": mixed, "faster": theirs / delayed, "beside_membind": bound / delayed,
                         "copied_bytes": copied, "promotions": promoted})
            print(f"{work[0]}: done", file=sys.stderr) if sys.stderr.isatty() else None
    if asked.format == "json":
        print(json.dumps({"delay_ns": asked.delay, "runs": asked.runs, "rows": rows}, indent=2))
        return
    print(f"medians of {asked.runs} runs, ns an operation; {HEAP_MIB} MiB in {RAM_MIB} MiB; {asked.delay:.0f} ns for an access outside DRAM")
    print("times of the others divided by ours: faster than zram, than the whole heap in slow memory (membind)")
    print(f"{'':11} {'in place':>9} {'outside':>8} {'with delay':>10} {'zram':>8} {'membind':>8} {'interleave':>10} {'zram':>6} {'membind':>8} {'copied':>7} {'often':>6}")
    for row in rows:
        print(f"{row['work']:11} {row['slow_ns']:9.0f} {row['outside']:8.3f} {row['delayed_ns']:10.0f} {row['zram_ns']:8.0f} {row['membind_ns']:8.0f} "
              f"{row['interleave_ns']:10.0f} {row['faster']:5.1f}x {row['beside_membind']:7.2f}x {row['copied_bytes']:6.0f}B {row['promotions']:6}")


if __name__ == "__main__":
    main()
