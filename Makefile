# coldframe: a verb for everything. Each sets up what it needs inside the tree and says what it cannot install.

CARGO ?= cargo
BIN = target/release/coldframe

.PHONY: all help build symbols demo test oracle programs signals python board bench bench-live bench-tier bench-truth bench-zram header papers fuzz soak lint docs deb clean

all: build

# The program and its libraries, in target/release.
build:
	$(CARGO) build --release --locked -p coldframe-cli -p coldframe-plugin -p coldframe-preload -p coldframe-capi

# This list.
help:
	@awk 'function say(name, words,  n, i, word, line) { \
	    n = split(words, word, " "); line = sprintf("make %-12s", name); \
	    for (i = 1; i <= n; i++) { \
	        if (length(line) + 1 + length(word[i]) > 80) { print line; line = sprintf("%17s", "") } \
	        line = line " " word[i] } \
	    print line } \
	/^# / { said = said " " substr($$0, 3); next } \
	/^[a-z][a-z-]*:/ { if (said) { sub(/:.*/, ""); say($$0, said) } } \
	{ said = "" }' Makefile

# The same programs with line numbers for backtraces and profilers, in target/symbols.
symbols:
	$(CARGO) build --profile symbols --locked -p coldframe-cli -p coldframe-plugin -p coldframe-preload -p coldframe-capi

# The whole story on one shipped program: advice, its report, and the program run in the advised RAM, measured beside predicted.
demo: build
	@sh scripts/demo.sh $(BIN)

# Every test. Tools that a test can use and that are missing are named and the test is skipped (with COLDFRAME_REQUIRE_TOOLS=1 it fails).
test:
	$(CARGO) build --locked -p coldframe-plugin -p coldframe-preload
	$(CARGO) test --locked --workspace $(TESTFLAGS)
	@sh scripts/python.sh test

# Random legal programs plain and paged, with new seeds for MINUTES=n; says what differed and how to run it again.
oracle:
	ORACLE_MINUTES=$${MINUTES:-10} $(CARGO) test --locked -p coldframe-preload --test oracle -- --nocapture

# How late a program's signals are while it pages: gaps of a 1 kHz timer, plain and paged.
signals:
	$(CARGO) test --locked -p coldframe-preload --test signals -- --ignored --nocapture

# Real programs plain and paged, by scripts/programs.toml: name, RAM, ratio of time, equal or not. PROGRAMS=a,b: only those; PATIENCE=s: hung after.
programs: build
	@python3 scripts/programs.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) $(if $(PATIENCE),--patience $(PATIENCE))

# The Python package as a wheel, installed in target/venv with what its tests need; says what is missing.
python:
	@sh scripts/python.sh build

# The engine on a bare ARM9 under QEMU, with MMU and OneNAND: built, run, and held to the simulator. Says what is missing.
board:
	$(CARGO) test --locked -p coldframe-cli --test board -- --nocapture

# Speed, as ratios within one run. Takes some minutes.
bench: build
	$(CARGO) bench --locked -p coldframe-sim --bench hits
	$(CARGO) bench --locked -p coldframe-sim --bench swap
	$(CARGO) bench --locked -p coldframe-sim --bench tasks
	$(CARGO) bench --locked -p coldframe-trace
	$(CARGO) bench --locked -p coldframe-record

# What a fault of the live pager costs, as ratios to floors of the same run; BENCH_DIR: the folder of its swap file.
bench-live:
	$(CARGO) bench --locked -p coldframe-live --bench live

# Real programs, predicted beside measured: run time and true faults at three sizes each. PROGRAMS=a,b: only those; TRUTHFLAGS=--quick: two sizes.
bench-truth: build
	@python3 scripts/truth.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) $(TRUTHFLAGS)

# Unfinished: real programs with half and a third of their memory, without and with the compressed tier, and as root kernel swap on a file, zram and zswap.
# PROGRAMS=a,b: only those; TIERFLAGS=--no-kernel, --keep FOLDER (on the disk that is meant).
bench-tier: build
	@python3 scripts/tier.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) --out target/tier.json $(TIERFLAGS)

# What a page takes to compress, and how small it becomes: the numbers behind the backings zram-lz4 and zram-zstd.
bench-zram:
	$(CARGO) bench --locked -p coldframe-report --bench zram

# include/coldframe.h anew, from crates/capi.
header:
	COLDFRAME_WRITE_HEADER=1 $(CARGO) test --locked -p coldframe-capi --test header

# The papers' printed figures beside ours.
papers: build
	$(BIN) papers all --all

# The book, in target/book; installs mdbook in the tree if there is none.
docs: build
	@sh scripts/docs.sh $(BIN)

# A Debian package in target/debian: the program, its libraries, manual pages and completions.
deb: build
	@sh scripts/deb.sh target/release

# Each reader against mutated input for a bounded time (FUZZ_SECONDS each).
fuzz:
	$(CARGO) run --release --locked -p coldframe-fuzz -- $${FUZZ_SECONDS:-20}

# The live pager for MINUTES: half of them under random settings beside a shadow copy (SOAK_SEED: one setting again; SOAK_JOBS: so many at a
# time; SOAK_DISK: a folder on a disk), half under the oracle's programs. What loses a byte, differs, hangs or stops is printed with its seed.
soak:
	$(CARGO) build --release --locked -p coldframe-soak
	failed=0; half=$$(awk "BEGIN { print $${MINUTES:-10} / 2 }"); \
	target/release/coldframe-soak $$half || failed=1; \
	$(MAKE) oracle MINUTES=$$half || failed=1; \
	exit $$failed

lint:
	$(CARGO) fmt --all --check
	cd board && $(CARGO) fmt --all --check
	cd crates/py && $(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	cd crates/py && CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) clippy --locked --all-targets -- -D warnings

clean:
	$(CARGO) clean
