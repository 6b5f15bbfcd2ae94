//! C programs that use the library: the example, and one that does everything right and everything wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use coldframe_toolbox::{have, shared_library, GCC};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The folder of the libraries, built here once.
fn libraries() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let built = || shared_library("coldframe-capi", "libcoldframe.so").parent().unwrap().to_owned();
    FOLDER.get_or_init(built).clone()
}

/// Compiles a C program against the header and a library, `shared` or not, and runs it.
fn run(folder: &Path, source: &Path, shared: bool, arguments: &[&Path]) -> Output {
    let (program, libraries) = (folder.join("program"), libraries());
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(root().join("include"))
        .arg("-o")
        .arg(&program);
    gcc.arg(source);
    if shared {
        gcc.arg("-L").arg(&libraries).arg("-lcoldframe").arg(format!("-Wl,-rpath,{}", libraries.display()));
    } else {
        gcc.arg(libraries.join("libcoldframe.a")).args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
    }
    let built = gcc.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // Where cargo has linkers look there may be an older one.
    Command::new(&program).args(arguments).env_remove("LD_LIBRARY_PATH").output().unwrap()
}

#[test]
fn the_example_sums_and_sorts_eight_times_its_ram() {
    if !have(&[GCC]) {
        return;
    }
    let numbers = (0..2u32 << 20).map(|i| i.wrapping_mul(2_654_435_761));
    let (sum, largest) = (numbers.clone().map(u64::from).sum::<u64>(), numbers.clone().max().unwrap());
    let expected =
        format!("{} numbers, sum {sum}, smallest {}, largest {largest}\n", numbers.len(), numbers.min().unwrap());
    for shared in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let output = run(folder.path(), &root().join("examples/c/sum.c"), shared, &[]);
        let stats = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stats}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        let count = |name: &str| stats[name].as_u64().unwrap();
        // 2048 pages came in at least for filling, summing and sorting, and never more than 256 were there.
        let came = count("true_faults") + count("first_touch_neighbours") + count("prefetches");
        assert!(came > 3 * 2048 - 256 && count("resident_max") <= 256, "{stats}");
        assert!(count("pages_written") >= 2048 - 256, "{stats}");
    }
}

const ALL: &str = r##"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "coldframe.h"

#define MUST(what) do { if (!(what)) { \
    fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, coldframe_last_error()); exit(1); \
} } while (0)
#define FAILS(call, status, word) do { MUST((call) == (status)); MUST(strstr(coldframe_last_error(), word)); } while (0)
enum { PAGE = 4096, LEN = 1000 * PAGE };

static void wrong(coldframe_pager *pager, coldframe_region *region) {
    coldframe_options options = coldframe_options_default(1000);
    coldframe_pager *none = (coldframe_pager *)8;
    coldframe_region *nothing = (coldframe_region *)8;
    FAILS(coldframe_start(&options, &none), COLDFRAME_STATUS_USAGE, "256KiB");
    MUST(none == NULL);
    FAILS(coldframe_start(NULL, &none), COLDFRAME_STATUS_USAGE, "options");
    FAILS(coldframe_start(&options, NULL), COLDFRAME_STATUS_USAGE, "out");
    options = coldframe_options_default(1 << 20);
    options.policy = "fifos";
    FAILS(coldframe_start(&options, &none), COLDFRAME_STATUS_USAGE, "fifos");
    options.policy = "\xff";
    FAILS(coldframe_start(&options, &none), COLDFRAME_STATUS_USAGE, "policy: not UTF-8");
    options.policy = NULL;
    options.backing = "/no/such/folder";
    FAILS(coldframe_start(&options, &none), COLDFRAME_STATUS_BACKING, "/no/such/folder");
    FAILS(coldframe_region_anonymous(NULL, LEN, &nothing), COLDFRAME_STATUS_USAGE, "pager");
    MUST(nothing == NULL);
    FAILS(coldframe_region_anonymous(pager, 0, &nothing), COLDFRAME_STATUS_USAGE, "0 bytes");
    FAILS(coldframe_region_anonymous(pager, (size_t)1 << 40, &nothing), COLDFRAME_STATUS_BACKING, "do not fit");
    FAILS(coldframe_pin(region, 0, LEN), COLDFRAME_STATUS_USAGE, "cannot be pinned");
    FAILS(coldframe_pin(region, LEN, 1), COLDFRAME_STATUS_USAGE, "are not within");
    FAILS(coldframe_unpin(region, 1, (size_t)-1), COLDFRAME_STATUS_USAGE, "are not within");
    FAILS(coldframe_prefault(region, 0, LEN + 1), COLDFRAME_STATUS_USAGE, "are not within");
    FAILS(coldframe_discard(NULL, 0, 1), COLDFRAME_STATUS_USAGE, "region");
    FAILS(coldframe_will_need(region, NULL, 1), COLDFRAME_STATUS_USAGE, "ranges");
    MUST(coldframe_region_base(NULL) == NULL && coldframe_region_len(NULL) == 0 && coldframe_stats(NULL) == NULL);
    MUST(coldframe_close(NULL) == COLDFRAME_STATUS_OK && coldframe_region_close(NULL) == COLDFRAME_STATUS_OK);
    coldframe_string_free(NULL);
}

static void right(coldframe_region *region) {
    unsigned char *bytes = coldframe_region_base(region);
    for (size_t i = 0; i < LEN; i += PAGE) bytes[i] = i / PAGE % 251 + 1;
    MUST(coldframe_pin(region, 10, 3 * PAGE) == COLDFRAME_STATUS_OK);
    for (size_t i = 0; i < LEN; i += PAGE) MUST(bytes[i] == i / PAGE % 251 + 1);
    FILE *null = fopen("/dev/null", "w");
    MUST(null && fwrite(bytes + 10, 1, 3 * PAGE, null) == 3 * PAGE && fclose(null) == 0);
    MUST(coldframe_unpin(region, 10, 3 * PAGE) == COLDFRAME_STATUS_OK);
    coldframe_range wanted[] = {{0, PAGE}, {500 * PAGE, 10}};
    MUST(coldframe_will_need(region, wanted, 2) == COLDFRAME_STATUS_OK);
    MUST(coldframe_prefault(region, 0, 20 * PAGE) == COLDFRAME_STATUS_OK);
    MUST(coldframe_discard(region, 7 * PAGE, PAGE) == COLDFRAME_STATUS_OK);
    MUST(bytes[6 * PAGE] == 7 && bytes[7 * PAGE] == 0 && bytes[8 * PAGE] == 9);
}

int main(int argc, char **argv) {
    MUST(argc == 3 && *coldframe_last_error() == 0);
    coldframe_options options = coldframe_options_default(1 << 20);
    options.backing = argv[1];
    options.policy = "fifo-sc:valid=70%";
    options.journal = argv[2];
    coldframe_pager *pager;
    coldframe_region *region, *other;
    MUST(coldframe_start(&options, &pager) == COLDFRAME_STATUS_OK);
    MUST(coldframe_region_anonymous(pager, LEN, &region) == COLDFRAME_STATUS_OK && coldframe_region_len(region) == LEN);
    right(region);
    wrong(pager, region);
    MUST(coldframe_region_anonymous(pager, LEN, &other) == COLDFRAME_STATUS_OK);
    MUST(coldframe_close(pager) == COLDFRAME_STATUS_OK); /* the regions go on */
    right(other);
    MUST(coldframe_region_close(other) == COLDFRAME_STATUS_OK);
    return coldframe_region_close(region);
}
"##;

#[test]
fn every_function_works_and_every_mistake_is_named() {
    if !have(&[GCC]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, journal) = (folder.path().join("all.c"), folder.path().join("journal"));
    std::fs::write(&source, ALL).unwrap();
    let output = run(folder.path(), &source, true, &[folder.path(), &journal]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::metadata(&journal).unwrap().len() > 10_000);
}

/// A program that wants all of its memory in RAM. The pager refuses the excess at the call; the rest of the memory
/// stays right.
const LOCKS: &str = r##"
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "coldframe.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#define MUST(what) do { if (!(what)) { \
    fprintf(stderr, "line %d: %s (%s, errno %d)\n", __LINE__, #what, coldframe_last_error(), errno); exit(1); \
} } while (0)
enum { PAGE = 4096, LEN = 1000 * PAGE };

static void use(coldframe_pager *pager) {
    coldframe_region *region;
    MUST(coldframe_region_anonymous(pager, LEN, &region) == COLDFRAME_STATUS_OK);
    unsigned char *bytes = coldframe_region_base(region);
    for (size_t i = 0; i < LEN; i += PAGE) bytes[i] = i / PAGE % 251 + 1;
    for (size_t i = 0; i < LEN; i += PAGE) MUST(bytes[i] == i / PAGE % 251 + 1);
    MUST(coldframe_region_close(region) == COLDFRAME_STATUS_OK);
}

int main(void) {
    alarm(120); /* the kernel would wait for ever */
    coldframe_options options = coldframe_options_default(1 << 20);
    coldframe_pager *pager;
    MUST(coldframe_start(&options, &pager) == COLDFRAME_STATUS_OK);
    use(pager);
    int all[] = {MCL_CURRENT, MCL_FUTURE, MCL_CURRENT | MCL_FUTURE};
    for (int i = 0; i < 3; i++) {
        errno = 0;
        MUST(mlockall(all[i]) == -1 && errno == ENOMEM);
        use(pager);
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) use(pager);
    MUST(munlockall() == 0 && coldframe_close(pager) == COLDFRAME_STATUS_OK);
    if (mlockall(MCL_FUTURE) == 0) { /* by its limits and rights */
        pager = (coldframe_pager *)8;
        MUST(coldframe_start(&options, &pager) == COLDFRAME_STATUS_MACHINE && pager == NULL);
        MUST(strstr(coldframe_last_error(), "munlockall"));
        MUST(munlockall() == 0);
    }
    MUST(coldframe_start(&options, &pager) == COLDFRAME_STATUS_OK);
    use(pager);
    return coldframe_close(pager);
}
"##;

#[test]
fn a_program_that_would_lock_all_of_its_memory_is_refused_at_the_call() {
    if !have(&[GCC]) {
        return;
    }
    for shared in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("locks.c");
        std::fs::write(&source, LOCKS).unwrap();
        let output = run(folder.path(), &source, shared, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert_eq!(stderr.matches("mlockall is refused").count(), 1, "once: {stderr}");
    }
}
