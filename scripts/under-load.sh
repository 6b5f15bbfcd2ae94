#!/bin/sh
# Runs `make test` TIMES times beside busy loops, and prints how often each test failed.
#   sh scripts/under-load.sh TIMES [LOOPS] [COMMAND ...]     by default 4 loops and `make test`
# The output of each run is kept in target/under-load.
set -u
cd "$(dirname "$0")/.."
times=${1:?how many times?}
loops=${2:-4}
shift; [ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- make test
out=target/under-load
mkdir -p $out
rm -f $out/*.log
pids=
for _ in $(seq "$loops"); do
    sh -c 'while :; do :; done' &
    pids="$pids $!"
done
# shellcheck disable=SC2064,SC2086 # expanded now
trap "kill $pids 2>/dev/null" EXIT INT TERM
# Every test runs, even after a failure.
export CARGO_TERM_COLOR=never
good=0
for run in $(seq "$times"); do
    start=$(date +%s)
    if MAKEFLAGS= TESTFLAGS=--no-fail-fast "$@" >"$out/$run.log" 2>&1; then
        good=$((good + 1)) word=good
    else
        word=FAILED
    fi
    echo "run $run: $word after $(($(date +%s) - start)) s"
done
echo "$good of $times runs were good beside $loops busy loops"
# A line for each test that failed in any run: how often, and its name.
grep -h -E '^test .* \.\.\. FAILED$|^[^ ]+ --- FAILED$' $out/*.log | sed -E 's/^test (.*) \.\.\. FAILED$/\1/; s/ --- FAILED$//' |
    sort | uniq -c | sort -rn
[ "$good" = "$times" ]
