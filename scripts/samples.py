"""Programs for measurements, of many languages and kinds of memory. Their inputs are made from a seed.

Seed 0 gives the usual sizes; each other seed makes every program larger or smaller by up to two fifths.
"""

import json
import os
import random
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "truth-programs")
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}
USUAL = 0


@dataclass
class Sample:
    """A program, and the shell's command that builds it. In both, a number in braces is a size that a seed changes."""

    name: str
    command: str
    build: str = "true"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)


PROGRAMS = [
    Sample("python", "/usr/bin/python3 m.py {300000}"),
    Sample("numpy", "/usr/bin/python3 sorts.py {2000000}", "/usr/bin/python3 -c 'import numpy'"),
    Sample("node", "node n.js {200000}"),
    Sample("node-garbage", "node garbage.js 2000"),
    Sample("java-serial", "java -XX:+UseSerialGC Table {700000}", "javac Table.java"),
    Sample("java-garbage", "java Garbage 12000", "javac Garbage.java"),
    Sample("go", "./table {1000000}", "GOCACHE=$PWD/go CGO_ENABLED=0 go build -o table table.go"),
    Sample("gcc", "./cc1 -quiet -O1 big.c -o big.s", "ln -sf $(gcc -print-prog-name=cc1) cc1"),
    Sample("workers", "/usr/bin/python3 workers.py {120000} 4"),
    Sample("tmpfs", "/usr/bin/python3 tmpfs.py {60} 12"),
    Sample("shared", "./shared {64} 5 40", "gcc -O1 -o shared shared.c"),
    Sample("mapped", "./mapped weights.bin 40", "head -c {64}M /dev/urandom > weights.bin; gcc -O1 -o mapped mapped.c"),
    Sample("page-cache", "/usr/bin/python3 cache.py {100} 6"),
    Sample("c++", "./words", "g++ -std=c++17 -O1 -o words words.cc"),
    Sample("make", "make -s -B -j2", "gcc --version"),
    Sample("perl", "perl p.pl"),
    Sample("ruby", "ruby r.rb"),
    Sample("php", "php -d memory_limit=-1 p.php"),
    Sample("lua", "lua5.4 l.lua"),
    Sample("sqlite3", "sqlite3 :memory: '.read s.sql'"),
    Sample("gawk", "gawk -f g.awk pairs.txt"),
    Sample("jq", "jq -f j.jq data.json"),
    Sample("sort", "sort -S 300M --parallel=1 -o sorted.txt numbers.txt"),
    Sample("xz", "xz -T1 -k -c data.bin"),
]


def scale(seed: int, name: str) -> float:
    """How much larger a seed makes a program or an input."""
    return 1.0 if seed == USUAL else random.Random(f"{seed} {name}").uniform(0.6, 1.4)


def sized(sample: Sample, seed: int = USUAL) -> Sample:
    """The program with a seed's sizes."""

    def size(match: re.Match[str]) -> str:
        return str(round(int(match[1]) * scale(seed, sample.name)))

    command, build = (re.sub(r"\{(\d+)\}", size, text) for text in (sample.command, sample.build))
    return Sample(sample.name, command, build)


def source(chance: random.Random, functions: int) -> str:
    """A file in C."""
    line = "    for (int i = 0; i < a; i++) s += a * {} ^ (b >> {}) + i % {};\n"
    calls = ["".join(line.format(chance.randrange(99), k, k + 2) for k in range(6)) for _ in range(functions)]
    bodies = [f"int f{i}(int a, int b) {{\n    int s = 0;\n{lines}    return s;\n}}\n" for i, lines in enumerate(calls)]
    return "".join(bodies)


def inputs(folder: str, seed: int = USUAL) -> None:
    """Writes the programs and their input files into a folder, the same every time for a seed."""
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    chance = random.Random(7 + seed)

    def count(name: str, usual: int) -> range:
        return range(round(usual * scale(seed, name)))

    texts = {"big.c": source(chance, len(count("big.c", 350)))} | {f"part{i}.c": source(chance, 60) for i in range(6)}
    texts["numbers.txt"] = "".join(f"{chance.getrandbits(60):019d} {i}\n" for i in count("numbers.txt", 1_000_000))
    pairs = count("pairs.txt", 1_000_000)
    texts["pairs.txt"] = "".join(f"{int(300000 * chance.random() ** 2)} {chance.getrandbits(30)}\n" for _ in pairs)
    rows = count("data.json", 150_000)
    texts["data.json"] = json.dumps([{"id": i, "group": chance.randrange(20000), "value": i % 999} for i in rows])
    blocks = count("data.bin", 15_000)
    texts["data.bin"] = "".join(f"{chance.getrandbits(400):x}" * chance.randint(1, 5) for _ in blocks)
    for name, text in texts.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)


def missing(sample: Sample, folder: str) -> str | None:
    """Builds a program; why it cannot be run."""
    command = f"{sample.build} && command -v {sample.words[0]}"
    built = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    return (built.stderr.strip().splitlines() or ["not installed"])[-1] if built.returncode else None


def find(names: str) -> list[Sample]:
    """The programs with these names, separated by commas; ValueError with a message if there is another name."""
    wanted = names.split(",")
    if unknown := set(wanted) - {program.name for program in PROGRAMS}:
        known = ", ".join(program.name for program in PROGRAMS)
        raise ValueError(f"no such program: {', '.join(sorted(unknown))}; there are {known}")
    return [program for program in PROGRAMS if program.name in wanted]
