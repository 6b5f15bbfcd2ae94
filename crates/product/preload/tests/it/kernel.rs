//! The kernel as the oracle of mappings: random calls are made once alone and once with a pager and little RAM.
//! Answers, error numbers, signals and contents must be equal.

use std::process::Command;

use crate::common::{check_paged, everywhere, good, program, Program};

/// Works in an arena at an address that is free in both runs, so that the outputs can be compared. It uses only what
/// the kernel guarantees: where the answer depends on whether two mappings have merged (mremap), it uses a mapping that
/// was never split.
const PROGRAM: &str = r#"
#include <setjmp.h>
enum { P = 4096, N = 512 };
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
static char *const arena = (char *)0x1000000000, *const second = (char *)0x1100000000;
static int id[N], prot[N], locked[N], ids, cut[100000];     // id 0: a hole
static unsigned long long state;
static unsigned rnd(unsigned n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
}
static sigjmp_buf back;
static void caught(int signal) { siglongjmp(back, signal); }
static int touch(char *p, int write) {
    int signal = sigsetjmp(back, 1);
    if (signal) return -signal;
    if (write) { *(volatile char *)p = write; return write; }
    return *(volatile char *)p;
}
static unsigned long hash(int from, int count) {
    unsigned long h = 7;
    for (int i = from; i < from + count; i++) {
        h = h * 31 + touch(arena + (long)i * P, 0) + 1000;
        h = h * 31 + touch(arena + (long)i * P + P - 1, 0) + 1000;
    }
    return h;
}
static void fill(int from, int count) {
    for (int i = from; i < from + count; i++)
        if (id[i] && (prot[i] & 2)) {
            touch(arena + (long)i * P, 1 + rnd(100));
            touch(arena + (long)i * P + P - 1, 1 + rnd(100));
        }
}
static int locks(void) { int n = 0; for (int i = 0; i < N; i++) n += locked[i]; return n; }
static void say(const char *what, int from, int count, long answer) {
    int error = answer == -1 ? errno : 0;
    printf("%s %d+%d %ld %d %lx\n", what, from, count, answer, error, hash(from, count));
}
static void split(int from, int count) { for (int i = from; i < from + count && i < N; i++) cut[id[i]] = 1; }
static void set(int from, int count, int new, int rights) {
    for (int i = from; i < from + count; i++) { id[i] = new; prot[i] = rights; locked[i] = 0; }
}
int main(int argc, char **argv) {
    state = atoll(argv[1]);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    struct sigaction act = {.sa_handler = caught, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &act, NULL); sigaction(SIGBUS, &act, NULL);
    int file = memfd_create("x", 0), rights[] = {3, 3, 3, 1, 0};
    CHECK(ftruncate(file, N * P) == 0);
    for (int i = 0; i < N; i++) { char c = i; CHECK(pwrite(file, &c, 1, (long)i * P) == 1); }
    for (int step = atoi(argv[2]); step--;) {
        int from = rnd(N), count = 1 + rnd(rnd(4) ? 24 : 120), r = rights[rnd(5)];
        if (from + count > N) count = N - from;
        char *p = arena + (long)from * P; size_t len = (size_t)count * P;
        errno = 0;
        switch (rnd(15)) {
        case 0: case 1: {
            void *q = mmap(p, len, r, ANON | MAP_FIXED, -1, 0);
            split(from, count); set(from, count, ++ids, r);
            say("fixed", from, count, q == p); fill(from, count); break; }
        case 2: {
            char *q = mmap(p, len, r, ANON | (rnd(2) ? MAP_FIXED_NOREPLACE : 0), -1, 0);
            if (q == p) set(from, count, ++ids, r); else if (q != MAP_FAILED) munmap(q, len);
            say("wish", from, count, q == p); fill(from, count); break; }
        case 3: {
            void *q =
                mmap(p, len, r, (rnd(2) ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED, rnd(8) ? file : 99, (long)from * P);
            if (q == p) { split(from, count); set(from, count, ++ids, r); cut[ids] = 1; }
            say("file", from, count, q == MAP_FAILED ? -1 : q == p); break; }
        case 4: case 5: {
            split(from - !!from, count + 2);
            int answer = munmap(p, len); set(from, count, 0, 0); say("munmap", from, count, answer); break; }
        case 6: {
            int answer = mprotect(p, len, r);
            split(from, count);
            for (int i = from; i < from + count && id[i]; i++) prot[i] = r;
            say("mprotect", from, count, answer); fill(from, count); break; }
        case 7: {
            int all[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_NOHUGEPAGE,
                MADV_NORMAL, MADV_SEQUENTIAL, MADV_POPULATE_READ, MADV_POPULATE_WRITE, 4711, MADV_DONTDUMP,
                MADV_DODUMP};
            int advice = all[rnd(13)];
            split(from, count);
            int answer = madvise(p, len, advice);
            say("madvise", advice, 0, answer);
            printf("%lx\n", hash(from, count));
            break;
        }
        case 8: {
            int all[] = {MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK};
            int i = from; while (i < from + count && id[i] && !(cut[id[i]] & 2)) i++;
            split(from, count);
            // of anonymous memory, which pieces of a file are not told from here
            int answer = madvise(p, len, all[rnd(2)]); say("forks", from, count, answer); break; }
        case 9: {
            if (count > 12) count = 12, len = (size_t)count * P;
            int shut = locks() > 36;
            for (int i = from; i < from + count; i++) shut |= id[i] && !prot[i];
            if (shut) break;
            split(from, count);
            int answer = mlock(p + 9, len - 9);
            for (int i = from; i < from + count && id[i]; i++) locked[i] = 1;
            say("mlock", from, count, answer); break; }
        case 10: {
            split(from, count);
            int answer = munlock(p, len);
            for (int i = from; i < from + count && id[i]; i++) locked[i] = 0;
            say("munlock", from, count, answer); break; }
        case 11: case 12: {
            if (id[from] && cut[id[from]]) break;
            int end = from; while (end < from + count && id[end] == id[from]) end++;
            if (from && id[from - 1] == id[from]) split(from, 1);
            if (end < N && id[end] == id[from]) split(from, 1);
            size_t was = (size_t)(end - from) * P, now = (size_t)(1 + rnd(2 * (end - from))) * P;
            int flags = rnd(2) ? MREMAP_MAYMOVE : 0, old = id[from], right = prot[from];
            if (rnd(4) == 0) flags = MREMAP_MAYMOVE | MREMAP_FIXED, now = was;
            if (cut[old] && id[from] && now > was) break;
            char *q = mremap(p, was, now, flags, flags & MREMAP_FIXED ? second : NULL);
            if (q == MAP_FAILED) { say("mremap", from, end - from, -1); break; }
            if (q == p && now <= was) set(from + now / P, (was - now) / P, 0, 0);
            else if (q == p) {
                if (from + now / P > N) {
                    munmap(arena + (long)N * P, now);
                    now = (size_t)(N - from) * P;
                }
                set(from, now / P, old, right);
            } else {
                // come back: the old place is free now
                say("moved", from, end - from, 1);
                if (now > was) munmap(q + was, now - was), now = was;
                set(from, end - from, 0, 0);
                void *home = mremap(q, now, now, MREMAP_MAYMOVE | MREMAP_FIXED, p);
                printf("home %d\n", home == p);
                set(from, now / P, ++ids, right); cut[ids] = 1;
            }
            say("mremap", from, end - from, q == p); break; }
        case 13: {
            long a = rnd(2) ? pread(file, p, len, 0) : write(file, p, len);
            say("io", from, count, a); CHECK(lseek(file, 0, SEEK_SET) == 0); CHECK(ftruncate(file, N * P) == 0);
            unsigned char in[N]; long b = rnd(2) ? mincore(p, len, in) : msync(p, len, MS_ASYNC);
            say("seen", from, count, b); break; }
        case 14: if (rnd(4) == 0) {
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) { printf("child %lx\n", hash(0, N)); fill(0, N); fflush(stdout); _exit(0); }
            int status; CHECK(waitpid(child, &status, 0) == child); printf("ended %d\n", status); break; }
        }
    }
    printf("end %lx\n", hash(0, N));
    fflush(stdout);
}"#;

fn compare(program: &Program, seed: u64, steps: u32) {
    let (seed, steps) = (seed.to_string(), steps.to_string());
    let lines = |command: &mut Command| {
        let output = good(command.args([&seed, &steps]));
        String::from_utf8(output.stdout).unwrap()
    };
    let alone = lines(&mut program.plain());
    let Some(mut command) = program.paged(1 << 20) else { return };
    let here = lines(&mut command);
    let first = alone.lines().zip(here.lines()).enumerate().find(|(_, (a, b))| a != b);
    if let Some((line, (alone, here))) = first {
        panic!("seed {seed}, {steps} steps, line {line}: alone `{alone}`, paged `{here}`");
    }
    assert_eq!(alone.len(), here.len(), "seed {seed}");
}

/// `COLDFRAME_SEED=n` replays one program; `COLDFRAME_STEPS=n` makes it longer.
#[test]
fn random_calls_have_the_answers_of_the_kernel() {
    let Some(program) = program("random", PROGRAM) else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let steps = number("COLDFRAME_STEPS").unwrap_or(400) as u32;
    match number("COLDFRAME_SEED") {
        Some(seed) => compare(&program, seed, steps),
        None => (1..=4).for_each(|seed| compare(&program, seed, steps)),
    }
}

/// Two threads keep all pages moving, while the first thread writes to its own memory through the kernel, many pages at
/// a time.
const POKES: &str = r#"
#include <sys/uio.h>
enum { P = 4096, N = 40, OTHERS = 160 };
static char *other;
static volatile int done;
static void *churn(void *from) {
    for (unsigned i = (uintptr_t)from; !done; i = (i * 7 + 1) % OTHERS) other[(size_t)i * P]++;
    return NULL;
}
static long poke(int by_number, const struct iovec *from, long froms, const struct iovec *to, long tos) {
    if (by_number) return syscall(SYS_process_vm_writev, getpid(), from, froms, to, tos, 0L);
    return process_vm_writev(getpid(), from, froms, to, tos, 0);
}
int main(void) {
    char *page = mmap(NULL, N * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    other = mmap(NULL, OTHERS * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *source = malloc(N * P), *wanted = malloc(N * P);
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) CHECK(pthread_create(threads + i, NULL, churn, (void *)(i * 17)) == 0);
    for (int round = 1; round <= 40; round++) {
        for (size_t i = 0; i < N * P; i++) source[i] = i / P + round;
        size_t skip = round * 37 % P, len = N * P - 2 * skip;
        memcpy(wanted, page, N * P);
        memcpy(wanted + skip, source, len);
        struct iovec from[2] = {{source, len / 3}, {source + len / 3, len - len / 3}};
        struct iovec to[3] = {{page + skip, 100}, {page + skip + 100, 0}, {page + skip + 100, len - 100}};
        CHECK(poke(round % 2, from, 2, to, 3) == (long)len);
        CHECK(memcmp(page, wanted, N * P) == 0);
    }
    done = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    // Beside an io_uring no page leaves that the kernel holds; a read holds more than there are frames.
    char none[120] = {0};
    syscall(SYS_io_uring_setup, 4L, none);
    size_t len = 640 * P;
    char *wide = malloc(len), *copy = malloc(len);
    for (size_t i = 0; i < len; i++) wide[i] = i / P + i;
    struct iovec into[2] = {{copy, 5000}, {copy + 5000, len - 5000}}, all = {wide, len};
    CHECK(process_vm_readv(getpid(), into, 2, &all, 1, 0) == (long)len);
    CHECK(memcmp(copy, wide, len) == 0);
    struct iovec from = {source, 3 * P}, to = {page, 3 * P};
    CHECK(munmap(page + P, P) == 0);
    CHECK(poke(0, &from, 1, &to, 1) == P);
    to.iov_base = page + P;
    CHECK(poke(1, &from, 1, &to, 1) == -1 && errno == EFAULT);
    CHECK(process_vm_writev(getpid(), &from, 1, &to, 1, 1) == -1 && errno == EINVAL);
}
"#;

#[test]
fn what_a_program_writes_to_itself_by_way_of_the_kernel_is_there() {
    check_paged("pokes", POKES, 256 << 10, &[]);
}

programs! {
    guards_stay_where_memory_is_locked_prefetched_or_moved = everywhere r#"
enum { P = 4096, PAGES = 64, N = PAGES * P };
static int dies(char *p) {
    pid_t child = fork();
    int status;
    if (child == 0) { *(volatile char *)p; _exit(0); }
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}
int main(void) {
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
    CHECK(p != MAP_FAILED);
    memset(p, 1, N);
    if (madvise(p + 8 * P, P, 102)) { CHECK(errno == EINVAL); return 0; } // before Linux 6.13
    CHECK(madvise(p, N, MADV_WILLNEED) == 0 && dies(p + 8 * P) && !dies(p + 7 * P));
    CHECK(mlock(p, N) == -1 && errno == ENOMEM && dies(p + 8 * P));
    CHECK(munlock(p, N) == 0 && mlock(p, 8 * P) == 0 && munlock(p, 8 * P) == 0);
    CHECK(madvise(p, N, MADV_DONTNEED) == 0 && dies(p + 8 * P) && mprotect(p, N, 1) == 0 && dies(p + 8 * P));
    CHECK(mprotect(p, N, 3) == 0 && (q = mremap(p, N, 2 * N, MREMAP_MAYMOVE)) != MAP_FAILED && dies(q + 8 * P));
    char *other = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(
        mremap(q, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other && dies(other + 8 * P) && !dies(other + 9 * P));
    CHECK(madvise(other + 8 * P, P, 103) == 0 && other[8 * P] == 0 && mlock(other, N) == 0);
    CHECK(madvise(other + 8 * P, P, 102) == -1 && errno == EINVAL);
    return 0;
}"#;
}
