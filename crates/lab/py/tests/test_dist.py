"""What a release hands out: archives that are equal in each build, notices of all that is linked, a bill of materials."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[4]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The tarball of small programs that were made in this folder, now, with these rights."""
    dist = script("dist")
    (folder / "out").mkdir(parents=True)
    monkeypatch.setattr(dist, "OUT", folder / "out")
    for name in [*dist.PROGRAMS, dist.NOTICES]:
        (folder / name).write_text(name)
    for share in ("man/man1", "bash-completion/completions", "zsh", "fish"):
        (folder / "pages/usr/share" / share).mkdir(parents=True)
        for name in sorted(("b", "a", "c"), reverse=folder.name == "second"):
            (folder / "pages/usr/share" / share / name).write_text(name)
    os.utime(folder / "coldframe", (time.time(), len(str(folder))))
    dist.tarball("x86_64", folder, "1.2.3", folder / "pages")
    return (folder / "out" / "coldframe-1.2.3-x86_64-linux.tar.gz").read_bytes()


def test_archives_of_two_folders_and_times_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = archive(tmp_path / "first", monkeypatch)
    assert first == archive(tmp_path / "second", monkeypatch)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")
    assert first != archive(tmp_path / "third", monkeypatch)


def test_no_option_of_the_compiler_has_a_path_that_it_does_not_take_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    env = script("dist").environment("x86_64-unknown-linux-gnu", "cc", Path("/x/link"), ["-Ctarget-feature=+crt-static"])
    flags = env["CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS"].split()
    assert all(flag.startswith(("--remap-path-prefix=", "-Ctarget")) for flag in flags), flags
    assert f"--remap-path-prefix={ROOT}=/coldframe" in flags
    assert f"-ffile-prefix-map={ROOT}=/coldframe" in env["CFLAGS_x86_64_unknown_linux_gnu"]


def test_notices_and_the_bill_name_all_that_is_linked(tmp_path: Path) -> None:
    notices, bill = tmp_path / "notices", tmp_path / "sbom"
    command: list[str | Path] = [sys.executable, ROOT / "scripts/notices.py", "--notices", notices, "--sbom", bill, "--check"]
    subprocess.run(command, check=True, cwd=tmp_path)
    text, sbom = notices.read_text(), json.loads(bill.read_text())
    parts = {(part["name"], part["version"]): part for part in sbom["components"]}
    locked = dict(re.findall(r'\[\[package\]\]\nname = "(.*)"\nversion = "(.*)"', (ROOT / "Cargo.lock").read_text()))
    # Some that are linked, one of C, one of JavaScript; none that only tests or macros use.
    for name in ("parquet", "clap", "rustix", "zstd-sys", "thiserror"):
        assert (name, locked[name]) in parts and f"{name} {locked[name]} (" in text, name
    assert ("uPlot", "1.6.32") in parts and "Copyright (c) 2022 Leon Sorokin" in text
    assert not {"proptest", "criterion", "syn", "serde_derive", "coldframe-core"} & {name for name, _ in parts}
    assert all(part["licenses"] and part["purl"].startswith("pkg:") for part in parts.values())
    assert sbom["bomFormat"] == "CycloneDX" and len(parts) == len(sbom["dependencies"][0]["dependsOn"])


def test_a_wheel_has_the_programs_and_what_its_pages_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the backend gives maturin, as an environment has it: links lead to files, and the programs start without a home."""
    sys.path.insert(0, str(ROOT / "crates/lab/py/backend"))
    backend = importlib.import_module("coldframe_build")
    monkeypatch.setattr(backend, "DATA", tmp_path)
    built = Path(os.environ.get("COLDFRAME_BIN") or ROOT / "target/debug/coldframe").parent
    monkeypatch.setenv("COLDFRAME_PROGRAMS", str(built))
    backend.bring_program()
    texts = tmp_path / "data/share/doc/coldframe"
    pages = [texts / "README.md", texts / "docs/book/src/SUMMARY.md", texts / "docs/book/src/python.md"]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in link]
    lost = [f"{page.name}: {link}" for page, link in links if "generated/" not in link and not (page.parent / link).exists()]
    assert len(links) > 30 and not lost, lost
    assert (texts / "THIRD-PARTY.txt").stat().st_size > 100_000
    # Each program and verb that the description names does what it says there.
    described = (ROOT / "crates/lab/py/README.md").read_text()
    template = subprocess.run([tmp_path / "scripts/coldframe-lab", "devices", "template"], capture_output=True, text=True, env={"PATH": "/bin"})
    assert "devices template" in described and template.returncode == 0 and "name =" in template.stdout, template.stderr
    named = re.findall(r"^coldframe(?:-lab)? (?!--)(\w+)", described, re.M)
    for verb in named:
        program = "coldframe-lab" if verb == "devices" else "coldframe"
        helped = subprocess.run([tmp_path / "scripts" / program, verb, "--help"], capture_output=True, text=True, env={"PATH": "/bin"})
        assert helped.returncode == 0, helped.stderr
    assert len(named) >= 2
