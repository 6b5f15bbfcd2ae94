"""One simulation."""

from __future__ import annotations

from collections.abc import Callable

from . import _native
from ._settings import Settings
from .config import Config
from .policy import Policy, Taught
from .progress import Progress, Tell
from .results import Result
from .trace import Trace


def simulate(
    trace: Trace | str,
    config: Config | Settings | None = None,
    *,
    policy: Callable[[int], Policy] | None = None,
    progress: Tell | None = None,
) -> Result:
    """What demand paging of a trace costs under one configuration: ``coldframe-lab sim`` with its numbers.

    ``policy`` makes a policy written in Python for a number of frames, usually its class; the result shows it as ``python:NAME``.
    The interpreter's lock is free meanwhile; Ctrl-C ends the simulation.
    """
    path = (trace if isinstance(trace, Trace) else Trace(trace)).path
    settings = as_config(config)
    tell = None if progress is None else _rows_to(progress)
    if policy is None:
        return Result(_native.simulate(path, [settings.json], tell)[0])
    name = f"python:{getattr(policy, '__name__', type(policy).__name__)}"
    return Result(_native.simulate_policy(path, settings.json, name, lambda frames: Taught(policy(frames)), tell))


def as_config(config: Config | Settings | None) -> Config:
    """A configuration, however it is given."""
    return config if isinstance(config, Config) else Config(**(config or {}))


def _rows_to(progress: Tell) -> Callable[[int, int], object]:
    return lambda rows, total: progress(Progress(int(rows == total), 1, rows=rows, rows_total=total))
