"""A memory budget for a test: `@pytest.mark.ram("64MiB")`, and `@pytest.mark.ram("64MiB", slowdown="5%")`.

The test runs again in a process of its own under `coldframe check`. The budget is for all that a container
would count of that process: the interpreter, pytest, what the test imports, and the test. An empty test shows how much that is. Where
coldframe cannot tell, the test is skipped with its reason. Without the marker nothing happens, and the package itself is not
imported.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

INSIDE = "COLDFRAME_RAM_INSIDE"
"""Set in the process that is measured, where the test runs as it is."""
FAILED, UNABLE, UNCERTAIN = 3, 4, 6
"""Exit codes of `coldframe check`: the program failed; this machine cannot measure it; the measurements do not decide."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ram(limit, slowdown='10%'): the memory limit that the test's process must live in (coldframe check)")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    mark = pyfuncitem.get_closest_marker("ram")
    if mark is None or INSIDE in os.environ:
        return None
    check(pyfuncitem, *mark.args, **mark.kwargs)
    return True


def check(item: pytest.Function, limit: str, slowdown: str = "10%") -> None:
    """Fails the test if it does not live in the limit."""
    program = os.environ.get("COLDFRAME_BIN") or shutil.which("coldframe", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        pytest.fail("the program coldframe is not there: it comes with the wheel, or set COLDFRAME_BIN", pytrace=False)
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={item.config.rootpath}", item.nodeid]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "check.md"
        command = [program, "-q", "check", "--max-ram", limit, "--max-slowdown", slowdown, "--export", str(report), "--", *test]
        settings: dict[str, Any] = {"env": {**os.environ, INSIDE: "1"}, "cwd": item.config.rootpath}
        done = subprocess.run(command, capture_output=True, text=True, **settings)
        if report.exists():
            item.add_report_section("call", "ram", report.read_text())
    if done.returncode in (UNABLE, UNCERTAIN):
        pytest.skip(verdict(done) or done.stderr.strip())
    if done.returncode != 0:
        pytest.fail(said(done), pytrace=False)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Why: the verdict, the test's own output, or what is wrong with the question."""
    if done.returncode == FAILED or not verdict(done):
        return done.stdout + done.stderr
    return verdict(done)


def verdict(done: subprocess.CompletedProcess[str]) -> str:
    """The lines of the verdict, which is on stderr, since stdout is no terminal; empty: there is none."""
    text = f"\n{done.stdout}\n{done.stderr}"
    start = max(text.rfind("\nno: "), text.rfind("\ncannot tell"))
    return text[start + 1 :] if start >= 0 else ""
