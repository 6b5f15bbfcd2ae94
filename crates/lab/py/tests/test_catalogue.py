"""The catalogue of what programs need: its programs' file, its rows, what is computed from them, its page and data."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
Row = dict[str, Any]
PROGRAM = """
[[program]]
name = "a"
kind = "tool"
packages = ["coreutils"]
run = "true {100}"
version = "true --version"
input = "nothing"
"""


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def script(name: str) -> ModuleType:
    return importlib.import_module(name)


def answer(peak: int = 100, limit: int | None = 60, **more: Any) -> Row:
    parts = {"anonymous": 50, "files": 45, "shared": 0, "kernel": 5}
    found = {
        "seconds": 20.0, "plain_seconds": 1.0, "plain_spread": 0.01, "exit": 0, "run_count": 9, "peak_bytes": peak, "parts": parts, "limit_bytes": limit,
        "paste_bytes": 66, "lives_bytes": 55, "cannot_tell": None if limit else "it varies", "sizes_itself": False, "ways": [], "notes": [], "load": 0.5, "date": "2026-11-29T10:00Z",
    }  # fmt: skip
    return found | more


def row(name: str = "a", **stages: Row) -> Row:
    base = {"name": name, "kind": "tool", "packages": ["coreutils"], "command": "true", "input": "nothing", "seed": 0, "coldframe": "1.0", "version": "1"}
    return base | stages


def truth(distance: float, verdict: str = "yes", outside: str = "yes", died: int = 0) -> Row:
    check = {"of_limit": 0.9, "limit_bytes": 54, "verdict": verdict, "outside": outside, "seconds": [1.0] * 3, "died": 0}
    return {
        "plain_seconds": 1.0, "peak_bytes": 100, "fast_bytes": 60, "lives_bytes": 58, "took_seconds": 9.0, "distance": distance, "paste_died": died,
        "check_seconds": 3.0, "beside_seconds": 1.05, "checks": [check, check | {"of_limit": 1.2}], "load": 0.5, "date": "2026-11-29T10:00Z",
    }  # fmt: skip


def pairs(ours: float, zram: float, equal: int = 2) -> Row:
    way = lambda times, equal=2: {"seconds": [times] * 2, "times": times, "equal": equal, "runs": 2, "page_reads": 7, "over_limit": 0, "why": None if equal == 2 else "killed"}
    sizes = [{"percent": share, "ram_bytes": share, "pager": way(ours, equal), "zram": way(zram), "disk": way(2.0)} for share in (75, 50)]
    return {"plain_seconds": 1.0, "of": "limit", "varies": False, "left_out": [], "sizes": sizes, "seconds": 30.0, "load": 0.5}


def data(*rows: Row) -> Row:
    machine = {"processors": 2, "processor": "p", "memory_bytes": 1 << 30, "kernel": "6", "groups": "v2", "system": "Debian"}
    return {"schema_version": 1, "machine": machine, "programs": list(rows)}


def test_medians_spread_and_noise_are_of_the_values_that_are_there() -> None:
    measure = script("measure")
    assert measure.median([3.0, None, 1.0, 2.0]) == 2.0 and measure.median([None]) is None
    assert measure.spread([2.0, 1.0, 3.0]) == 1.0 and measure.spread([1.0]) is None
    assert measure.noise([1.0, 1.01], [1.0, 1.3]) == pytest.approx(0.3 / 1.15)
    assert measure.noise([1.0], []) == measure.NOISE
    assert measure.ratio(1.0, 0.0) is None and measure.ratio(float("inf"), 1.0) is None and measure.ratio(3.0, 2.0) == 1.5
    assert measure.geometric([2.0, None, 8.0]) == pytest.approx(4.0)
    assert measure.within(1.15, 0.95, 1.15) and not measure.within(None, 0, 2)


def test_ways_take_turns_and_rounds_are_compared_with_themselves() -> None:
    measure = script("measure")
    order: list[str] = []
    found = measure.pairs({name: lambda name=name: order.append(name) or len(order) for name in "ab"}, 3)
    assert order == list("ababab") and found == {"a": [1, 3, 5], "b": [2, 4, 6]}
    # The second round met another load, which both of it have.
    assert measure.beside([1.0, 10.0, None], [2.0, 20.0, 1.0]) == 0.5


def test_a_run_has_its_code_output_and_last_line_and_none_if_it_took_too_long() -> None:
    measure = script("measure")
    ran = measure.start(["sh", "-c", "echo out; echo a >&2; echo b >&2; exit 3"])
    assert (ran.code, ran.text, ran.last) == (3, "out\n", "b")
    assert measure.start(["sh", "-c", "exec sleep 60"], patience=0.01, grace=0).code is None


def test_a_table_is_as_wide_as_its_cells() -> None:
    lines = script("measure").table(["program", "s"], [["a", "1.25"], ["longer name", "-"]])
    assert lines == ["program         s", "a            1.25", "longer name     -"]


def test_progress_says_the_time_that_is_left() -> None:
    now = [0.0]
    progress = script("measure").Progress(4, lambda: now[0])
    assert progress.line("a") == "1 of 4: a"
    now[0] = 120.0
    progress.step()
    assert progress.line("b") == "2 of 4: b, about 6 min left"


def test_the_file_of_programs_is_in_order() -> None:
    programs = script("samples").read()
    assert len(programs) >= 60 and {program.kind for program in programs} == set(script("samples").KINDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "(at end of document)"),
        ("x = 1\n", "programs.toml:1: it has no [[program]]"),
        ("program = 3\n", "programs.toml:1: it has no [[program]]"),
        (PROGRAM + PROGRAM, "programs.toml:11: `name`: a is there twice"),
        (PROGRAM + PROGRAM.replace('"a"', '"b"').replace('"tool"', '"car"'), "programs.toml:12: `kind` is one of compiler, "),
        (PROGRAM.replace('version = "true --version"\n', ""), "programs.toml:2: `version` is missing"),
        (PROGRAM.replace('"nothing"', "7"), "programs.toml:8: `input` must be a text"),
        (PROGRAM.replace('["coreutils"]', '"coreutils"'), "programs.toml:5: `packages` must be a list"),
        (PROGRAM.replace('"true {100}"', "\"true 'x\""), "programs.toml:6: `run`: no closing quotation"),
        (PROGRAM + "colour = 1\n", "programs.toml:9: `colour` is not a field"),
        (PROGRAM.replace('"a"', '"a b"'), "programs.toml:3: `name` has letters"),
    ],
)
def test_garbage_in_the_file_of_programs_is_told_by_line_and_field(text: str, said: str) -> None:
    with pytest.raises(ValueError) as told:
        script("samples").parse(text, "programs.toml")
    assert said in str(told.value)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b'[[program]]\nname = "\xff"\n')
    with pytest.raises(ValueError, match="byte 20 is no UTF-8"):
        script("samples").read(str(tmp_path / "p.toml"))


def test_a_seed_changes_sizes_and_the_usual_one_does_not() -> None:
    samples = script("samples")
    (program,) = samples.parse(PROGRAM, "p")
    assert samples.sized(program).command == "true 100"
    assert samples.sized(program, 3).command not in ("true 100", "true {100}")


def test_a_program_that_is_not_installed_is_skipped_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples, catalogue = script("samples"), script("catalogue")
    (program,) = samples.parse(PROGRAM.replace('"true {100}"', '"no-such-program-here"'), "p")
    assert samples.missing(program, str(tmp_path)) == "not installed (coreutils)"
    (tmp_path / "coldframe").write_text("#!/bin/sh\necho coldframe 1.0\n")
    (tmp_path / "coldframe").chmod(0o755)
    asked = type("Asked", (), {"coldframe": str(tmp_path / "coldframe"), "seed": 0, "again": False, "minutes": 1, "stages": ["answer"], "rows": str(tmp_path / "x/rows.json")})
    found = catalogue.Catalogue(asked, str(tmp_path))
    found.run([program])
    assert capsys.readouterr().err == "a: skipped: not installed (coreutils)\n"
    assert json.loads((tmp_path / "x/rows.json").read_text())["programs"][0]["skipped"] == "not installed (coreutils)"


def test_an_unknown_name_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no such program: x, y; there are a, b"):
        script("measure").choose("y,a,x", ["a", "b"])
    assert script("measure").choose("b, a", ["a", "b"]) == ["a", "b"]


def test_an_interrupted_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    catalogue, samples = script("catalogue"), script("samples")
    programs = [program for name in "abc" for program in samples.parse(PROGRAM.replace('"a"', f'"{name}"'), "p")]
    path = str(tmp_path / "target" / "rows.json")
    assert catalogue.load_rows(path) == {}
    catalogue.keep(path, {"a": row("a", answer=answer(), truth=truth(1.0)), "b": row("b", answer={"error": "killed"})}, {})
    rows = catalogue.load_rows(path)
    todo = [(stage, program.name) for stage, program in catalogue.left(programs, ("answer", "truth"), rows)]
    # What failed is a row, and no more is measured of it.
    assert todo == [("answer", "c"), ("truth", "c")]
    # An answer and its truth in the same hour; pairs are of all programs, after these.
    todo = [stage + program.name for stage, program in catalogue.left(programs[1:], ("answer", "truth", "pairs"), {})]
    assert todo == ["answerb", "truthb", "answerc", "truthc", "pairsb", "pairsc"]
    (whole,) = samples.parse(PROGRAM, "p")
    assert catalogue.same(row() | {"command": whole.command}, whole, 0, "1.0")
    assert not catalogue.same(row() | {"command": whole.command}, whole, 1, "1.0")
    assert not catalogue.same(row(), whole, 0, "1.0") and not catalogue.same(None, whole, 0, "1.0")


@pytest.mark.parametrize("text", ["{", "[]", '{"programs": 1}', '{"programs": [{"kind": "tool"}]}'])
def test_rows_that_are_garbage_are_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="rows.json: .*; remove it to measure anew"):
        script("catalogue").load_rows(str(path))
    assert path.read_text() == text


def test_ways_of_an_answer_have_times_and_what_was_equal() -> None:
    run = lambda alike, late=False: {"seconds": 2.0, "alike": alike, "too_long": late}
    runs = [
        {"by": "plain", "swap": None, "ram_bytes": None, "seconds": 1.0, "more": False, "failed": None, "runs": [run(True)]},
        {"by": "kernel", "swap": "none", "ram_bytes": 60, "seconds": 1.1, "more": False, "failed": None, "runs": [run(True), run(False)]},
        {"by": "kernel", "swap": "zram", "ram_bytes": 50, "seconds": 2.0, "more": True, "failed": None, "runs": [run(True, True)]},
        {"by": "kernel", "swap": "/x 1GiB", "ram_bytes": 50, "seconds": 2.0, "more": False, "failed": None, "runs": [run(True)]},
        {"by": "pager", "swap": None, "ram_bytes": 40, "seconds": 3.0, "more": False, "failed": None, "runs": [run(True)]},
    ]  # fmt: skip
    found = script("catalogue").ways(runs, 1.0)
    assert [(way["way"], way["times"], way["equal"], way["runs"]) for way in found] == [("none", 1.1, 1, 2), ("zram", 2.0, 0, 1), ("disk", 2.0, 1, 1), ("pager", 3.0, 1, 1)]
    page = script("catalogue_page")
    made = row(answer=answer(ways=found), pairs=pairs(1.5, 1.2))
    # The pager's 40 bytes are less than the 50 and 75 of its pairs; zram's run at 50 was ended.
    assert page.reached(made, "pager") == (40, 3.0) and page.reached(row(answer=answer(ways=found)), "zram") == (None, None)


def test_totals_count_what_is_clear_and_nothing_else() -> None:
    page = script("catalogue_page")
    rows = [
        row("near", answer=answer(), truth=truth(1.1), pairs=pairs(2.0, 1.0), again={"fast_bytes": 70, "distance": 1.17}),
        row("far", answer=answer(), truth=truth(1.2, "no", "yes", died=2), pairs=pairs(1.0, 2.0)),
        row("noise", answer=answer(), truth=truth(1.0, "no", "noise"), pairs=pairs(9.0, 1.0, equal=1)),
        row("none", answer=answer(limit=None), truth=truth(1.0) | {"distance": None, "paste_died": None}),
        row("fails", answer={"error": "killed", "load": 1.0}),
        row("later"),
        row("gone", skipped="not installed"),
    ]
    found = page.totals(rows)
    assert (found.programs, found.answered, found.skipped) == (7, 4, 1)
    # 60 beside 70 that the second search found, which is too far from what the first did.
    assert found.second == (0, 1) and found.again == (0, 1)
    assert found.limits == (2, 4) and found.pastes == (2, 3) and found.verdicts == (4, 6)
    # One program's pager was not equal in each run.
    assert found.paged[75, "zram"] == (pytest.approx(1.25), 2)
    text = page.page(data(*rows))
    assert "Not run yet, an answer: later." in text and "fails, an answer: killed" in text and "gone: skipped: not installed" in text
    slow = "within the fault (4): near 75 % (2.00; 7 / 7), near 50 % (2.00; 7 / 7), noise 75 % (killed; 7 / 7), noise 50 % (killed; 7 / 7)."
    assert slow in text and "far 75 %" not in text
    assert "Verdicts that are not what happens, 2 of 6:" in text
    assert "- far at 1.2: no, and three runs say yes: 1.00, 1.00, 1.00 s, 1.05 s without a limit beside them.\n" in text
    assert "2 of 4 limits are within" in text and "no limit is recommended: it varies" in text


def test_a_loss_is_put_to_the_first_cause_that_its_counts_show() -> None:
    page = script("catalogue_page")
    over, more, far = pairs(1.0, 0.5), pairs(1.0, 0.5), pairs(1.0, 0.5, equal=1)
    for size in over["sizes"]:
        size["pager"] |= {"over_limit": 1, "page_reads": 900}
    for size in more["sizes"]:
        size["pager"]["page_reads"] = 10
    far["sizes"][1]["zram"]["why"] = "killed"
    found = page.losses([row("over", pairs=over), row("more", pairs=more), row("far", pairs=far)])
    assert [line.split(" (", 1)[1] for line in found] == [
        "2): over 75 % (2.00; 900 / 7), over 50 % (2.00; 900 / 7)", "2): more 75 % (2.00; 10 / 7), more 50 % (2.00; 10 / 7)", "1): far 75 % (killed; 7 / 7)",
    ]  # fmt: skip
    assert "more RAM than its limit" in found[0] and "1.3 times as many pages" in found[1]
    ended = pairs(1.0, 0.5, equal=1)
    for size in ended["sizes"]:
        size["pager"]["why"] = "too long"
    assert page.losses([row("ended", pairs=ended)])[0].startswith("It was ended before it was done")
    itself = row("itself", answer=answer(sizes_itself=True), pairs=over)
    assert "by whose limit it sizes itself" in page.losses([itself])[0]
    for size in far["sizes"]:
        size["pager"]["over_limit"] = 1
    assert "| far | (1.00) | 0.50 | 2.00 | (1.00) | - | 2.00 |" in page.table_of_pairs([row("far", pairs=far)])


def test_a_limit_within_the_last_step_of_the_search_from_outside_is_said_to_be() -> None:
    page, mib = script("catalogue_page"), 1 << 20
    said = lambda limit: page.cause(row(answer=answer(limit=limit), truth=truth(limit / (64 * mib)) | {"fast_bytes": 64 * mib}), 2)
    assert "less than the last step" in said(60 * mib) and "last step" not in said(59 * mib)
    assert "last step" not in said(66 * mib)


def test_a_verdict_that_the_search_from_outside_contradicts_is_said_to() -> None:
    page = script("catalogue_page")
    found = truth(1.0, "yes", "no")
    low, high = page.wrong_verdicts(row(truth=found))
    assert low.endswith("1.00, 1.00, 1.00 s, 1.05 s without a limit beside them")
    assert high.endswith("with 1.00 s without a limit, says that less is fast enough, so it contradicts itself")
    assert page.wrong_verdicts(row(truth=truth(1.0, "yes", "noise"))) == page.wrong_verdicts(row()) == []


def test_reasons_come_from_the_counted_parts() -> None:
    page = script("catalogue_page")
    parts = lambda **given: {"anonymous": 0, "files": 0, "shared": 0, "kernel": 0} | given
    heap = row(answer=answer(limit=99, parts=parts(anonymous=95, files=5)))
    assert page.reason(heap) == "95 % cannot leave without swap, most of it heap"
    half = parts(anonymous=50 << 20, files=50 << 20)
    assert page.reason(row(answer=answer(100 << 20, 60 << 20, parts=half))) == "50 % is pages of files; of its peak 40.0 MiB can leave"
    assert page.reason(row(answer=answer(100 << 20, 99 << 20, parts=half))).endswith("needs again at once")
    late = {"notes": ["further sizes were not run: no time was left"]}
    assert not page.searched(row(answer=answer(100, 99, **late))) and page.searched(row(answer=answer(100, 60, **late)))
    text = page.page(data(row("hurried", answer=answer(100, 99, **late)), row("whole", answer=answer(100, 98))))
    assert "no time was left to run all smaller sizes, so that less than their limit may do: hurried." in text
    assert page.reason(row(answer=answer(limit=60, sizes_itself=True))).startswith("its runtime")


def test_nothing_is_in_the_page_that_was_not_measured() -> None:
    page = script("catalogue_page")
    text = page.page(data(row("later")))
    assert "0 of 1 programs" not in text and text.count("Not run yet.") == 2 and "| later |" not in text
    assert page.flat(row("later"))["limit_bytes"] is None


def test_the_page_the_plot_the_table_and_the_schema_are_those_of_the_data() -> None:
    page = script("catalogue_page")
    found = page.read_data()
    assert Path(page.PAGE).read_text() == page.page(found), "make catalogue CATALOGUEFLAGS=--page writes it again"
    assert Path(page.PLOT).read_text() == script("catalogue_plots").plot(found["programs"])
    assert Path(page.SEARCH).read_text() == script("catalogue_plots").search(found)
    assert json.loads(Path(page.SCHEMA).read_text()) == page.schema()
    known = {program.name for program in script("samples").read()}
    assert {one["name"] for one in found["programs"]} <= known


def test_the_page_says_which_builds_have_measured() -> None:
    builds = script("catalogue_page").builds
    rows = [row("a", pairs={"commit": "aa"}), row("b", pairs={"commit": "bb"}), row("c", pairs={"commit": "aa"}), row("d", pairs={}, truth={}), row("e")]
    assert builds(rows) == "Programs by the commit of coldframe that measured them: pairs: aa 2, bb 1, not noted 1. "
    assert builds(rows[-2:]) == ""


def test_the_parquet_file_is_the_same_table() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    page = script("catalogue_page")
    table = parquet.read_table(page.PARQUET)
    assert table.to_pylist() == [page.flat(one) for one in page.read_data()["programs"]]
    schema = page.schema()["properties"]
    assert table.column_names == list(schema)
    assert [field.metadata[b"description"].decode() for field in table.schema] == [schema[name]["description"] for name in table.column_names]


def test_readme_quotes_the_totals_of_the_data() -> None:
    page = script("catalogue_page")
    readme = (ROOT / "README.md").read_text()
    rows = page.read_data()["programs"]
    assert page.quoted(readme, rows) == readme, "make catalogue CATALOGUEFLAGS=--page writes it again"
    words = " ".join(readme.split())
    for sentence in page.totals(rows).sentences():
        assert sentence in words, sentence


def test_a_truth_bench_asks_about_the_catalogues_programs() -> None:
    samples = script("samples")
    names = {program.name for program in samples.find()}
    assert set(script("compare").NAMES.split(",")) | set(script("ahead").NAMES) <= names
    assert sys.modules["truth"].samples is samples
