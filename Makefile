# coldframe: one target for each task. A target installs what it needs in the tree, and prints what it cannot install.

CARGO ?= cargo
BIN = target/release/coldframe

.PHONY: all help build symbols demo test oracle programs peers signals python board catalogue bench bench-ahead bench-live bench-hold bench-compare bench-park bench-turns bench-truth bench-slow bench-swl vm header schema settings papers papers-book fuzz soak form lint arm64 reproducible docs dist clean

all: build

# Build the programs and their libraries, in target/release.
build:
	$(CARGO) build --release --locked -p coldframe-cli -p coldframe-lab -p coldframe-qemu-plugin -p coldframe-preload -p coldframe-capi

# Print this list.
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

# Build the same with line numbers for backtraces and profilers, in target/symbols.
symbols:
	$(CARGO) build --profile symbols --locked -p coldframe-cli -p coldframe-lab -p coldframe-qemu-plugin -p coldframe-preload -p coldframe-capi

# Run the whole demo with one shipped program: advice, report, and a run in the advised RAM, predicted and measured.
demo: build
	@sh scripts/demo.sh $(BIN)

# One build for all tests, Python's included: the libraries that tests load, and all features that tests use.
TESTED = --workspace --lib --bins --tests --examples
# Crates whose library is not tested by itself: `--lib` would.
UNTESTED = --exclude coldframe-model --exclude coldframe-py --exclude coldframe-qemu-plugin

# Run every test. If a tool is missing, its tests are skipped and print its name (with COLDFRAME_REQUIRE_TOOLS=1 they
# fail). Python's tests measure, too: they run beside the models and doc tests alone, and print at their end. Programs named
# quiet_* measure, or make swap: they run when the others have ended.
test:
	@mkdir -p target; sh scripts/python.sh prepare > target/test-beside.log 2>&1 & prepared=$$!; \
	$(CARGO) build --locked $(TESTED) || { wait $$prepared; exit 1; }; wait $$prepared; \
	$(CARGO) test --locked --workspace $(UNTESTED) --no-fail-fast --lib --bins --test '[!q]*' $(TESTFLAGS); code=$$?; \
	sh scripts/python.sh test > target/test-beside.log 2>&1 & beside=$$!; \
	$(CARGO) test --locked --no-fail-fast -p coldframe-model --test '*' $(TESTFLAGS) || code=1; \
	$(CARGO) test --locked --workspace --doc $(TESTFLAGS) || code=1; \
	wait $$beside || code=1; cat target/test-beside.log; \
	$(CARGO) test --locked --no-fail-fast --workspace --test 'quiet_*' $(TESTFLAGS) || code=1; exit $$code

# Run random legal programs plain and paged, with new seeds for MINUTES=n. Prints differences and how to repeat them.
oracle:
	ORACLE_MINUTES=$${MINUTES:-10} $(CARGO) test --locked -p coldframe-preload --test it oracle:: -- --nocapture

# Measure how late a program's signals are while it pages: gaps of a 1 kHz timer, plain and paged.
signals:
	$(CARGO) test --locked -p coldframe-preload --test it signals:: -- --ignored --nocapture

# Run the programs of scripts/programs.toml plain and paged: RAM, ratio of times, equal output or not. PROGRAMS=a,b:
# only these; PATIENCE=s: seconds until a program counts as hung; KERNEL=1, as root: under the kernel's swap, too.
programs: build
	@python3 scripts/programs.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) $(if $(PATIENCE),--patience $(PATIENCE)) $(if $(KERNEL),--kernel)

# Run other projects' test suites (LTP, stress-ng, redis, CPython, SQLite) plain and paged, and print each test case that
# differs with the reason. PEERS=a,b: only these; KERNEL=1, as root: by the kernel, too. The outputs are in target/peers.
peers: build
	@python3 scripts/peers.py $(BIN) $(if $(PEERS),--only $(PEERS)) $(if $(KERNEL),--kernel)

# Build the Python package as a wheel and install it in target/venv with what its tests need. Prints what is missing.
python:
	@sh scripts/python.sh build

# Build and run the engine on a bare ARM9 under QEMU, with MMU and OneNAND, and compare it with the simulator. Prints
# what is missing.
board:
	$(CARGO) test --locked -p coldframe-lab --test it board:: -- --nocapture

# Measure speed, as ratios within one run. Takes some minutes.
bench: build
	$(CARGO) bench --locked -p coldframe-drivers --bench hits
	$(CARGO) bench --locked -p coldframe-formats --bench read

# Measure the cost of a live pager's fault, as ratios to floors of the same run. BENCH_DIR: the folder of its swap file.
bench-live:
	$(CARGO) bench --locked -p coldframe-live --bench live

# As root: measure what some sixty programs need, and how true the answers are, and write the book's page and data/catalogue.*
# from it. Up to two hours, and goes on when it is called again. PROGRAMS=a,b: only these; CATALOGUEFLAGS=--again: measure anew.
catalogue: build
	@python3 scripts/catalogue.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) $(CATALOGUEFLAGS)

# As root: compare what `coldframe -- PROGRAM` and `check` say with runs in memory groups, for the catalogue's programs: a
# minute for each. PROGRAMS=a,b: only these; TRUTHFLAGS='--busy --five --seed 3 --format json': see docs/book/src/truth.md.
bench-truth: build
	@python3 scripts/truth.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) $(TRUTHFLAGS)

# Our pager beside the kernel's swap (as root), for about ten programs in 75 and 50 % of their memory. Half an hour.
# PROGRAMS=a,b: only these; COMPAREFLAGS='--ram 33% --runs 3': other sizes, or fewer runs.
bench-compare: build
	@python3 scripts/compare.py $(BIN) $(if $(PROGRAMS),--only $(PROGRAMS)) $(COMPAREFLAGS)

# As root: time from the switch to the 100th answer of three servers that take turns: SIGCONT, `coldframe resume`, and
# `resume --soon`, on zram and on a swap file. PARKFLAGS='--ram 240MiB --turn 4000': in RAM for one and a half of them.
bench-park: build
	@python3 scripts/park.py $(BIN) $(PARKFLAGS)

# As root: the same servers, in RAM for one and a half of them, take turns of two seconds: SIGSTOP and SIGCONT, and
# `coldframe turns`, on a swap file.
bench-turns: build
	@python3 scripts/park.py $(BIN) --on file --ram 240MiB --turns 2 $(PARKFLAGS)

# As root: a heap in slow memory that is read where it lies (DR.Swap) against the kernel's swap on zram, at equal DRAM.
bench-slow: build
	@python3 scripts/slow.py $(BIN) $(SLOWFLAGS)

# As root: LOBI's block-aligned swap-in live, with and without, against the kernel's swap on a file of the same disk.
# AHEADFLAGS='--only sort,gawk --runs 1': some programs, some runs. Four of the eight programs took 18 minutes.
bench-ahead: build
	@python3 scripts/ahead.py $(BIN) $(AHEADFLAGS)

# The time of a fault by policy and handler, live: what SWL's search while the page loads brings, in pairs.
bench-swl: build
	@python3 scripts/swl.py $(BIN) $(SWLFLAGS)

# Boot Debian's own kernels under QEMU, with systemd and cgroup v2, and run the checks of scripts/vm.checks there. Prints
# what is missing. VMFLAGS=--show: their output, too; --only REGEX: some; --kernel WORD: one kernel.
vm:
	$(CARGO) build --release --locked -p coldframe-cli -p coldframe-preload
	@python3 scripts/vm.py target/release $(VMFLAGS)

# Run redis, PostgreSQL and nginx in such a machine under a load that changes by the hour: without a limit, under
# `coldframe squeeze --hold` and under senpai's rule. HOLDFLAGS='--only redis --hours 3 --hour 60': less of it.
bench-hold:
	$(CARGO) build --release --locked -p coldframe-cli
	@python3 scripts/hold.py target/release $(HOLDFLAGS)

# Write include/coldframe.h from crates/product/capi.
header:
	COLDFRAME_WRITE_HEADER=1 $(CARGO) test --locked -p coldframe-capi --test it header::

# Write the schemas of JSON outputs, docs/schema, from the types.
schema:
	COLDFRAME_WRITE_SCHEMA=1 $(CARGO) test --locked -p coldframe-answer --test schema
	COLDFRAME_WRITE_SCHEMA=1 $(CARGO) test --locked -p coldframe-lab --bin coldframe-lab schemas

# Write the book's page of settings and the types of the Python package from crates/lab/experiment/src/settings.rs.
settings:
	COLDFRAME_WRITE_SETTINGS=1 $(CARGO) test --locked -p coldframe-experiment --lib settings

# Print the papers' figures beside ours.
papers: build
	$(BIN)-lab papers all --all

# Write the papers' lines in the book's table from their rows.
papers-book:
	COLDFRAME_WRITE_PAPERS=1 $(CARGO) test --locked -p coldframe-figures --test papers

# Build the book in target/book, with the outputs of its commands. Installs mdbook in the tree if it is missing.
docs: build
	@sh scripts/docs.sh $(BIN)

# Build what a release hands out, in target/dist: for x86-64 and ARM one static program, a tarball, a Debian package, a
# wheel, notices, a bill of materials, checksums. Takes minutes, prints what is missing. DISTFLAGS=--only x86_64: one machine; --no-wheel.
dist:
	@python3 scripts/dist.py $(DISTFLAGS)

# Test each reader with mutated input for FUZZ_SECONDS.
fuzz:
	$(CARGO) run --release --locked -p coldframe-fuzz -- $${FUZZ_SECONDS:-20}

# Test the live pager for MINUTES: half of the time under random settings beside a shadow copy, half with the programs
# of make oracle. Lost bytes, differences, hangs and crashes are printed with their seed. SOAK_SEED: repeat one setting;
# SOAK_JOBS: settings at a time; SOAK_DISK: a folder on a disk.
soak:
	$(CARGO) build --release --locked -p coldframe-soak
	failed=0; half=$$(awk "BEGIN { print $${MINUTES:-10} / 2 }"); \
	target/release/coldframe-soak $$half || failed=1; \
	$(MAKE) oracle MINUTES=$$half || failed=1; \
	exit $$failed

# Check the form, clippy's findings and the licences' texts. It needs no network.
form:
	$(CARGO) fmt --all --check
	cd board && $(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@python3 scripts/notices.py --check

# Check the same, and licences, double versions and known holes of all crates (deny.toml).
lint: form
	@sh scripts/deny.sh

# Build for 64-bit ARM and run tests of that build under QEMU's user mode. Prints what is missing.
arm64:
	@sh scripts/arm64.sh

# Build a release in two folders and compare all files. Takes minutes. PACKAGES=coldframe-preload: only this.
reproducible:
	@python3 scripts/reproducible.py $(if $(PACKAGES),--packages $(PACKAGES))

clean:
	$(CARGO) clean
