"""What a release hands out, in target/dist: for each machine two static programs that hold the libraries they load into
other programs, a tarball, a Debian package and a wheel of them with the notices of what is linked into them, a bill of materials
(CycloneDX), and SHA256SUMS.

    scripts/dist.py [--only x86_64|aarch64] [--no-wheel]

Two builds of one commit by one compiler (the bill of materials names it) are equal, in whatever folder and at whatever time: files
have the commit's time (or SOURCE_DATE_EPOCH), and no path of the builder is within (`scripts/reproducible.py` compares two).

The program is linked with the C library statically. The libraries are loaded beside a program's own C library, so
they must ask for no function that an old one lacks: they are linked against a stub of this machine's C library that
has the functions of OLDEST and before.
"""

import argparse
import gzip
import hashlib
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "dist"
OLDEST = (2, 28)
"""The glibc of Debian 10 and RHEL 8."""
PROGRAMS = ["coldframe", "coldframe-lab"]
LARGEST = 15_000_000
"""Bytes of a program."""
LIBRARIES = ["libcoldframe_preload.so", "libcoldframe_plugin.so"]
NOTICES = "THIRD-PARTY.txt"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Our name of a machine, and Debian's."""
TOOLS = {"readelf": "binutils", "dpkg-deb": "dpkg"}
"""Tools, and Debian's packages of them."""
PYTHON = ROOT / "target" / "venv" / "bin" / "python"
DOCUMENTS = "usr/share/doc/coldframe"
"""Where the Debian package has README and what it names."""
WITHIN = """
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#define VERSION 1
#else
#define VERSION 0
#endif
#define HIDDEN __attribute__((visibility("hidden")))
extern int __xstat64(int, const char *, void *), __lxstat64(int, const char *, void *), __fxstat64(int, int, void *);
HIDDEN int stat64(const char *path, void *to) { return __xstat64(VERSION, path, to); }
HIDDEN int lstat64(const char *path, void *to) { return __lxstat64(VERSION, path, to); }
HIDDEN int fstat64(int file, void *to) { return __fxstat64(VERSION, file, to); }
HIDDEN int gettid(void) { return syscall(SYS_gettid); }
extern int __cxa_atexit(void (*)(void *), void *, void *);
extern void *__dso_handle HIDDEN;
HIDDEN int atexit(void (*call)(void)) { return __cxa_atexit((void (*)(void *))call, 0, &__dso_handle); }
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
HIDDEN int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
    return __register_atfork(before, parent, child, &__dso_handle);
}
"""
"""Functions that a program has within itself: `atexit`, `pthread_atfork`, and with an old glibc those of stat (before 2.33) and `gettid`
(before 2.30)."""


class Missing(Exception):
    """What the machine lacks to build for a target."""


def run(*command: str | Path, **more: object) -> str:
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **more).stdout  # type: ignore[call-overload]


def epoch() -> int:
    """The time that all files have: the commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip())


def nowhere() -> list[str]:
    """The compilers' options by which no path of the builder is in what they make."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sysroot = run("rustc", "--print", "sysroot", cwd=ROOT).strip()
    return [f"{place}={name}" for place, name in [(ROOT, "/coldframe"), (home, "/cargo"), (sysroot, "/rust")]]


def linker(compiler: str, links: list[str], folder: Path) -> Path:
    """A linker with more options. As options of the compiler, whose hash is in all names, their paths would be in the result."""
    folder.mkdir(parents=True, exist_ok=True)
    # Not `link`: the compiler would take it for the one of Windows.
    script = folder / f"linker-{len(links)}"
    # What cargo runs while it builds needs this machine's C library.
    own = f'case "$*" in *build_script*) exec {compiler} "$@";; esac'
    script.write_text(f'#!/bin/sh\n{own}\nexec {shlex.join([compiler, *links])} "$@"\n')
    script.chmod(0o755)
    return script


def compiler_of(machine: str) -> str:
    """The C compiler for a machine; with Debian's names if it is not this one."""
    if machine == platform.machine():
        return "cc"
    compiler = f"{machine}-linux-gnu-gcc"
    if not shutil.which(compiler):
        raise Missing(f"{compiler}; on Debian: apt-get install gcc-{machine.replace('_', '-')}-linux-gnu")
    return compiler


def old(compiler: str, folder: Path, library: str) -> None:
    """Writes a stub of a library of this machine, such as libc.so.6, as it was at OLDEST."""
    newest: dict[str, tuple[tuple[int, ...], str, int]] = {}
    for line in run("readelf", "-W", "--dyn-syms", run(compiler, f"-print-file-name={library}").strip()).splitlines():
        fields = line.split()
        found = len(fields) == 8 and fields[6] != "UND" and re.fullmatch(r"(\w+)@@?GLIBC_([\d.]+)", fields[7])
        if not found:
            continue
        version = tuple(int(part) for part in found[2].split("."))
        if version <= OLDEST and version > newest.get(found[1], ((), "", 0))[0]:
            newest[found[1]] = (version, fields[3], int(fields[2], 0))
    named = {version: "GLIBC_" + ".".join(map(str, version)) for version, _, _ in newest.values()}
    code = []
    for number, (name, (version, kind, size)) in enumerate(newest.items()):
        data = kind == "OBJECT"
        code += [".data" if data else ".text", f".globl s{number}", f".type s{number},%{'object' if data else 'function'}"]
        code += [f"s{number}: .skip {size if data else 1}", f".size s{number}, .-s{number}"]
        code += [f".symver s{number}, {name}@@{named[version]}"]
    source, versions = folder / f"{library}.s", folder / f"{library}.versions"
    source.write_text("\n".join(code) + "\n")
    ordered = [named[version] for version in sorted(named)]
    versions.write_text("".join(f"{name} {{}} {after};\n" for name, after in zip(ordered, ["", *ordered])))
    shared(compiler, folder / library.removesuffix(".6"), library, source, f"-Wl,--version-script={versions}")


def shared(compiler: str, to: Path, name: str, source: Path, *more: str) -> None:
    """Builds a library of this name that needs no other."""
    run(compiler, "-shared", "-nostdlib", f"-Wl,-soname,{name}", *more, "-o", to, source)


def stub(compiler: str, folder: Path) -> list[str]:
    """Writes stubs of the C library and its mathematics as they were at OLDEST; gives the linker's options for them."""
    folder.mkdir(parents=True, exist_ok=True)
    old(compiler, folder, "libc.so.6")
    old(compiler, folder, "libm.so.6")
    (folder / "nothing.s").write_text("")
    (folder / "within.c").write_text(WITHIN)
    # Functions that moved into libc.so.6 in glibc 2.34 are in these two before.
    moved = ["libpthread.so.0", "libdl.so.2"]
    for name in moved:
        shared(compiler, folder / name, name, folder / "nothing.s")
    run(compiler, "-O2", "-fPIC", "-c", "-o", folder / "within.o", folder / "within.c")
    return [f"-L{folder}", f"{folder / 'within.o'}", "-Wl,--no-as-needed", *(f"{folder / name}" for name in moved), "-Wl,--as-needed"]


def environment(target: str, compiler: str, link: Path, flags: list[str]) -> dict[str, str]:
    """What cargo and the C compiler are told for a target."""
    name, small = target.upper().replace("-", "_"), target.replace("-", "_")
    rust = [*flags, *(f"--remap-path-prefix={of}" for of in nowhere())]
    c = " ".join(f"-ffile-prefix-map={of}" for of in nowhere())
    env = os.environ | {f"CARGO_TARGET_{name}_RUSTFLAGS": " ".join(rust), f"CARGO_TARGET_{name}_LINKER": str(link)}
    return env | {f"CC_{small}": compiler, f"CFLAGS_{small}": c, f"CXXFLAGS_{small}": c, "SOURCE_DATE_EPOCH": str(epoch())}


def cargo(target: str, compiler: str, link: Path, flags: list[str], packages: list[str], **more: str) -> Path:
    """Builds packages for a target; gives the folder of what was built."""
    env = environment(target, compiler, link, flags) | more
    chosen = [word for package in packages for word in ("-p", package)]
    done = subprocess.run(["cargo", "build", "--locked", "--profile", "small", "--target", target, *chosen], cwd=ROOT, env=env)
    if done.returncode:
        raise Missing(f"a build for {target}; if its standard library is missing: rustup target add {target}")
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / target / "small"


def unknown(file: Path) -> list[str]:
    """The functions that a library asks for, but neither our stub nor QEMU has."""
    symbols = (line.split() for line in run("readelf", "-W", "--dyn-syms", file).splitlines())
    asked = [fields[7] for fields in symbols if len(fields) > 7 and fields[4] == "GLOBAL" and fields[6] == "UND"]
    return [name for name in asked if "@GLIBC_" not in name and not name.startswith(("qemu_plugin_", "_Unwind_", "__tls_get_addr"))]


def program(machine: str, folder: Path) -> Path:
    """Builds the two programs for a machine, each one file; gives the path of the first."""
    compiler = compiler_of(machine)
    target = f"{machine}-unknown-linux-gnu"
    link = linker(compiler, stub(compiler, folder / "stub"), folder)
    built = cargo(target, compiler, link, [], ["coldframe-preload", "coldframe-qemu-plugin"])
    libraries = folder / "libraries"
    libraries.mkdir(exist_ok=True)
    for name in LIBRARIES:
        if lacks := unknown(built / name):
            raise SystemExit(f"dist: glibc {OLDEST} has not what {name} asks for: {', '.join(lacks)}")
        shutil.copy2(built / name, libraries / name)
    static = ["-Ctarget-feature=+crt-static"]
    built = cargo(target, compiler, linker(compiler, [], folder), static, ["coldframe-cli", "coldframe-lab"], COLDFRAME_BUNDLE=str(libraries))
    for name in PROGRAMS:
        made = built / name
        if made.stat().st_size > LARGEST:
            raise SystemExit(f"dist: {made} has {made.stat().st_size:,} bytes, more than {LARGEST:,}")
        shutil.copy2(made, folder / name)
        # The linker of a static program leaves its symbols.
        run(run(compiler, "-print-prog-name=strip").strip(), "--strip-all", folder / name)
    return folder / PROGRAMS[0]


def lacking(machines: list[str], with_wheel: bool) -> list[str]:
    """What this machine lacks to build for these machines: asked before a build of minutes."""
    lacks = [f"{tool}; on Debian: apt-get install {package}" for tool, package in TOOLS.items() if not shutil.which(tool)]
    sysroot = Path(run("rustc", "--print", "sysroot", cwd=ROOT).strip())
    for machine in machines:
        target = f"{machine}-unknown-linux-gnu"
        if not (sysroot / "lib/rustlib" / target).is_dir():
            lacks.append(f"the standard library for {target}; rustup target add {target}")
        try:
            compiler_of(machine)
        except Missing as lack:
            lacks.append(str(lack))
    if with_wheel and not PYTHON.exists():
        lacks.append("target/venv; run `make python` first, or give --no-wheel")
    return lacks


def tarball(machine: str, folder: Path, version: str, pages: Path) -> None:
    """The program, its licences, its unit, manual pages, completions, README and what README names, as a folder to unpack anywhere."""
    name = f"coldframe-{version}-{machine}-linux"
    texts = [(ROOT / "LICENSE", "LICENSE"), (folder / NOTICES, NOTICES)]
    texts += [(file, str(file.relative_to(pages / DOCUMENTS))) for file in sorted((pages / DOCUMENTS).rglob("*.*")) if file.suffix != ".gz"]
    unit = "coldframe-hold@.service"
    texts.append((ROOT / "data/systemd" / unit, f"lib/systemd/system/{unit}"))
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as out:
        for file, place in [*((folder / name, name) for name in PROGRAMS), *texts]:
            out.add(file, f"{name}/{place}", filter=of_nobody)
        for share in ("man", "bash-completion", "zsh", "fish"):
            # Its files are in order of their names.
            out.add(pages / "usr/share" / share, f"{name}/share/{share}", filter=of_nobody)
    (OUT / f"{name}.tar.gz").write_bytes(gzip.compress(written.getvalue(), mtime=epoch()))


def of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = epoch()
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def wheel(machine: str, folder: Path) -> None:
    """The Python package with the program in it."""
    compiler = compiler_of(machine)
    target = f"{machine}-unknown-linux-gnu"
    link = linker(compiler, stub(compiler, folder / "stub"), folder)
    env = environment(target, compiler, link, []) | {"CARGO_BUILD_TARGET": target, "COLDFRAME_PROGRAMS": str(folder)}
    env |= {"MATURIN_PEP517_ARGS": "--compatibility manylinux_{}_{}".format(*OLDEST)}
    env["PATH"] = f"{PYTHON.parent}:{env['PATH']}"
    pip = [PYTHON, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    run(*pip, "--wheel-dir", OUT, ROOT, env=env)


def main() -> None:
    asked = argparse.ArgumentParser(description="Builds what a release hands out, in target/dist.")
    asked.add_argument("--only", choices=MACHINES, help="one machine")
    asked.add_argument("--no-wheel", action="store_true", help="without the Python package")
    options = asked.parse_args()
    here = platform.machine()
    # This machine's first: its program writes the pages of all.
    machines = [machine for machine in sorted(MACHINES, key=lambda machine: machine != here) if options.only in (None, machine)]
    if lacks := lacking(machines, not options.no_wheel):
        sys.exit("\n".join(f"dist: missing: {lack}" for lack in lacks))
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    missing = []
    for machine in machines:
        folder = ROOT / "target" / f"one-file-{machine}"
        folder.mkdir(exist_ok=True)
        try:
            made = program(machine, folder)
            sbom = OUT / f"coldframe-{machine}.cdx.json"
            run(sys.executable, ROOT / "scripts/notices.py", "--machine", machine, "--notices", folder / NOTICES, "--sbom", sbom, "--check")
            speaks = made if machine == here else ROOT / "target" / f"one-file-{here}" / "coldframe"
            package = Path(run("sh", ROOT / "scripts/deb.sh", folder, OUT, MACHINES[machine], speaks, cwd=ROOT, env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}).strip())
            version = package.name.split("_")[1]
            pages = folder / "pages"
            shutil.rmtree(pages, ignore_errors=True)
            run("dpkg-deb", "-x", package, pages)
            tarball(machine, folder, version, pages)
            if not options.no_wheel:
                wheel(machine, folder)
        except Missing as lack:
            missing.append(f"{machine}: {lack}")
    files = sorted(file for file in OUT.iterdir() if file.is_file())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (OUT / "SHA256SUMS").write_text("".join(sums))
    for file in files:
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file.relative_to(ROOT)}")
    for lack in missing:
        print(f"dist: left out: {lack}", file=sys.stderr)
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
