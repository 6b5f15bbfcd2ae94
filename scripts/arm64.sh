#!/bin/sh
# Builds crates for 64-bit ARM and runs their tests under QEMU's user mode: scripts/arm64.sh [CARGO'S ARGUMENTS FOR THE TESTS].
# The standard library is rustup's for that target, or is built from Debian's source (rustc-web, cargo-web, rust-web-src).
# Prints the missing Debian packages.
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
missing=""
command -v aarch64-linux-gnu-gcc >/dev/null || missing="$missing gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
command -v qemu-aarch64 >/dev/null || missing="$missing qemu-user"
standard=""
cargo=${CARGO:-cargo}
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    if [ -x /usr/bin/cargo ] && [ -e /usr/lib/rustlib/src/rust/library/std/Cargo.toml ]; then
        cargo=/usr/bin/cargo standard="-Zbuild-std=std,panic_unwind,test"
        export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
    else
        missing="$missing rustc-web cargo-web rust-web-src"
    fi
fi
if [ -n "$missing" ]; then
    echo "arm64: needs Debian's packages$missing" >&2
    exit 1
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
[ $# -gt 0 ] || set -- --lib -p coldframe-core -p coldframe-journal -p coldframe-recording -p coldframe-sheet
# shellcheck disable=SC2086 # an option or none
exec "$cargo" test --locked $standard --target $target "$@"
