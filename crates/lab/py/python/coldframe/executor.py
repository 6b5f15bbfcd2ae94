"""Who does a sweep's work: batches of configurations in, results out.

A batch goes through the trace once for all its configurations. The same batch may be run twice; its results are the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from . import _native
from .config import Config
from .store import Kept, Store
from .trace import Trace

LANES = 16
"""Configurations that one pass over a decoded trace serves at the price of one hit: a page table's lanes."""


@dataclass(frozen=True)
class Done:
    """A batch that is done."""

    results: Mapping[Config, str]
    """Results as JSON."""
    known: int = 0
    """Of these, results that were there from before."""


class Executor(Protocol):
    """What ``coldframe.sweep(executor=)`` needs: this class, Dask's, or your own for another cluster.

    ``open`` comes first, then ``known`` once; then ``submit`` as often as ``room`` is not 0, while ``as_completed`` is gone through.
    ``close`` comes at the end, also after an exception.
    """

    def open(self, trace: Trace, rows: Callable[[int, int], object]) -> None:
        """Prepares for a trace; ``rows(done, total)`` is told how far a pass on this machine is."""

    def known(self, configs: Sequence[Config]) -> Mapping[Config, str]:
        """Results from before."""

    def room(self) -> int:
        """How many configurations the next batch should have; 0: none now."""

    def submit(self, configs: Sequence[Config]) -> None:
        """Takes a batch."""

    def as_completed(self) -> Iterator[Done]:
        """Batches as they are done, until none is left, also those that are submitted meanwhile."""

    def close(self) -> None:
        """Gives up what is not done."""


class Threads:
    """All cores of this machine, in this process.

    A batch has as many configurations as all cores take in one pass, unless ``batch`` says otherwise; after Ctrl-C the batches
    before are there. With a ``store``, a folder, results are kept by content and not computed again, and a finished sweep is a Parquet
    file in its folder ``sweeps``; that needs fsspec.
    """

    def __init__(self, batch: int | None = None, store: str | os.PathLike[str] | None = None) -> None:
        self._batch = batch or LANES * (os.cpu_count() or 1)
        self._next: Sequence[Config] = ()
        self._store = None if store is None else Store(store)
        self._kept: Kept | None = None

    def open(self, trace: Trace, rows: Callable[[int, int], object]) -> None:
        self._trace, self._rows = trace, rows

    def known(self, configs: Sequence[Config]) -> Mapping[Config, str]:
        if self._store is None:
            return {}
        self._kept = Kept(self._store, self._trace, configs)
        return dict(self._kept.results)

    def room(self) -> int:
        return 0 if self._next else self._batch

    def submit(self, configs: Sequence[Config]) -> None:
        self._next = configs

    def as_completed(self) -> Iterator[Done]:
        while self._next:
            configs, self._next = self._next, ()
            texts = _native.simulate(self._trace.path, [config.json for config in configs], self._rows)
            found = dict(zip(configs, texts, strict=True))
            if self._kept is not None:
                self._kept.put(found)
            yield Done(found)

    def close(self) -> None:
        self._next = ()
