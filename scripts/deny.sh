#!/bin/sh
# Checks licences, sources, double versions and known holes of all crates (deny.toml) with cargo-deny, which is built into
# target/lint if it is missing. Without a network the known holes are not checked, and this says so.
set -eu
cd "$(dirname "$0")/.."
version=0.20.2
deny=$(command -v cargo-deny || echo target/lint/bin/cargo-deny)
if [ ! -x "$deny" ]; then
    "${CARGO:-cargo}" install --quiet --locked --root target/lint "cargo-deny@$version"
fi
"$deny" --log-level error check licenses bans sources
if "$deny" --log-level off fetch db; then
    "$deny" --log-level error --offline check advisories
else
    echo "deny: known holes are not checked: the database of advisories cannot be fetched" >&2
fi
