"""Sweeps on a real cluster of separate processes: a worker is killed, the scheduler is killed, and the result is the local one."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import coldframe
import duckdb
import pyarrow
import pytest
from coldframe.dask import BUILD, DaskExecutor, Task, run
from coldframe.store import Store
from conftest import ROOT
from dask.distributed import Client

TRACE = "data/traces/cjpeg.parquet"
LISTS = {"policy": ["clock", "sieve", "opt"], "handler": ["parallel", "sequential"], "frames": [5, 9, 14, 20]}


class Cluster:
    """A scheduler and workers, each a process of its own, started by Dask's own commands."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workers = folder, list[subprocess.Popen[bytes]]()
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        until(lambda: file.exists() and file.read_text().strip().endswith("}"), "the scheduler starts")
        self.client = Client(scheduler_file=str(file), timeout=30)
        for _ in range(2):
            self.add_worker()
        self.client.wait_for_workers(2, timeout=60)

    def add_worker(self) -> None:
        address = self.client.scheduler.address
        self.workers.append(self._start("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--name", f"w{len(self.workers)}", address))

    def busy(self, name: str) -> bool:
        """The worker of this name has tasks."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        processing = self.client.processing()
        return any(processing.get(address) for address, worker in workers.items() if worker["name"] == name)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{words[0]}.log").open("ab")
        command = [sys.executable, "-m", "dask", *words]
        if words[0] == "scheduler":
            command.append("--no-dashboard")
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, "RAYON_NUM_THREADS": "1"})

    def close(self) -> None:
        self.client.close(timeout=2)
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    folder.mkdir(exist_ok=True)
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()


def until(condition: Any, what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"{what}: not within a minute"
        time.sleep(0.02)


def results_in(store: Path) -> int:
    return len(list(store.glob("results/*/*.json")))


@pytest.fixture(scope="module")
def local() -> coldframe.Results:
    return coldframe.sweep(str(ROOT / TRACE), LISTS)


def rows(results: coldframe.Results) -> list[dict[str, Any]]:
    """The table without the path of the trace, which two tests call by different names."""
    return [{k: v for k, v in row.items() if k != "trace"} for row in pyarrow.table(results).to_pylist()]


def test_a_worker_is_killed_in_the_middle_and_the_result_is_the_local_one(tmp_path: Path, local: coldframe.Results) -> None:
    store, killed = tmp_path / "store", threading.Event()
    with cluster(tmp_path / "cluster") as made:

        def kill(progress: coldframe.Progress) -> None:
            if progress.configs >= 4 and not killed.is_set() and made.busy("w0"):
                made.workers[0].send_signal(signal.SIGKILL)
                killed.set()

        executor = DaskExecutor(made.client, store, batch=2, cache=tmp_path / "cache")
        results = coldframe.sweep(TRACE, LISTS, executor=executor, progress=kill)
        assert killed.is_set() and made.workers[0].wait() == -signal.SIGKILL
    assert results.complete and results == local and rows(results) == rows(local)
    assert results[0]["trace.path"] == TRACE
    assert results_in(store) == len(local)
    assert not list(tmp_path.rglob("*.part")), "what is half written has another name and is gone"


def test_the_scheduler_is_lost_and_the_sweep_goes_on_with_a_new_one(tmp_path: Path, local: coldframe.Results) -> None:
    store, cache = tmp_path / "store", tmp_path / "cache"
    with cluster(tmp_path / "first") as made:

        def kill(progress: coldframe.Progress) -> None:
            if progress.configs >= 4:
                made.scheduler.send_signal(signal.SIGKILL)

        executor = DaskExecutor(made.client, store, batch=2, cache=cache, patience=2)
        with pytest.raises(coldframe.ClusterError, match="run the sweep again with a new client and this store"):
            coldframe.sweep(TRACE, LISTS, executor=executor, progress=kill)
    there = results_in(store)
    assert 4 <= there < len(local)
    with cluster(tmp_path / "second") as made:
        executor = DaskExecutor(made.client, store, batch=2, cache=cache)
        results = coldframe.sweep(TRACE, LISTS, executor=executor)
        assert results.known >= there and results == local and rows(results) == rows(local)
        again = coldframe.sweep(TRACE, LISTS, executor=executor)
        assert again.known == len(local) and again == local, "nothing is run a second time"
    found = duckdb.sql(f"select policy, frames, true_faults from '{store}/sweeps/*.parquet' order by all").fetchall()
    assert found == sorted((r.policy, r.frames, r.true_faults) for r in local)
    assert executor.sweep is not None and Path(executor.sweep).exists()


def test_tasks_grow_until_they_take_their_time(tmp_path: Path) -> None:
    lists = {"policy": ["clock", "fifo"], "frames": list(range(2, 42))}
    with cluster(tmp_path / "cluster") as made:
        executor = DaskExecutor(made.client, tmp_path / "store", seconds=1000, cache=tmp_path / "cache")
        seen: list[int] = []
        results = coldframe.sweep(TRACE, lists, executor=executor, progress=lambda p: seen.append(p.configs))
        assert results.complete and len(results) == 80
    steps = [b - a for a, b in zip(seen, seen[1:], strict=False) if b > a]
    assert steps[0] == 4 and max(steps) > 4 and sum(steps) == 80


def task(store: Path, cache: Path, **changes: Any) -> Task:
    trace, config = coldframe.Trace(TRACE), coldframe.Config(frames=5)
    Store(store).put_trace(trace.path, trace.sha256)
    given = {"build": BUILD, "store": str(store), "options": {}, "trace": trace.sha256, "keys": ("k",), "configs": (config.json,)}
    return Task(**{**given, "cache": str(cache), **changes})


def test_a_task_may_run_twice_and_a_damaged_result_is_computed_again(tmp_path: Path) -> None:
    todo = task(tmp_path / "store", tmp_path / "cache")
    first, second = run(todo), run(todo)
    assert (first.known, second.known) == (0, 1) and first.results == second.results
    (kept,) = (tmp_path / "store").glob("results/*/k.json")
    kept.write_bytes(kept.read_bytes()[:100])
    third = run(todo)
    assert third.known == 0
    assert coldframe.Result(third.results["k"]) == coldframe.Result(first.results["k"])


def test_a_damaged_or_missing_trace_and_another_build_are_refused(tmp_path: Path) -> None:
    todo = task(tmp_path / "store", tmp_path / "cache")
    with pytest.raises(coldframe.MachineError, match="install the same wheel on both"):
        run(task(tmp_path / "store", tmp_path / "cache", build="0.0"))
    (kept,) = (tmp_path / "store").glob("traces/*.parquet")
    kept.write_bytes(kept.read_bytes() + b"x")
    with pytest.raises(coldframe.TraceError, match="the copy is damaged"):
        run(todo)
    kept.unlink()
    with pytest.raises(coldframe.FileError, match="do all machines see the store"):
        run(todo)
    assert not list((tmp_path / "cache").rglob("*.par*")), "nothing that is damaged is kept"


def test_an_object_store_keeps_what_a_folder_keeps(tmp_path: Path) -> None:
    store = Store("memory://coldframe-test")
    trace = coldframe.Trace(TRACE)
    store.put_trace(trace.path, trace.sha256)
    assert store.fetch_trace(trace.sha256, tmp_path).read_bytes() == Path(trace.path).read_bytes()
    store.put_result("b", "k", '{"a": 1}')
    assert store.results("b", ["k", "none"]) == {"k": '{"a": 1}'} and store.results("b", []) == {}
    with pytest.raises(coldframe.MachineError, match="nosuch"):
        Store("nosuch://x")


def test_what_is_wrong_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    class Nobody:
        status = "running"

    executor = DaskExecutor(Nobody(), tmp_path / "store")
    with pytest.raises(coldframe.SettingError, match="did you mean"):
        coldframe.sweep(TRACE, [{"policy": "clokc", "frames": 3}], executor=executor)
    assert not list(tmp_path.rglob("*.parquet"))
