"""What the tests share: the shipped traces, and the command line to compare with."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
TRACES = ROOT / "data" / "traces"
Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cli() -> Cli:
    """Runs the command line; `make test` says where it is."""
    program = os.environ.get("COLDFRAME_BIN") or str(ROOT / "target" / "debug" / "coldframe")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        # The verbs of the laboratory are those of the program beside it.
        name = program if arguments[0] == "doctor" else f"{program}-lab"
        return subprocess.run([name, *arguments], capture_output=True, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "1000"})

    return run


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of traces are the same for both, and so appear in both outputs."""
    monkeypatch.chdir(ROOT)


def exact(text: str) -> Any:
    """JSON with its order and its digits: objects as lists of pairs, numbers as they are written."""
    return json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str)


def without(pairs: Any, key: str) -> Any:
    """An object as a list of pairs, without one key."""
    return [pair for pair in pairs if pair[0] != key]
