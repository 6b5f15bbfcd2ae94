#!/bin/sh
# The demo: predicts the run time of one shipped program by RAM on this machine, and then measures it. $1 is the
# coldframe program. Where the machine cannot run the demo, it prints what is missing, and uses a shipped trace to
# answer for a board.
set -eu
coldframe=$1
program=data/traces/shop.c
trace=data/traces/shop.parquet
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

for_a_board() {
    say "How little RAM would it take on a board with a plain NAND chip?"
    "$coldframe" advise $trace --max-slowdown 5% -o "$out/config.toml"
    "$coldframe" advise $trace --max-slowdown 5% --format json > "$out/advice.json"
    "$coldframe" report "$out/advice.json" --trace $trace -o "$out/report.html"
    echo "$out/report.html: open it in a browser."
    exit 0
}

compiler=$(command -v cc || command -v gcc || command -v clang || true)
if [ -z "$compiler" ]; then
    echo "Not here: no C compiler (cc, gcc, clang) for $program."
    for_a_board
fi
if ! "$coldframe" doctor > "$out/doctor.txt" 2>&1; then
    echo "Not here: this machine cannot page programs. \`coldframe doctor\` prints:"
    sed 's/^/    /' "$out/doctor.txt"
    for_a_board
fi
"$compiler" -O1 -o "$out/shop" $program
cd "$out"

say "1. A program: a small shop with $customers customers ($program)."
echo "\$ ./shop $orders $customers"
plain=$(./shop $orders $customers)
echo "$plain"

say "2. How little RAM can it live with, on this machine? And is that true?"
echo "\$ coldframe --verify -- ./shop $orders $customers"
"$coldframe" --verify -- ./shop $orders $customers

say "3. The same unmodified program in the RAM recommended; the rest on disk."
echo "\$ coldframe run -c shop.coldframe/config.toml -- ./shop $orders $customers"
paged=$("$coldframe" run -c shop.coldframe/config.toml -- ./shop $orders $customers 2> run.txt)
echo "$paged"
if [ "$plain" != "$paged" ]; then
    echo "THE OUTPUT DIFFERS: $plain, and paged $paged"
    exit 1
fi
echo "The output is that of the plain run."

say "4. The same with the kernel's own swap instead of our pager."
ram=$(sed -n 's/^ram = "\(.*\)"/\1/p' shop.coldframe/config.toml)
echo "\$ coldframe run --by kernel --ram $ram -- ./shop $orders $customers"
if swapped=$("$coldframe" run --by kernel --ram "$ram" -- ./shop $orders $customers 2> kernel.txt); then
    echo "$swapped"
    fold -s -w 80 kernel.txt
    [ "$plain" = "$swapped" ] || { echo "THE OUTPUT DIFFERS"; exit 1; }
else
    echo "Not here:"
    fold -s -w 76 kernel.txt | sed 's/^/    /'
fi

echo
echo "The report is $out/shop.coldframe/report.html: open it in a browser."
echo "Next: coldframe -- your-program; coldframe teach belady; coldframe papers all"
