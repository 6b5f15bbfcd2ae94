"""What the rows of the catalogue say: their parts, the columns of the data, and the totals. See catalogue.py.

A row is a program, as catalogue.py writes it. Nothing here measures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import measure

SLOW = 1.10
OF_FAST = (0.95, 1.15)
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


def times(row: Row, percent: int, way: str) -> float | None:
    """The time by a way in a part of the limit, in times of that without one; None: not each run was as the program alone."""
    for size in part(row, "pairs").get("sizes", []):
        one = size.get(way)
        if size["percent"] == percent and one and one["equal"] == one["runs"] > 0 and one["why"] is None:
            return one["times"]
    return None


def of_second(row: Row) -> float | None:
    """The limit over what the second search from outside found."""
    return measure.ratio(part(row, "answer").get("limit_bytes"), part(row, "again").get("fast_bytes"))


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
    # The search from outside made once more: limits beside it, and it beside the first one.
    second: tuple[int, int]
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
            itself = f", {of(self.second)} of what it finds a second time (it agrees so with itself for {of(self.again)})" if self.again[1] else ""
            said.append(
                f"{of(self.limits)} limits are within {OF_FAST[0]} to {OF_FAST[1]} of what a search from outside finds{itself}; "
                f"{of(self.pastes)} pasted limits kill nothing, {of(self.verdicts)} verdicts of `check` are what happens"
            )
        return said


def totals(rows: Sequence[Row]) -> Totals:
    distances = [part(row, "truth")["distance"] for row in rows if part(row, "truth")]
    again = [part(row, "again")["distance"] for row in rows if part(row, "again")]
    second = [of_second(row) for row in rows if part(row, "again")]
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
        second=(sum(measure.within(one, *OF_FAST) for one in second), len(second)),
        again=(sum(measure.within(one, *OF_FAST) for one in again), len(again)),
        pastes=(sum(died == 0 for died in pastes), len(pastes)),
        verdicts=(sum(says == happens for says, happens in said), len(said)),
        of_peak=measure.median(of_peak(row) for row in rows),
        loads=(min(loads, default=0.0), max(loads, default=0.0)),
        paged=paged,
    )


def by_saving(rows: Sequence[Row]) -> list[Row]:
    """Programs with a limit, the least part of the peak first; then those without one, by name."""
    answered = [row for row in rows if part(row, "answer")]
    return sorted(answered, key=lambda row: (of_peak(row) is None, of_peak(row) or 0.0, row["name"]))
