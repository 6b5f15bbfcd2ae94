"""The page of the catalogue and its data, all from the same rows: see catalogue.py.

What was not measured is `-`, and nothing here measures.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence

import catalogue_plots
import measure
from catalogue_rows import (
    COLUMNS, OF_FAST, SLOW, STAGES, Row, by_saving, flat, noisy, of_peak, of_second, part, reached, schema, searched, times, totals, verdicts,
)  # fmt: skip

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(TREE, "data/catalogue.json")
PARQUET = os.path.join(TREE, "data/catalogue.parquet")
README = os.path.join(TREE, "README.md")
SCHEMA = os.path.join(TREE, "data/catalogue-schema.json")
PAGE = os.path.join(TREE, "docs/book/src/catalogue.md")
PLOT = os.path.join(TREE, "docs/book/src/catalogue.svg")
SEARCH = os.path.join(TREE, "docs/book/src/catalogue-search.html")
LOST = 1.3
# Times that differ by less than this part are near to each other.
NEAR = 0.1
TEN = 10
WAYS = ("zram", "disk", "pager")
WAYS_IN_TURNS = ("pager", "zram", "disk")


def in_ram(row: Row, way: str, mark: str) -> str:
    size, slower = reached(row, way)
    return "-" if size is None else f"{measure.mib(size)} ({mark}{measure.show(slower)})"


def reason(row: Row) -> str:
    """Why a limit is so near to the peak, or so far from it, from the counted parts."""
    found = part(row, "answer")
    parts, limit = found["parts"], found["limit_bytes"]
    whole = sum(parts.values()) or 1
    files, fixed = parts["files"] / whole, 1 - parts["files"] / whole
    if limit is None:
        return f"no limit: {found['cannot_tell']}"
    saved = found["peak_bytes"] - limit
    if found["sizes_itself"] and saved >= 0.05 * found["peak_bytes"]:
        return "its runtime takes less by itself in less memory"
    if fixed >= 0.85:
        kind = max(("anonymous", "shared", "kernel"), key=lambda key: parts[key])
        words = {"anonymous": "heap", "shared": "shared memory or tmpfs", "kernel": "the kernel's own memory"}[kind]
        return f"{100 * fixed:.0f} % cannot leave without swap, most of it {words}"
    if saved < 0.05 * found["peak_bytes"]:
        return f"{100 * files:.0f} % is pages of files, which it needs again at once"
    return f"{100 * files:.0f} % is pages of files; of its peak {measure.mib(saved)} MiB can leave"


def brief(row: Row, stage: str) -> str:
    """A stage's result on one line."""
    found, mib = row[stage], measure.mib
    if "error" in found:
        return f"{row['name']:13} {found['error'][:60]}"
    if stage == "answer":
        return f"{row['name']:13} {found['plain_seconds']:5.2f} s, peak {mib(found['peak_bytes'])} MiB, limit {mib(found['limit_bytes'])} MiB"
    if stage == "again":
        return f"{row['name']:13} outside / outside {measure.show(found['distance'])}"
    if stage == "truth":
        checks = " ".join(f"{one['verdict']}{'' if one['outside'] in (one['verdict'], 'noise') else '!'}" for one in found["checks"])
        return f"{row['name']:13} limit / outside {measure.show(found['distance'])}, check {checks}, {found['paste_died']} died"
    shown = (f"{size['percent']} % " + " ".join(f"{way} {measure.show(times(row, size['percent'], way))}" for way in WAYS) for size in found["sizes"])
    return f"{row['name']:13} {', '.join(shown)}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    lines = [header, ["---" if i < left else "--:" for i in range(len(header))], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def table_of_limits(rows: Sequence[Row], processors: int) -> str:
    lines = []
    for row in by_saving(rows):
        found, mib = part(row, "answer"), measure.mib
        mark = "~" if noisy(row, processors) else ""
        parts = (mib(found["parts"][key]) for key in ("anonymous", "files", "shared"))
        lines.append([
            row["name"], row["kind"], f"{mark}{found['plain_seconds']:.2f}", mib(found["peak_bytes"]), *parts,
            mib(found["limit_bytes"]), percent(of_peak(row)), mib(found["lives_bytes"]), *(in_ram(row, way, mark) for way in WAYS),
        ])  # fmt: skip
    header = ["program", "kind", "s", "peak", "heap", "files", "shared", "limit", "of peak", "lives", *WAYS]
    return markdown_table(header, lines, 2)


def table_of_reasons(rows: Sequence[Row]) -> str:
    lines = [[row["name"], measure.mib(part(row, "answer")["peak_bytes"]), percent(of_peak(row)), reason(row)] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in [["program", "peak", "limit", "why"], ["---", "--:", "--:", "---"], *lines])


def table_of_truth(rows: Sequence[Row]) -> str:
    lines = []
    for row in sorted((row for row in rows if part(row, "truth")), key=lambda row: part(row, "truth")["distance"] or 0.0):
        found, said, mib = part(row, "truth"), part(row, "answer"), measure.mib
        mark = "" if measure.within(found["distance"], *OF_FAST) else "!"
        shown = [
            one["verdict"] + ("" if one["outside"] == one["verdict"] else " (noise)" if one["outside"] == "noise" else f", is {one['outside']}!")
            for one in found["checks"]
        ]
        died = "-" if found["paste_died"] is None else f"{found['paste_died']} of 3{'!' if found['paste_died'] else ''}"
        second = part(row, "again").get("distance")
        itself = measure.show(second) + ("" if second is None or measure.within(second, *OF_FAST) else "!")
        lines.append([row["name"], mib(said["limit_bytes"]), mib(found["fast_bytes"]), measure.show(found["distance"]) + mark, itself,
                      mib(said["lives_bytes"]), mib(found["lives_bytes"]), died, *shown, f"{found['took_seconds']:.0f}"])  # fmt: skip
    return markdown_table(["program", "limit", "fast", "distance", "again", "lives", "lives outside", "pasted died", "check at 0.9", "at 1.2", "s"], lines)


def cause(row: Row, processors: int) -> str:
    """Why a distance is out of its bounds, as far as the runs show it."""
    found, said = part(row, "truth"), part(row, "answer")
    slow = any(one["of_limit"] > 1 and one["outside"] == "no" for one in found["checks"])
    words = ["three runs at 1.2 of *fast* were too slow, so *fast* is not fast enough"] if slow else []
    if said["limit_bytes"] is None:
        return "; ".join([f"no limit is recommended: {said['cannot_tell']}", *words])
    second = part(row, "again")
    if second and not measure.within(second["distance"], *OF_FAST):
        words.append(f"the search from outside found {measure.mib(found['fast_bytes'])}, and {measure.mib(second['fast_bytes'])} MiB when it was made again")
    if second and measure.within(of_second(row), *OF_FAST):
        words.append("the limit is near to the second find")
    if not searched(row):
        words.append("the answer had no time left to run all smaller sizes")
    if any(one["of_limit"] < 1 and one["outside"] == "yes" for one in found["checks"]):
        wrong = "*fast*" if found["distance"] < 1 else "the limit"
        words.append(f"three runs at 0.9 of *fast* were fast enough, too, so that {wrong} is too large")
    low, high = sorted((said["limit_bytes"], found["fast_bytes"]))
    if found["distance"] < 1 and high - low <= max(high // 16, measure.MIB):
        words.append("the limit is less than the last step of the search from outside (a sixteenth, or 1 MiB) below *fast*")
    between = [one["times"] for one in said["ways"] if one["way"] == "none" and low <= one["ram_bytes"] < high and one["times"]]
    if len(between) > 1 and max(between) < SLOW + NEAR:
        words.append(f"between both limits the answer's runs took {min(between):.2f} to {max(between):.2f} times as long, near to the bound of {SLOW:.2f}")
    if not measure.within(measure.ratio(said["plain_seconds"], found["plain_seconds"]), 1 - NEAR, 1 + NEAR):
        words.append(f"without a limit it took {said['plain_seconds']:.2f} s, and {found['plain_seconds']:.2f} s when it was searched from outside")
    if found.get("beside_seconds") and not measure.within(found["plain_seconds"] / found["beside_seconds"], 1 - NEAR, 1 + NEAR):
        words.append(f"the search from outside rests on {found['plain_seconds']:.2f} s without a limit, and minutes later it took {found['beside_seconds']:.2f} s")
    if found["lives_bytes"] < 0.9 * found["fast_bytes"]:
        words.append(f"it slows down by a slope, from {measure.mib(found['fast_bytes'])} to {measure.mib(found['lives_bytes'])} MiB")
    if measure.within(measure.ratio(said["lives_bytes"], found["lives_bytes"]), *OF_FAST):
        words.append("both agree where it lives, not where it is fast")
    if abs(said["peak_bytes"] / found["peak_bytes"] - 1) > NEAR:
        words.append(f"its peak was {measure.mib(said['peak_bytes'])} and {measure.mib(found['peak_bytes'])} MiB")
    if (said["plain_spread"] or 0) > NEAR:
        words.append(f"its own time varied by {100 * said['plain_spread']:.0f} %")
    if noisy(row, processors):
        words.append("more threads, its own or others, ran than there are processors")
    return "; ".join(words) or "not known"


def wrong_verdicts(row: Row) -> list[str]:
    """The verdicts of `check` that three runs contradict, with these runs and, as far as they show it, the cause."""
    found, lines = part(row, "truth"), []
    for one in found.get("checks", []):
        if one["outside"] in (one["verdict"], "noise"):
            continue
        plain = found.get("beside_seconds")
        each = ", ".join(f"{seconds:.2f}" for seconds in one["seconds"])
        words = f"{row['name']} at {one['of_limit']}: {one['verdict']}, and three runs say {one['outside']}: {each} s"
        words += f", {plain:.2f} s without a limit beside them" if plain else ""
        if one["of_limit"] > 1 and one["outside"] == "no":
            words += f"; the search from outside, with {found['plain_seconds']:.2f} s without a limit, says that less is fast enough, so it contradicts itself"
        lines.append(words)
    return lines


def over(size: Row) -> float | None:
    """The time of our pager where it took more RAM than the limit, but each run ended in time; None: it did not so."""
    one = size.get("pager") or {}
    return one["times"] if one.get("over_limit") and one["why"] != "too long" else None


def table_of_pairs(rows: Sequence[Row]) -> str:
    lines = []
    for row in (row for row in rows if part(row, "pairs")):
        cells = []
        for size in part(row, "pairs")["sizes"]:
            ours, zram, disk = (times(row, size["percent"], way) for way in WAYS_IN_TURNS)
            mark = "!" if (far := measure.ratio(ours, zram)) and far > LOST else ""
            shown = measure.show(ours) + mark if ours or not over(size) else f"({measure.show(over(size))})"
            cells += [shown, measure.show(zram), measure.show(disk)]
        lines.append([row["name"], *cells])
    return markdown_table(["program", "pager 75 %", "zram", "disk", "pager 50 %", "zram", "disk"], lines)


# Why our pager may lose, the first that holds, and whether it does for a size.
LOSSES: list[tuple[str, Callable[[Row, Row], bool]]] = [
    (
        "Its runtime takes less in a memory group, by whose limit it sizes itself; our pager makes no group",
        lambda row, size: bool(part(row, "answer").get("sizes_itself")),
    ),
    (
        "It took more RAM than its limit. Code and files in use, shared memory and the pagers' own tables, which are not paged, need more by themselves, or grew faster than the heap could leave",
        lambda row, size: size["pager"]["over_limit"] > 0,
    ),
    (
        "It read over 1.3 times as many pages as zram did. The kernel knows by a bit of the processor which pages are in use; our pager "
        "has to take a page away to see that, and lets all code and files leave, or none",
        lambda row, size: size["pager"]["page_reads"] > LOST * max(size["zram"]["page_reads"], 1),
    ),
    (
        "It was ended before it was done, so its pages are those until then, and do not show the cause",
        lambda row, size: size["pager"]["why"] == "too long",
    ),
    (
        "It read no more pages, but each takes longer: from a disk and by a thread of the pager, where zram unpacks it within the fault",
        lambda row, size: True,
    ),
]


def losses(rows: Sequence[Row]) -> list[str]:
    """Where our pager takes much longer than zram, or has no time where zram has one, by cause, the commonest first."""
    found: list[list[str]] = [[] for _ in LOSSES]
    for row in rows:
        for size in part(row, "pairs").get("sizes", []):
            ours, theirs = (times(row, size["percent"], way) for way in ("pager", "zram"))
            far = measure.ratio(ours, theirs)
            if not (size.get("pager") and theirs) or (far and far <= LOST):
                continue
            at = next(i for i, (_, holds) in enumerate(LOSSES) if holds(row, size))
            said = f"{far:.2f}" if far else (size["pager"]["why"] or "not equal")
            reads = " / ".join(f"{size[way]['page_reads']:,}" for way in ("pager", "zram"))
            found[at].append(f"{row['name']} {size['percent']} % ({said}; {reads})")
    ordered = sorted(zip(found, LOSSES), key=lambda pair: -len(pair[0]))
    return [f"{words} ({len(each)}): {', '.join(each)}" for each, (words, _) in ordered if each]


def minutes(rows: Sequence[Row], stage: str) -> float:
    """How long a stage has taken for all programs."""
    return sum(row.get(stage, {}).get("took_seconds_in_all", 0.0) for row in rows) / 60


def builds(rows: Sequence[Row]) -> str:
    """Which builds of coldframe have measured the stages, as far as that is noted, and how many programs each."""
    said = []
    for stage in STAGES:
        commits = [row[stage].get("commit") or "not noted" for row in rows if stage in row]
        if set(commits) - {"not noted"}:
            said.append(f"{stage}: {', '.join(f'{one} {commits.count(one)}' for one in sorted(set(commits)))}")
    return f"Programs by the commit of coldframe that measured them: {'; '.join(said)}. " if said else ""


def page(data: Row) -> str:
    rows, machine = data["programs"], data["machine"]
    total, processors = totals(rows), machine["processors"]
    limited = [row for row in by_saving(rows) if of_peak(row) is not None]
    dates = sorted(part(row, "answer")["date"][:10] for row in rows if part(row, "answer"))
    text = "# What programs need: a catalogue\n\n"
    text += "<!-- Written by `make catalogue` from data/catalogue.json. -->\n\n"
    text += f"{'. '.join(total.sentences())}. The median limit is {percent(total.of_peak)} of the peak.\n\n" if dates else ""
    text += (
        "What a program needs is the least limit of its memory group, without swap, in which it is at most 10 % slower than without a\n"
        "limit: what `coldframe -- PROGRAM` recommends. *Peak* is the most that the kernel charged without a limit, *heap* (anonymous\n"
        "memory), *files* and *shared* are its parts. *Lives* is the least limit in which it ended as without one. *zram*, *disk* and *pager* are the\n"
        "least sizes tried with swap on zram, on a file, and by our pager, in which each run ended as without a limit,\n"
        "and in brackets its time in times of the run without one; `-`: at none that was tried, or not run yet. Sizes are MiB, times seconds.\n\n"
    )
    if dates:
        text += (
            f"Measured {dates[0] if dates[0] == dates[-1] else f'{dates[0]} to {dates[-1]}'} by coldframe {rows[0]['coldframe']} on {processors} processors ({machine['processor']}), "
            f"{machine['memory_bytes'] / (1 << 30):.0f} GiB,\n{machine['system']}, Linux {machine['kernel']}, cgroup {machine['groups']}; "
            f"load {total.loads[0]:.1f} to {total.loads[1]:.1f}. A `~` marks a time that was measured while more threads ran\n"
            "than there are processors, its own or others. Such times are less sure than sizes.\n"
            f"{builds(rows)}The stages took {', '.join(f'{stage} {took:.0f}' for stage in STAGES if (took := minutes(rows, stage)))} minutes; *again* is run only if it is asked for.\n\n"
        )
    text += (
        "<!-- not run: measures for hours -->\n```sh\nsudo make catalogue                          # all programs that are installed; goes on after an interruption\n"
        "sudo make catalogue PROGRAMS=sort,node,redis # these\n```\n\n"
        "The programs, their inputs and Debian's packages are in `scripts/catalogue.toml`. The data is in `data/catalogue.json` (every run) and\n"
        "`data/catalogue.parquet` (a row for each program; its columns are explained in `data/catalogue-schema.json`). A [page with\n"
        "search](catalogue-search.html) has the same rows.\n\n"
    )
    text += "## Limits\n\nThe least part of the peak first.\n\n" + table_of_limits(rows, processors) + "\n"
    text += "![Limit and peak of each program](catalogue.svg)\n\n"
    if limited:
        text += f"## The {min(TEN, len(limited))} that save most\n\n" + table_of_reasons(limited[:TEN]) + "\n"
        whole = [row for row in limited if searched(row)]
        text += f"## The {min(TEN, len(whole))} that save least\n\n" + table_of_reasons(whole[::-1][:TEN]) + "\n"
        if late := [row["name"] for row in limited if not searched(row)]:
            text += f"Of {len(late)} more no time was left to run all smaller sizes, so that less than their limit may do: {', '.join(late)}.\n\n"
    text += "## Truth\n\n" + (
        "Beside it, `scripts/limit.py` finds the limit from outside: *fast* is the least with which the program is at most 10 % slower, by\n"
        "a search of its own; *distance* is the recommended limit over that, `!` is beyond 0.95 to 1.15. *Again* is the same\n"
        "search at another time, over the first. `check --max-slowdown 10%` was\n"
        "asked about 0.9 and 1.2 times *fast*; `!`: three runs in such a limit say otherwise, *noise*: these three disagree. *Pasted died*:\n"
        "of three runs in the limit of the lines to paste.\n\n"
    )
    if measured := [row for row in rows if part(row, "truth")]:
        text += table_of_truth(rows) + "\n"
        far = [row for row in measured if not measure.within(part(row, "truth")["distance"], *OF_FAST)]
        text += f"Beyond the bound, {len(far)} of {len(measured)}:\n\n" if far else ""
        text += "".join(f"- {row['name']}: {cause(row, processors)}.\n" for row in far) + ("\n" if far else "")
        wrong = [line for row in measured for line in wrong_verdicts(row)]
        text += f"Verdicts that are not what happens, {len(wrong)} of {total.verdicts[1]}:\n\n" if wrong else ""
        text += "".join(f"- {line}.\n" for line in wrong) + ("\n" if wrong else "")
    else:
        text += "Not run yet.\n\n"
    text += "## Our pager beside the kernel's swap\n\n" + (
        "In 75 and 50 % of the limit that was known then (of the peak, where there was none), in turns with runs without a limit; times are multiples of theirs.\n"
        "`-`: not each run ended as the program alone within its time. `!`: our pager takes more than 1.3 times as long as zram. In brackets:\n"
        "our pager's time where it took more RAM than its limit (by a twentieth and 1 MiB or more), which counts as no time.\n"
        "The kernel's limit counts files that are only read or written, and a tmpfs; our pager counts what the processes map. So its times\n"
        "of programs that mostly handle files (tar, dwebp, page-cache, tmpfs) are those of more RAM.\n\n"
    )
    if any(part(row, "pairs") for row in rows):
        text += table_of_pairs(rows) + "\n"
        for (share, rival), (middle, count) in total.paged.items():
            text += f"- {share} %: our pager takes {measure.show(middle)} times as long as {'zram' if rival == 'zram' else 'a swap file'}, the median of {count} program{'' if count == 1 else 's'} for which both were equal.\n"
        lost = losses(rows)
        if lost:
            text += (
                f"\nWhere our pager takes more than {LOST} times as long as zram, or has no time where zram has one. In brackets: our time over zram's,\n"
                "or why there is none; the pages that came back by ours / by zram.\n\n"
            )
        text += "".join(f"- {line}.\n" for line in lost) + "\n"
    else:
        text += "Not run yet.\n\n"
    waiting = {stage: [row["name"] for row in rows if stage not in row and "skipped" not in row] for stage in STAGES}
    failed = [(row["name"], stage, row[stage]["error"]) for row in rows for stage in STAGES if "error" in row.get(stage, {})]
    skipped = [(row["name"], row["skipped"]) for row in rows if "skipped" in row]
    text += "## Not in it\n\n"
    words = {"answer": "an answer", "truth": "runs from outside", "again": "runs from outside once more", "pairs": "our pager beside the kernel's swap"}
    text += "".join(f"- Not run yet, {words[stage]}: {', '.join(names)}.\n" for stage, names in waiting.items() if names)
    text += "".join(f"- {name}, {words[stage]}: {why}\n" for name, stage, why in failed)
    text += "".join(f"- {name}: skipped: {why}\n" for name, why in skipped)
    return text if not text.endswith("## Not in it\n\n") else text + "Nothing is missing.\n"


PARQUET_WRITER = """
import json, sys, pyarrow, pyarrow.parquet
columns, rows = json.load(sys.stdin)
kinds = {"string": pyarrow.string(), "int": pyarrow.int64(), "double": pyarrow.float64()}
fields = [pyarrow.field(name, kinds[kind], metadata={"description": words}) for name, kind, words in columns]
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(fields)), sys.argv[1])
"""


def write_parquet(data: Row, path: str) -> None:
    """By pyarrow, of the tree's own virtual environment (make python)."""
    python = os.path.join(TREE, "target/venv/bin/python")
    columns = [(column.name, column.kind, column.words) for column in COLUMNS]
    given = json.dumps([columns, [flat(row) for row in data["programs"]]])
    try:
        ran = subprocess.run([python, "-c", PARQUET_WRITER, path], input=given, text=True, capture_output=True)
        said = ran.stderr.strip().splitlines()[-1:] if ran.returncode else []
    except OSError as error:
        said = [error.strerror or "?"]
    if said:
        print(f"catalogue: {path} is not written, since pyarrow is not there (make python): {said[0]}", file=sys.stderr)


def read_data(path: str = DATA) -> Row:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def quoted(readme: str, rows: Sequence[Row]) -> str:
    """The README with the totals of these rows between its two marks."""
    first, end = "<!-- totals of data/catalogue.json -->\n", "<!-- end -->\n"
    before, _, rest = readme.partition(first)
    after = rest.partition(end)[2]
    said = "; ".join(totals(rows).sentences())
    text = f"[What programs of Debian need](docs/book/src/catalogue.md), by `make catalogue`: {said}."
    return before + first + textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False) + "\n" + end + after


def write_from_data() -> None:
    """Everything that is made from the data."""
    data = read_data()
    with open(README, encoding="utf-8") as file:
        readme = file.read()
    write_file(README, quoted(readme, data["programs"]))
    write_file(PAGE, page(data))
    write_file(PLOT, catalogue_plots.plot(data["programs"]))
    write_file(SEARCH, catalogue_plots.search(data))
    write_file(SCHEMA, json.dumps(schema(), indent=1) + "\n")
    write_parquet(data, PARQUET)
    print(". ".join(totals(data["programs"]).sentences()))


def write(machine: Row, rows: Sequence[Row]) -> None:
    write_file(DATA, measure.to_json({"schema_version": 1, "machine": machine, "programs": rows}) + "\n")
    write_from_data()
