"""Builds the wheel (PEP 517): what maturin makes, the programs, and the libraries that they load into other ones.

`pip install .` calls it. The programs go to the scripts' folder, the libraries to `lib/coldframe` of the environment, where the programs look
for them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin

ROOT = Path(__file__).resolve().parents[4]
DATA = ROOT / "target" / "wheel-data"
"""`tool.maturin.data` of pyproject.toml."""
PROGRAMS = ["coldframe", "coldframe-lab"]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "data/sheet-template.toml", "data/traces/shop.c"]
"""README and what it names; the book beside them."""
LIBRARIES = ["libcoldframe_preload.so", "libcoldframe_plugin.so"]

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel


def build_wheel(folder: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    bring_program()
    return str(maturin.build_wheel(folder, settings, metadata))


def bring_program() -> None:
    """Builds the programs and their libraries, and puts them where the wheel takes them from.

    COLDFRAME_PROGRAMS: a folder with programs that have their libraries within them (`scripts/dist.py`); nothing is built then.
    """
    shutil.rmtree(DATA, ignore_errors=True)
    texts = DATA / "data" / "share" / "doc" / "coldframe"
    texts.mkdir(parents=True)
    for file in [*(ROOT / name for name in DOCUMENTS), *sorted((ROOT / "docs/book/src").rglob("*.md"))]:
        place = texts / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)
    subprocess.run([sys.executable, ROOT / "scripts/notices.py", "--notices", texts / "THIRD-PARTY.txt"], cwd=ROOT, check=True)
    if whole := os.environ.get("COLDFRAME_PROGRAMS"):
        (DATA / "scripts").mkdir(parents=True)
        for name in PROGRAMS:
            shutil.copy2(Path(whole) / name, DATA / "scripts" / name)
        return
    packages = ["coldframe-cli", "coldframe-lab", "coldframe-preload", "coldframe-qemu-plugin"]
    chosen = [word for package in packages for word in ("-p", package)]
    subprocess.run(["cargo", "build", "--release", "--locked", *chosen], cwd=ROOT, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    for name, place in [*((name, "scripts") for name in PROGRAMS), *((name, "data/lib/coldframe") for name in LIBRARIES)]:
        (DATA / place).mkdir(parents=True, exist_ok=True)
        shutil.copy2(built / name, DATA / place / name)
