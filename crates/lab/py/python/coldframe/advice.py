"""How little RAM a program can live with, and what that costs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._html import heading, paragraph, size, table
from ._settings import Settings
from .config import Config
from .progress import Progress, Tell
from .simulation import as_config
from .trace import Trace


class Advice:
    """The answer of ``coldframe-lab advise``, with its numbers. As text it is what the command prints."""

    def __init__(self, text: str, sentence: str, words: str, config: Config | None) -> None:
        self.json: dict[str, Any] = json.loads(text)
        """What ``coldframe-lab advise --format json`` prints."""
        self.sentence = sentence.rstrip()
        """The answer in one line."""
        self.words = words
        """The whole answer for people."""
        self.config = config
        """The advised settings, for :func:`simulate` and, as ``config.to_toml()``, for the command line; ``None``: none meets the limits."""

    @property
    def met(self) -> bool:
        """Some configuration meets the limits."""
        return bool(self.json["met"])

    @property
    def ram_bytes(self) -> int | None:
        """The smallest RAM that meets the limits."""
        return int(self.json["best"]["ram_bytes"]) if self.met else None

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return f"Advice({self.sentence})"

    def _repr_html_(self) -> str:
        front = [_row(candidate) for candidate in self.json["front"]]
        regions = [[r["name"], r["faults"], f"{100 * r['share']:.1f} %"] for r in self.json["regions"]]
        parts = [heading(self.sentence), table(["RAM", "policy", "handler", "slowdown, %", "true faults"], front)]
        if regions:
            parts += [paragraph("What costs most:"), table(["memory", "faults", "share of the time"], regions)]
        return "".join(parts) + "".join(paragraph(text) for text in self.json["assumptions"])


def _row(candidate: dict[str, Any]) -> list[object]:
    slowdown = candidate["slowdown_percent"]
    shown = "-" if slowdown is None else f"{slowdown['low']:.2f} to {slowdown['high']:.2f}"
    config = candidate["config"]
    return [size(candidate["ram_bytes"]), config["policy"], config.get("handler", ""), shown, candidate["true_faults"]]


def advise(
    trace: Trace | str,
    config: Config | Settings | None = None,
    *,
    max_slowdown: str | None = None,
    max_p99: str | None = None,
    min_life: str | None = None,
    max_energy: str | None = None,
    max_ram: str | None = None,
    program_time: str | None = None,
    swap_area: str | None = None,
    devices: Sequence[str] = (),
    policies: Sequence[str] = (),
    handlers: Sequence[str] = (),
    collectors: Sequence[str] = (),
    read_aheads: Sequence[int] = (),
    schedulers: Sequence[str] = (),
    prefetches: Sequence[str] = (),
    work: int | None = None,
    progress: Tell | None = None,
) -> Advice:
    """The smallest RAM that meets the limits, searched as ``coldframe-lab advise`` does; without a limit at most 5 % slower.

    Limits are texts with units: ``"5%"``, ``"200us"``, ``"5y"``, ``"2mJ"``, ``"512KiB"``. What ``config`` sets is not varied;
    ``schedulers`` and ``prefetches`` are for a configuration of the system ``sap``.
    """
    path = (trace if isinstance(trace, Trace) else Trace(trace)).path
    question = {
        "max_slowdown": max_slowdown,
        "max_p99": max_p99,
        "min_life": min_life,
        "max_energy": max_energy,
        "max_ram": max_ram,
        "program_time": program_time,
        "swap_area": swap_area,
        "devices": list(devices),
        "policies": list(policies),
        "handlers": list(handlers),
        "collectors": list(collectors),
        "read_aheads": list(read_aheads),
        "schedulers": list(schedulers),
        "prefetches": list(prefetches),
        "work": work,
    }
    answer = _native.advise(path, as_config(config).json, json.dumps(question), _tell(progress))
    text, sentence, words, settings = answer
    return Advice(text, sentence, words, None if settings is None else Config._of(settings))


def cache_folder() -> Path:
    """Where fetched traces are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coldframe"


def _tell(progress: Tell | None) -> Callable[[int, int], object] | None:
    if progress is None:
        return None
    return lambda rows, total: progress(Progress(0, 0, rows=rows, rows_total=total))
