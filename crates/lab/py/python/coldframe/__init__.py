"""How little RAM can a program or a device live with, and what does that cost?

>>> import coldframe
>>> trace = coldframe.Trace("data/traces/bzip2.parquet")
>>> coldframe.simulate(trace, coldframe.Config(policy="clock", ram="25%")).true_faults      # doctest: +SKIP
>>> results = coldframe.sweep(trace, {"policy": ["clock", "sieve", "opt"], "ram": ["10%", "50%"]})
>>> coldframe.advise(trace, max_slowdown="5%")                                              # doctest: +SKIP

The numbers are those of the command ``coldframe``, which calls the same functions. Results are tables to Arrow's libraries:
``polars.DataFrame(results)``, ``pyarrow.table(results)``, ``duckdb.sql("from results")``.
"""

from ._native import VERSION as __version__
from ._settings import Settings
from .advice import Advice, advise
from .config import Config, grid
from .errors import ClusterError, Error, FileError, Interrupted, MachineError, SettingError, TraceError
from .executor import Done, Executor, Threads
from .policy import Policy, Residents
from .progress import Progress
from .results import Result, Results
from .simulation import simulate
from .sweeping import sweep
from .trace import Trace

__all__ = [
    "Advice",
    "ClusterError",
    "Config",
    "Done",
    "Error",
    "Executor",
    "FileError",
    "Interrupted",
    "MachineError",
    "Policy",
    "Progress",
    "Residents",
    "Result",
    "Results",
    "SettingError",
    "Settings",
    "Threads",
    "Trace",
    "TraceError",
    "__version__",
    "advise",
    "grid",
    "simulate",
    "sweep",
]
