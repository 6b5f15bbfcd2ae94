#!/bin/sh
# The demo: how little RAM one shipped program needs on this machine, measured where that is decided and predicted for other
# sizes; then a run in that RAM. $1 is the coldframe program. Where the machine does not let our pager run, it prints what is missing, and goes on with what works
# without it.
set -eu
coldframe=$1
program=data/traces/shop.c
out=${2:-target/demo}
orders=4000000
customers=400000
mkdir -p "$out"
case $coldframe in
    /*) ;;
    *) coldframe=$PWD/$coldframe ;;
esac
say() { printf '\n\033[1m%s\033[0m\n\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n\n' "$*"; }

# An answer that recommends nothing (1), or cannot tell on a busy machine (6), is one.
answer() {
    code=0
    # The answer is on stderr if stdout is no terminal.
    "$coldframe" -- ./shop $orders $customers 2>&1 || code=$?
    case $code in
        0 | 1 | 6) ;;
        *) exit "$code" ;;
    esac
}

# Three quarters of what it takes without a limit, as the answer has it: measured, or estimated.
three_quarters() {
    all=$(sed -n 's/^ *"\(peak\|needed\)_bytes": \([0-9]*\),/\2/p' shop.coldframe/advice.json | head -n 1)
    echo $((all * 3 / 4 / 1024))KiB
}

compiler=$(command -v cc || command -v gcc || command -v clang || true)
if [ -z "$compiler" ]; then
    echo "The demo needs a C compiler (cc, gcc, clang) for $program; on Debian: apt-get install gcc" >&2
    exit 3
fi
"$compiler" -O1 -o "$out/shop" $program
pager=yes
"$coldframe" doctor > "$out/doctor.txt" 2>&1 || pager=
cd "$out"

say "1. A program: a small shop with $customers customers ($program)."
echo "\$ ./shop $orders $customers"
plain=$(./shop $orders $customers)
echo "$plain"

if [ "$pager" ]; then
    say "2. How little RAM can it live with, on this machine?"
    echo "\$ coldframe -- ./shop $orders $customers"
    answer
    ram=$(three_quarters)

    say "3. The same unmodified program in less RAM; the rest on disk."
    echo "\$ coldframe run --by pager --ram $ram -- ./shop $orders $customers"
    paged=$("$coldframe" run --by pager --ram $ram -- ./shop $orders $customers 2> run.txt)
    echo "$paged"
    if [ "$plain" != "$paged" ]; then
        echo "THE OUTPUT DIFFERS: $plain, and paged $paged"
        exit 1
    fi
    echo "The output is that of the plain run."
else
    say "2. How little RAM can it live with, on this machine?"
    echo "\$ coldframe -- ./shop $orders $customers"
    answer
    ram=$(three_quarters)

    say "3. Our pager cannot run it in less here. \`coldframe doctor\` prints:"
    sed 's/^/    /' doctor.txt
fi

say "4. The same with the kernel's own swap instead of our pager."
# Only root can make swap; it is taken away when the program ends.
swap=
[ "$(id -u)" -ne 0 ] || [ "$(wc -l < /proc/swaps)" -gt 1 ] || swap="--swap zram "
echo "\$ coldframe run --by kernel $swap--ram $ram -- ./shop $orders $customers"
# shellcheck disable=SC2086 # an option and its value, or nothing
if swapped=$("$coldframe" run --by kernel $swap--ram "$ram" -- ./shop $orders $customers 2> kernel.txt); then
    echo "$swapped"
    fold -s -w 80 kernel.txt
    [ "$plain" = "$swapped" ] || { echo "THE OUTPUT DIFFERS"; exit 1; }
else
    echo "Not here:"
    fold -s -w 76 kernel.txt | sed 's/^/    /'
fi

echo
echo "The report is $out/shop.coldframe/report.html: open it in a browser."
echo "Next: coldframe -- your-program; coldframe-lab teach belady"
