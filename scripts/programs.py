#!/usr/bin/env python3
"""Runs real programs plain and under `coldframe run` in less RAM than they use. Output and exit code must be equal.

    python3 scripts/programs.py target/release/coldframe [--only NAME,NAME] [--backing FOLDER] [--patience SECONDS] [--encrypt ...]

The programs are in programs.toml beside this file. A program is skipped if one of its commands is not installed.
Unknown options are passed to `coldframe run`. The exit code is 1 if a program differs.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

PATIENCE_S = 120.0


def inputs(folder: str) -> None:
    """Writes the programs' input files, the same every time."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(30000)]
    skewed = lambda: words[int(len(words) * chance.random() ** 3)]
    with open(f"{folder}/words.txt", "w") as file:
        for _ in range(60000):
            file.write(" ".join(skewed() for _ in range(5)) + "\n")
    with open(f"{folder}/numbers.txt", "w") as file:
        file.writelines(f"{chance.getrandbits(40)}\n" for _ in range(120000))
    with open(f"{folder}/data.csv", "w") as file:
        file.write("id,name,group,value\n")
        file.writelines(f"{i},{skewed()},{chance.randrange(50)},{chance.random():.6f}\n" for i in range(50000))
    with open(f"{folder}/data.json", "w") as file:
        json.dump([{"id": i, "name": skewed(), "list": [chance.randrange(999) for _ in range(6)]} for i in range(30000)], file)
    with open(f"{folder}/data.xml", "w") as file:
        file.write("<all>\n")
        file.writelines(f'<row id="{i}"><name>{skewed()}</name><v>{chance.randrange(999)}</v></row>\n' for i in range(30000))
        file.write("</all>\n")
    with open(f"{folder}/data.bin", "wb") as file:
        for _ in range(200):
            piece = chance.randbytes(5000)
            for _ in range(chance.randint(1, 8)):
                file.write(piece + chance.randbytes(500))


class Ran:
    def __init__(self, output: bytes, code, seconds: float, said: bytes):
        self.output, self.code, self.seconds, self.said = output, code, seconds, said


def run(command: list, folder: str, data: str, patience: float = PATIENCE_S) -> Ran:
    """Runs a command in an empty folder, always with the same name. $DATA has the inputs, $MADE the output of `prepare`."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    environment = dict(os.environ, DATA=data, MADE=os.path.join(os.path.dirname(folder), "made"), HOME=folder, LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0")
    environment.pop("LD_PRELOAD", None)
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        try:
            code = child.wait(patience)
        except subprocess.TimeoutExpired:
            code = "hung"
        seconds = time.monotonic() - start
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        out.seek(0), err.seek(0)
        return Ran(out.read(), code, seconds, err.read())


def first_difference(plain: bytes, paged: bytes) -> str:
    for number, (a, b) in enumerate(zip(plain.split(b"\n"), paged.split(b"\n")), 1):
        if a != b:
            return f"line {number}: {a[:100]!r}, paged {b[:100]!r}"
    return f"{len(plain)} bytes, paged {len(paged)}"


def compare(program: dict, arguments, data: str, folder: str) -> tuple[str, str]:
    words = ["sh", "-c", program["run"]]
    statistics = folder + ".json"
    if os.path.exists(statistics):
        os.unlink(statistics)
    start = [os.path.abspath(arguments.coldframe), "run", "--ram", program["ram"], "--stats", statistics]
    if arguments.backing:
        start += ["--backing", os.path.abspath(arguments.backing)]
    made = os.path.join(os.path.dirname(folder), "made")
    shutil.rmtree(made, ignore_errors=True)
    if "prepare" in program:
        prepared = run(["sh", "-c", program["prepare"]], folder, data)
        if prepared.code != 0:
            return "broken", f"`prepare` ends with {prepared.code}: {prepared.said[-300:].decode(errors='replace').strip()}"
        os.rename(folder, made)
    plain = run(words, folder, data, arguments.patience)
    paged = run(start + arguments.more + ["--"] + words, folder, data, arguments.patience)
    ratio = f"{plain.seconds:6.2f} s {paged.seconds:6.2f} s  x{paged.seconds / max(plain.seconds, 0.001):.1f}"
    counts = json.load(open(statistics))["counts"] if os.path.exists(statistics) else {}
    faults = f"{counts.get('true_faults', 0):>8} faults {counts.get('device_bytes_written', 0) / 2**20:7.1f} MiB out"
    figures = f"{program['ram']:>7} {ratio:<26} {faults}"
    if plain.code != program.get("code", 0):
        return "broken", f"{figures}: the plain run ends with {plain.code}: {plain.said[-300:].decode(errors='replace').strip()}"
    if (plain.output, plain.code) == (paged.output, paged.code):
        return "equal", figures
    said = [line for line in paged.said.decode(errors="replace").splitlines() if line.startswith(("coldframe", "error"))]
    why = f"exit {paged.code}" if plain.code != paged.code else first_difference(plain.output, paged.output)
    return "DIFFERENT", f"{figures}: {why}; {' | '.join(said[:2])}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("coldframe")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--backing", help="the folder of the swap files")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds after which a run counts as hung")
    arguments, arguments.more = parser.parse_known_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.toml"), "rb") as file:
        programs = tomllib.load(file)["program"]
    if arguments.only:
        chosen = arguments.only.split(",")
        unknown = set(chosen) - {program["name"] for program in programs}
        if unknown:
            parser.error(f"--only: no program is called {', '.join(sorted(unknown))}")
        programs = [program for program in programs if program["name"] in chosen]
    counted = {}
    top = tempfile.mkdtemp(prefix="coldframe-programs-", dir=None if os.path.isdir("/tmp") else ".")
    try:
        data, folder = os.path.join(top, "data"), os.path.join(top, "run")
        os.mkdir(data)
        os.chmod(top, 0o755)
        inputs(data)
        for program in programs:
            missing = [need for need in program["needs"] if not shutil.which(need)]
            if "test" in program and not missing and subprocess.run(["sh", "-c", program["test"]], capture_output=True).returncode:
                missing = [program["test"]]
            verdict, words = ("skipped", f"missing: {', '.join(missing)}") if missing else compare(program, arguments, data, folder)
            counted[verdict] = counted.get(verdict, 0) + 1
            print(f"{program['name']:<14} {verdict:<9} {words}", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(", ".join(f"{counted[verdict]} {verdict}" for verdict in sorted(counted)))
    return 1 if counted.get("DIFFERENT") or counted.get("broken") else 0


if __name__ == "__main__":
    sys.exit(main())
