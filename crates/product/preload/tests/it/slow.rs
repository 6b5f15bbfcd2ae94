//! Slow memory, in which pages are read where they are (DR.Swap): no byte is wrong, whoever reads, writes, lets the
//! kernel read and write, and forks; and what is only read is copied only if it is read often.

use crate::common::{good, library, paged, program, run, with};
use coldframe_live::{Options, Snapshot, StatsFile};

/// The program with slow memory at `place`, in this many bytes of RAM; `None`: no program pages here.
fn slow(
    program: &std::path::Path,
    ram: u64,
    place: &str,
    change: impl FnOnce(&mut Options),
) -> Option<std::process::Command> {
    let mut command = paged(program, ram)?;
    with(&mut command, |options| {
        options.slow = Some(place.into());
        change(options);
    });
    Some(command)
}

/// Runs a test's C program so, and returns the pager's counts.
fn counted(name: &str, source: &str, ram: u64) -> Option<Snapshot> {
    let (program, stats) = (program(name, source)?, StatsFile::create().unwrap());
    good(&mut slow(&program.path, ram, "node:0", |options| options.stats_fd = Some(stats.fd()))?);
    Some(stats.snapshot())
}

/// Three threads read, write and pass pages through a pipe, and the process forks: each page has a stamp that both
/// processes know.
const STAMPS: &str = r#"
enum { P = 4096, PAGES = 4096, ROUNDS = 6000 };
static unsigned char *at; static uint64_t stamp[PAGES]; static pthread_mutex_t locks[PAGES];
static uint64_t *word(int i) { return (uint64_t *)(at + (size_t)i * P); }
static void look(int i) { for (int k = 0; k < 512; k += 73) CHECK(word(i)[k] == stamp[i] + k); }
static void put(int i, uint64_t x) { stamp[i] = x; for (int k = 0; k < 512; k++) word(i)[k] = x + k; }
static void *work(void *seed) {
    unsigned s = (uintptr_t)seed; int ends[2]; CHECK(!pipe(ends));
    for (int r = 0; r < ROUNDS; r++) {
        int i = rand_r(&s) % PAGES;
        pthread_mutex_lock(&locks[i]);
        look(i);
        switch (rand_r(&s) % 8) {
            case 0: put(i, rand_r(&s)); break;
            case 1: CHECK(write(ends[1], word(i), P) == P); CHECK(read(ends[0], word(i), P) == P); look(i); break;
            case 2: madvise(word(i), P, MADV_DONTNEED); CHECK(word(i)[rand_r(&s) % 512] == 0); put(i, r); break;
        }
        pthread_mutex_unlock(&locks[i]);
    }
    return NULL;
}
int main(void) {
    at = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; i++) { pthread_mutex_init(&locks[i], NULL); put(i, i * 1000); }
    for (int fork_ = 0; fork_ < 3; fork_++) {
        pthread_t threads[3];
        for (uintptr_t t = 0; t < 3; t++) pthread_create(&threads[t], NULL, work, (void *)(t + 3 * fork_ + 1));
        for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
        int pid = fork();
        if (!pid) { for (int i = 0; i < PAGES; i++) { look(i); put(i, ~i); look(i); } _exit(0); }
        for (int i = 0; i < PAGES; i += 3) put(i, i + fork_);
        int status; CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        for (int i = 0; i < PAGES; i++) look(i);
    }
}
"#;

#[test]
fn no_byte_is_wrong_for_threads_the_kernel_and_children() {
    let Some(program) = program("stamps", STAMPS) else { return };
    for (place, policy) in [("node:0", None), ("/dev/shm", Some("fifo")), ("node:0", Some("clock"))] {
        let Some(mut command) = slow(&program.path, 3 << 20, place, |o| o.policy = policy.map(Into::into)) else {
            return;
        };
        good(&mut command);
    }
}

/// What a child is not to have: it does not page, and neither does its own child.
const WIPED: &str = r#"
int main(void) {
    enum { LEN = 1 << 20 };
    char *at = mmap(NULL, LEN, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MANAGED(at) && !madvise(at, LEN, MADV_WIPEONFORK));
    memset(at, 1, LEN);
    for (int depth = 0; depth < 3; depth++) {
        int pid = fork(), status;
        if (pid) { CHECK(waitpid(pid, &status, 0) == pid && at[5] == 1 + depth); return status != 0; }
        for (int i = 0; i < LEN; i++) CHECK(at[i] == 0);
        memset(at, 2 + depth, LEN);
    }
    return 0;
}
"#;

#[test]
fn children_of_children_do_not_have_what_is_wiped_at_forks() {
    counted("wiped", WIPED, 4 << 20);
}

/// An array is filled, and then only read.
const READS: &str = r#"
enum { P = 4096, PAGES = 4096 };
int main(void) {
    char *at = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; i++) at[i * P] = i % 100;
    for (int r = 0; r < 5; r++) for (int i = 0; i < PAGES; i++) CHECK(at[i * P] == i % 100);
    // MADV_GUARD_INSTALL, over pages that are mapped where they are.
    CHECK(madvise(at, 64 * P, 102) == -1 && errno == EINVAL && at[P] == 1);
}
"#;

#[test]
fn what_is_only_read_is_copied_back_only_if_it_is_read_often() {
    let Some(counts) = counted("reads", READS, 4 << 20) else { return };
    // First touches only: three quarters of the array are read where they are, and were mapped there when they left.
    assert!((4096..4200).contains(&counts.true_faults) && counts.evictions >= 3072, "{counts:?}");
    assert!(counts.device_bytes_read < (64 + counts.promotions) * 4096, "{counts:?}");
}

/// Three threads write pages at random, let the kernel write and drop others, and the process forks, until copies for
/// writes have had their time: then most pages are private (not bit 61) beside a RAM for a sixteenth.
const IN_PLACE: &str = r#"
enum { P = 4096, PAGES = 8192, THREADS = 3 };
static uint64_t *at, stamp[PAGES]; static uint64_t *word(int i) { return at + (size_t)i * 512; }
static void look(int i) { for (int k = 0; k < 512; k += 37) CHECK(word(i)[k] == (stamp[i] ? stamp[i] + k : 0)); }
static void *work(void *mine) {
    unsigned s = (uintptr_t)mine + 1; int ends[2]; CHECK(!pipe(ends));
    for (int r = 0; r < 12000; r++) {
        int i = rand_r(&s) % (PAGES / THREADS) * THREADS + (uintptr_t)mine;
        look(i);
        switch (rand_r(&s) % 16) {
            case 0: syscall(SYS_madvise, word(i), P, MADV_DONTNEED); stamp[i] = 0; look(i); break;
            case 1: CHECK(!madvise(word(i), P, MADV_DONTNEED)); stamp[i] = 0; look(i); break;
            case 2: CHECK(write(ends[1], word(i), P) == P && read(ends[0], word(i), P) == P); look(i); break;
            case 3: CHECK(!mlock(word(i), P)); look(i); CHECK(!munlock(word(i), P)); break;
            default: stamp[i] = r + 1; for (int k = 0; k < 512; k++) word(i)[k] = stamp[i] + k;
        }
    }
    return NULL;
}
int main(void) {
    at = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int pagemap = open("/proc/self/pagemap", O_RDONLY), in_place = 0; CHECK(pagemap >= 0);
    for (int i = 0; i < PAGES; i++) { stamp[i] = i + 1; for (int k = 0; k < 512; k++) word(i)[k] = stamp[i] + k; }
    for (int round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        for (uintptr_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)t);
        int pid = fork(), status;
        if (!pid) _exit(0);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        if (!(pid = fork())) { for (int i = 0; i < PAGES; i++) look(i); _exit(0); }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    for (int i = 0; i < PAGES; i++) {
        uint64_t entry; look(i); CHECK(pread(pagemap, &entry, 8, ((uintptr_t)at / P + i) * 8) == 8);
        in_place += entry >> 63 && !(entry >> 61 & 1);
    }
    return in_place < PAGES / 2;
}
"#;

#[test]
fn what_is_written_often_is_written_in_place_and_no_byte_is_wrong() {
    let Some(counts) = counted("in_place", IN_PLACE, 2 << 20) else { return };
    assert!(counts.in_place > 4096 && counts.resident_max <= 512, "{counts:?}");
}

/// Reads the first pages, which have left RAM, until none of them is one of the memory file's (bit 61).
const OFTEN: &str = r#"
enum { P = 4096, PAGES = 4096, HOT = 4 };
int main(void) {
    char *at = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int pagemap = open("/proc/self/pagemap", O_RDONLY); CHECK(pagemap >= 0);
    for (int i = 0; i < PAGES; i++) at[i * P] = i % 100;
    uint64_t entry[HOT]; int in_ram = 0; time_t end = time(NULL) + 30;
    while (in_ram < HOT) {
        CHECK(time(NULL) < end);
        for (int r = 0; r < 1000; r++) for (int i = 0; i < HOT; i++) CHECK(((volatile char *)at)[i * P] == i);
        CHECK(pread(pagemap, entry, sizeof entry, (uintptr_t)at / P * 8) == sizeof entry);
        in_ram = 0; for (int i = 0; i < HOT; i++) in_ram += entry[i] >> 63 && !(entry[i] >> 61 & 1);
    }
    at[0] = 55;
    for (int i = HOT; i < PAGES; i++) { CHECK(at[i * P] == i % 100); at[i * P] = 7; }
    for (int i = HOT; i < PAGES; i++) CHECK(at[i * P] == 7);
    for (int i = 1; i < HOT; i++) CHECK(at[i * P] == i);
    return at[0] != 55;
}
"#;

#[test]
fn what_is_read_often_comes_to_ram_and_is_right_when_it_leaves_again() {
    let Some(counts) = counted("often", OFTEN, 4 << 20) else { return };
    assert!(counts.promotions >= 4 && counts.writes_saved + counts.evictions > 4096, "{counts:?}");
}

/// Pages come back, are written, and are dropped by a bare system call, while their slots keep old bytes.
const DROPPED: &str = r#"
enum { P = 4096, PAGES = 2048 };
int main(void) {
    char *at = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PAGES; i++) at[i * P] = 1;
    for (int i = 0; i < 16; i++) at[i * P] = 2;
    CHECK(!syscall(SYS_madvise, at, 8 * P, MADV_DONTNEED) && at[0] == 0);
    at[P] = 3;
    int status, pid = fork();
    if (!pid) {
        for (int i = 0; i < PAGES; i++) CHECK(at[i * P] == (i == 1 ? 3 : i < 8 ? 0 : i < 16 ? 2 : 1));
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    for (int i = 16; i < PAGES; i++) at[i * P] = 4;
    for (int i = 0; i < PAGES; i++) CHECK(at[i * P] == (i == 1 ? 3 : i < 8 ? 0 : i < 16 ? 2 : 4));
}
"#;

#[test]
fn a_written_page_that_a_bare_call_drops_is_zeros_here_and_in_a_child() {
    counted("dropped", DROPPED, 4 << 20);
}

#[test]
fn a_place_that_is_no_slow_memory_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = dir.path().join("dax0.0");
    std::fs::write(&file, "").unwrap();
    let stderr = |place: &str| {
        let mut command = slow("/bin/true".as_ref(), 4 << 20, place, |_| {})?;
        let output = run(&mut command);
        assert_ne!(output.status.code(), Some(0), "{place}");
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (place, words) in [
        ("node:999", "there is no node 999; there are 0"),
        ("node:x", "by its number, as node:1"),
        ("/nowhere", "or a folder of a tmpfs (/dev/shm)"),
        (file.to_str().unwrap(), "daxctl reconfigure-device --mode=system-ram"),
        (dir.path().to_str().unwrap(), "give a folder of a tmpfs"),
    ] {
        let Some(text) = stderr(place) else { return };
        assert!(text.contains(words), "{place}: {text}");
    }
}

/// Has memory of its own, a child, and a program that it starts, which is it once more.
const NOTED: &str = r#"
int main(int argc, char **argv) {
    char *p = malloc(1 << 20), link[64]; int found = 0, status;
    CHECK(p && !MANAGED(p)); memset(p, 7, 1 << 20);
    for (int fd = 0; fd < 2048; fd++) {
        char name[32]; snprintf(name, 32, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, link, 63); link[n > 0 ? n : 0] = 0;
        found += !strcmp(link, "anon_inode:[userfaultfd]");
    }
    CHECK(found == 1);
    if (argc > 1) return 0;
    pid_t child = fork(); if (!child) { memset(p, 8, 1 << 20); execl(argv[0], argv[0], "again", NULL); _exit(98); }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && p[5] == 7);
    return 0;
}
"#;

#[test]
fn a_program_whose_writes_are_noted_keeps_its_own_memory_and_has_a_userfaultfd_for_who_looks() {
    let Some(program) = program("noted", NOTED) else { return };
    let mut command = std::process::Command::new(&program.path);
    good(command.env("LD_PRELOAD", library()).env("COLDFRAME_WRITES", "1"));
}
