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

say "4. Is it the paper's? SWL's printed latencies beside ours (all of it: coldframe papers swl)."
"$coldframe" papers swl | grep -E 'item|figure [6789]|reached, '

say "Next: coldframe record -o mine.parquet -- your-program; coldframe sim mine.parquet --plot"
