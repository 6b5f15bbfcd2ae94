//! `coldframe run --predict`: for one thread, the simulator predicts every fault of the live run; for several threads,
//! it predicts about as many.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use coldframe_toolbox::{have, BZIP2, GCC, QEMU};
use serde_json::Value;

fn compile(folder: &Path, source: &str) -> PathBuf {
    let (c, binary) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&c, source).unwrap();
    let built = Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&binary).arg(&c).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    binary
}

fn run(folder: &Path, options: &[&str], program: &[&str], input: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.args(["run", "--predict"]).args(options);
    if !options.contains(&"--slow") {
        command.arg("--backing").arg(folder);
    }
    command.arg("--").args(program);
    command.env("NO_COLOR", "1").stdin(input).output().unwrap()
}

/// The prediction, from `--stats`. The run's output must equal the plain run's.
fn prediction(ram: &str, policy: &str, program: &[&str], input: Option<&Path>) -> Value {
    prediction_of(&["--ram", ram, "--policy", policy], program, input)
}

fn prediction_of(options: &[&str], program: &[&str], input: Option<&Path>) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let stats = folder.path().join("stats.json");
    let stdin = || input.map_or_else(Stdio::null, |path| std::fs::File::open(path).unwrap().into());
    let plain = Command::new(program[0]).args(&program[1..]).stdin(stdin()).output().unwrap();
    let options = [options, &["--stats", stats.to_str().unwrap()]].concat();
    let paged = run(folder.path(), &options, program, stdin());
    assert!(paged.status.success(), "{}", String::from_utf8_lossy(&paged.stderr));
    assert!(paged.stdout == plain.stdout, "the output of the second run is thrown away, that of the first is not");
    let text = std::fs::read_to_string(&stats).unwrap();
    std::fs::remove_file(&stats).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
    let stats: Value = serde_json::from_str(&text).unwrap();
    stats["prediction"].clone()
}

fn both(prediction: &Value, count: &str) -> (u64, u64) {
    let count = &prediction["counts"][count];
    (count["measured"].as_u64().unwrap(), count["predicted"].as_u64().unwrap())
}

/// Checks the faults of one thread: at least this many, and every one predicted.
fn exact(ram: &str, policy: &str, program: &[&str], input: Option<&Path>, at_least: u64) {
    let prediction = prediction(ram, policy, program, input);
    for count in ["true_faults", "false_faults"] {
        let (measured, predicted) = both(&prediction, count);
        assert_eq!(measured, predicted, "{count} of {program:?} under {policy}: {prediction}");
    }
    assert!(both(&prediction, "true_faults").0 >= at_least, "{prediction}");
    assert_eq!(prediction["recording"]["threads"], 1, "{prediction}");
    // Each page that a fault or a prefetch brings in is filled with zeros or loaded. The share of each depends on the
    // bytes.
    let [fills, loads, written] = ["zero_fills", "swap_loads", "pages_written"].map(|count| both(&prediction, count));
    assert_eq!(fills.0 + loads.0, fills.1 + loads.1, "{prediction}");
    assert!(fills.0 + loads.0 >= both(&prediction, "true_faults").0, "{prediction}");
    assert!(written.0 <= written.1, "the recording cannot know which pages are as they were: {prediction}");
}

/// Blocks of all sizes that are written, read, grown and freed. Some are separate mappings, which are freed at once.
const BLOCKS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { BLOCKS = 500 };
int main(void) {
    uint64_t x = 977, sum = 0;
    unsigned char *block[BLOCKS] = {0}; size_t len[BLOCKS] = {0};
    for (int step = 0; step < 6000; step++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        int i = x % BLOCKS, j = (x >> 20) % BLOCKS;
        size_t now = step % 1000 == 7 ? 5 << 20 : x / BLOCKS % 12000 + 1;
        block[i] = realloc(block[i], now); len[i] = now;
        memset(block[i], x >> 32, now < 20000 ? now : 500000);
        for (size_t k = 0; k < len[j] && k < 500000; k += 61) sum = sum * 31 + block[j][k];
        if (x % 31 == 0) { free(block[j]); block[j] = 0; len[j] = 0; }
    }
    printf("%lx\n", (unsigned long)sum);
    return 0;
}
"#;

#[test]
fn the_faults_of_malloc_and_free_are_foretold_exactly() {
    if have(&[GCC, QEMU]) {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), BLOCKS);
        for policy in ["multi-queue", "fifo-sc:valid=60%", "pa-clock:budget=7", "fifo"] {
            exact("1MiB", policy, &[program.to_str().unwrap()], None, 5_000);
        }
    }
}

#[test]
fn the_copies_out_of_slow_memory_are_foretold_exactly() {
    if have(&[GCC, QEMU]) && Path::new("/dev/shm").is_dir() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), BLOCKS);
        for policy in ["multi-queue", "pa-clock:budget=7"] {
            let options = ["--slow", "/dev/shm", "--ram", "1MiB", "--policy", policy];
            let prediction = prediction_of(&options, &[program.to_str().unwrap()], None);
            for count in ["true_faults", "swap_loads", "zero_fills", "false_faults"] {
                let (measured, predicted) = both(&prediction, count);
                assert_eq!(measured, predicted, "{count} under {policy}: {prediction}");
            }
            assert!(both(&prediction, "swap_loads").0 > 3_000, "{prediction}");
        }
    }
}

/// Bytes that only the kernel moves, into and out of memory that was evicted meanwhile, and advice.
const CALLS: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { LEN = 3 << 20 };
int main(void) {
    char *v = malloc(LEN), *w = mmap(0, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long at = 0, n = 1; n > 0 && at < LEN; at += n) n = read(0, v + at, LEN - at);
    memcpy(w, v, LEN);
    mlock(w + (1 << 20), 200000);
    for (long i = 0; i < 60; i++) w[i * 4096 * 7 % LEN] ^= v[i * 4096 * 5 % LEN];
    munlock(w + (1 << 20), 200000);
    madvise(w, 1 << 20, MADV_DONTNEED);
    madvise(v + (1 << 20), 100 * 4096, MADV_WILLNEED);
    for (long at = 0, n = 1; n > 0 && at < LEN; at += n) n = write(1, w + at, LEN - at);
    munmap(w, LEN);
    return write(1, v, LEN) != LEN;
}
"#;

#[test]
fn what_the_kernel_touches_and_what_it_is_told_is_foretold_too() {
    if have(&[GCC, QEMU]) {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), CALLS);
        let input = folder.path().join("input");
        let bytes: Vec<u8> = (0..3u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(&input, bytes).unwrap();
        for policy in ["multi-queue", "fifo-sc:valid=60%"] {
            exact("1MiB", policy, &[program.to_str().unwrap()], Some(&input), 2_500);
        }
    }
}

#[test]
fn bzip2_faults_as_foretold() {
    if have(&[BZIP2, QEMU]) {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        let text: Vec<String> =
            (0..12_000u32).map(|i| format!("line {} of {i}\n", i.wrapping_mul(7919) % 1000)).collect();
        std::fs::write(&input, text.concat()).unwrap();
        exact("1MiB", "multi-queue", &["bzip2", "-9c"], Some(&input), 1_000);
    }
}

/// The threads advance together, so the load of the machine changes their order little.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
enum { THREADS = 4, PAGES = 400 };
static uint64_t sums[THREADS];
static pthread_barrier_t barrier;
static void *work(void *p) {
    uint64_t id = (uint64_t)p, x = id * 977 + 1;
    unsigned char *v = calloc(PAGES, 4096);
    for (int i = 0; i < 20000; i++) {
        if (i % 100 == 0) pthread_barrier_wait(&barrier);
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        size_t at = (x & 3 ? (x >> 8) % (PAGES / 6) : (x >> 8) % PAGES) * 4096 + (x >> 40) % 4096;
        if (x % 5 < 2) v[at] = x; else sums[id] += v[at];
    }
    return 0;
}
int main(void) {
    pthread_t t[THREADS];
    pthread_barrier_init(&barrier, 0, THREADS);
    for (uint64_t i = 0; i < THREADS; i++) pthread_create(&t[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], 0);
    for (int i = 0; i < THREADS; i++) printf("%016lx\n", (unsigned long)sums[i]);
    return 0;
}
"#;

/// The most that the prediction for several threads may be off, in percent of the true faults; the help gives this
/// number. Two live runs of four threads that do not wait for each other differ by up to 13 %.
const MARGIN: u64 = 20;

#[test]
fn the_true_faults_of_four_threads_are_foretold_within_the_margin() {
    if have(&[GCC, QEMU]) {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), THREADS);
        let prediction = prediction("3MiB", "multi-queue", &[program.to_str().unwrap()], None);
        let (measured, predicted) = both(&prediction, "true_faults");
        assert!(measured.abs_diff(predicted) * 100 <= measured * MARGIN, "{prediction}");
        assert!(measured > 3_000 && prediction["recording"]["threads"].as_u64() >= Some(4), "{prediction}");
        assert!(prediction["notes"].to_string().contains("threads"), "{prediction}");
    }
}

#[test]
fn without_a_recorder_the_run_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.args([
        "run",
        "--predict",
        "--ram",
        "1MiB",
        "--backing",
        folder.path().to_str().unwrap(),
        "--",
        "/bin/true",
    ]);
    let output = command.env("PATH", folder.path()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("qemu"), "{said}");
}

#[test]
fn the_table_shows_measured_beside_predicted() {
    if have(&[GCC, QEMU]) {
        let folder = tempfile::tempdir().unwrap();
        let source =
            "#include <stdlib.h>\nint main(void) { volatile char *v = malloc(500 * 4096); for (int k = 0; k < 3; k++) \
                      for (int i = 0; i < 500; i++) v[i * 4096] = 1; return 7; }";
        let program = compile(folder.path(), source);
        let output = run(folder.path(), &["--ram", "1MiB"], &[program.to_str().unwrap()], Stdio::null());
        assert_eq!(output.status.code(), Some(7), "the program's own status");
        let said = String::from_utf8_lossy(&output.stderr);
        for words in ["measured", "predicted", "deviation", "true faults", "+0.00 %"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        // 1 MiB is 256 frames, less the pager's reserve for pages that are being evicted. The reserve is one batch: 8
        // to 32 frames, depending on the measured speed of the device.
        let frames = said.split(" frames").next().and_then(|before| before.rsplit(' ').next()).expect("a number");
        assert!((256 - 32..=256 - 8).contains(&frames.parse::<u32>().unwrap()), "{said}");
    }
}
