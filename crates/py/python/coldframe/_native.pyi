"""The compiled part; ``coldframe`` is its face."""

from collections.abc import Callable, Sequence
from typing import final

from .policy import Policy

__all__ = [
    "RAM_DEFAULT",
    "Residents",
    "Table",
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
    make: Callable[[int], Policy],
    progress: Callable[[int, int], object] | None = None,
) -> str: ...
def advise(
    path: str,
    config: str,
    question_json: str,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[str, str, str, str | None]: ...
@final
class Table:
    def __new__(cls, results: Sequence[str]) -> Table: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def parquet(self) -> bytes: ...

@final
class Residents:
    """The resident pages, as a policy may look at them during one call."""

    @property
    def frames(self) -> int:
        """How many frames there are."""
    @property
    def held(self) -> list[int]:
        """Frames that hold a page of this policy, in order."""
    def page(self, frame: int) -> int:
        """The number of the page in a frame, in order of first touch."""
    def referenced(self, frame: int, clear: bool = True) -> bool:
        """Whether the page was touched since its bit was cleared; a step of the walk."""
    def downgrade(self, frame: int) -> None:
        """Takes the page out of the page table but keeps it in RAM: its next touch is a false fault."""
