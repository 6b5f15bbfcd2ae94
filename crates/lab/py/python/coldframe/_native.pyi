"""The compiled part; ``coldframe`` is its face."""

from collections.abc import Callable, Sequence

from .policy import Taught

__all__ = [
    "RAM_DEFAULT",
    "VERSION",
    "advise",
    "check",
    "footprint",
    "info",
    "key",
    "provenance",
    "settings",
    "settings_file",
    "settings_toml",
    "sha256",
    "simulate",
    "simulate_policy",
    "size",
]

VERSION: str
RAM_DEFAULT: Sequence[str]

def settings(json: str) -> str: ...
def settings_file(path: str, sets: Sequence[str]) -> str: ...
def settings_toml(json: str) -> str: ...
def size(text: str) -> int: ...
def key(build: str, trace_sha256: str, json: str) -> str: ...
def provenance(path: str) -> str: ...
def info(path: str) -> str: ...
def sha256(path: str) -> str: ...
def footprint(path: str, settings: str) -> int: ...
def check(path: str, configs: Sequence[str]) -> None: ...
def simulate(
    path: str, configs: Sequence[str], progress: Callable[[int, int], object] | None = None
) -> list[str]: ...
def simulate_policy(
    path: str,
    config: str,
    name: str,
    make: Callable[[int], Taught],
    progress: Callable[[int, int], object] | None = None,
) -> str: ...
def advise(
    path: str,
    config: str,
    question_json: str,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[str, str, str, str | None]: ...
