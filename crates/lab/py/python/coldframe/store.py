"""Traces and results by content, on a path that all machines see or in an object store; fsspec speaks to either.

    traces/SHA256.parquet             each trace once
    results/BUILD/KEY.json            the result of a configuration; KEY hashes the trace, every setting and the build
    sweeps/NAME.parquet               finished sweeps as tables: one data set

A name says what is in it, so nothing is ever stale and whoever writes a name a second time writes the same again. On a file system a file
is there as a whole or not at all; object stores are so by themselves.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._build import BUILD
from ._table import Table
from .config import Config
from .errors import FileError, MachineError, TraceError
from .trace import Trace


class Store:
    """A place such as ``/shared/coldframe`` or ``s3://bucket/coldframe``; ``options`` are fsspec's for it."""

    def __init__(self, url: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise MachineError("a store needs fsspec; install coldframe[dask]") from error
        self.url, self.options = os.fspath(url), dict(options or {})
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url, **self.options)
        except (ImportError, ValueError) as error:
            raise MachineError(f"store {self.url}: {error}") from error
        self._local = "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,))

    def put_trace(self, path: str, sha256: str) -> None:
        """Puts a trace there, unless it is there."""
        name = self._name("traces", f"{sha256}.parquet")
        if not self._fs.exists(name):
            self._put(name, lambda target: self._fs.put_file(path, target))

    def fetch_trace(self, sha256: str, folder: Path) -> Path:
        """The trace on this machine, fetched if it is not, and checked to be what its name says."""
        target = folder / "traces" / f"{sha256}.parquet"
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
        name = self._name("traces", target.name)
        try:
            self._fs.get_file(name, str(part))
            if (found := _native.sha256(str(part))) != sha256:
                raise TraceError(f"{self.url}: {name}: its hash is {found}; the copy is damaged: remove it and run again")
            part.replace(target)
        except FileNotFoundError as error:
            raise FileError(f"{self.url}: {name}: not there; do all machines see the store?") from error
        finally:
            part.unlink(missing_ok=True)
        return target

    def results(self, build: str, keys: Sequence[str]) -> dict[str, str]:
        """Results from before, by key; one that is damaged counts as none."""
        names = {self._name("results", build, f"{key}.json"): key for key in keys}
        found = self._fs.cat(list(names), on_error="omit") if names else {}
        found = found if isinstance(found, dict) else {next(iter(names)): found}
        texts = {names[name]: bytes(data).decode(errors="replace") for name, data in found.items()}
        return {key: text for key, text in texts.items() if _is_json(text)}

    def put_result(self, build: str, key: str, text: str) -> None:
        """Keeps a result."""
        data = text.encode()
        self._put(self._name("results", build, f"{key}.json"), lambda target: self._fs.pipe_file(target, data))

    def put_sweep(self, keys: Sequence[str], parquet: bytes) -> str:
        """Keeps a sweep's table, named by what was asked; its name."""
        name = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:32]
        path = self._name("sweeps", f"{name}.parquet")
        self._put(path, lambda target: self._fs.pipe_file(target, parquet))
        return path

    def _name(self, *parts: str) -> str:
        return posixpath.join(self._root, *parts)

    def _put(self, name: str, write: Callable[[str], object]) -> None:
        """An object at once; a file under another name first."""
        try:
            if not self._local:
                write(name)
                return
            part = f"{name}.{uuid.uuid4().hex}.part"
            self._fs.makedirs(posixpath.dirname(name), exist_ok=True)
            write(part)
            os.replace(part, name)
        except OSError as error:
            raise FileError(f"{self.url}: {name}: cannot be written: {error}; give another store") from error


class Kept:
    """What a store has of the configurations of one sweep, and keeps of them."""

    def __init__(self, store: Store, trace: Trace, configs: Sequence[Config]) -> None:
        self._store, self._trace = store, trace
        self.keys = {config: _native.key(BUILD, trace.sha256, config.json) for config in configs}
        """What names each configuration's result."""
        self.results: dict[Config, str] = {}
        """What is there by now."""
        self.sweep: str | None = None
        """The sweep's Parquet file, once all results are there."""
        found = store.results(BUILD, list(self.keys.values()))
        self.add({config: found[key] for config, key in self.keys.items() if key in found})

    def add(self, found: Mapping[Config, str]) -> dict[Config, str]:
        """Takes results that are in the store; the last of them makes the table. The same with the trace's path as it is called here."""
        ours = {config: self._relabelled(text) for config, text in found.items()}
        self.results.update(ours)
        if self.keys and len(self.results) == len(self.keys):
            table = Table([self.results[config] for config in self.keys])
            self.sweep = self._store.put_sweep(list(self.keys.values()), table.parquet())
        return ours

    def put(self, found: Mapping[Config, str]) -> None:
        """Takes results that are new."""
        for config, text in found.items():
            self._store.put_result(BUILD, self.keys[config], text)
        self.add(found)

    def _relabelled(self, text: str) -> str:
        result = json.loads(text)
        result["trace"]["path"] = self._trace.path
        return json.dumps(result, separators=(",", ":"), ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
