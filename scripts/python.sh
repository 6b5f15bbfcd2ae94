#!/bin/sh
# The Python package in target/venv. `build` installs the release wheel; `test` installs the workspace's debug build and
# runs the tests; `prepare` makes target/venv with what the tests need.
#
# Prints what is missing. `build` then fails; the others are skipped, unless COLDFRAME_REQUIRE_TOOLS=1.
set -eu
cd "$(dirname "$0")/.."
verb=${1:?give build, test or prepare}
target=${CARGO_TARGET_DIR:-$PWD/target}
venv=$PWD/target/venv
wanted=crates/lab/py/requirements-test.txt

missing() {
    echo "python: $1" >&2
    if [ "$verb" = build ] || [ "${COLDFRAME_REQUIRE_TOOLS:-}" = 1 ]; then exit 1; fi
    echo "python: the tests of the Python package are skipped" >&2
    exit 0
}

command -v python3 >/dev/null || missing "needs Debian's package python3 (3.11 or newer)"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || missing "$(python3 --version) is too old; give Python 3.11 or newer"
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    python3 -m venv "$venv" >/dev/null 2>&1 || missing "no virtual environment can be made; install Debian's package python3-venv"
fi
if ! cmp -s "$wanted" "$venv/installed.txt"; then
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: -r "$wanted" ||
        missing "pip cannot fetch what $wanted lists; check the network"
    cp "$wanted" "$venv/installed.txt"
fi

[ "$verb" != prepare ] || exit 0
if [ "$verb" = build ]; then
    rm -rf "$target/wheels"
    "$venv/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$target/wheels" .
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps --force-reinstall "$target"/wheels/*.whl
    echo "built $(ls "$target"/wheels/*.whl); target/venv/bin/python has it"
    exit 0
fi

# The test uses the workspace's own build, so nothing is built twice (these options are the Makefile's TESTED). A wheel
# would need a release build.
"${CARGO:-cargo}" build --locked --workspace --lib --bins --tests --examples
"$venv/bin/python" -m pip uninstall -q -y --disable-pip-version-check coldframe
package=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/coldframe
rm -rf "$package"
cp -r crates/lab/py/python/coldframe "$package"
cp "$target/debug/lib_native.so" "$package/_native.abi3.so"
COLDFRAME_BIN=$target/debug/coldframe exec "$venv/bin/python" -m pytest -q -p no:cacheprovider ${PYTEST_ARGS:-}
