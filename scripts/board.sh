#!/bin/sh
# Builds and runs the board.
#   sh scripts/board.sh OUT              builds into the folder OUT: n810.elf and versatilepb.elf (the images), PROGRAM.bin and
#                                        PROGRAM.flash (a program, and the chip that contains it), PROGRAM.task1 to 3 (the
#                                        same as a further task), PROGRAM.host (the program for this machine),
#                                        libreftrace.so (the QEMU plugin that records references)
#   sh scripts/board.sh --missing        prints the missing Debian packages
#   sh scripts/board.sh run OUT MACHINE PROCESSOR PROGRAM SETTINGS [QEMU's arguments ...]
#                                        runs a program: run out n810 arm926 fft 'policy=clock handler=parallel frames=5'
#                                        or up to four in turn: run out n810 arm926 fft+deflate '... slice=2000 sap=75'
# The processor's standard library is built from source. Debian needs rustc-web, cargo-web and rust-web-src; other
# systems need rustup's nightly with rust-src.
set -eu
from=$PWD
cd "$(dirname "$0")/../board"
target=armv5te-none-eabi
programs="fft deflate sort worker trespass"
further_tasks="task1 task2 task3"
standard_library="rustc-web cargo-web rust-web-src"

missing() {
    tools="arm-none-eabi-ld:binutils-arm-none-eabi arm-none-eabi-objcopy:binutils-arm-none-eabi qemu-system-arm:qemu-system-arm"
    for tool in $tools; do
        command -v "${tool%%:*}" >/dev/null || echo "${tool##*:}"
    done
    debian || nightly || printf '%s\n' $standard_library
}
debian() { [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && [ -e /usr/lib/rustlib/src/rust/library/core/Cargo.toml ] && newer /usr/bin/rustc; }
# The project's minimum is 1.88.
newer() { [ "$("$1" --version | sed 's/^rustc 1\.\([0-9]*\).*/\1/')" -ge 88 ]; }
nightly() {
    command -v rustup >/dev/null && root=$(rustc +nightly --print sysroot 2>/dev/null) &&
        [ -e "$root/lib/rustlib/src/rust/library/core/Cargo.toml" ]
}

# The chip has 256 MiB, and 16 spare bytes for each 512; a program starts in block 32 (board/image/src/chip.rs).
flash() {
    truncate -s 0 "$out/$1.flash"
    truncate -s 264M "$out/$1.flash"
    dd if="$out/$1.bin" of="$out/$1.flash" bs=1M seek=4 conv=notrunc status=none
}

# Several programs are one image: each begins with a page of 4 KiB, the largest of the boards. Sets `image` to the bytes of each.
images() {
    rest=$program- image="" parts="" suffixes="bin $further_tasks"
    for suffix in $suffixes; do
        part=$out/${rest%%[+-]*}.$suffix rest=${rest#*[+-]}
        parts="$parts $part"
        image=$image${image:+,}$((($(wc -c <"$part") + 4095) / 4096 * 4096))
        [ "$rest" ] || break
    done
    [ -e "$out/$program.flash" ] && return
    mine=$program.$$
    : >"$out/$mine.bin"
    for part in $parts; do
        cat "$part" >>"$out/$mine.bin"
        truncate -s %4096 "$out/$mine.bin"
    done
    flash "$mine"
    mv "$out/$mine.bin" "$out/$program.bin"
    mv "$out/$mine.flash" "$out/$program.flash"
}

# An instruction takes 1024 ns of the emulator's time (board/image/src/platform.rs).
run() {
    out=$1 machine=$2 processor=$3 program=$4 settings=$5
    shift 5
    case $program in
        *+*) images ;;
        *) image=$(wc -c <"$out/$program.bin") ;;
    esac
    case $machine in
        n810) set -- -drive "if=mtd,format=raw,snapshot=on,file=$out/$program.flash" "$@" ;;
        *) set -- -device "loader,addr=0x04000000,force-raw=on,file=$out/$program.bin" "$@" ;;
    esac
    exec timeout 60 qemu-system-arm -M "$machine" -cpu "$processor" -m 128 -icount shift=10,sleep=off \
        -display none -monitor none -serial none -audiodev none,id=none \
        -chardev stdio,id=debug -semihosting-config enable=on,target=native,chardev=debug \
        -kernel "$out/$machine.elf" -append "$settings image=$image out=$out/$program.out" "$@" </dev/null
}

case $1 in
    --missing) missing | sort -u; exit 0 ;;
    run) shift; cd "$from"; run "$@" ;;
esac
out=$(cd "$from" && mkdir -p "$1" && cd "$1" && pwd)
if debian; then
    cargo() { RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 /usr/bin/cargo "$@"; }
else
    cargo() { command cargo +nightly "$@"; }
fi
export CARGO_TARGET_DIR="$out/cargo"
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS

# Builds a binary for the board. The linker script is not in RUSTFLAGS: each script would rebuild the standard library.
# cargo does not know that the binary depends on the script, so the script's checksum is part of the command.
bare() { # package, binary, the linker's script, features, the linker's options
    linking="$5 -Clink-arg=-L${3%/*} -Clink-arg=-T$3 -Cmetadata=$(cat "${3%/*}"/*.ld | cksum | cut -d' ' -f1)"
    # shellcheck disable=SC2086 # lists of arguments
    RUSTFLAGS="-Clinker=arm-none-eabi-ld -Clinker-flavor=ld" cargo rustc --quiet --locked --release -p "$1" --bin "$2" \
        --target $target -Zbuild-std=core,alloc -Zbuild-std-features=compiler-builtins-mem $4 -- $linking
}
elf="$out/cargo/$target/release"
rm -f "$out"/*+*.flash
for program in $programs; do
    number=0
    for task in bin $further_tasks; do
        features=""
        [ $task = bin ] || features="--features $task"
        bare programs $program "$PWD/programs/program.ld" "$features" "-Clink-arg=--defsym=TASK=$number"
        arm-none-eabi-objcopy -O binary "$elf/$program" "$out/$program.$task"
        number=$((number + 1))
    done
    flash $program
done
for board in versatilepb n810; do
    case $board in n810) features="" ;; *) features="--features $board" ;; esac
    bare coldframe-board coldframe-board "$PWD/image/$board.ld" "$features" ""
    cp "$elf/coldframe-board" "$out/$board.elf"
done
cargo build --quiet --locked --release -p programs -p reftrace
for program in $programs; do
    cp "$out/cargo/release/$program" "$out/$program.host"
done
cp "$out/cargo/release/libreftrace.so" "$out/"
