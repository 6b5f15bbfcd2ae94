#!/bin/sh
# Builds the book in target/book from docs/book and from the programs' own output. $1 is the coldframe program; coldframe-lab
# is beside it.
set -eu
coldframe=$1
version=0.5.4
generated=docs/book/src/generated
tools=target/tools
mkdir -p $generated

for golden in crates/lab/figures/src/*/golden.toml; do
    paper=$(basename "$(dirname "$golden")")
    echo "papers $paper"
    case $paper in swl | ddb) picture="-o $generated/$paper.svg" ;; *) picture= ;; esac
    # shellcheck disable=SC2086 # two words or none
    "$coldframe-lab" --quiet papers $paper --format markdown $picture > $generated/$paper.md
done

{
    for program in coldframe coldframe-lab "coldframe-lab trace"; do
        # shellcheck disable=SC2086 # a program and a verb
        run() { "$(dirname "$coldframe")/"$program "$@"; }
        shown() { printf '## %s\n\n```text\n%s\n```\n\n' "$program${1:+ $1}" "$(run ${1:+"$1"} --help)"; }
        shown
        for verb in $(run --help | sed -n '/^Examples:/q; s/^  \([a-z][a-z-]*\) .*/\1/p'); do
            case $verb in help | trace) ;; *) shown "$verb" ;; esac
        done
    done
} > $generated/reference.md

python3 scripts/notebook.py docs/notebook/first.ipynb > $generated/notebook.md

# The outputs in the README and the book, exactly as their commands print them.
COLDFRAME_WRITE_DOCUMENTS=1 cargo test --locked -p coldframe-cli --test it documents::

mdbook=$(command -v mdbook || echo $tools/bin/mdbook)
if ! [ -x "$mdbook" ]; then
    echo "installing mdbook $version into $tools (once, some minutes)"
    cargo install mdbook --version $version --locked --no-default-features --features search --root $tools
fi
"$mdbook" build docs/book
echo "open target/book/index.html"
