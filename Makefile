# coldframe: a verb for everything. Each sets up what it needs inside the tree and says what it cannot install.

CARGO ?= cargo
BIN = target/release/coldframe

.PHONY: all build demo test python board bench bench-live header papers fuzz lint docs clean

all: build

build:
	$(CARGO) build --release --locked -p coldframe-cli -p coldframe-plugin -p coldframe-preload -p coldframe-capi

# The whole story on one shipped program: advice, its report, and the program run in the advised RAM, measured beside predicted.
demo: build
	@sh scripts/demo.sh $(BIN)

# Every test. Tools that a test can use and that are missing are named and the test is skipped (with COLDFRAME_REQUIRE_TOOLS=1 it fails).
test:
	$(CARGO) build --locked -p coldframe-plugin -p coldframe-preload
	$(CARGO) test --locked --workspace
	@sh scripts/python.sh test

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

# include/coldframe.h anew, from crates/capi.
header:
	COLDFRAME_WRITE_HEADER=1 $(CARGO) test --locked -p coldframe-capi --test header

# The papers' printed figures beside ours.
papers: build
	$(BIN) papers all

# The book, in target/book; installs mdbook in the tree if there is none.
docs: build
	@sh scripts/docs.sh $(BIN)

# Each reader against mutated input for a bounded time (FUZZ_SECONDS each).
fuzz:
	$(CARGO) run --release --locked -p coldframe-fuzz -- $${FUZZ_SECONDS:-20}

lint:
	$(CARGO) fmt --all --check
	cd board && $(CARGO) fmt --all --check
	cd crates/py && $(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	cd crates/py && CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) clippy --locked --all-targets -- -D warnings

clean:
	$(CARGO) clean
