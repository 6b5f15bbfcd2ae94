"""The numbers are those of the command line, digit for digit; only how long this machine took differs."""

import json
from typing import Any

import coldframe
import pytest
from conftest import Cli, exact, without

BZIP2, CJPEG, CHESS = (f"data/traces/{name}.parquet" for name in ("bzip2", "cjpeg", "chess"))

CASES = [
    (BZIP2, {"policy": "clock", "ram": "25%"}, ["--policy", "clock", "--ram", "25%"]),
    (BZIP2, {"policy": "opt", "frames": 20}, ["--policy", "opt", "--frames", "20"]),
    (BZIP2, {"policy": "lru", "ram": 81920}, ["--policy", "lru", "--ram", "80KiB"]),
    (
        BZIP2,
        {"policy": "pa-clock:budget=5", "frames": 9, "machine": {"reference_bit": False}, "limit": {"skip": 100000}},
        ["--policy", "pa-clock:budget=5", "--frames", "9", "--set", "machine.reference_bit=false", "--set", "limit.skip=100000"],
    ),
    (CHESS, {"system": "swl", "ram": "64KiB"}, ["--system", "swl", "--ram", "64KiB"]),
    (
        CJPEG,
        {"system": "ddb", "ram": "16KiB", "handler": "delayed-dual-buffering"},
        ["--system", "ddb", "--ram", "16KiB", "--handler", "delayed-dual-buffering"],
    ),
    (
        CJPEG,
        {"system": "lobi", "ram": "16KiB", "swap": {"blocks": "64", "collector": "greedy"}},
        ["--system", "lobi", "--ram", "16KiB", "--blocks", "64", "--collector", "greedy"],
    ),
]


@pytest.mark.parametrize(("trace", "settings", "arguments"), CASES, ids=lambda value: "")
def test_simulate_is_sim(cli: Cli, trace: str, settings: coldframe.Settings, arguments: list[str]) -> None:
    ours = coldframe.simulate(trace, settings)
    said = cli("sim", trace, *arguments, "--format", "json")
    assert said.returncode == 0, said.stderr
    assert without(exact(ours.text), "host") == without(exact(said.stdout), "host")


def test_a_sweep_is_a_sweep_in_the_same_order(cli: Cli) -> None:
    lists = {"ram": ["10%", "50%"], "handler": ["sequential", "parallel"], "policy": ["clock", "sieve", "opt"]}
    ours = coldframe.sweep(BZIP2, lists)
    theirs = cli(
        "sim", BZIP2, "--policy", "clock,sieve,opt", "--handler", "sequential,parallel", "--ram", "10%,50%", "--format", "json"
    )
    assert [without(exact(result.text), "host") for result in ours] == [
        without(result, "host") for result in exact(theirs.stdout)
    ]


def test_a_sweep_without_sizes_has_the_command_lines(cli: Cli) -> None:
    ours = coldframe.sweep(CJPEG, {"policy": "fifo"})
    theirs = exact(cli("sim", CJPEG, "--policy", "fifo", "--format", "json").stdout)
    assert [without(exact(result.text), "host") for result in ours] == [without(result, "host") for result in theirs]


def test_info_is_info(cli: Cli) -> None:
    ours, theirs = coldframe.Trace(CJPEG), exact(cli("trace", "info", CJPEG, "--format", "json").stdout)
    assert exact(coldframe._native.info(CJPEG)) == theirs
    assert ours.sha256 == dict(theirs)["sha256"]
    assert str(ours.references) == dict(theirs)["references"]


def answer(advice: dict[str, Any]) -> dict[str, Any]:
    """Advice without what this machine took for the best configuration's run."""
    run = {key: value for key, value in (advice["run"] or {}).items() if key != "host"}
    return {**advice, "run": run}


def test_advise_is_advise(cli: Cli) -> None:
    arguments = ["--max-slowdown", "20%", "--max-p99", "1ms", "--policy", "clock,fifo", "--handler", "parallel"]
    theirs = cli("advise", CJPEG, *arguments, "--format", "json")
    words = cli("advise", CJPEG, *arguments)
    limits = {"max_slowdown": "20%", "max_p99": "1ms"}
    ours = coldframe.advise(CJPEG, **limits, policies=["clock", "fifo"], handlers=["parallel"])
    assert theirs.returncode == 0, theirs.stderr
    assert answer(ours.json) == answer(json.loads(theirs.stdout))
    assert str(ours) == words.stdout
    assert ours.met and ours.config is not None
    again = coldframe.simulate(CJPEG, ours.config)
    assert again.true_faults == ours.json["best"]["true_faults"]
    assert again.ram_bytes == ours.ram_bytes


def test_advice_that_cannot_be_given_says_what_binds(cli: Cli) -> None:
    ours = coldframe.advise(CJPEG, max_p99="1ns", policies=["clock"])
    theirs = cli("advise", CJPEG, "--max-p99", "1ns", "--policy", "clock", "--format", "json")
    assert theirs.returncode == 1 and not ours.met and ours.config is None and ours.ram_bytes is None
    assert answer(ours.json) == answer(json.loads(theirs.stdout))
