"""A policy in Python is driven as one in Rust: with the same rule it gives the same result, to the picosecond."""

import sys
from typing import Any

import coldframe
import pytest
from coldframe import Policy, Residents

TRACE = "data/traces/cjpeg.parquet"


class Fifo(Policy):
    def __init__(self, frames: int) -> None:
        self.queue: list[int] = []

    def victim(self, residents: Residents) -> int | tuple[int, bool]:
        return self.queue.pop(0)

    def insert(self, frame: int, residents: Residents) -> None:
        self.queue.append(frame)

    def remove(self, frame: int) -> None:
        self.queue.remove(frame)


class Clock(Policy):
    """A hand that goes round the frames; after a budget of questions the frame at the hand leaves whatever its bit."""

    budget = sys.maxsize

    def __init__(self, frames: int) -> None:
        self.frames, self.hand = frames, 0

    def victim(self, residents: Residents) -> int | tuple[int, bool]:
        held = set(residents.held)
        asked = 0
        while True:
            frame, self.hand = self.hand, (self.hand + 1) % self.frames
            if frame not in held:
                continue
            if asked == self.budget:
                return frame, True
            asked += 1
            if not residents.referenced(frame):
                return frame

    def insert(self, frame: int, residents: Residents) -> None:
        assert frame in residents.held and residents.page(frame) >= 0

    def remove(self, frame: int) -> None:
        pass


class BoundedClock(Clock):
    budget = 3


def found(result: coldframe.Result) -> dict[str, Any]:
    """All but the policy's name and this machine's time."""
    config = {key: value for key, value in result["config"].items() if key != "policy"}
    return {**{key: value for key, value in result.json.items() if key != "host"}, "config": config}


@pytest.mark.parametrize("machine", [{}, {"reference_bit": False}, {"dirty_bit": False, "evict_batch": 3}], ids=str)
@pytest.mark.parametrize(("ours", "name"), [(Fifo, "fifo"), (Clock, "clock")])
def test_the_same_rule_gives_the_same_result(ours: type[Policy], name: str, machine: Any) -> None:
    config = coldframe.Config(frames=12, machine=machine)
    python = coldframe.simulate(TRACE, config, policy=ours)
    rust = coldframe.simulate(TRACE, config.replace(policy=name))
    assert python.policy == f"python:{ours.__name__}"
    assert found(python) == found(rust)
    assert python.true_faults > 12


def test_a_bounded_walk_is_forced_as_pa_clocks() -> None:
    config = coldframe.Config(frames=12)
    python = coldframe.simulate(TRACE, config, policy=BoundedClock)
    rust = coldframe.simulate(TRACE, config.replace(policy="pa-clock:budget=3"))
    assert python["counts.walk_max"] == rust["counts.walk_max"] == 3
    assert python["counts.forced_evictions"] == rust["counts.forced_evictions"] > 0
    assert found(python) == found(rust)


class SecondChance(Fifo):
    """Pages leave by way of an invalid list: unmapped first, evicted when they come to its end, promoted by a touch."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames)
        self.invalid: list[int] = []
        self.promoted = 0

    def victim(self, residents: Residents) -> int | tuple[int, bool]:
        while len(self.invalid) < 4:
            frame = self.queue.pop(0)
            residents.downgrade(frame)
            self.invalid.append(frame)
        return self.invalid.pop(0)

    def promote(self, frame: int, residents: Residents) -> None:
        self.invalid.remove(frame)
        self.queue.append(frame)
        self.promoted += 1


def test_downgraded_pages_false_fault_and_are_promoted() -> None:
    kept: list[SecondChance] = []

    def make(frames: int) -> SecondChance:
        kept.append(SecondChance(frames))
        return kept[0]

    result = coldframe.simulate(TRACE, {"frames": 12}, policy=make)
    assert result.policy == "python:make"
    assert result.false_faults == kept[0].promoted > 0


class Broken(Clock):
    def victim(self, residents: Residents) -> int | tuple[int, bool]:
        raise KeyError("mine")


class Liar(Clock):
    def victim(self, residents: Residents) -> int | tuple[int, bool]:
        return residents.frames + 5


class Mute(Clock):
    def victim(self, residents: Residents) -> Any:
        return None


class Nosy(Clock):
    def insert(self, frame: int, residents: Residents) -> None:
        residents.referenced(99)


class Listening(Clock):
    heard = 0

    def true_fault(self, residents: Residents) -> None:
        Listening.heard += 1


@pytest.mark.parametrize(
    ("policy", "error", "said"),
    [
        (Broken, KeyError, "mine"),
        (Liar, ValueError, "frame 17 holds no page"),
        (Mute, TypeError, "victim\\(\\) returned None"),
        (Nosy, ValueError, "frame 99 holds no page"),
        (Policy, NotImplementedError, "no insert"),
        (lambda frames: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_what_goes_wrong_in_a_policy_is_raised(policy: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        coldframe.simulate(TRACE, {"frames": 12}, policy=policy)


def test_a_policy_may_hear_of_true_faults() -> None:
    result = coldframe.simulate(TRACE, {"frames": 12}, policy=Listening)
    assert Listening.heard == result.true_faults


def test_a_policys_name_beside_an_object_is_refused() -> None:
    with pytest.raises(coldframe.SettingError, match="leave one of them out"):
        coldframe.simulate(TRACE, {"frames": 12, "policy": "clock"}, policy=Clock)
