"""The package itself: types, stubs, documentation, the wheel, the notebook."""

import doctest
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import coldframe
import pytest
from conftest import ROOT

NAMES = ["coldframe"] + [f"coldframe.{module.name}" for module in pkgutil.iter_modules(coldframe.__path__)]
CONFIG = str(ROOT / "pyproject.toml")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=300)


def test_types_are_strict(tmp_path: Path) -> None:
    done = python("-m", "mypy", "--config-file", CONFIG, "--cache-dir", str(tmp_path), "-p", "coldframe")
    assert done.returncode == 0, done.stdout


def test_stubs_are_what_is_there(tmp_path: Path) -> None:
    done = python("-m", "mypy.stubtest", "coldframe._native", "--mypy-config-file", CONFIG)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", [name for name in NAMES if name != "coldframe._native"])
def test_examples_of_the_documentation_do_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    assert doctest.testmod(module).failed == 0


def test_what_is_public_is_documented() -> None:
    for name in coldframe.__all__:
        assert name.startswith("__") or getattr(coldframe, name).__doc__, name


def test_the_package_is_typed() -> None:
    home = Path(coldframe.__file__).parent
    assert (home / "py.typed").exists() and (home / "_native.pyi").exists()


def test_plain_sweeps_need_no_other_package() -> None:
    """Without site-packages' other packages: only this one on the path."""
    home = Path(coldframe.__file__).parent
    script = (
        "import sys, types, importlib.util as u\n"
        f"s = u.spec_from_file_location('coldframe', {str(home / '__init__.py')!r}, submodule_search_locations=[{str(home)!r}])\n"
        "m = u.module_from_spec(s); sys.modules['coldframe'] = m; s.loader.exec_module(m)\n"
        "r = m.sweep('data/traces/fft.parquet', {'frames': [3]})\n"
        "print(len(r), sorted({n.split('.')[0] for n in sys.modules} & {'pyarrow', 'pandas', 'polars', 'dask', 'fsspec'}))\n"
        "try: m.Threads(store='/x')\n"
        "except m.MachineError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout == "1 []\na store needs fsspec; install coldframe[dask]\n", done.stderr


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = json.loads((ROOT / "docs" / "notebook" / "first.ipynb").read_text())
    assert book["nbformat"] == 4
    names: dict[str, Any] = {"__name__": "notebook"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "outputs would grow old"
            exec(compile("".join(cell["source"]), "first.ipynb", "exec"), names)
    assert names["best"].ram_bytes and len(names["results"]) > 3


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "python").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=ROOT, timeout=120, env={**os.environ, "QUICK": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
