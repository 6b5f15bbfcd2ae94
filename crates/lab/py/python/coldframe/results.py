"""Results, one by one and as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._html import microseconds, paragraph, size, table
from ._table import Table
from .config import Config
from .errors import FileError

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN = 40
"""Rows that a notebook shows."""


class Result:
    """The result of one configuration: what ``coldframe-lab sim --format json`` prints.

    Values are reached by their path, ``result["counts.true_faults"]``; the most asked for have names. Times are picoseconds.
    """

    __slots__ = ("json", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        """The JSON text, as the command line's."""
        self.json: dict[str, Any] = json.loads(text)
        """The same as plain data."""

    def __getitem__(self, path: str) -> Any:
        at: Any = self.json
        for key in path.split("."):
            at = at[key]
        return at

    def get(self, path: str, default: Any = None) -> Any:
        """The value at a path, or the default: an oracle has no times, a run without prices no total."""
        try:
            return self[path]
        except (KeyError, TypeError):
            return default

    @property
    def policy(self) -> str:
        """The policy or oracle with its parameters."""
        return str(self["config.policy"])

    @property
    def handler(self) -> str | None:
        """The fault handler; an oracle has none."""
        handler = self.get("config.handler")
        return None if handler is None else str(handler)

    @property
    def frames(self) -> int:
        """Frames of RAM."""
        return int(self["config.frames"])

    @property
    def ram_bytes(self) -> int:
        """RAM in bytes."""
        return self.frames * _native.size(self["config.page"])

    @property
    def references(self) -> int:
        """Page references."""
        return int(self["counts.references"])

    @property
    def true_faults(self) -> int:
        """Faults on pages that are not in RAM."""
        return int(self["counts.true_faults"])

    @property
    def false_faults(self) -> int:
        """Faults on pages that are in RAM but not mapped; an oracle has none."""
        return int(self.get("counts.false_faults", 0))

    def __eq__(self, other: object) -> bool:
        """Equal but for where the trace lies and how long this machine took."""
        return isinstance(other, Result) and self._found() == other._found()

    def __hash__(self) -> int:
        return hash((self.policy, self.frames, self.true_faults))

    def _found(self) -> dict[str, Any]:
        trace = {key: value for key, value in self.json["trace"].items() if key != "path"}
        return {**{key: value for key, value in self.json.items() if key != "host"}, "trace": trace}

    def __repr__(self) -> str:
        handler = f", {self.handler}" if self.handler else ""
        return f"Result({self.policy}{handler}, {self.frames} frames: {self.true_faults} true faults)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Result, (self.text,))

    def _repr_html_(self) -> str:
        return Results([self])._repr_html_()


class Results:
    """Results in the order of their configurations; to Arrow's libraries a table with a row each, which needs pyarrow.

    It has a sequence's length, indices and slices but is none by type: polars would take it for a column of objects.

    >>> import polars, pyarrow, duckdb                                                       # doctest: +SKIP
    >>> polars.DataFrame(results); pyarrow.table(results); duckdb.sql("from results")        # doctest: +SKIP
    """

    def __init__(self, results: Sequence[Result], missing: Sequence[Config] = (), known: int = 0) -> None:
        self._results = list(results)
        self.missing = list(missing)
        """Configurations without a result, after Ctrl-C."""
        self.known = known
        """Results that were there from before."""

    @property
    def complete(self) -> bool:
        """Every configuration has its result."""
        return not self.missing

    @cached_property
    def table(self) -> Table:
        """The table, as Arrow's libraries take it; its columns are the same for all results. Needs pyarrow."""
        return Table([result.text for result in self._results])

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: int | slice) -> Result | Results:
        return Results(self._results[index]) if isinstance(index, slice) else self._results[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Results) and self._results == other._results

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_schema__(self) -> object:
        return self.table.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> polars.DataFrame:
        """As polars' frame; needs polars and pyarrow."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As pandas' frame; needs pandas and pyarrow."""
        import pyarrow

        frame: pandas.DataFrame = pyarrow.table(self).to_pandas()
        return frame

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes a Parquet file; it is there as a whole or not at all. Several, of whatever sweeps, are one data set."""
        target = Path(path)
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            part.write_bytes(self.table.parquet())
            part.replace(target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise FileError(f"{target}: cannot be written: {error.strerror}; give another folder") from error

    def __repr__(self) -> str:
        missing = f", {len(self.missing)} missing" if self.missing else ""
        return f"Results({len(self)} configurations{missing})"

    def _repr_html_(self) -> str:
        headings = ["policy", "handler", "RAM", "frames", "true faults", "false faults"]
        headings += ["p99 of a fault, us", "paging, us"] if (timed := any(result.get("time_ps") for result in self)) else []
        more = f"{len(self) - _SHOWN} more rows are not shown. " if len(self) > _SHOWN else ""
        missing = f"Interrupted: {len(self.missing)} configurations have no result." if self.missing else ""
        return table(headings, [_row(result)[: 8 if timed else 6] for result in self[:_SHOWN]]) + (paragraph(more + missing) if more or missing else "")


def _row(result: Result) -> list[object]:
    return [
        result.policy,
        result.handler or "",
        size(result.ram_bytes),
        result.frames,
        result.true_faults,
        result.false_faults,
        microseconds(result.get("fault_latency_ps.true.p99")),
        microseconds(result.get("time_ps.paging")),
    ]
