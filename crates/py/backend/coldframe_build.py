"""Builds the wheel (PEP 517): what maturin makes, the program, and the libraries that the program loads into other ones.

`pip install .` calls it. The program goes to the scripts' folder, the libraries to `lib/coldframe` of the environment, where the program looks
for them.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "target" / "wheel-data"
"""`tool.maturin.data` of pyproject.toml."""
LIBRARIES = ["libcoldframe_preload.so", "libcoldframe_plugin.so"]

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel


def build_wheel(folder: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    bring_program()
    return str(maturin.build_wheel(folder, settings, metadata))


def bring_program() -> None:
    """Builds the program and its libraries, and puts them where the wheel takes them from.

    COLDFRAME_PROGRAM: a program that has its libraries within it (`scripts/dist.py`); nothing is built then.
    """
    shutil.rmtree(DATA, ignore_errors=True)
    if whole := os.environ.get("COLDFRAME_PROGRAM"):
        (DATA / "scripts").mkdir(parents=True)
        shutil.copy2(whole, DATA / "scripts" / "coldframe")
        return
    packages = ["coldframe-cli", "coldframe-preload", "coldframe-qemu-plugin"]
    chosen = [word for package in packages for word in ("-p", package)]
    subprocess.run(["cargo", "build", "--release", "--locked", *chosen], cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    for name, place in [("coldframe", "scripts"), *((name, "data/lib/coldframe") for name in LIBRARIES)]:
        (DATA / place).mkdir(parents=True, exist_ok=True)
        shutil.copy2(built / name, DATA / place / name)
