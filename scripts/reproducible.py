"""Builds the same in two folders and compares, byte by byte: `make reproducible`.

    scripts/reproducible.py [--packages coldframe-preload,...]

Without --packages: all that `make dist` makes for this machine, but the wheel. With them: only these, as the static programs or
the libraries of a release are built. The folders have names of different lengths.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copied(to: Path) -> None:
    """The committed and changed files of the tree, without those that git ignores."""
    to.mkdir(parents=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    archive = str(to.parent / "tree.tar")
    subprocess.run(["tar", "--null", "-cf", archive, "-T", "-"], cwd=ROOT, input=names, check=True)
    subprocess.run(["tar", "-xf", archive], cwd=to, check=True)


def built(tree: Path, packages: list[str], epoch: str) -> dict[str, str]:
    """Each file that was made, with its hash."""
    env = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"} | {"SOURCE_DATE_EPOCH": epoch}
    if not packages:
        command = [sys.executable, str(tree / "scripts/dist.py"), "--only", platform.machine(), "--no-wheel"]
        subprocess.run(command, check=True, env=env)
        files = [file for file in (tree / "target/dist").iterdir() if file.name != "SHA256SUMS"]
    else:
        spec = importlib.util.spec_from_file_location("dist", tree / "scripts/dist.py")
        assert spec and spec.loader
        dist = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(dist)
        os.environ.pop("CARGO_TARGET_DIR", None)
        os.environ["SOURCE_DATE_EPOCH"] = epoch
        folder, compiler = tree / "target/link", dist.compiler_of(platform.machine())
        link = dist.linker(compiler, dist.stub(compiler, folder / "stub"), folder)
        made = dist.cargo(f"{platform.machine()}-unknown-linux-gnu", compiler, link, [], packages)
        files = [file for file in made.iterdir() if file.suffix == ".so" or os.access(file, os.X_OK) and file.is_file()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> None:
    asked = argparse.ArgumentParser(description="Builds the same in two folders and compares.")
    asked.add_argument("--packages", default="")
    packages = [name for name in asked.parse_args().packages.split(",") if name]
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        trees = [Path(folder) / "one" / "tree", Path(folder) / "another" / "folder" / "tree"]
        sums = []
        for tree in trees:
            copied(tree)
            sums.append(built(tree, packages, epoch))
    differ = sorted(name for name in sums[0].keys() | sums[1].keys() if sums[0].get(name) != sums[1].get(name))
    for name, hashed in sorted(sums[0].items()):
        print(f"{'differs' if name in differ else 'equal  '} {hashed[:16]} {name}")
    sys.exit(bool(differ) or not sums[0])


if __name__ == "__main__":
    main()
