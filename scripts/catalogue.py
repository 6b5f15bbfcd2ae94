#!/usr/bin/env python3
"""What some sixty programs of Debian need, and how true coldframe's answers about them are. `make catalogue`, as root.

    python3 scripts/catalogue.py target/release/coldframe [--only NAME,NAME] [--stages answer,truth,pairs,again] [--minutes 110]
    python3 scripts/catalogue.py --page          makes the page from the data that is there

The programs are those of scripts/catalogue.toml. Stages, one program after the other, but pairs last:

    answer  `coldframe -- PROGRAM`: peak and its parts, limits without swap, with zram, with a disk, by our pager
    truth   scripts/limit.py beside it; `check` at 0.9 and 1.2 of the limit found from outside, beside three runs there;
            three runs in the limit that coldframe gives to paste
    pairs   our pager beside the kernel's swap on zram and on a file, at 75 and 50 % of the limit, in turns
    again   only if it is named: scripts/limit.py once more: how far the search from outside is from itself

Each result is written into target/catalogue at once: after an interruption the rows that are there are kept. A row belongs
to a command, a seed and a version of coldframe; --again measures anew. A program that is not installed is skipped by name;
a run that differs or fails is a row. At the end, and after --page, data/catalogue.json, data/catalogue.parquet (if pyarrow
is there: make python) and docs/book/src/catalogue.md, catalogue.svg and catalogue-search.html beside it are written
from these rows.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import catalogue_page
import catalogue_rows
import limit
import measure
import samples
import truth

SCHEMA_VERSION = 1
ROWS = os.path.join(samples.TREE, "target/catalogue/rows.json")
USUAL = ("answer", "truth", "pairs")
CHECKED = (0.9, 1.2)
SHARES = (75, 50)
PAIRS = 2
# A run of a pair is ended after so many seconds, or times of a plain run.
LONGEST_S, LONGEST_TIMES = 4, 5
PATIENCE_S = 240.0
Row = dict[str, Any]


def load_rows(path: str) -> dict[str, Row]:
    """The rows that an earlier run has left. ValueError: the file is not ours."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path}: {error}; remove it to measure anew") from None
    rows = found.get("programs") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
        raise ValueError(f"{path}: it has no rows of programs; remove it to measure anew")
    return {row["name"]: row for row in rows}


def keep(path: str, rows: dict[str, Row], machine: Row) -> None:
    """Writes all rows, at once or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(measure.to_json({"schema_version": SCHEMA_VERSION, "machine": machine, "programs": list(rows.values())}) + "\n")
    os.rename(f"{path}.new", path)


def same(row: Row | None, sample: samples.Sample, seed: int, coldframe: str) -> bool:
    """Whether a row is of this command, seed and coldframe."""
    return row is not None and (row.get("command"), row.get("seed"), row.get("coldframe")) == (sample.command, seed, coldframe)


def left(chosen: Sequence[samples.Sample], stages: Sequence[str], rows: dict[str, Row]) -> list[tuple[str, samples.Sample]]:
    """What is not measured yet, pairs last; nothing of a program that cannot be run, or whose answer failed.

    A disk is slower in one hour than in another: what is compared (an answer and its truth) is measured one after the other."""
    asked = [(stage, sample) for sample in chosen for stage in stages]
    asked.sort(key=lambda todo: todo[0] == "pairs")
    todo = []
    for stage, sample in asked:
        row = rows.get(sample.name, {})
        if stage not in row and "skipped" not in row and "error" not in row.get("answer", {}):
            todo.append((stage, sample))
    return todo


def ways(runs: Sequence[Row], plain: float) -> list[Row]:
    """The sizes that an answer has tried, by way: its times and whether each run ended as the program alone."""
    found = []
    for run in runs:
        if run["by"] == "plain":
            continue
        swap = (run["swap"] or "").split()[0] if run["swap"] else ""
        name = {"": "kernel", "none": "none"}.get(swap, "zram" if swap == "zram" else "disk") if run["by"] == "kernel" else "pager"
        each = run["runs"]
        found.append({
            "way": name, "ram_bytes": run["ram_bytes"], "seconds": run["seconds"], "times": measure.ratio(run["seconds"], plain),
            "too_long": run["more"], "runs": len(each), "equal": sum(one["alike"] and not one["too_long"] for one in each),
            "failed": run["failed"],
        })  # fmt: skip
    return found


def answer(bench: truth.Bench) -> Row:
    """What `coldframe -- PROGRAM` says."""
    seconds, said = bench.answer()
    if said.get("kind") != "limit":
        raise limit.Failure(f"no limit was measured: {' '.join(said.get('notes', []))}")
    if said["exit"] != 0:
        raise limit.Failure(f"it ends with exit code {said['exit']} without a limit")
    sizes, plain = said["limit"], said["program_seconds"]
    alone = next(run for run in said["runs"] if run["by"] == "plain")
    return {
        "seconds": seconds,
        "plain_seconds": plain,
        "plain_spread": measure.spread([one["seconds"] for one in alone["runs"]]),
        "exit": said["exit"],
        "run_count": said["run_count"],
        "peak_bytes": sizes["peak_bytes"],
        "parts": {key: sizes["parts"][f"{key}_bytes"] for key in ("anonymous", "files", "shared", "kernel")},
        "limit_bytes": sizes["recommended_bytes"],
        "paste_bytes": sizes["paste_bytes"] or sizes["recommended_bytes"],
        "lives_bytes": sizes["lives_bytes"],
        "dies_bytes": sizes["dies_bytes"],
        "perhaps_bytes": sizes["fast_bytes"],
        "warm_bytes": sizes["warm_bytes"],
        "cannot_tell": sizes["cannot_tell"],
        "by_work": sizes["by_work"],
        "sizes_itself": sizes["sizes_itself"],
        "ways": ways(said["runs"], plain),
        "notes": said["notes"],
    }


def verdict_outside(found: limit.Limits, runs: Sequence[limit.Run], plain: float) -> str:
    """What three runs in a limit say: yes, no, or noise if they disagree."""
    within = [found.lives(run) and run.seconds <= truth.SLOW * plain for run in runs]
    return "noise" if len(set(within)) == 2 else "yes" if within[0] else "no"


def outside(bench: truth.Bench, row: Row) -> Row:
    """The same from outside, and what happens in the limits that coldframe was asked about, or gave."""
    bench.program.run()
    found = limit.measure(bench.program, truth.SLOW)
    said = row["answer"]
    sizes = {part: int(found.fast_bytes * part) // 1024 * 1024 for part in CHECKED}
    began = time.monotonic()
    verdicts = {part: bench.verdict(size) for part, size in sizes.items()}
    check_seconds = (time.monotonic() - began) / len(sizes)
    plain, runs = bench.beside([size for size in (said["paste_bytes"], *sizes.values()) if size], found)
    checks = [
        {
            "of_limit": part, "limit_bytes": size, "verdict": verdicts[part],
            "outside": verdict_outside(found, runs[size], plain),
            "seconds": [run.seconds for run in runs[size]], "died": sum(not found.lives(run) for run in runs[size]),
        }
        for part, size in sizes.items()
    ]  # fmt: skip
    return {
        "plain_seconds": found.plain_seconds,
        "peak_bytes": found.peak_bytes,
        "fast_bytes": found.fast_bytes,
        "lives_bytes": found.lives_bytes,
        "took_seconds": found.took_seconds,
        "distance": measure.ratio(said["limit_bytes"], found.fast_bytes),
        "paste_died": sum(not found.lives(run) for run in runs[said["paste_bytes"]]) if said["paste_bytes"] else None,
        "check_seconds": check_seconds,
        "beside_seconds": plain,
        "checks": checks,
    }


def again(bench: truth.Bench, row: Row) -> Row:
    """The search from outside once more."""
    if not (first := catalogue_rows.part(row, "truth")):
        raise limit.Failure("there is no first search from outside")
    bench.program.run()
    found = limit.measure(bench.program, truth.SLOW)
    return {
        "plain_seconds": found.plain_seconds, "fast_bytes": found.fast_bytes, "lives_bytes": found.lives_bytes,
        "took_seconds": found.took_seconds, "distance": measure.ratio(found.fast_bytes, first["fast_bytes"]),
    }  # fmt: skip


def way(contender: Row, plain: float) -> Row:
    """One way's runs in a size; none where it took too long in a larger one."""
    each = contender["runs"]
    late = contender["more"] or not each
    return {
        "seconds": [one["seconds"] for one in each],
        "times": measure.ratio(contender["seconds"], plain),
        "equal": sum(one["alike"] and not one["too_long"] and not one.get("over_limit") for one in each),
        "runs": len(each),
        "page_reads": contender["page_reads"],
        "over_limit": sum(one.get("over_limit", False) for one in each),
        "why": contender["refused"] or contender["failed"] or ("too long" if late else None),
    }


def pairs(bench: truth.Bench, row: Row) -> Row:
    """Our pager beside the kernel's swap, in turns, in parts of the limit."""
    base = row["answer"]["limit_bytes"] or row["answer"]["peak_bytes"]
    asked = ",".join(f"{base * share // 100 // 1024}KiB" for share in SHARES)
    longest = f"{max(LONGEST_S, LONGEST_TIMES * row['answer']['plain_seconds']):.0f}s"
    options = ["--ram", asked, "--ways", "zram,file,pager", "--runs", str(PAIRS), "--max-time", longest, "--format", "json"]
    words = [bench.coldframe, "-q", "compare", *options, "--", *bench.words]
    ran = measure.start(words, bench.folder, os.environ | samples.ENVIRONMENT, PATIENCE_S)
    try:
        found = json.loads(ran.text)
    except ValueError:
        raise limit.Failure(f"compare: {ran.last if ran.code is not None else f'longer than {PATIENCE_S:.0f} s'}"[:300]) from None
    names = {"our pager": "pager", "zram": "zram", "file": "disk"}
    plain = found["plain"]["seconds"]
    return {
        "plain_seconds": plain,
        "of": "limit" if row["answer"]["limit_bytes"] else "peak",
        "varies": found["varies"],
        "left_out": found["left_out"],
        "sizes": [
            {"percent": share, "ram_bytes": size["ram_bytes"]}
            | {names[one["name"]]: way(one, plain) for one in size["ways"] if one["name"] in names}
            for share, size in zip(SHARES, found["sizes"])
        ],
        "seconds": ran.seconds,
    }


def commit() -> str | None:
    """The commit of this tree, since builds of one version differ. None: git is not there, or does not tell."""
    try:
        return measure.start(["git", "-C", samples.TREE, "rev-parse", "--short=8", "HEAD"]).text.strip() or None
    except OSError:
        return None


class Catalogue:
    """The rows, and what is still to be measured."""

    def __init__(self, asked: argparse.Namespace, folder: str):
        self.asked, self.folder = asked, folder
        self.coldframe = measure.start([asked.coldframe, "--version"]).text.split("\n")[0].removeprefix("coldframe ")
        self.commit = commit()
        self.machine = measure.machine()
        self.rows = {} if asked.again else load_rows(asked.rows)
        self.built: dict[str, str | None] = {}

    def missing(self, sample: samples.Sample) -> str | None:
        if sample.name not in self.built:
            self.built[sample.name] = samples.missing(sample, self.folder, self.asked.seed)
        return self.built[sample.name]

    def begin(self, sample: samples.Sample) -> Row:
        return {
            "name": sample.name, "kind": sample.kind, "packages": sample.packages, "command": sample.command,
            "input": sample.input, "seed": self.asked.seed, "coldframe": self.coldframe,
        }  # fmt: skip

    def measure(self, stage: str, sample: samples.Sample) -> None:
        """Does one stage of a program; what fails is what the row says."""
        row = self.rows[sample.name]
        if reason := self.missing(sample):
            row["skipped"] = reason[:200]
            print(f"{sample.name}: skipped: {row['skipped']}", file=sys.stderr)
            return
        row.setdefault("version", samples.version(sample, self.folder))
        bench = truth.Bench(self.asked.coldframe, self.folder, sample.words)
        steps: dict[str, Callable[[], Row]] = {
            "answer": lambda: answer(bench), "truth": lambda: outside(bench, row),
            "again": lambda: again(bench, row), "pairs": lambda: pairs(bench, row),
        }  # fmt: skip
        loads, began = [measure.load()], time.monotonic()
        try:
            row[stage] = steps[stage]()
        except limit.Failure as failure:
            row[stage] = {"error": str(failure)}
        loads.append(measure.load())
        row[stage]["load"] = round(statistics.mean(loads), 2)
        row[stage]["took_seconds_in_all"] = round(time.monotonic() - began, 1)
        row[stage]["commit"] = self.commit
        row[stage]["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")

    def run(self, chosen: Sequence[samples.Sample]) -> None:
        for sample in chosen:
            if not same(self.rows.get(sample.name), sample, self.asked.seed, self.coldframe) or "skipped" in self.rows[sample.name]:
                self.rows[sample.name] = self.begin(sample)
        todo = left(chosen, self.asked.stages, self.rows)
        progress, end = measure.Progress(len(todo)), time.monotonic() + 60 * self.asked.minutes
        for stage, sample in todo:
            if time.monotonic() > end:
                print(f"catalogue.py: {self.asked.minutes} minutes are over; run it again for the rest", file=sys.stderr)
                break
            row = self.rows[sample.name]
            if "skipped" not in row and "error" not in row.get("answer", {}):
                progress.say(f"{sample.name}, {stage}")
                self.measure(stage, sample)
                progress.clear()
                if stage in row:
                    print(f"{stage:6} {catalogue_page.brief(row, stage)}", flush=True)
                keep(self.asked.rows, self.rows, self.machine)
            progress.step()


def prepare(folder: str, asked: argparse.Namespace) -> None:
    """The inputs, and this machine's costs, which are measured before the first answer and not kept."""
    os.chmod(folder, 0o755)
    with limit.MemoryGroup(limit.MIB):
        samples.inputs(folder, asked.seed)
    os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
    measure.start([asked.coldframe, "-q", "doctor", "--calibrate"], folder, patience=120)


def stages(text: str) -> list[str]:
    return measure.choose(text, catalogue_rows.STAGES)


def main() -> None:
    lines = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=lines[0])
    parser.add_argument("coldframe", nargs="?")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--stages", type=stages, default=list(USUAL), help="answer, truth, pairs, again [default: the first three]")
    parser.add_argument("--minutes", type=float, default=110, help="no stage of a program begins after that")
    parser.add_argument("--seed", type=int, default=samples.USUAL, help="other sizes and inputs")
    parser.add_argument("--again", action="store_true", help="measure anew what is there")
    parser.add_argument("--rows", default=ROWS, help="where rows are kept")
    parser.add_argument("--no-page", action="store_true", help="write no page and no data, only rows")
    parser.add_argument("--page", action="store_true", help="only make the page from the data")
    asked = parser.parse_args()
    if asked.page:
        return catalogue_page.write_from_data()
    if not asked.coldframe:
        parser.error("give the path of coldframe")
    asked.coldframe = measure.program(parser, asked.coldframe)
    try:
        chosen = [samples.sized(sample, asked.seed) for sample in samples.find(asked.only)]
    except ValueError as error:
        sys.exit(f"catalogue.py: {error}")
    measure.stop_cleanly()
    with tempfile.TemporaryDirectory(prefix="catalogue-", dir="/var/tmp") as folder:
        try:
            catalogue = Catalogue(asked, folder)
            prepare(folder, asked)
            catalogue.run(chosen)
        except (limit.Failure, ValueError) as failure:
            sys.exit(f"catalogue.py: {failure}")
        except KeyboardInterrupt:
            sys.exit("\ncatalogue.py: interrupted; the rows so far are kept, and the next run goes on from there")
    if not asked.no_page:
        catalogue_page.write(catalogue.machine, list(catalogue.rows.values()))


if __name__ == "__main__":
    main()
