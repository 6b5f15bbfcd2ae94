"""The programs of scripts/catalogue.toml, for measurements. Their inputs are made from a seed.

Seed 0 gives the usual sizes; each other seed makes every program larger or smaller by up to two fifths.
"""

import dataclasses
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field

import measure

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(TREE, "scripts/truth-programs")
CATALOGUE = os.path.join(TREE, "scripts/catalogue.toml")
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}
KINDS = ("compiler", "language", "server", "tool", "image", "model", "browser", "test")
USUAL = 0
BUILD_S = 180.0


@dataclass
class Sample:
    """A program, and the shell's command that builds it. In both, a number in braces is a size that a seed changes."""

    name: str
    command: str
    build: str = "true"
    kind: str = "tool"
    packages: list[str] = field(default_factory=list)
    version: str = "true"
    input: str = ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command)


def line_of(text: str, number: int, key: str | None) -> int:
    """The line of a field of the program with this number, or of the program's first line."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines, 1) if line.strip() == "[[program]]"]
    start = starts[number] if number < len(starts) else 1
    end = starts[number + 1] if number + 1 < len(starts) else len(lines) + 1
    return next((i for i in range(start, end) if key and re.match(rf"\s*{key}\s*=", lines[i - 1])), start)


def fault(program: dict, before: set[str]) -> tuple[str | None, str] | None:
    """The field of a program that is wrong, and why."""
    texts = {"name": True, "kind": True, "run": True, "version": True, "input": True, "build": False}
    for key, needed in texts.items():
        if key not in program:
            if needed:
                return None, f"`{key}` is missing"
        elif not isinstance(program[key], str) or not program[key].strip():
            return key, f"`{key}` must be a text"
    if unknown := sorted(set(program) - {*texts, "packages"}):
        return unknown[0], f"`{unknown[0]}` is not a field of a program"
    if not re.fullmatch(r"[A-Za-z0-9+._-]+", program["name"]):
        return "name", f"`name` has letters, digits, +, -, . and _, not {program['name']!r}"
    if program["name"] in before:
        return "name", f"`name`: {program['name']} is there twice"
    if program["kind"] not in KINDS:
        return "kind", f"`kind` is one of {', '.join(KINDS)}, not {program['kind']}"
    packages = program.get("packages")
    if not isinstance(packages, list) or not packages or not all(isinstance(one, str) and one for one in packages):
        return "packages" if "packages" in program else None, "`packages` must be a list of Debian's packages"
    try:
        shlex.split(program["run"])
    except ValueError as error:
        return "run", f"`run`: {str(error).lower()}"
    return None


def parse(text: str, path: str) -> list[Sample]:
    """The programs of a file. ValueError names its line and field."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    programs = found.get("program")
    if not isinstance(programs, list) or not programs or not all(isinstance(one, dict) for one in programs):
        raise ValueError(f"{path}:1: it has no [[program]]")
    samples: list[Sample] = []
    for number, program in enumerate(programs):
        if wrong := fault(program, {sample.name for sample in samples}):
            raise ValueError(f"{path}:{line_of(text, number, wrong[0])}: {wrong[1]}")
        more = {key: program[key] for key in ("kind", "packages", "version", "input")}
        samples.append(Sample(program["name"], program["run"], program.get("build", "true"), **more))
    return samples


def read(path: str = CATALOGUE) -> list[Sample]:
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read(), os.path.relpath(path))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is no UTF-8") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def scale(seed: int, name: str) -> float:
    """How much larger a seed makes a program or an input."""
    return 1.0 if seed == USUAL else random.Random(f"{seed} {name}").uniform(0.6, 1.4)


def sized(sample: Sample, seed: int = USUAL) -> Sample:
    """The program with a seed's sizes."""

    def size(match: re.Match[str]) -> str:
        return str(round(int(match[1]) * scale(seed, sample.name)))

    command, build = (re.sub(r"\{(\d+)\}", size, text) for text in (sample.command, sample.build))
    return dataclasses.replace(sample, command=command, build=build)


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

    texts = {"big.c": source(chance, len(count("big.c", 150)))} | {f"part{i}.c": source(chance, 40) for i in range(6)}
    texts["numbers.txt"] = "".join(f"{chance.getrandbits(60):019d} {i}\n" for i in count("numbers.txt", 1_000_000))
    pairs = count("pairs.txt", 600_000)
    texts["pairs.txt"] = "".join(f"{int(300000 * chance.random() ** 2)} {chance.getrandbits(30)}\n" for _ in pairs)
    rows = count("data.json", 150_000)
    texts["data.json"] = json.dumps([{"id": i, "group": chance.randrange(20000), "value": i % 999} for i in rows])
    blocks = count("data.bin", 10_000)
    texts["data.bin"] = "".join(f"{chance.getrandbits(400):x}" * chance.randint(1, 5) for _ in blocks)
    for name, text in texts.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)


def missing(sample: Sample, folder: str, seed: int = USUAL) -> str | None:
    """Builds a program; why it cannot be run."""
    environment = os.environ | ENVIRONMENT | {"SEED": str(seed), "TREE": TREE}
    command = f"{{ {sample.build}\n}} && command -v {shlex.quote(sample.words[0])}"
    built = measure.start(["sh", "-c", command], folder, environment, BUILD_S)
    if built.code is None:
        return f"its input is not made within {BUILD_S:.0f} s"
    return None if built.code == 0 else built.last if built.errors.strip() else f"not installed ({', '.join(sample.packages)})"


def version(sample: Sample, folder: str) -> str:
    """The first line that its version's command says."""
    said = measure.start(["sh", "-c", sample.version], folder, os.environ | ENVIRONMENT | {"TREE": TREE}, 20).text.strip()
    return said.splitlines()[0].strip("* ")[:70] if said else ""


def find(names: str | None = None) -> list[Sample]:
    """The programs with these names, separated by commas, or all; ValueError with a message if there is another name."""
    programs = read()
    wanted = measure.choose(names, [program.name for program in programs])
    return [program for program in programs if program.name in wanted]
