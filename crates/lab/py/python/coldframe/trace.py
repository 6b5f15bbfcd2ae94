"""A trace: what it is, and how much it touches."""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import Any, Unpack

from . import _native
from ._html import heading, table
from ._settings import Settings
from .config import Config
from .errors import TraceError


class Trace:
    """A recorded program, as ``coldframe record`` and ``coldframe-lab trace import`` write it.

    >>> trace = Trace("data/traces/bzip2.parquet")
    >>> trace.fidelity
    'exact-references'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if self.path.split(".csv")[-1] in ("", ".zst", ".gz", ".xz") and ".csv" in self.path:
            raise TraceError(
                f"{self.path}: a swap trace holds what left RAM, not references; compare swap areas with `coldframe-lab sim {self.path}`"
            )
        self.provenance: dict[str, Any] = json.loads(_native.provenance(self.path))
        """The command, the recorder, mappings, tasks, notes and totals."""

    @property
    def fidelity(self) -> str:
        """What its rows can be trusted for: `exact-references`, `page-references`, `window`, `faults`, `sampled`, ..."""
        return str(self.provenance["fidelity"])

    @property
    def references(self) -> int:
        """References, of them fetches, reads and writes."""
        return int(self.provenance["references"])

    @property
    def instructions(self) -> int:
        """Instruction fetches."""
        return int(self.provenance["instructions"])

    @property
    def rows(self) -> int:
        """Rows of the file; a row can stand for several references."""
        return int(self.provenance["rows"])

    @cached_property
    def sha256(self) -> str:
        """The hash of the file, read once."""
        return _native.sha256(self.path)

    @cached_property
    def info(self) -> dict[str, Any]:
        """What ``coldframe-lab trace info --format json`` prints: provenance, working set, phases, the hottest memory."""
        info: dict[str, Any] = json.loads(_native.info(self.path))
        return info

    def footprint(self, **settings: Unpack[Settings]) -> int:
        """Different pages touched, of 4 KiB unless ``page=`` says otherwise; ``stream=``, ``front_end=`` and ``system=`` count, too."""
        return _native.footprint(self.path, Config(**settings).json)

    def __repr__(self) -> str:
        return f"Trace({self.path!r}, {self.fidelity}, {self.references} references)"

    def _repr_html_(self) -> str:
        p = self.provenance
        rows = [
            ["command", p.get("command") or "not known"],
            ["recorder", p["recorder"]],
            ["fidelity", self.fidelity],
            ["references", f"{self.references:,}"],
            ["of these fetches, reads, writes", f"{p['instructions']:,}, {p['reads']:,}, {p['writes']:,}"],
            ["footprint", f"{p['pages_1KiB']:,} KiB in pages of 1 KiB"],
            *([["note", note] for note in p.get("notes", [])]),
        ]
        return heading(self.path) + table([], rows)
