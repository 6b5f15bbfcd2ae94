"""Settings, in the words of the command line's ``config.toml``, and grids of them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

from . import _native
from ._settings import Settings
from .errors import SettingError

Scalar = str | int | bool
"""A setting's value."""
Lists = Mapping[str, Scalar | Sequence[Scalar]]
"""What a sweep varies: names of settings, dotted within tables, and their values."""


class Config:
    """Settings of one configuration, checked for names and types; two with the same settings are equal.

    >>> Config(policy="pa-clock:budget=13", ram="64KiB", limit={"skip": 1000})
    Config(policy='pa-clock:budget=13', ram='64KiB', limit={'skip': 1000})

    Sizes are texts with units, or bytes as a number. Whether values fit a trace is seen when it is simulated.
    """

    __slots__ = ("_json",)

    def __init__(self, **settings: Unpack[Settings]) -> None:
        self._json = _native.settings(json.dumps(_plain(settings)))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *sets: str) -> Config:
        """The settings of a ``config.toml``, then those of ``KEY.PATH=VALUE`` texts, as ``-c`` and ``--set`` take them."""
        return cls._of(_native.settings_file(os.fspath(path), list(sets)))

    @classmethod
    def _of(cls, text: str) -> Config:
        config = cls.__new__(cls)
        config._json = text
        return config

    @property
    def json(self) -> str:
        """As JSON text, in one order whatever the order in which it was given."""
        return self._json

    @property
    def settings(self) -> dict[str, Any]:
        """As plain data, without what is not set."""
        return {key: value for key, value in json.loads(self._json).items() if value != {}}

    def replace(self, **changes: Scalar | Mapping[str, Scalar]) -> Config:
        """With some settings changed; a table's keys are changed one by one. RAM replaces frames, and frames RAM."""
        settings = self.settings
        for key, value in changes.items():
            _put(settings, [key], value)
        return Config(**cast(Settings, settings))

    def to_toml(self) -> str:
        """As a configuration file."""
        return _native.settings_toml(self._json)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{key}={value!r}' for key, value in self.settings.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickled, (self._json,))


def _unpickled(text: str) -> Config:
    return Config._of(text)


_ORDER = ("system", "page", "device", "policy", "handler")
"""What the command line varies before RAM, outermost first."""


def grid(lists: Lists, base: Config | None = None) -> list[Config]:
    """Every combination of the values, over the settings of ``base``.

    The order is the command line's: system, page, device, policy, handler, then other settings as given, and RAM or frames innermost.
    Without RAM or frames in either there are the command line's six sizes.

    >>> len(grid({"policy": ["clock", "opt"], "ram": ["10%", "50%"], "machine.evict_batch": [1, 4]}))
    8
    """
    values = {key: _list(value) for key, value in lists.items()}
    start = (base or Config()).settings
    if "ram" in values and "frames" in values:
        raise SettingError("setting `ram`: give ram or frames, not both: they mean the same thing")
    if not {"ram", "frames"} & (values.keys() | start.keys()):
        values["ram"] = list(_native.RAM_DEFAULT)
    keys = sorted(values, key=_rank)
    made = []
    for combination in itertools.product(*(values[key] for key in keys)):
        settings = json.loads(json.dumps(start))
        for key, value in zip(keys, combination, strict=True):
            _put(settings, key.split("."), value)
        made.append(Config(**settings))
    return made


def _rank(key: str) -> int:
    if key in ("ram", "frames"):
        return len(_ORDER) + 1
    return _ORDER.index(key) if key in _ORDER else len(_ORDER)


def _list(value: Scalar | Sequence[Scalar]) -> list[Scalar]:
    return [value] if isinstance(value, (str, int)) else list(value)


def _put(settings: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for key in {"ram": ("frames",), "frames": ("ram",)}.get(path[0], ()):
        settings.pop(key, None)
    at = settings
    for key in path[:-1]:
        at = at.setdefault(key, {})
        if not isinstance(at, dict):
            raise SettingError(f"setting `{'.'.join(path)}`: `{key}` is a value, not a table")
    last = path[-1]
    both = isinstance(value, Mapping) and isinstance(at.get(last), dict)
    at[last] = {**at[last], **value} if both else value


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not given; sizes that are numbers as texts."""
    plain = {key: value for key, value in settings.items() if value is not None}
    for key in ("ram", "page"):
        if isinstance(plain.get(key), int) and not isinstance(plain[key], bool):
            plain[key] = str(plain[key])
    return plain
