"""Clock written in Python, and how much slower that is than Clock in Rust.

    target/venv/bin/python examples/python/second_chance.py [TRACE]

Both decide the same, fault by fault; the ratio is of the same run, the best of three each.
"""

import sys
import time
from collections.abc import Callable

import coldframe

TRACE = sys.argv[1] if len(sys.argv) > 1 else "data/traces/cjpeg.parquet"
FRAMES = 12


class Clock(coldframe.Policy):
    """A hand goes round the frames; a page whose bit is set loses it and stays, the first one without leaves."""

    def __init__(self, frames: int) -> None:
        self.queue: list[int] = []

    def victim(self, residents: coldframe.Residents) -> int:
        while residents.referenced(self.queue[0]):
            self.queue.append(self.queue.pop(0))
        return self.queue.pop(0)

    def insert(self, frame: int, residents: coldframe.Residents) -> None:
        self.queue.append(frame)

    def remove(self, frame: int) -> None:
        self.queue.remove(frame)


def best(work: Callable[[], coldframe.Result]) -> tuple[coldframe.Result, float]:
    """The result and the least seconds of three runs."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        result = work()
        took.append(time.perf_counter() - began)
    return result, min(took)


trace = coldframe.Trace(TRACE)
python, slow = best(lambda: coldframe.simulate(trace, {"frames": FRAMES}, policy=Clock))
rust, fast = best(lambda: coldframe.simulate(trace, {"frames": FRAMES, "policy": "clock"}))
assert python["counts"] == rust["counts"], "the same rule decides the same"
each = (slow - fast) / python.true_faults * 1e6
print(f"{TRACE}, {FRAMES} frames, {python.true_faults} true faults in {python.references} references")
print(f"Clock in Python takes {slow / fast:.1f} times as long as Clock in Rust, {each:.1f} us more a fault")
