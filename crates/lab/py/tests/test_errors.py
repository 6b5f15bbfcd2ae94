"""Wrong input raises a typed exception with the command line's message and exit code."""

from pathlib import Path

import coldframe
import pytest
from conftest import TRACES, Cli
from hypothesis import given, settings
from hypothesis import strategies as st

BZIP2 = "data/traces/bzip2.parquet"

WRONG = [
    ({"policy": "clok", "frames": 3}, ["--policy", "clok", "--frames", "3"]),
    ({"policy": "clock:bit=set", "frames": 3}, ["--policy", "clock:bit=set", "--frames", "3"]),
    ({"policy": "pa-clock", "frames": 3}, ["--policy", "pa-clock", "--frames", "3"]),
    ({"handler": "paralel", "frames": 3}, ["--handler", "paralel", "--frames", "3"]),
    ({"device": "nosuch", "frames": 3}, ["--device", "nosuch", "--frames", "3"]),
    ({"system": "swll", "frames": 3}, ["--system", "swll", "--frames", "3"]),
    ({"ram": "64Kb"}, ["--ram", "64Kb"]),
    ({"ram": "-5%"}, ["--ram", "-5%"]),
    ({"page": "3KiB", "frames": 3}, ["--page", "3KiB", "--frames", "3"]),
    ({"time": {"program": "5"}, "frames": 3}, ["--set", "time.program=5us x", "--frames", "3"]),
]


@pytest.mark.parametrize(("wrong", "arguments"), WRONG[:-1], ids=lambda value: "")
def test_a_setting_that_cannot_be(cli: Cli, wrong: coldframe.Settings, arguments: list[str]) -> None:
    said = cli("sim", BZIP2, *arguments)
    with pytest.raises(coldframe.SettingError) as raised:
        coldframe.simulate(BZIP2, wrong)
    assert said.stderr.strip() == f"error: {raised.value}"
    assert said.returncode == raised.value.code == 2
    with pytest.raises(coldframe.SettingError):
        coldframe.sweep(BZIP2, [coldframe.Config(**wrong)])


def test_a_time_without_its_unit() -> None:
    with pytest.raises(coldframe.SettingError, match=r"time\.program.*`5`.*unit"):
        coldframe.simulate(BZIP2, {"time": {"program": "5"}, "frames": 3})


def test_an_unknown_setting_names_the_known_ones() -> None:
    with pytest.raises(coldframe.SettingError, match="polcy.*expected one of.*`policy`") as raised:
        coldframe.Config(polcy="clock")  # type: ignore[call-arg]
    assert isinstance(raised.value, ValueError)
    with pytest.raises(coldframe.SettingError, match="unknown field `skp`"):
        coldframe.Config(limit={"skp": 3})  # type: ignore[typeddict-unknown-key]
    with pytest.raises(coldframe.SettingError, match="not both"):
        coldframe.grid({"ram": "1KiB", "frames": 3})
    with pytest.raises(coldframe.SettingError, match="is a value, not a table"):
        coldframe.grid({"policy.x": 3}, coldframe.Config(policy="fifo"))


def test_a_system_with_results_of_another_kind_is_refused() -> None:
    for system in ("drswap", "sap"):
        with pytest.raises(coldframe.SettingError, match=f"coldframe-lab sim --system {system}"):
            coldframe.simulate(BZIP2, {"system": system, "frames": 99})


def test_a_missing_file(cli: Cli) -> None:
    with pytest.raises(coldframe.FileError, match="nosuch.parquet") as raised:
        coldframe.Trace("nosuch.parquet")
    said = cli("sim", "nosuch.parquet", "--frames", "3")
    assert isinstance(raised.value, OSError) and said.returncode == raised.value.code
    assert said.stderr.strip() == f"error: {raised.value}"


def test_a_swap_trace_is_no_reference_trace() -> None:
    with pytest.raises(coldframe.TraceError, match="coldframe-lab sim"):
        coldframe.Trace("data/traces/swap-desktop.csv.zst")


@settings(max_examples=20, deadline=None)
@given(share=st.floats(0, 0.999))
def test_a_truncated_trace(tmp_path_factory: pytest.TempPathFactory, share: float) -> None:
    whole = (TRACES / "cjpeg.parquet").read_bytes()
    path = tmp_path_factory.mktemp("cut") / "cut.parquet"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(coldframe.TraceError, match="cut.parquet"):
        coldframe.Trace(path)


def test_a_trace_that_is_cut_after_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "gone.parquet"
    path.write_bytes((TRACES / "cjpeg.parquet").read_bytes())
    trace = coldframe.Trace(path)
    path.unlink()
    with pytest.raises(coldframe.FileError):
        coldframe.simulate(trace, {"frames": 3})


def test_limits_of_advice() -> None:
    for limits in ({"max_p99": "5"}, {"max_slowdown": "much"}, {"min_life": "-1y"}, {"max_energy": "2"}, {"max_ram": "x"}):
        (name,) = limits
        with pytest.raises(coldframe.SettingError, match=name):
            coldframe.advise(BZIP2, **limits)  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_written() -> None:
    results = coldframe.sweep("data/traces/fft.parquet", {"frames": 3})
    with pytest.raises(coldframe.FileError, match="give another folder"):
        results.write_parquet("nosuch/folder/x.parquet")
