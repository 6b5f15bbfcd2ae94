"""Many configurations over one trace."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import cast

from . import _native
from ._settings import Settings
from .config import Config, Lists, grid
from .errors import Interrupted
from .executor import Done, Executor, Threads
from .progress import Progress, Tell
from .results import Result, Results
from .simulation import as_config
from .trace import Trace


def sweep(
    trace: Trace | str,
    configs: Lists | Iterable[Config | Settings],
    *,
    executor: Executor | None = None,
    progress: Tell | None = None,
) -> Results:
    """Simulates every configuration and returns the results in their order.

    ``configs``: configurations, or lists of what is varied, as :func:`grid` takes them. ``executor``: by default all cores of this
    machine; :class:`coldframe.dask.DaskExecutor` for a cluster. Each configuration is checked before the first is run. Ctrl-C ends the
    sweep with the warning :class:`Interrupted`; what is found by then is returned, ``complete`` is false and ``missing`` says what is not.
    """
    trace = trace if isinstance(trace, Trace) else Trace(trace)
    wanted = grid(cast(Lists, configs)) if isinstance(configs, Mapping) else [as_config(config) for config in configs]
    _native.check(trace.path, [config.json for config in wanted])
    driver = _Driver(trace, wanted, progress)
    executor = executor or Threads()
    try:
        executor.open(trace, driver.rows)
        driver.run(executor)
    except KeyboardInterrupt:
        warnings.warn(f"interrupted: {driver.words()}", Interrupted, stacklevel=2)
    finally:
        executor.close()
    return driver.results()


class _Driver:
    """What is wanted, what is there, and what waits."""

    def __init__(self, trace: Trace, wanted: list[Config], progress: Tell | None) -> None:
        self._trace, self._wanted, self._progress = trace, wanted, progress
        self._different = list(dict.fromkeys(wanted))
        self._found: dict[Config, str] = {}
        self._known = 0

    def run(self, executor: Executor) -> None:
        before = executor.known(self._different)
        self._take(Done(before, known=len(before)))
        waiting = [config for config in self._different if config not in before]
        waiting = self._feed(executor, waiting)
        for done in executor.as_completed():
            self._take(done)
            waiting = self._feed(executor, waiting)

    def _feed(self, executor: Executor, waiting: list[Config]) -> list[Config]:
        while waiting and (room := executor.room()):
            executor.submit(waiting[:room])
            waiting = waiting[room:]
        return waiting

    def _take(self, done: Done) -> None:
        self._found.update(done.results)
        self._known += done.known
        self.rows(0, 0)

    def rows(self, rows: int, total: int) -> None:
        """A pass on this machine is so far."""
        if self._progress is not None:
            there = len(self._found)
            self._progress(Progress(there, len(self._different), self._known, rows, total))

    def words(self) -> str:
        return f"{len(self._found)} of {len(self._different)} configurations have their result"

    def results(self) -> Results:
        there = [Result(self._found[config]) for config in self._wanted if config in self._found]
        missing = [config for config in self._wanted if config not in self._found]
        return Results(there, missing, self._known)
