"""Sweeps on a Dask cluster.

>>> from dask.distributed import Client                                                    # doctest: +SKIP
>>> from coldframe.dask import DaskExecutor                                                # doctest: +SKIP
>>> executor = DaskExecutor(Client("tcp://head:8786"), store="/shared/coldframe")          # doctest: +SKIP
>>> coldframe.sweep(trace, {"policy": ["clock", "opt"], "frames": range(10, 500)}, executor=executor)    # doctest: +SKIP

The workers have this package, of the same build, and see the store. A trace goes there once by its content and each worker fetches it
into a folder of its own; through the scheduler go settings and results alone, some KiB each. A result is in the store before a task is
done, so a task that runs twice, after a worker is lost, finds it there, and a sweep that is begun again after the scheduler is lost goes
on where it was. A finished sweep is a Parquet file of the data set ``STORE/sweeps``:

    select policy, ram_bytes, min(true_fault_p99_ps) / 1e6 as p99_us
    from '/shared/coldframe/sweeps/*.parquet' group by all order by all
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._build import BUILD
from .advice import cache_folder
from .config import Config
from .errors import ClusterError, MachineError
from .executor import LANES, Done
from .store import Kept, Store
from .trace import Trace

if TYPE_CHECKING:
    from distributed import Client, Future

FIRST = 4
"""Configurations of the first tasks, before it is known how long one takes."""
MOST = 16 * LANES
"""Most configurations of a task: beyond it a pass costs each of them no less."""
AHEAD = 2
"""Tasks for each thread of the cluster: one that runs and one that waits beside it."""


@dataclass(frozen=True)
class Task:
    """A batch for a worker: all that it needs to know."""

    build: str
    store: str
    options: Mapping[str, Any]
    trace: str
    keys: tuple[str, ...]
    configs: tuple[str, ...]
    cache: str | None


@dataclass(frozen=True)
class Answer:
    """What a worker found, by key."""

    results: Mapping[str, str]
    known: int
    seconds: float


def run(task: Task) -> Answer:
    """Does a batch on a worker; doing it again does no harm."""
    if task.build != BUILD:
        raise MachineError(f"this worker has coldframe {BUILD}, the client {task.build}; install the same wheel on both")
    began = time.monotonic()
    store = Store(task.store, task.options)
    known = store.results(task.build, task.keys)
    left = [(key, config) for key, config in zip(task.keys, task.configs, strict=True) if key not in known]
    found = dict(known)
    if left:
        trace = store.fetch_trace(task.trace, Path(task.cache) if task.cache else cache_folder())
        texts = _native.simulate(str(trace), [config for _, config in left])
        for (key, _), text in zip(left, texts, strict=True):
            store.put_result(task.build, key, text)
            found[key] = text
    return Answer(found, len(known), time.monotonic() - began)


class DaskExecutor:
    """A cluster as ``coldframe.sweep(executor=)`` takes it.

    ``store``: a folder or an object store that client and workers see. ``seconds``: what a task should take at least; the first ones are
    small and tell how large the others may be. ``batch``: configurations of a task, instead. ``cache``: the workers' folder for traces, by
    default ``~/.cache/coldframe``. ``options``: fsspec's for the store. ``patience``: seconds without a scheduler after which it is taken
    for lost; Dask itself tries to connect for 30.
    """

    def __init__(
        self,
        client: Client,
        store: str | os.PathLike[str],
        *,
        seconds: float = 1.0,
        batch: int | None = None,
        cache: str | os.PathLike[str] | None = None,
        options: Mapping[str, Any] | None = None,
        patience: float = 30.0,
    ) -> None:
        self._client, self._patience = client, patience
        self._store = Store(store, options)
        self._seconds, self._fixed, self._size = seconds, batch, batch or FIRST
        self._cache = None if cache is None else os.fspath(cache)
        self._flying: dict[Future, dict[str, Config]] = {}

    @property
    def sweep(self) -> str | None:
        """The Parquet file of the last sweep, once it is finished."""
        return self._kept.sweep

    def open(self, trace: Trace, rows: Callable[[int, int], object]) -> None:
        self._trace = trace
        self._store.put_trace(trace.path, trace.sha256)

    def known(self, configs: Sequence[Config]) -> Mapping[Config, str]:
        self._kept = Kept(self._store, self._trace, configs)
        return dict(self._kept.results)

    def room(self) -> int:
        return self._size if len(self._flying) < AHEAD * max(1, self._threads()) else 0

    def submit(self, configs: Sequence[Config]) -> None:
        keys = {self._kept.keys[config]: config for config in configs}
        task = Task(
            build=BUILD,
            store=self._store.url,
            options=self._store.options,
            trace=self._trace.sha256,
            keys=tuple(keys),
            configs=tuple(config.json for config in configs),
            cache=self._cache,
        )
        self._flying[self._client.submit(run, task, pure=False)] = keys

    def as_completed(self) -> Iterator[Done]:
        while self._flying:
            for future in self._some():
                keys = self._flying.pop(future)
                answer = self._answer(future)
                self._grow(answer.seconds)
                yield Done(self._kept.add({keys[key]: text for key, text in answer.results.items()}), answer.known)

    def close(self) -> None:
        flying, self._flying = list(self._flying), {}
        if flying and self._client.status == "running":
            self._client.cancel(flying, force=True)

    def _some(self) -> list[Future]:
        """Futures that are done; waits until there are some."""
        from distributed import wait

        lost: float | None = None
        while not (done := [future for future in self._flying if future.done()]):
            if self._client.status == "running":
                lost = None
            elif self._client.status == "closed" or time.monotonic() - (lost := lost or time.monotonic()) > self._patience:
                raise self._gone()
            try:
                wait(list(self._flying), timeout=0.5, return_when="FIRST_COMPLETED")
            except TimeoutError:
                continue
        return done

    def _answer(self, future: Future) -> Answer:
        from distributed import CancelledError, KilledWorker

        try:
            answer: Answer = future.result()
        except KilledWorker as error:
            raise ClusterError(f"workers died of a task, one after the other: {error}; have they enough memory?") from error
        except (CancelledError, TimeoutError) as error:
            raise self._gone() from error
        return answer

    def _gone(self) -> ClusterError:
        there, all_of_them, store = len(self._kept.results), len(self._kept.keys), self._store.url
        return ClusterError(
            f"the scheduler is lost; {there} of {all_of_them} results are in {store}: run the sweep again with a new client and this store"
        )

    def _threads(self) -> int:
        """Threads of the cluster; where the scheduler does not answer none, and :meth:`_some` finds out why."""
        try:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except OSError:
            return 0
        return sum(worker["nthreads"] for worker in workers.values())

    def _grow(self, seconds: float) -> None:
        """Larger tasks while they take less than they should, at most four times as large at once."""
        if self._fixed is None and seconds < self._seconds:
            self._size = min(MOST, int(self._size * min(4.0, self._seconds / max(seconds, 1e-3))) + 1)
