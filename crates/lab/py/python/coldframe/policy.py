"""A policy written in Python, for teaching: the simulator asks it at each fault, as it asks the ones in Rust.

It is slow: ``examples/python/second_chance.py`` prints how much slower than the same policy in Rust.
"""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["Policy", "Residents"]


class Residents:
    """The resident pages, as a policy may look at them during one call."""

    def __init__(self, pages: list[tuple[int, bool] | None]) -> None:
        self._pages = pages
        self._looks = 0
        self._acts: list[tuple[int, bool]] = []

    @property
    def frames(self) -> int:
        """How many frames there are."""
        return len(self._pages)

    @property
    def held(self) -> list[int]:
        """Frames that hold a page of this policy, in order."""
        return [frame for frame, resident in enumerate(self._pages) if resident]

    def page(self, frame: int) -> int:
        """The number of the page in a frame, in order of first touch."""
        return self._resident(frame)[0]

    def referenced(self, frame: int, clear: bool = True) -> bool:
        """Whether the page was touched since its bit was cleared; a step of the walk."""
        _, was = self._resident(frame)
        self._looks += 1
        if clear:
            self._act(frame, downgrade=False)
        return was

    def downgrade(self, frame: int) -> None:
        """Takes the page out of the page table but keeps it in RAM: its next touch is a false fault."""
        self._act(frame, downgrade=True)

    def _resident(self, frame: int) -> tuple[int, bool]:
        resident = self._pages[frame] if 0 <= frame < len(self._pages) else None
        if resident is None:
            raise ValueError(f"frame {frame} holds no page of this policy; frames are 0 to {len(self._pages) - 1}")
        return resident

    def _act(self, frame: int, downgrade: bool) -> None:
        page, _ = self._resident(frame)
        self._pages[frame] = (page, False)
        self._acts.append((frame, downgrade))


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


class Taught:
    """A policy as the simulator calls it: the resident pages go in, and what the policy chose and did comes back."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.hears_faults = hasattr(policy, "true_fault")

    def tell(
        self, event: str, pages: list[tuple[int, bool] | None], *frame: int
    ) -> tuple[tuple[int, bool] | None, int, list[tuple[int, bool]]]:
        """The victim, if one is sought, and whether it was forced; steps of the walk; what is done to frames, in order: ``True``: downgraded."""
        residents = Residents(pages)
        answer = getattr(self._policy, event)(*frame, residents)
        return _victim(answer, residents) if event == "victim" else None, residents._looks, residents._acts

    def remove(self, frame: int) -> None:
        self._policy.remove(frame)


def _victim(answer: Any, residents: Residents) -> tuple[int, bool]:
    frame, forced = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, False)
    try:
        chosen = operator.index(frame), [False, True][operator.index(forced)]
    except (TypeError, IndexError):
        raise TypeError(f"victim() returned {answer!r}; give a frame, or (frame, forced)") from None
    residents.page(chosen[0])
    return chosen
