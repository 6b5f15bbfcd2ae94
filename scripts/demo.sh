#!/bin/sh
# The demo: four recorded programs, less and less RAM. $1 is the coldframe program.
set -eu
coldframe=$1
traces=data/traces
say() { printf '\n\033[1m%s\033[0m\n\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n\n' "$*"; }

say "1. A database's memory: sqlite3 fills, indexes and queries a table. How little RAM can it live with?"
"$coldframe" info $traces/sqlite.parquet | sed -n '1,10p'
"$coldframe" sim $traces/sqlite.parquet --ram 7%,10%,15%,25%,50%,100% --policy fifo,clock,clock-pro,lru,opt --plot

say "2. A phone's code in OneNAND: a ray tracer, 1 KiB pages, sequential and parallel (search while load) fault handler."
"$coldframe" sim $traces/render.parquet --system swl --ram 64KiB,96KiB,128KiB,192KiB,256KiB \
    --policy clock,pa-clock:budget=13 --handler sequential,parallel --plot

say "3. The same for a chess engine and for bzip2: the worst fault, Clock against PA-Clock."
for program in chess bzip2; do
    "$coldframe" sim $traces/$program.parquet --system swl --ram 32KiB,48KiB,64KiB,128KiB --policy clock,pa-clock:budget=13
done

say "4. Is it the papers'? Printed figures of SWL, DDB and LOBI beside ours (all of it, with reasons: coldframe papers all)."
"$coldframe" papers swl | grep -E 'item|figure [6789]|reached, '
"$coldframe" papers ddb | grep -E 'item|table 7|reached, '
"$coldframe" papers lobi | grep -E 'item|about 200|reached, '

say "5. For real: bzip2 -9 wants 8 MB of heap. Here it runs unmodified in 4 MiB; the rest lies in a swap file."
if "$coldframe" doctor >/dev/null 2>&1 && command -v bzip2 >/dev/null; then
    library=$(dirname "$coldframe")/libcoldframe_plugin.so
    sum() { cksum | cut -d' ' -f1; }
    plain=$(bzip2 -9c "$library" | sum)
    paged=$("$coldframe" run --ram 4MiB -- bzip2 -9c "$library" | sum)
    [ "$plain" = "$paged" ] && echo "The output is the same: checksum $paged." || { echo "THE OUTPUT DIFFERS"; exit 1; }
else
    echo "Not here: \`coldframe doctor\` says what is missing (userfaultfd needs rights, bzip2 its package)."
fi

say "Next: coldframe record -o mine.parquet -- your-program; coldframe sim mine.parquet --plot"
