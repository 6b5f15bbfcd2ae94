"""The page, the plot, the searchable table and the data of the catalogue, all from the same rows: see catalogue.py.

A row is a program, as catalogue.py writes it. What was not measured is `-`, and nothing here measures.
"""

import html
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import measure

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(TREE, "data/catalogue.json")
PARQUET = os.path.join(TREE, "data/catalogue.parquet")
README = os.path.join(TREE, "README.md")
SCHEMA = os.path.join(TREE, "data/catalogue-schema.json")
PAGE = os.path.join(TREE, "docs/book/src/catalogue.md")
PLOT = os.path.join(TREE, "docs/book/src/catalogue.svg")
SEARCH = os.path.join(TREE, "docs/book/src/catalogue-search.html")
SLOW = 1.10
OF_FAST = (0.95, 1.15)
LOST = 1.3
# Times that differ by less than this part are near to each other.
NEAR = 0.1
TEN = 10
WAYS = ("zram", "disk", "pager")
WAYS_IN_TURNS = ("pager", "zram", "disk")
STAGES = ("answer", "truth", "again", "pairs")
Row = dict[str, Any]


def part(row: Row, stage: str) -> Row:
    """What a stage has measured; empty: nothing."""
    found = row.get(stage) or {}
    return {} if "error" in found else found


def of_peak(row: Row) -> float | None:
    """The limit without swap, in parts of the peak."""
    found = part(row, "answer")
    return measure.ratio(found.get("limit_bytes"), found.get("peak_bytes"))


def reached(row: Row, way: str) -> tuple[int | None, float | None]:
    """The least size that was tried by a way in which each run ended as the program alone, and its time in times of that."""
    tried = [
        (one["ram_bytes"], one["times"])
        for one in part(row, "answer").get("ways", [])
        if one["way"] == way and one["equal"] == one["runs"] > 0 and one["failed"] is None
    ]
    for size in part(row, "pairs").get("sizes", []):
        if (found := times(row, size["percent"], way)) is not None:
            tried.append((size["ram_bytes"], found))
    return min(tried, key=lambda one: one[0], default=(None, None))


def in_ram(row: Row, way: str, mark: str) -> str:
    size, slower = reached(row, way)
    return "-" if size is None else f"{measure.mib(size)} ({mark}{measure.show(slower)})"


def times(row: Row, percent: int, way: str) -> float | None:
    """The time by a way in a part of the limit, in times of that without one; None: not each run was as the program alone."""
    for size in part(row, "pairs").get("sizes", []):
        one = size.get(way)
        if size["percent"] == percent and one and one["equal"] == one["runs"] > 0 and one["why"] is None:
            return one["times"]
    return None


def verdicts(row: Row) -> list[tuple[str, str]]:
    """What `check` said and what happened, where what happened is clear."""
    checks = part(row, "truth").get("checks", [])
    return [(one["verdict"], one["outside"]) for one in checks if one["outside"] != "noise"]


# More than this all the time is other work: a program of the catalogue has some two threads at work.
QUIET_LOAD = 2.5


def noisy(row: Row, processors: int) -> bool:
    """Whether more processes than processors ran meanwhile: times are less sure than sizes."""
    return any((row.get(stage) or {}).get("load", 0) > processors for stage in STAGES)


def searched(row: Row) -> bool:
    """Whether smaller sizes were run until one was too small. Otherwise less than the limit may do."""
    found = part(row, "answer")
    late = any("no time was left" in note for note in found["notes"])
    return not (late and (found["limit_bytes"] or 0) > 0.95 * found["peak_bytes"])


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


@dataclass
class Column:
    """A column of the data: its name, type, meaning, and its value in a row."""

    name: str
    kind: str
    words: str
    value: Callable[[Row], Any]


def stage_value(stage: str, key: str) -> Callable[[Row], Any]:
    return lambda row: part(row, stage).get(key)


def check_value(at: int, key: str) -> Callable[[Row], Any]:
    return lambda row: checks[at][key] if len(checks := part(row, "truth").get("checks", [])) > at else None


def parts_value(key: str) -> Callable[[Row], Any]:
    return lambda row: part(row, "answer").get("parts", {}).get(key)


COLUMNS = [
    Column("name", "string", "its name in scripts/catalogue.toml", lambda row: row["name"]),
    Column("kind", "string", "compiler, language, server, tool, image, model, browser or test", lambda row: row["kind"]),
    Column("packages", "string", "Debian's packages, separated by blanks", lambda row: " ".join(row["packages"])),
    Column("command", "string", "the command", lambda row: row["command"]),
    Column("version", "string", "what the program says of its version", lambda row: row.get("version")),
    Column("input", "string", "what it worked on", lambda row: row["input"]),
    Column("seed", "int", "the seed of its input", lambda row: row["seed"]),
    Column("coldframe", "string", "the version of coldframe", lambda row: row["coldframe"]),
    Column("skipped", "string", "why it was not run", lambda row: row.get("skipped")),
    Column("failed", "string", "why a stage has no result", lambda row: next((row[one]["error"] for one in STAGES if "error" in row.get(one, {})), None)),
    Column("date", "string", "when the answer was measured", stage_value("answer", "date")),
    Column("load", "double", "processes that ran or waited meanwhile: beyond the number of processors, times are noisy", stage_value("answer", "load")),
    Column("plain_seconds", "double", "its run time without a limit", stage_value("answer", "plain_seconds")),
    Column("answer_seconds", "double", "how long the answer took", stage_value("answer", "seconds")),
    Column("peak_bytes", "int", "the most that its memory group was charged without a limit", stage_value("answer", "peak_bytes")),
    Column("anonymous_bytes", "int", "of that, heap, stacks and private data", parts_value("anonymous")),
    Column("files_bytes", "int", "pages of files", parts_value("files")),
    Column("shared_bytes", "int", "shared memory and files of a tmpfs", parts_value("shared")),
    Column("kernel_bytes", "int", "the kernel's own", parts_value("kernel")),
    Column("limit_bytes", "int", "the recommended limit without swap: at most 10 % slower; null: it cannot be told", stage_value("answer", "limit_bytes")),
    Column("of_peak", "double", "limit over peak", of_peak),
    Column("cannot_tell", "string", "why there is no recommended limit", stage_value("answer", "cannot_tell")),
    Column("lives_bytes", "int", "the least limit without swap in which it ended as without one", stage_value("answer", "lives_bytes")),
    Column("paste_bytes", "int", "the limit in the lines to paste", stage_value("answer", "paste_bytes")),
    *(
        Column(f"{way}_{key}", kind, f"{meaning} {words} in which each run was equal", lambda row, way=way, at=at: reached(row, way)[at])
        for at, (key, kind, meaning) in enumerate((("bytes", "int", "the least size tried"), ("times", "double", "times of the run without a limit, in the least size tried")))
        for way, words in (("zram", "with swap on zram"), ("disk", "with swap on a file"), ("pager", "by our pager"))
    ),
    Column("outside_fast_bytes", "int", "the least limit with which it is at most 10 % slower, by scripts/limit.py", stage_value("truth", "fast_bytes")),
    Column("outside_lives_bytes", "int", "the least limit with which it lives, by scripts/limit.py", stage_value("truth", "lives_bytes")),
    Column("distance", "double", "limit_bytes over outside_fast_bytes", stage_value("truth", "distance")),
    Column("again_distance", "double", "outside_fast_bytes of a second search over that of the first", stage_value("again", "distance")),
    Column("paste_died", "int", "of three runs in the limit to paste, those that did not end as without one", stage_value("truth", "paste_died")),
    *(
        Column(f"check_{name}_{key}", "string", words, check_value(at, key))
        for at, name, of in ((0, "low", 0.9), (1, "high", 1.2))
        for key, words in (
            ("verdict", f"what `check` says of {of} times outside_fast_bytes; ?: it cannot tell"),
            ("outside", "what three runs there say; noise: they disagree"),
        )
    ),
    *(
        Column(f"{way}_{share}_times", "double", f"time in {share} % of the limit {words}, in times of that without one; null: not equal", lambda row, way=way, share=share: times(row, share, way))
        for share in (75, 50)
        for way, words in (("pager", "by our pager"), ("zram", "with swap on zram"), ("disk", "with swap on a file"))
    ),
]  # fmt: skip


def flat(row: Row) -> Row:
    return {column.name: column.value(row) for column in COLUMNS}


def schema() -> Row:
    """The columns of data/catalogue.parquet, which are also those of the page with search."""
    kinds = {"string": "string", "int": "integer", "double": "number"}
    fields = {
        column.name: {"type": kinds[column.kind] if i < 2 else [kinds[column.kind], "null"], "description": column.words}
        for i, column in enumerate(COLUMNS)
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:coldframe:schema:1:catalogue",
        "title": "A row of data/catalogue.parquet; data/catalogue.json has the runs from which it is made",
        "type": "object", "properties": fields, "required": list(fields), "additionalProperties": False,
    }  # fmt: skip


@dataclass
class Totals:
    """What the rows say together. A pair of numbers: so many of so many."""

    programs: int
    answered: int
    skipped: int
    limits: tuple[int, int]
    # The search from outside beside itself.
    again: tuple[int, int]
    pastes: tuple[int, int]
    verdicts: tuple[int, int]
    of_peak: float | None
    # The least and the largest load while they were measured.
    loads: tuple[float, float]
    # Our pager's time over each rival's: by percent and rival, the median of programs and their number.
    paged: dict[tuple[int, str], tuple[float | None, int]]

    def sentences(self) -> list[str]:
        of = lambda pair: f"{pair[0]} of {pair[1]}"
        at = f", at a load of {self.loads[0]:.0f} to {self.loads[1]:.0f}" if self.answered else ""
        if self.loads[0] > QUIET_LOAD:
            at += " from other work, so all figures are to be measured again on a quiet machine"
        said = [f"{self.answered} of {self.programs} programs are measured{at}"]
        if self.limits[1]:
            itself = f"; that search agrees so with itself for {of(self.again)}" if self.again[1] else ""
            said.append(
                f"{of(self.limits)} limits are within {OF_FAST[0]} to {OF_FAST[1]} of what a search from outside finds{itself}; "
                f"{of(self.pastes)} pasted limits kill nothing, {of(self.verdicts)} verdicts of `check` are what happens"
            )
        return said


def totals(rows: Sequence[Row]) -> Totals:
    distances = [part(row, "truth")["distance"] for row in rows if part(row, "truth")]
    again = [part(row, "again")["distance"] for row in rows if part(row, "again")]
    pastes = [part(row, "truth")["paste_died"] for row in rows if part(row, "truth").get("paste_died") is not None]
    said = [pair for row in rows for pair in verdicts(row)]
    loads = [row[stage]["load"] for row in rows for stage in STAGES if "load" in row.get(stage, {})]
    paged = {}
    for share in (75, 50):
        for rival in ("zram", "disk"):
            each = [one for row in rows if (one := measure.ratio(times(row, share, "pager"), times(row, share, rival)))]
            paged[share, rival] = measure.median(each), len(each)
    return Totals(
        programs=len(rows),
        answered=sum(bool(part(row, "answer")) for row in rows),
        skipped=sum("skipped" in row for row in rows),
        limits=(sum(measure.within(one, *OF_FAST) for one in distances), len(distances)),
        again=(sum(measure.within(one, *OF_FAST) for one in again), len(again)),
        pastes=(sum(died == 0 for died in pastes), len(pastes)),
        verdicts=(sum(says == happens for says, happens in said), len(said)),
        of_peak=measure.median(of_peak(row) for row in rows),
        loads=(min(loads, default=0.0), max(loads, default=0.0)),
        paged=paged,
    )


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


def by_saving(rows: Sequence[Row]) -> list[Row]:
    """Programs with a limit, the least part of the peak first; then those without one, by name."""
    answered = [row for row in rows if part(row, "answer")]
    return sorted(answered, key=lambda row: (of_peak(row) is None, of_peak(row) or 0.0, row["name"]))


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
    if said["limit_bytes"] is None:
        return f"no limit is recommended: {said['cannot_tell']}"
    words = []
    second = part(row, "again")
    if second and not measure.within(second["distance"], *OF_FAST):
        words.append(f"the search from outside found {measure.mib(found['fast_bytes'])}, and {measure.mib(second['fast_bytes'])} MiB when it was made again")
    if not searched(row):
        words.append("the answer had no time left to run all smaller sizes")
    if any(one["of_limit"] < 1 and one["outside"] == "yes" for one in found["checks"]):
        wrong = "*fast*" if found["distance"] < 1 else "the limit"
        words.append(f"three runs at 0.9 of *fast* were fast enough, too, so that {wrong} is too large")
    low, high = sorted((said["limit_bytes"], found["fast_bytes"]))
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
        words.append("other programs had the processors")
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
        "It took more RAM than its limit. Code and files leave late, and pages that processes share count for each; which of these it was is not counted",
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
            f"load {total.loads[0]:.1f} to {total.loads[1]:.1f}. A `~` marks a time that was measured while more processes ran\n"
            "than there are processors: other work ran then. Such times are less sure than sizes.\n\n"
        )
    text += (
        "<!-- not run: measures for up to two hours -->\n```sh\nsudo make catalogue                          # all programs that are installed; goes on after an interruption\n"
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
        "search once more, over the first. `check --max-slowdown 10%` was\n"
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
        "In 75 and 50 % of the limit (of the peak, where there is none), in turns with runs without a limit; times are multiples of theirs.\n"
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


def plot(rows: Sequence[Row]) -> str:
    """Bars: the limit in parts of the peak; a line where it lives, a dot where runs from outside found it."""
    rows = [row for row in by_saving(rows) if of_peak(row) is not None]
    left, wide, high, top = 110, 520, 14, 44
    height = top + high * len(rows) + 26
    text = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide + 125} {height}" font-family="sans-serif" font-size="10">',
        '<style>text{fill:#333}.p{fill:#e4e7ea}.l{fill:#3b7dd8}.o{fill:#d9480f}.v{stroke:#102a43;stroke-width:2}.g{stroke:#bbb;stroke-dasharray:2 3}@media (prefers-color-scheme:dark){text{fill:#ddd}.p{fill:#333c44}.v{stroke:#dbe7f5}}</style>',
        f'<text x="{left}" y="14" font-size="12">Limit without swap in parts of the peak: blue. Where it lives: line. From outside: dot.</text>',
    ]
    for tick in range(0, 101, 25):
        x = left + wide * tick / 100
        text.append(f'<line class="g" x1="{x:.0f}" x2="{x:.0f}" y1="{top - 8}" y2="{height - 22}"/><text x="{x:.0f}" y="{top - 12}" text-anchor="middle">{tick} %</text>')
    for i, row in enumerate(rows):
        y, found, share = top + i * high, part(row, "answer"), of_peak(row) or 0
        x = lambda size: left + wide * min(size / found["peak_bytes"], 1.05)
        text.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{html.escape(row["name"])}</text><rect class="p" x="{left}" y="{y + 2}" width="{wide}" height="{high - 4}"/>')
        text.append(f'<rect class="l" x="{left}" y="{y + 2}" width="{wide * min(share, 1.05):.1f}" height="{high - 4}"/>')
        if found["lives_bytes"]:
            text.append(f'<line class="v" x1="{x(found["lives_bytes"]):.1f}" x2="{x(found["lives_bytes"]):.1f}" y1="{y + 1}" y2="{y + high - 1}"/>')
        if outside := part(row, "truth").get("fast_bytes"):
            text.append(f'<circle class="o" cx="{x(outside):.1f}" cy="{y + high / 2}" r="3"/>')
        text.append(f'<text x="{left + wide + 36}" y="{y + 10}">{measure.mib(found["limit_bytes"])} of {measure.mib(found["peak_bytes"])} MiB</text>')
    return "\n".join([*text, "</svg>"]) + "\n"


SEARCH_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>What programs need</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1250px; padding: 0 1em; color: #222; background: #fff }
input { font: inherit; padding: .4em .7em; width: 22em; max-width: 100%; border: 1px solid #999; border-radius: 4px }
table { border-collapse: collapse; width: 100%; margin-top: 1em; font-size: 14px } .wide { overflow-x: auto }
th { text-align: right; cursor: pointer; border-bottom: 2px solid #888; padding: .3em .5em; white-space: nowrap }
td { text-align: right; padding: .25em .5em; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums; white-space: nowrap }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left } tr:hover td { background: #eef4fc }
.bar { display: inline-block; height: .7em; background: #3b7dd8; margin-right: .4em } small { color: #666 }
td.more { white-space: normal; text-align: left; background: #f6f8fa; cursor: auto }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181b1f } tr:hover td { background: #26303a } td.more { background: #20262c } td { border-color: #333 } }
</style>
<h1>What programs need</h1>
<p>SENTENCES</p>
<p><input id="search" type="search" placeholder="name, kind, package, version or command" aria-label="search" autofocus> <small id="count"></small></p>
<div class="wide"><table><thead><tr id="head"></tr></thead><tbody id="rows"></tbody></table></div>
<p><small>Sizes in MiB, times in seconds. Limit: the least without swap in which the program is at most 10 % slower. Click a column to sort by it, a row for its columns.</small></p>
<script type="application/json" id="data">DATA</script>
<script>
const rows = JSON.parse(document.getElementById("data").textContent);
const mib = v => v == null ? "-" : (v / 1048576).toFixed(v < 104857600 ? 1 : 0), two = v => v == null ? "-" : v.toFixed(2);
const columns = [["program", "name"], ["kind", "kind"], ["s", "plain_seconds", two], ["peak", "peak_bytes", mib], ["heap", "anonymous_bytes", mib], ["files", "files_bytes", mib],
    ["shared", "shared_bytes", mib], ["limit", "limit_bytes", mib], ["of peak", "of_peak", v => v == null ? "-" : `<span class=bar style="width:${Math.min(v, 1.15) * 50}px"></span>${Math.round(v * 100)} %`],
    ["lives", "lives_bytes", mib], ["zram", "zram_bytes", mib], ["x", "zram_times", two], ["disk", "disk_bytes", mib], ["x", "disk_times", two], ["pager", "pager_bytes", mib], ["x", "pager_times", two], ["outside", "outside_fast_bytes", mib], ["distance", "distance", two]];
const escape = text => String(text).replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);
let by = "of_peak", down = 1, open = null;
function draw() {
    const words = document.getElementById("search").value.toLowerCase().split(/\\s+/).filter(Boolean);
    const shown = rows.filter(row => words.every(word => [row.name, row.kind, row.packages, row.version, row.command, row.input].join(" ").toLowerCase().includes(word)));
    const value = row => row[by] == null ? (typeof rows[0][by] == "string" ? "" : Infinity) : row[by];
    shown.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * down);
    document.getElementById("count").textContent = `${shown.length} of ${rows.length}`;
    document.getElementById("rows").innerHTML = shown.map(row => `<tr data-name="${escape(row.name)}">` + columns.map(([, key, show]) => `<td>${show ? show(row[key]) : escape(row[key] ?? "-")}</td>`).join("") + "</tr>"
        + (open == row.name ? `<tr><td class=more colspan=${columns.length}>` + Object.entries(row).filter(([, v]) => v != null).map(([k, v]) => `<b>${k}</b> ${escape(v)}`).join(" · ") + "</td></tr>" : "")).join("");
}
document.getElementById("head").innerHTML = columns.map(([name, key]) => `<th data-key="${key}">${name}</th>`).join("");
document.getElementById("head").onclick = event => { const key = event.target.dataset.key; if (key) { down = by == key ? -down : 1; by = key; draw(); } };
document.getElementById("rows").onclick = event => { const name = event.target.closest("tr")?.dataset.name; if (name) { open = open == name ? null : name; draw(); } };
document.getElementById("search").oninput = draw;
draw();
</script>
</html>
"""


def search(data: Row) -> str:
    """A page that needs nothing else."""
    rows = json.dumps([flat(row) for row in data["programs"]]).replace("<", "\\u003c")
    return SEARCH_PAGE.replace("SENTENCES", html.escape(". ".join(totals(data["programs"]).sentences()) + ".")).replace("DATA", rows)


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
    write_file(PLOT, plot(data["programs"]))
    write_file(SEARCH, search(data))
    write_file(SCHEMA, json.dumps(schema(), indent=1) + "\n")
    write_parquet(data, PARQUET)
    print(". ".join(totals(data["programs"]).sentences()))


def write(machine: Row, rows: Sequence[Row]) -> None:
    write_file(DATA, measure.to_json({"schema_version": 1, "machine": machine, "programs": rows}) + "\n")
    write_from_data()
