//! Memory that fits into RAM is the kernel's own, until more is mapped than fits.

use crate::common::{check_paged, good, program, with};

/// Whether the kernel reports faults in the mapping of an address (`um` in smaps).
const WATCHED: &str = r#"
static int watched(void *p) {
    FILE *f = fopen("/proc/self/smaps", "r"); char line[512]; unsigned long a, b; int here = 0, found = -1;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &a, &b) == 2) here = (uintptr_t)p >= a && (uintptr_t)p < b;
        if (here && !strncmp(line, "VmFlags:", 8)) found = strstr(line, " um") != NULL;
    }
    if (f) fclose(f);
    CHECK(found >= 0); return found;
}
enum { P = 4096 };
static char *map(size_t len) {
    char *m = mmap(NULL, len, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MANAGED(m));
    return m;
}
"#;

#[test]
fn memory_is_watched_from_when_more_is_mapped_than_fits_or_a_child_comes() {
    let main = r#"
int main(int argc, char **argv) {
    char *a = map(8 << 20); memset(a, 1, 8 << 20);
    CHECK(!watched(a));
    munmap(map(8 << 20), 8 << 20); CHECK(!watched(a));
    switch (argc) {
        case 1: map(12 << 20); break;
        case 2: CHECK(mlock(a, P) == 0); break;
        default: {
            pid_t child = fork();
            if (!child) _exit(a[5 << 20] != 1);
            int status;
            CHECK(waitpid(child, &status, 0) == child && status == 0);
        }
    }
    CHECK(watched(a) && watched(map(1 << 20)));
    for (int i = 0; i < 8 << 20; i++) CHECK(a[i] == 1);
}"#;
    let Some(program) = program("watched", &format!("{WATCHED}{main}")) else { return };
    for arguments in [&[][..], &["a lock"], &["a", "child"]] {
        let Some(mut command) = program.paged(18 << 20) else { return };
        good(command.args(arguments));
    }
}

/// Threads use memory of every kind while it comes under watch, and later, when there is too much of it.
#[test]
fn no_byte_changes_when_memory_comes_under_watch() {
    let main = r#"
enum { N = 256, T = 3 };
static volatile int done, dropped;
static uint32_t *shared;
static char *drops;
static void *counts(void *x) {
    uintptr_t me = (uintptr_t)x; uint32_t n = 0;
    while (!done) { n++; for (int i = me; i < N; i += T) { CHECK(shared[i * P / 4] == n - 1); shared[i * P / 4] = n; } }
    return NULL;
}
static void *forgets(void *x) {
    for (int n = 1; !done; n++) {
        for (int i = 0; i < 64; i++) {
            char *p = drops + i * P;
            CHECK(*p == 0);
            *p = n | 1;
            CHECK(*p == (char)(n | 1));
        }
        for (int i = 0; i < 64; i++, dropped++) {
            char *p = drops + i * P;
            if (n % 2) CHECK(madvise(p, P, MADV_DONTNEED) == 0);
            else CHECK(syscall(SYS_madvise, p, P, MADV_DONTNEED) == 0);
        }
    }
    return NULL;
}
int main(void) {
    shared = (void *)map(N * P); drops = map(64 * P);
    char *text = map(64 * P), *hidden = map(64 * P), *read = map(64 * P), *guard = map(64 * P), *half = map(64 * P);
    memset(text, 't', 64 * P); CHECK(mprotect(text, 64 * P, PROT_READ) == 0);
    memset(hidden, 'h', 64 * P); CHECK(mprotect(hidden, 64 * P, PROT_NONE) == 0);
    memset(guard, 'g', 64 * P); int guards = madvise(guard, 32 * P, 102) == 0;
    memset(half, 'a', 64 * P); CHECK(madvise(half, 32 * P, MADV_DONTNEED) == 0);
    for (int i = 0; i < 64; i++) CHECK(read[i * P] == 0);
    char *grown = malloc(3 << 20); memset(grown, 'r', 3 << 20); grown = realloc(grown, 4 << 20);
    CHECK(!watched(text));
    pthread_t t[T + 1];
    for (uintptr_t i = 0; i < T; i++) CHECK(pthread_create(&t[i], NULL, counts, (void *)i) == 0);
    CHECK(pthread_create(&t[T], NULL, forgets, NULL) == 0);
    while (dropped < 500) usleep(100);
    enum { BIG = 30 << 20 }; char *big = map(BIG);
    CHECK(watched(text) && watched(big));
    for (int r = 0; r < 2; r++) for (int i = 0; i < BIG; i += P) big[i]++;
    for (int i = 0; i < BIG; i += P) CHECK(big[i] == 2);
    CHECK(mprotect(hidden, 64 * P, PROT_READ) == 0);
    if (guards) CHECK(madvise(guard, 32 * P, 103) == 0);
    for (int i = 0; i < 64 * P; i++) {
        CHECK(text[i] == 't' && hidden[i] == 'h' && read[i] == 0);
        CHECK(guard[i] == (guards && i < 32 * P ? 0 : 'g') && half[i] == (i < 32 * P ? 0 : 'a'));
    }
    for (int i = 0; i < 3 << 20; i++) CHECK(grown[i] == 'r');
    done = 1; for (int i = 0; i <= T; i++) CHECK(pthread_join(t[i], NULL) == 0);
}"#;
    let Some(program) = program("under", &format!("{WATCHED}{main}")) else { return };
    // With an invalid list, pages leave their places while others still come under watch.
    for policy in [None, Some("fifo-sc:valid=10%")].into_iter().cycle().take(10) {
        let Some(mut command) = program.paged(24 << 20) else { return };
        good(with(&mut command, |options| options.policy = policy.map(Into::into)));
    }
}

/// As ZGC does: it reserves its heap at an address outside of the span, and gives up what is elsewhere.
#[test]
fn who_insists_on_an_address_gets_it_while_memory_is_not_watched() {
    let main = r#"
int main(void) {
    char *far = (char *)0x40000000000, *p = NULL; size_t len = 64 << 20;
    for (int i = 0; i < 2 && p != far; i++) {
        p = mmap(far, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(p != MAP_FAILED && (p == far || munmap(p, len) == 0));
    }
    CHECK(p == far && mprotect(p, P, 3) == 0); p[0] = 1; return 0;
}"#;
    check_paged("insists", &format!("{WATCHED}{main}"), 24 << 20, &[]);
}

/// As GHC does: it reserves 1 TiB and uses little of it. When it forks, its pages are looked at, and no others: over a
/// million reads would tell.
#[test]
fn what_is_only_reserved_is_not_looked_at() {
    let main = r#"
static long reads_of_pagers(void) {
    long sum = 0; glob_t all; char name[64], line[128]; long n;
    CHECK(glob("/proc/[0-9]*", GLOB_ONLYDIR, NULL, &all) == 0);
    for (size_t i = 0; i < all.gl_pathc; i++) {
        snprintf(name, sizeof name, "%s/comm", all.gl_pathv[i]);
        FILE *f = fopen(name, "r"); *line = 0;
        if (f) { if (!fgets(line, sizeof line, f)) *line = 0; fclose(f); }
        if (strcmp(line, "coldframe-pager\n")) continue;
        snprintf(name, sizeof name, "%s/io", all.gl_pathv[i]);
        if (!(f = fopen(name, "r"))) continue;
        while (fgets(line, sizeof line, f)) if (sscanf(line, "syscr: %ld", &n) == 1) sum += n;
        fclose(f);
    }
    globfree(&all); return sum;
}
int main(void) {
    size_t len = (size_t)1 << 40;
    char *all = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *used = all + len / 2;
    CHECK(all != MAP_FAILED && MANAGED(used));
    CHECK(mprotect(used, 64 * P, 3) == 0); memset(used, 'u', 64 * P);
    CHECK(mprotect(used + 32 * P, 32 * P, PROT_NONE) == 0 && !watched(used));
    long before = reads_of_pagers();
    pid_t child = fork();
    if (!child) _exit(used[5 * P] != 'u' || mprotect(used + 32 * P, 32 * P, 1) || used[40 * P] != 'u');
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && watched(used));
    CHECK(reads_of_pagers() - before < 1000000);
    CHECK(mprotect(used, 64 * P, 1) == 0);
    for (int i = 0; i < 64 * P; i++) CHECK(used[i] == 'u');
}"#;
    let Some(program) = program("reserves", &format!("#include <glob.h>\n{WATCHED}{main}")) else { return };
    let Some(mut command) = program.paged(24 << 20) else { return };
    good(&mut command);
}
