#!/bin/sh
# Builds what the board runs into the folder OUT: n810.elf and versatilepb.elf (the images), PROGRAM.bin (programs for the chip),
# PROGRAM.host (the same for this machine), libreftrace.so (QEMU's plugin that records references).
#   sh scripts/board.sh OUT
# The processor's standard library is built from source. Debian: rustc-web, cargo-web, rust-web-src. Elsewhere: rustup's nightly with
# rust-src. `sh scripts/board.sh --missing` prints the Debian packages that are not there, and nothing if it can build.
set -eu
cd "$(dirname "$0")/../board"
target=armv5te-none-eabi

missing() {
    for tool in arm-none-eabi-ld:binutils-arm-none-eabi arm-none-eabi-objcopy:binutils-arm-none-eabi; do
        command -v "${tool%%:*}" >/dev/null || echo "${tool##*:}"
    done
    if ! debian && ! nightly; then
        echo rustc-web; echo cargo-web; echo rust-web-src
    fi
}
debian() { [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && [ -e /usr/lib/rustlib/src/rust/library/core/Cargo.toml ] && newer /usr/bin/rustc; }
# The project's minimum, 1.88.
newer() { [ "$("$1" --version | sed 's/^rustc 1\.\([0-9]*\).*/\1/')" -ge 88 ]; }
nightly() {
    command -v rustup >/dev/null && root=$(rustc +nightly --print sysroot 2>/dev/null) &&
        [ -e "$root/lib/rustlib/src/rust/library/core/Cargo.toml" ]
}

if [ "$1" = --missing ]; then
    missing | sort -u
    exit 0
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
if debian; then
    cargo() { RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 /usr/bin/cargo "$@"; }
else
    cargo() { command cargo +nightly "$@"; }
fi
export CARGO_TARGET_DIR="$out/cargo"
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS

# Builds a binary for the board. The linker's script is no RUSTFLAG: that would build the standard library anew for each. cargo does not
# know that the binary depends on it, so its checksum is part of the command.
bare() { # package, binary, the linker's script, features
    linking="-Clink-arg=-L${3%/*} -Clink-arg=-T$3 -Cmetadata=$(cat "${3%/*}"/*.ld | cksum | cut -d' ' -f1)"
    # shellcheck disable=SC2086 # lists of arguments
    RUSTFLAGS="-Clinker=arm-none-eabi-ld -Clinker-flavor=ld" cargo rustc --quiet --locked --release -p "$1" --bin "$2" \
        --target $target -Zbuild-std=core,alloc -Zbuild-std-features=compiler-builtins-mem $4 -- $linking
}
elf="$out/cargo/$target/release"
for program in fft deflate sort; do
    bare programs $program "$PWD/programs/user.ld" ""
    arm-none-eabi-objcopy -O binary "$elf/$program" "$out/$program.bin"
done
for board in versatilepb n810; do
    case $board in n810) features="" ;; *) features="--features $board" ;; esac
    bare coldframe-board coldframe-board "$PWD/image/$board.ld" "$features"
    cp "$elf/coldframe-board" "$out/$board.elf"
done
cargo build --quiet --locked --release -p programs -p reftrace
for program in fft deflate sort; do
    cp "$out/cargo/release/$program" "$out/$program.host"
done
cp "$out/cargo/release/libreftrace.so" "$out/"
