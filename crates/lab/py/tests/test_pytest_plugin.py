"""The marker `ram`: a test under a budget, over it, and one that fails by itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, Cli

TESTS = '''
import pytest

@pytest.mark.ram("400MiB")
def test_small():
    assert True

@pytest.mark.ram("1MiB")
def test_large():
    data = bytearray(16 << 20)
    for round in range(40):
        for at in range(0, len(data), 4096):
            data[at] = round

@pytest.mark.ram("400MiB")
def test_wrong():
    assert 1 == 2
'''


def test_the_marker_measures_the_tests_process(tmp_path: Path, cli: Cli) -> None:
    if cli("doctor").returncode != 0:
        pytest.skip("this machine cannot page a program; `coldframe doctor` says why")
    (tmp_path / "test_ram.py").write_text(TESTS)
    program = os.environ.get("COLDFRAME_BIN") or str(ROOT / "target" / "debug" / "coldframe")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "coldframe.pytest_plugin", "-rf", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "COLDFRAME_BIN": str(Path(program).absolute())})
    assert "1 passed" in done.stdout and "2 failed" in done.stdout, done.stdout
    assert "no: python in 1 MiB without swap: the kernel killed it" in done.stdout, done.stdout
    assert "assert 1 == 2" in done.stdout, done.stdout


def test_where_coldframe_cannot_tell_the_test_is_skipped_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "test_ram.py").write_text("import pytest\n@pytest.mark.ram('1MiB')\ndef test_one(): pass\n")
    (program := tmp_path / "coldframe").write_text("#!/bin/sh\necho '1 passed'; echo 'cannot tell: python needs about 1 MiB' >&2; exit 6\n")
    program.chmod(0o755)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "coldframe.pytest_plugin", "-rs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "COLDFRAME_BIN": str(program)})
    assert "1 skipped" in done.stdout and "cannot tell: python needs about 1 MiB" in done.stdout, done.stdout
