"""How far a piece of work is."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """A sweep, or one simulation."""

    configs: int
    """Configurations whose results are there."""
    configs_total: int
    """Configurations asked for."""
    known: int = 0
    """Of those that are there, results from before."""
    rows: int = 0
    """Rows of the trace gone through by the pass under way, where that is on this machine."""
    rows_total: int = 0
    """Rows of the trace."""


Tell = Callable[[Progress], object]
"""What is told of progress, some times a second. An exception of it ends the work."""
