"""Configurations: the keys of `config.toml`, equality, pickling, and the order of grids."""

import pickle
import re
from pathlib import Path
from typing import get_type_hints, is_typeddict

import coldframe
import pytest
from coldframe import config
from hypothesis import given, settings
from hypothesis import strategies as st

TABLES = {"": config.Settings}
TABLES |= {f"{key}.": kind for key, kind in get_type_hints(config.Settings).items() if is_typeddict(kind)}
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(["clock", "pa-clock:budget=13", "opt"]),
        "frames": st.integers(1, 1 << 20),
        "page": st.sampled_from(["1KiB", "4KiB"]),
        "limit": st.fixed_dictionaries({}, optional={"skip": st.integers(0, 1 << 40)}),
        "machine": st.fixed_dictionaries({}, optional={"dirty_bit": st.booleans(), "buffers": st.integers(1, 9)}),
        "time": st.fixed_dictionaries({}, optional={"program": st.sampled_from(["180us", "2ms"])}),
    },
)


@settings(max_examples=100, deadline=None)
@given(given_settings=SETTINGS)
def test_toml_and_pickle_give_back_what_was_set(tmp_path_factory, given_settings) -> None:  # type: ignore[no-untyped-def]
    made = coldframe.Config(**given_settings)
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    path.write_text(made.to_toml())
    assert coldframe.Config.read(path) == made == pickle.loads(pickle.dumps(made))
    assert made.settings == {key: value for key, value in given_settings.items() if value != {}}


@pytest.mark.parametrize("path", TABLES)
def test_the_types_name_what_the_settings_have(path: str) -> None:
    with pytest.raises(coldframe.SettingError, match="nosuch") as raised:
        coldframe.grid({f"{path}nosuch": 1})
    known = set(re.findall(r"`(\w+)`", str(raised.value).split("expected one of")[-1]))
    assert known - {"nosuch"} == set(TABLES[path].__annotations__)


def test_order_of_keys_does_not_matter() -> None:
    a, b = coldframe.Config(policy="fifo", frames=3), coldframe.Config(frames=3, policy="fifo")
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    assert a != a.replace(frames=4)


def test_replace_changes_what_it_names() -> None:
    first = coldframe.Config(frames=3, machine={"buffers": 2, "dirty_bit": False})
    changed = first.replace(ram="64KiB", machine={"buffers": 4})
    assert changed.settings == {"ram": "64KiB", "machine": {"buffers": 4, "dirty_bit": False}}
    assert first.settings["frames"] == 3, "the first is as it was"


def test_a_file_and_sets(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('policy = "fifo"\n[limit]\nskip = 3\n')
    assert coldframe.Config.read(path, "limit.skip=7", "frames=2") == coldframe.Config(policy="fifo", limit={"skip": 7}, frames=2)


def test_a_grid_has_policies_outermost_and_frames_innermost() -> None:
    made = coldframe.grid({"frames": [1, 2], "machine.evict_batch": [1, 4], "policy": ["fifo", "clock"]})
    shown = [(c.settings["policy"], c.settings["machine"]["evict_batch"], c.settings["frames"]) for c in made]
    assert shown == [(p, b, f) for p in ("fifo", "clock") for b in (1, 4) for f in (1, 2)]


def test_a_grid_keeps_what_its_base_sets() -> None:
    made = coldframe.grid({"swap.collector": ["greedy", "cost-benefit"]}, coldframe.Config(frames=7, swap={"blocks": "64"}))
    assert [one.settings["swap"] for one in made] == [
        {"blocks": "64", "collector": "greedy"},
        {"blocks": "64", "collector": "cost-benefit"},
    ]
    assert {one.settings["frames"] for one in made} == {7}
