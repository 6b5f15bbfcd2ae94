#!/bin/sh
# The demo: one question about one shipped program, answered, reported, and run for real. $1 is the coldframe program; what the machine does
# not allow is said and passed over.
set -eu
coldframe=$1
trace=data/traces/shop.parquet
program=data/traces/shop.c
out=${2:-target/demo}
mkdir -p "$out"
say() { printf '\n\033[1m%s\033[0m\n\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n\n' "$*"; }

say "1. A program: a small shop with 3 MB of customers ($program). Its references have been recorded ($trace)."
"$coldframe" info $trace | sed -n '1,8p'

say "2. How little RAM can it live with, at most 5 % slower, on a plain NAND chip? And what does that cost?"
"$coldframe" advise $trace --max-slowdown 5% -o "$out/config.toml"

say "3. The same as a page, with every policy's misses, latencies, stages, energy and the map of what it touches."
"$coldframe" advise $trace --max-slowdown 5% --format json > "$out/advice.json"
"$coldframe" sim $trace -c "$out/config.toml" --ram 10%,20%,30%,40%,60%,100% --policy fifo,clock,sieve,opt -o "$out/runs.json"
"$coldframe" report "$out/advice.json" "$out/runs.json" --trace $trace -o "$out/report.html"
echo "$out/report.html: $(wc -c < "$out/report.html") bytes; open it in a browser."

say "4. For real: the unmodified program in the advised RAM, the rest in a swap file."
compiler=$(command -v cc || command -v gcc || command -v clang || true)
if [ -z "$compiler" ]; then
    echo "Not here: there is no C compiler (cc, gcc, clang) for $program."
elif ! "$coldframe" doctor > "$out/doctor.txt" 2>&1; then
    echo "Not here: this machine does not allow it. What is missing, by \`coldframe doctor\`:"
    sed 's/^/    /' "$out/doctor.txt"
else
    "$compiler" -O1 -o "$out/shop" $program
    plain=$("$out/shop" 40000 24000)
    predict=--predict
    if ! command -v qemu-x86_64 > /dev/null && ! command -v qemu-aarch64 > /dev/null; then
        echo "Measured only: the prediction records the program anew, which needs qemu-user (Debian: apt-get install qemu-user)."
        predict=
    fi
    # shellcheck disable=SC2086 # no word where nothing is predicted
    paged=$("$coldframe" run -c "$out/config.toml" $predict -- "$out/shop" 40000 24000)
    if [ "$plain" = "$paged" ]; then
        echo "The output is that of the plain run: $paged"
    else
        echo "THE OUTPUT DIFFERS: $plain, and paged $paged"
        exit 1
    fi
fi

say "5. One page fault, as SWL (LCTES 2007) improves it: a ray tracer's code on OneNAND, search before load and beside it."
"$coldframe" sim data/traces/render.parquet --system swl --ram 64KiB,128KiB --policy clock,pa-clock:budget=13 --handler sequential,parallel

say "Next: coldframe -- your-program; coldframe teach belady; coldframe papers all"
