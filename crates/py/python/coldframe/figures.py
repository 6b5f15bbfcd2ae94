"""The papers' printed figures beside ours."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, overload

from . import _native
from ._html import table


class Figures(Sequence[dict[str, Any]]):
    """Rows of ``coldframe papers --format json``: paper, item, row, paper_value, our_value, unit, reached, note."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Figures: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Figures:
        return Figures(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"Figures({len(self)} rows)"

    def _repr_html_(self) -> str:
        headings = ["item", "", "paper", "ours", "unit", "reached"]
        reached = {True: "yes", False: "NO"}
        rows = [
            [r["item"], r["row"], r.get("paper_value"), r["our_value"], r["unit"], reached.get(r["reached"], "shape")]
            for r in self
        ]
        return table(headings, rows)


def papers(name: str = "all", traces: str | os.PathLike[str] | None = None) -> Figures:
    """The figures of one paper: ``swl``, ``ddb``, ``lobi``, ``drswap`` or ``sap``; or ``all``.

    ``traces`` is the folder with the shipped traces, where it is not ``data/traces``.
    """
    return Figures(json.loads(_native.papers(name, None if traces is None else os.fspath(traces))))
