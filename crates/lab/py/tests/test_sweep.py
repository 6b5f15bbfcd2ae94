"""Sweeps on this machine: order, progress, Ctrl-C, the interpreter's lock."""

import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import coldframe
import pytest
from conftest import ROOT

TRACE = "data/traces/cjpeg.parquet"


def test_results_are_in_the_order_of_their_configurations_and_equal_ones_are_run_once() -> None:
    seen: list[coldframe.Progress] = []
    configs = [coldframe.Config(policy=policy, frames=9) for policy in ("clock", "opt", "clock", "fifo")]
    results = coldframe.sweep(TRACE, configs, progress=seen.append)
    assert [result.policy.split(":")[0] for result in results] == ["clock", "opt", "clock", "fifo"]
    assert results[0] == results[2] and results[0] != results[3]
    assert seen[-1].configs == seen[-1].configs_total == 3 and results.complete and results.known == 0
    assert max(p.rows for p in seen) == coldframe.Trace(TRACE).rows


def test_batches_do_not_change_results() -> None:
    lists = {"policy": ["clock", "lru", "sieve"], "frames": [5, 9, 20]}
    assert coldframe.sweep(TRACE, lists, executor=coldframe.Threads(batch=2)) == coldframe.sweep(TRACE, lists)


def test_each_configuration_is_checked_before_the_first_is_run() -> None:
    told: list[coldframe.Progress] = []
    with pytest.raises(coldframe.SettingError, match="did you mean"):
        coldframe.sweep(TRACE, [{"frames": 3}, {"frames": 3, "policy": "clokc"}], progress=told.append)
    assert told == []


def test_an_exception_of_the_progress_ends_the_work() -> None:
    def stop(progress: coldframe.Progress) -> None:
        if progress.rows:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        coldframe.simulate(TRACE, {"frames": 3}, progress=stop)
    with pytest.raises(LookupError, match="enough"):
        coldframe.sweep(TRACE, {"frames": [3, 4]}, progress=stop)


def test_what_is_there_when_the_work_is_interrupted_is_returned() -> None:
    def interrupt(progress: coldframe.Progress) -> None:
        if progress.configs == 4:
            raise KeyboardInterrupt

    lists = {"policy": "clock", "frames": [3, 4, 5, 6, 7, 8]}
    with pytest.warns(coldframe.Interrupted, match="4 of 6"):
        results = coldframe.sweep(TRACE, lists, executor=coldframe.Threads(batch=2), progress=interrupt)
    assert not results.complete and len(results) == 4
    assert [config.settings["frames"] for config in results.missing] == [7, 8]
    assert results == coldframe.sweep(TRACE, {"policy": "clock", "frames": [3, 4, 5, 6]})
    assert "2 configurations have no result" in results._repr_html_()


def test_a_store_keeps_results_by_content(tmp_path: Path) -> None:
    def kept(**settings: Any) -> coldframe.Results:
        return coldframe.sweep(trace, {"frames": [5, 9], **settings}, executor=coldframe.Threads(store=tmp_path / "store"))

    trace = str(tmp_path / "copy.parquet")
    Path(trace).write_bytes(Path(TRACE).read_bytes())
    first, second = kept(policy="clock"), kept(policy=["clock", "fifo"])
    assert (first.known, second.known) == (0, 2), "only what is new is run"
    assert second == coldframe.sweep(TRACE, {"policy": ["clock", "fifo"], "frames": [5, 9]})
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(Path("data/sheets/lobi-nand.toml").read_text())
    assert (kept(device=str(sheet)).known, kept(device=str(sheet)).known) == (0, 2)
    sheet.write_text(sheet.read_text() + "# changed\n")
    assert kept(device=str(sheet)).known == 0, "the same name, another sheet"
    Path(trace).write_bytes(Path("data/traces/djpeg.parquet").read_bytes())
    assert kept(policy="clock").known == 0, "the same name, another trace"
    assert len(list((tmp_path / "store").glob("sweeps/*.parquet"))) == 5


INTERRUPTED = """
import os, signal, sys, warnings
import coldframe

signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background of a shell ignores it
begun = []

def progress(p):
    if p.rows and not begun:
        begun.append(p)
        os.kill(os.getpid(), signal.SIGINT)

warnings.simplefilter("ignore", coldframe.Interrupted)
what = sys.argv[1]
if what == "sweep":
    results = coldframe.sweep("data/traces/sqlite.parquet", {"frames": [5, 6, 7]}, executor=coldframe.Threads(batch=1), progress=progress)
    print(len(results), len(results.missing))
else:
    try:
        coldframe.simulate("data/traces/sqlite.parquet", {"frames": 5}, progress=progress)
    except KeyboardInterrupt:
        print("interrupted", begun[0].rows < begun[0].rows_total)
"""


@pytest.mark.parametrize(("what", "said"), [("sweep", "0 3\n"), ("simulate", "interrupted True\n")])
def test_a_signal_ends_a_pass_in_its_midst(what: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, what], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert (done.stdout, done.returncode) == (said, 0), done.stderr


def test_the_interpreters_lock_is_free_meanwhile() -> None:
    """With so long an interval another thread gets the lock only if this one gives it away, which of the two lines is `simulate`."""
    go, ran = threading.Lock(), threading.Event()
    go.acquire()
    other = threading.Thread(target=lambda: (go.acquire(), ran.set()))
    other.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        go.release()
        coldframe.simulate("data/traces/bzip2.parquet", {"policy": "clock", "frames": 5})
        assert ran.is_set()
    finally:
        sys.setswitchinterval(before)
        other.join()


def test_a_warning_is_no_error_where_nothing_is_interrupted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coldframe.sweep(TRACE, {"frames": 3})
