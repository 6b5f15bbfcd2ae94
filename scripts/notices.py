"""What others wrote that is within our programs: their licences' texts, which MIT, BSD and others ask to pass on, and a
software bill of materials (CycloneDX 1.6).

    scripts/notices.py [--machine x86_64|aarch64] [--notices FILE] [--sbom FILE] [--check]

`cargo metadata` says which crates are linked, and each crate's source has its texts. Nothing is fetched. --check fails if a crate
has neither a text nor a licence whose text we have.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
AUTHOR = "The coldframe developers"
PROGRAMS = ["coldframe-cli", "coldframe-lab", "coldframe-preload", "coldframe-qemu-plugin", "coldframe-capi"]
TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
NOT_TEXT = {".rs", ".toml", ".py", ".html", ".json", ".h", ".c", ".spdx"}
OTHERS = [
    ("uPlot", "1.6.32", "MIT", "https://github.com/leeoniya/uPlot", "crates/product/show/src/html/uplot/LICENSE", "in pages"),
]
"""What no crate brings: name, version, licence, address, text, where it is."""
MIT = """MIT License

Copyright (c) {}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""
LINKED = """The programs of a release are linked with Rust's standard library (MIT OR Apache-2.0, https://github.com/rust-lang/rust) and
with the GNU C Library (LGPL-2.1-or-later, https://sourceware.org/glibc), unchanged. The source of coldframe and `make dist` link them
again with another version of that library.
"""


def linked(machine: str) -> list[dict[str, Any]]:
    """The foreign crates that are linked into the programs, by name and version; no build script and no macro is."""
    target = f"{machine}-unknown-linux-gnu"
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    done = subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    told = json.loads(done.stdout)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    wait = [one for one, package in packages.items() if package["name"] in PROGRAMS]
    reached: set[str] = set()
    while wait:
        one = wait.pop()
        if one in reached or any("proc-macro" in kind["kind"] for kind in packages[one]["targets"]):
            continue
        reached.add(one)
        wait += [to["pkg"] for to in nodes[one]["deps"] if any(kind["kind"] is None for kind in to["dep_kinds"])]
    foreign = (packages[one] for one in reached if packages[one]["source"])
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    """The licences' texts in the source of a crate, and in the folders that it has of others."""
    folder = Path(package["manifest_path"]).parent
    places = [*folder.iterdir(), *(file for sub in sorted(folder.iterdir()) if sub.is_dir() for file in sub.iterdir())]
    files = sorted(file for file in places if file.is_file() and TEXT.match(file.name) and file.suffix.lower() not in NOT_TEXT)
    return list(dict.fromkeys(file.read_text(errors="replace").strip() for file in files))


def notices(crates: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """All texts, each once, with those who have it; and the crates without one."""
    by_text: dict[str, tuple[str, list[str]]] = {}
    lacking = []

    def add(text: str, name: str) -> None:
        # Texts that differ in their lines' ends are one.
        by_text.setdefault(" ".join(text.split()), (text, []))[1].append(name)

    for package in crates:
        name = f"{package['name']} {package['version']} ({package['license'] or 'see below'})"
        own = texts(package)
        licence = package["license"] or ""
        if not own and "Apache-2.0" in licence:
            own = [(ROOT / "LICENSE").read_text().strip()]
        elif not own and licence == "MIT":
            own = [MIT.format(", ".join(package["authors"]) or f"the authors of {package['name']}")]
        if not own:
            lacking.append(name)
        for text in own:
            add(text, name)
    for name, version, licence, _, file, where in OTHERS:
        add((ROOT / file).read_text().strip(), f"{name} {version} ({licence}), {where}")
    rule = "-" * 80
    parts = ["Third-party notices of coldframe", LINKED]
    parts += [f"{rule}\n" + "\n".join(names) + f"\n{rule}\n\n{text}\n" for text, names in by_text.values()]
    return "\n".join(parts), lacking


def sbom(crates: list[dict[str, Any]], version: str, machine: str) -> dict[str, Any]:
    """The bill of materials. Its time is the commit's, and it has no serial number, so that two builds are equal."""
    sums = checksums()

    def component(name: str, version: str, licence: str, purl: str, address: str | None) -> dict[str, Any]:
        links = [{"type": "vcs", "url": address}] if address else []
        licences = [{"expression": licence}] if licence else []
        whole: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "licenses": licences, "purl": purl, "externalReferences": links}
        # Of the archive that the registry has.
        checksum = sums.get((name, version)) if purl.startswith("pkg:cargo/") else None
        return whole | ({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {})

    parts = [
        component(one["name"], one["version"], (one["license"] or "").replace("/", " OR "), f"pkg:cargo/{one['name']}@{one['version']}", one["repository"])
        for one in crates
    ]
    parts += [component(name, number, licence, f"pkg:npm/{name}@{number}", address) for name, number, licence, address, *_ in OTHERS]
    whole = f"pkg:generic/coldframe@{version}?arch={machine}"
    described: dict[str, Any] = {"type": "application", "bom-ref": whole, "name": "coldframe", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}], "purl": whole}
    compiler = subprocess.run(["rustc", "--version"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    described["properties"] = [{"name": "coldframe:compiler", "value": compiler}]
    depends = [{"ref": whole, "dependsOn": [part["bom-ref"] for part in parts]}]
    metadata = {"timestamp": commit_time(), "authors": [{"name": AUTHOR}], "supplier": {"name": AUTHOR}, "component": described}
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": metadata, "components": parts, "dependencies": depends}


def checksums() -> dict[tuple[str, str], str]:
    """SHA-256 of each crate's archive, which Cargo.lock has, by name and version."""
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(one["name"], one["version"]): one["checksum"] for one in packages if "checksum" in one}


def commit_time() -> str:
    """The time of the commit, or SOURCE_DATE_EPOCH, in UTC."""
    log = ["git", "log", "-1", "--format=%ct"]
    given = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(log, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    return datetime.fromtimestamp(int(given), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def own_version() -> str:
    found = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


def main() -> None:
    asked = argparse.ArgumentParser(description="Third-party notices and bill of materials of the programs.")
    asked.add_argument("--machine", choices=["x86_64", "aarch64"], default=os.uname().machine)
    asked.add_argument("--notices", type=Path)
    asked.add_argument("--sbom", type=Path)
    asked.add_argument("--check", action="store_true")
    options = asked.parse_args()
    crates = linked(options.machine)
    text, lacking = notices(crates)
    if options.notices:
        options.notices.write_text(text)
    if options.sbom:
        options.sbom.write_text(json.dumps(sbom(crates, own_version(), options.machine), indent=1) + "\n")
    print(f"notices: {len(crates)} crates are linked, {len(lacking)} of them without a licence's text", file=sys.stderr)
    for name in lacking:
        print(f"notices: no text: {name}", file=sys.stderr)
    sys.exit(bool(lacking) and options.check)


if __name__ == "__main__":
    main()
