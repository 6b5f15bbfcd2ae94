"""Results as a table of Arrow's, with a row for each configuration; pyarrow makes it.

The columns are the same for every table, so files of several sweeps form one data set. A value that a result lacks (an oracle's times) is
null. Times are in picoseconds, energies in picojoules, as in the JSON. Requests for blocks and keys have no device and no time unless a
device was named: then their tables have no such columns, either.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from . import _native
from .errors import MachineError

_TEXTS = {
    "version": "version",
    "trace": "trace.path",
    "trace_sha256": "trace.sha256",
    "fidelity": "trace.fidelity",
    "system": "config.system",
    "policy": "config.policy",
    "handler": "config.handler",
    "device": "config.device",
    "stream": "config.stream",
}
"""Columns of text, by their place in a result."""

_COUNTS = {
    "pages": "trace.pages",
    "frames": "config.frames",
    **{
        name: f"counts.{name}"
        for name in (
            "references",
            "true_faults",
            "false_faults",
            "cold_faults",
            "write_faults",
            "evictions",
            "dirty_evictions",
            "forced_evictions",
            "walk_sum",
            "walk_max",
            "page_loads",
            "page_moves",
        )
    },
    **{f"time_{name}_ps": f"time_ps.{name}" for name in ("total", "idle", "paging", "hidden")},
    **{
        f"stage_{name}_ps": f"time_ps.stages.{name}"
        for name in ("pre_process", "get_freeframe", "load_stopover", "trans_host_mem", "update_mmu", "post_process")
    },
    **{f"true_fault_{name}_ps": f"fault_latency_ps.true.{name}" for name in ("mean", "p50", "p99", "p999", "max")},
    **{f"false_fault_{name}_ps": f"fault_latency_ps.false.{name}" for name in ("mean", "max")},
    "ledger_total_ps": "ledger.time_ps.total",
    **{f"swap_{name}": f"swap.{name}" for name in ("programs", "copies", "erases")},
}
"""Columns of whole numbers, by their place in a result."""

_REQUESTS = ("block-only", "key-requests")
"""The fidelities of traces that are no program's."""


class Table:
    """The table; Arrow's libraries read it without a copy."""

    def __init__(self, results: Sequence[str]) -> None:
        try:
            import pyarrow
        except ImportError as error:
            raise MachineError("a table of results needs pyarrow; install coldframe[table]") from error
        found = [json.loads(text) for text in results]
        priced = not found or any(_at(one, "trace.fidelity") not in _REQUESTS or _at(one, "config.device") is not None for one in found)
        texts, numbers = ({name: place for name, place in all.items() if priced or not _is_price(name)} for all in (_TEXTS, _COUNTS))
        columns = {name: pyarrow.array([_at(one, place) for one in found], pyarrow.string()) for name, place in texts.items()}
        counts = {name: [_at(one, place) for one in found] for name, place in numbers.items()}
        counts["page_bytes"] = [None if (page := _at(one, "config.page")) is None else _native.size(page) for one in found]
        counts["ram_bytes"] = [
            None if page is None or frames is None else page * frames
            for page, frames in zip(counts["page_bytes"], counts["frames"], strict=True)
        ]
        columns.update((name, pyarrow.array(values, pyarrow.uint64())) for name, values in counts.items())
        columns["config"] = pyarrow.array([json.dumps(one["config"], separators=(",", ":"), ensure_ascii=False) for one in found], pyarrow.string())
        columns["faults_per_reference"] = pyarrow.array(
            [
                None if faults is None or references is None else faults / max(references, 1)
                for faults, references in zip(counts["true_faults"], counts["references"], strict=True)
            ],
            pyarrow.float64(),
        )
        self._table: Any = pyarrow.table(columns)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._table.column_names)

    def __arrow_c_schema__(self) -> object:
        return self._table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def parquet(self) -> bytes:
        """The rows as a Parquet file."""
        import pyarrow.parquet

        file = io.BytesIO()
        pyarrow.parquet.write_table(self._table, file, compression="zstd")
        return file.getvalue()


def _is_price(name: str) -> bool:
    """Whether a column is of a device."""
    return name == "device" or name.endswith("_ps")


def _at(result: dict[str, Any], place: str) -> Any:
    """The value at a place; none if the result lacks it."""
    at: Any = result
    for key in place.split("."):
        at = at.get(key) if isinstance(at, dict) else None
    return at
