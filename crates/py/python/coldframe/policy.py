"""A policy written in Python, for teaching: the simulator asks it at each fault, as it asks the ones in Rust.

It is slow: ``examples/python/second_chance.py`` prints how much slower than the same policy in Rust.
"""

from __future__ import annotations

from ._native import Residents

__all__ = ["Policy", "Residents"]


class Policy:
    """Which page leaves when a frame is needed. A subclass keeps frames in whatever order it likes.

    It never sees a hit: hits leave reference bits, and ``residents.referenced(frame)`` asks for one (and clears it, unless told not to);
    each such question is a step of the walk, which is what a search costs. ``residents.page(frame)`` is the page in a frame.

    A method ``true_fault(self, residents)``, if there is one, is called at each fault on a page that is not in RAM, before a frame is sought.

    >>> class Fifo(Policy):
    ...     def __init__(self, frames):
    ...         self.queue = []
    ...     def victim(self, residents):
    ...         return self.queue.pop(0)
    ...     def insert(self, frame, residents):
    ...         self.queue.append(frame)
    ...     def remove(self, frame):
    ...         self.queue.remove(frame)
    """

    def __init__(self, frames: int) -> None:
        """For so many frames, which are numbered from 0."""

    def victim(self, residents: Residents) -> int | tuple[int, bool]:
        """Chooses the frame whose page leaves and forgets it; with ``True`` beside it: taken whatever its bit, the budget being used up."""
        raise NotImplementedError(f"{type(self).__name__} has no victim()")

    def insert(self, frame: int, residents: Residents) -> None:
        """A page has been loaded into ``frame`` and mapped."""
        raise NotImplementedError(f"{type(self).__name__} has no insert()")

    def promote(self, frame: int, residents: Residents) -> None:
        """The page in ``frame`` was in RAM but not mapped and has been touched: a false fault."""

    def remove(self, frame: int) -> None:
        """The page in ``frame`` is gone though the policy did not choose it."""
        raise NotImplementedError(f"{type(self).__name__} has no remove()")
