#!/bin/sh
# Cargo's runner for one half of the tests: runs a test binary of that half, and leaves out those of the other.
#   scripts/half.sh laboratory|product BINARY [ARGUMENT ...]
# The laboratory's tests compute; the product's mostly wait. So `make test` runs both halves beside each other.
set -eu
half=$1
shift
case $CARGO_PKG_NAME in
coldframe-boards | coldframe-core | coldframe-drivers | coldframe-experiment | coldframe-figures | coldframe-formats | \
    coldframe-fuzz | coldframe-journal | coldframe-lab | coldframe-lane | coldframe-plots | coldframe-py | \
    coldframe-qemu-plugin | coldframe-record | coldframe-search | coldframe-store | coldframe-tidy) of=laboratory ;;
*) of=product ;;
esac
[ "$of" != "$half" ] || exec "$@"
