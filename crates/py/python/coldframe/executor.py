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
    before are there.
    """

    def __init__(self, batch: int | None = None) -> None:
        self._batch = batch or LANES * (os.cpu_count() or 1)
        self._next: Sequence[Config] = ()

    def open(self, trace: Trace, rows: Callable[[int, int], object]) -> None:
        self._path, self._rows = trace.path, rows

    def known(self, configs: Sequence[Config]) -> Mapping[Config, str]:
        return {}

    def room(self) -> int:
        return 0 if self._next else self._batch

    def submit(self, configs: Sequence[Config]) -> None:
        self._next = configs

    def as_completed(self) -> Iterator[Done]:
        while self._next:
            configs, self._next = self._next, ()
            results = _native.simulate(self._path, [config.json for config in configs], self._rows)
            yield Done(dict(zip(configs, results, strict=True)))

    def close(self) -> None:
        self._next = ()
