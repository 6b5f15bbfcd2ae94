//! mmap, mremap and related calls, and descriptors.

use crate::common::{check, check_paged, everywhere, good, program, with};

programs! {
    large_private_anonymous_mappings_are_managed_and_no_others = check r#"
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
static void *map(size_t n, int flags, int fd) {
    void *p = mmap(NULL, n, 3, flags, fd, 0);
    CHECK(p != MAP_FAILED);
    *(char *)p = 1;
    return p;
}
int main(int argc, char **argv) {
    CHECK(MANAGED(map(32 << 10, ANON, -1)) && MANAGED(map(1 << 20, ANON | MAP_NORESERVE, -1)));
    CHECK(!MANAGED(map(28 << 10, ANON, -1)) && !MANAGED(map(1 << 20, MAP_SHARED | MAP_ANONYMOUS, -1)));
    CHECK(!MANAGED(map(1 << 20, ANON | MAP_STACK, -1)) && !MANAGED(map(1 << 20, ANON | MAP_GROWSDOWN, -1)));
    CHECK(!MANAGED(map(4096, MAP_PRIVATE, open(argv[0], O_RDONLY))));
#ifdef MAP_32BIT
    CHECK(!MANAGED(map(1 << 20, ANON | MAP_32BIT, -1)));
#endif
    CHECK(mmap((void *)0x10000000, 1 << 20, 3, ANON, -1, 0) == (void *)0x10000000);
    CHECK(MANAGED(syscall(SYS_mmap, NULL, 1 << 20, 3, ANON, -1, 0)));
    char *huge = mmap(NULL, 1ul << 40, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(MANAGED(huge) && mprotect(huge + (1ul << 39), 1 << 20, 3) == 0);
    huge[1ul << 39] = 1;
    char *larger = mmap(NULL, 1ul << 42, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(larger != MAP_FAILED && !MANAGED(larger));
}"#;
}

programs! {
    managed_mappings_behave_like_mappings = check r#"
enum { P = 4096, N = 1 << 20 };
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
static int dies(char *p) {
    pid_t child = fork();
    if (child == 0) { *(volatile char *)p = 1; _exit(0); }
    int status; waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}
int main(int argc, char **argv) {
    char *p = mmap(NULL, N, 3, ANON, -1, 0), *q;
    CHECK(MANAGED(p));
    memset(p, 7, N);
    CHECK(madvise(p + P, P, MADV_DONTNEED) == 0 && p[P] == 0 && p[2 * P] == 7);
    CHECK(madvise(p + 2 * P, P, MADV_FREE) == 0 && (p[2 * P] == 0 || p[2 * P] == 7));
    CHECK(posix_madvise(p + 3 * P, P, POSIX_MADV_DONTNEED) == 0 && p[3 * P] == 7);
    int fine[] = {MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_RANDOM, MADV_DONTDUMP};
    for (int i = 0; i < 7; i++) CHECK(madvise(p, N, fine[i]) == 0);
    CHECK(madvise(p + 1, P, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(mprotect(p, P, PROT_READ) == 0 && dies(p) && p[0] == 7 && mprotect(p, P, 3) == 0);
    CHECK(mlock(p + 10, 3 * P) == 0 && munlock(p + 10, 3 * P) == 0);
    unsigned char resident[N / P]; CHECK(mincore(p, N, resident) == 0);
    // unmap in the middle
    CHECK(munmap(p + 8 * P, 8 * P) == 0 && dies(p + 8 * P) && p[7 * P] == 7 && p[16 * P] == 7);
    CHECK(munmap(p, 0) == -1 && errno == EINVAL);
    // what is given back comes again, with zeros
    q = mmap(NULL, 128 << 10, 3, ANON, -1, 0); CHECK(MANAGED(q)); for (int i = 0; i < 128 << 10; i++) CHECK(q[i] == 0);
    // resize
    q = mmap(NULL, N, 3, ANON, -1, 0); memset(q, 9, N);
    CHECK(mremap(q, N, N / 2, 0) == q && dies(q + N / 2) && q[N / 2 - 1] == 9);
    CHECK(mmap(q + N / 2, P, 3, ANON | MAP_FIXED, -1, 0) == q + N / 2);
    CHECK(mremap(q, N / 2, 2 * N, 0) == MAP_FAILED && errno == ENOMEM);
    char *r = mremap(q, N / 2, 2 * N, MREMAP_MAYMOVE, (void *)-P); // nobody looks at the fifth argument
    CHECK(MANAGED(r) && r[0] == 9 && r[N / 2 - 1] == 9 && r[N / 2] == 0 && (r == q || dies(q)));
    char *away = (char *)0x100000000000;
    CHECK(mremap(r + N, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away && *away == 0 && dies(r + N));
    char *u = mmap(NULL, P, 3, ANON, -1, 0); *u = 6;
    CHECK(mremap(u, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, r + N) == r + N && r[N] == 6 && munmap(r + N, P) == 0
        && dies(r + N));
    u = mmap(NULL, P, 3, ANON, -1, 0);
    CHECK(mremap(u, P, 8 * P, MREMAP_MAYMOVE) != MAP_FAILED);
    // over managed memory
    r[0] = 5; r[P] = 5;
    CHECK(mmap(r, P, 3, ANON | MAP_FIXED, -1, 0) == r && r[0] == 0 && r[P] == 5);
    CHECK(mmap(r, P, PROT_NONE, ANON | MAP_FIXED, -1, 0) == r && dies(r) && mprotect(r, P, 3) == 0);
    CHECK(mmap(r, P, 1, MAP_PRIVATE | MAP_FIXED, open(argv[0], O_RDONLY), 0) == r && !memcmp(r, "\177ELF", 4));
    CHECK(mmap(r, P, 1, MAP_PRIVATE | MAP_FIXED, 999, 0) == MAP_FAILED && errno == EBADF && !memcmp(r, "\177ELF", 4));
    CHECK(mmap(r, P, 3, ANON | MAP_FIXED, -1, 0) == r && r[0] == 0);
    CHECK(mmap(r, P, 3, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    // a reservation that is opened in parts
    q = mmap(NULL, 64 * N, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(MANAGED(q) && dies(q) && mprotect(q + N, N, 3) == 0); q[N] = 1; CHECK(dies(q + 2 * N));
    CHECK(mmap(q + 4 * N, N, 3, ANON | MAP_FIXED, -1, 0) == q + 4 * N); q[4 * N] = 1;
    CHECK(mlockall(MCL_CURRENT) == -1 && errno == ENOMEM);
    CHECK(syscall(SYS_userfaultfd, 0) == -1 && errno == EPERM);
    CHECK(syscall(SYS_getpid) == getpid() && syscall(SYS_madvise, r + P, P, MADV_DONTNEED) == 0 && r[P] == 0);
    int fd = memfd_create("x", 0); CHECK(pwrite(fd, "abcdef", 6, 0) == 6);
    CHECK(syscall(SYS_pread64, fd, r, 6, 2L) == 4 && !memcmp(r, "cdef", 4));
}"#;
}

#[test]
fn a_program_that_closes_everything_closes_nothing_of_the_pagers() {
    let source = r#"
int main(int argc, char **argv) {
    // The run's statistics are in the pager's process; the number is free, and a later program gets them all the same.
    int ours = atoi(argv[1]); CHECK(fcntl(ours, F_GETFD) == -1 && errno == EBADF);
    char *big = malloc(9 << 20); CHECK(MANAGED(big));
    for (int i = 0; i < 9 << 20; i += 4096) big[i] = i >> 12;
    int other = open("/dev/null", O_RDONLY); CHECK(dup2(other, ours) == ours && dup3(other, 901, 0) == 901);
    for (int d = 3; d < 1024; d++) close(d);
    CHECK(close_range(3, ~0u, 0) == 0 && close_range(5, 4, 0) == -1 && errno == EINVAL);
    closefrom(3); CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
    pid_t child = fork(); int status;
    if (child == 0) {
        closefrom(3);
        for (int i = 0; i < 9 << 20; i += 4096) CHECK(big[i] == (char)(i >> 12));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < 9 << 20; i += 4096) CHECK(big[i] == (char)(i >> 12));
    if (argc == 2) { execl(argv[0], argv[0], argv[1], "again", NULL); _exit(98); }
}"#;
    let Some(program) = program("closes", source) else { return };
    let Some(mut ready) = program.paged(1 << 20) else { return };
    let stats = coldframe_live::StatsFile::create().unwrap();
    good(with(&mut ready, |options| options.stats_fd = Some(stats.fd())).arg(stats.fd().to_string()));
    assert!(stats.snapshot().forks == 2, "{:?}", stats.snapshot());
}

programs! {
    pages_that_were_made_inaccessible_keep_their_bytes_out_of_ram = check r#"
enum { P = 4096, N = 64 << 20 };
int main(void) {
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MANAGED(p));
    for (int i = 0; i < N / P; i++) memset(p + i * P, i % 251, P);
    // The last pages are in RAM and written to: they are shut there.
    CHECK(mprotect(p + N / 2, N / 2, PROT_NONE) == 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < N / P / 2; i++) CHECK(p[i * P] == (char)(i % 251));
    CHECK(mprotect(p + N / 2, N / 2, 3) == 0);
    for (int i = 0; i < N / P; i++) CHECK(p[i * P] == (char)(i % 251) && p[i * P + P - 1] == (char)(i % 251));
}"#;
    memory_that_is_given_back_twice_is_given_out_once = everywhere r#"
enum { N = 1 << 20 };
static char *map(size_t n) { return mmap(NULL, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(void) {
    char *p = map(4 * N);
    memset(p, 1, 4 * N);
    CHECK(munmap(p + N, N) == 0 && munmap(p, 4 * N) == 0 && munmap(p, 4 * N) == 0);
    char *all[8];
    for (int i = 0; i < 8; i++) { all[i] = map(N); memset(all[i], i, N); }
    for (int i = 0; i < 8; i++) for (int k = 0; k < N; k += 4096) CHECK(all[i][k] == i);
}"#;
    a_bad_pointer_is_a_signal_or_an_error_and_never_the_end = everywhere r#"
#include <setjmp.h>
enum { N = 1 << 20 };
static sigjmp_buf back;
static void caught(int signal, siginfo_t *info, void *context) {
    siglongjmp(back, info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR ? 1 : 2);
}
int main(void) {
    struct sigaction act = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &act, NULL);
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *never = p + (1l << 30);
    memset(p, 1, N);
    CHECK(munmap(p, N) == 0);
    char *bad[] = {p, p + N / 2, never};
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY), pipes[2];
    CHECK(pipe(pipes) == 0);
    for (int i = 0; i < 3; i++) {
        int how = sigsetjmp(back, 1);
        if (!how) { *(volatile char *)bad[i] = 1; CHECK(0); }
        CHECK(how == 1);
        CHECK(read(zero, bad[i], 8192) == -1 && errno == EFAULT);
        CHECK(write(pipes[1], bad[i], 8192) == -1 && errno == EFAULT);
    }
    // a system call that reaches over the end of a mapping
    p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(munmap(p + N / 2, N / 2) == 0);
    CHECK(read(zero, p + N / 2 - 4096, 8192) == 4096);
}"#;
    locks_and_advice_about_holes_are_answered_as_the_kernel_does = everywhere r#"
enum { P = 4096, N = 64 * P };
int main(void) {
    char *p = mmap(NULL, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, N);
    CHECK(munmap(p + 8 * P, 4 * P) == 0);
    CHECK(mlock(p, 16 * P) == -1 && errno == ENOMEM);
    CHECK(munlock(p, 16 * P) == -1 && errno == ENOMEM);
    CHECK(mlock2(p, P, 77) == -1 && errno == EINVAL);
    CHECK(mlock(p, P) == 0 && mlock(p, P) == 0 && madvise(p, P, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(munlock(p, P) == 0 && madvise(p, P, MADV_DONTNEED) == 0 && p[0] == 0);
    int known[] = {MADV_NORMAL, MADV_DONTNEED, MADV_WILLNEED, MADV_FREE, MADV_COLD, MADV_PAGEOUT, MADV_DONTDUMP,
        MADV_DODUMP, MADV_HUGEPAGE, MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_KEEPONFORK};
    for (int i = 0; i < sizeof known / sizeof *known; i++) {
        CHECK(madvise(p, 4 * P, known[i]) == 0);
        errno = 0;
        CHECK(madvise(p, 16 * P, known[i]) == -1 && errno == ENOMEM);
    }
    CHECK(p[13 * P] == 0 && p[0] == 0 && p[20 * P] == 1);
    CHECK(madvise(p, P, MADV_REMOVE) == -1 && errno == EINVAL);
    CHECK(madvise(p, P, 4711) == -1 && errno == EINVAL);
    CHECK(madvise(p, P, MADV_POPULATE_WRITE) == 0 && madvise(p, 16 * P, MADV_POPULATE_READ) == -1 && errno == ENOMEM);
    CHECK(msync(p, P, MS_ASYNC) == 0 && msync(p + 8 * P, P, MS_ASYNC) == -1 && errno == ENOMEM);
    unsigned char in[16];
    CHECK(mincore(p, P, in) == 0 && (in[0] & 1) && mincore(p, 16 * P, in) == -1 && errno == ENOMEM);
}"#;
    a_child_has_what_the_program_has_said_it_shall_have = everywhere r#"
#include <setjmp.h>
enum { N = 1 << 20 };
static sigjmp_buf back;
static void caught(int signal) { siglongjmp(back, 1); }
static char *map(int fill) {
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, fill, N);
    return p;
}
int main(void) {
    signal(SIGSEGV, caught);
    char *kept = map(1), *wiped = map(2), *gone = map(3);
    CHECK(madvise(wiped, N / 2, MADV_WIPEONFORK) == 0 && madvise(gone, N / 2, MADV_DONTFORK) == 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < N; i += 4096) CHECK(kept[i] == 1 && wiped[i] == (i < N / 2 ? 0 : 2));
        if (!sigsetjmp(back, 1)) { *(volatile char *)gone = 1; CHECK(0); }
        CHECK(gone[N / 2] == 3);
        CHECK(mmap(gone, N / 2, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == gone && gone[0] == 0);
        memset(gone, 4, N); memset(wiped, 5, N); memset(kept, 6, N);
        for (int i = 0; i < N; i += 4096) CHECK(kept[i] == 6 && wiped[i] == 5 && gone[i] == 4);
        _exit(0);
    }
    int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < N; i += 4096) CHECK(kept[i] == 1 && wiped[i] == 2 && gone[i] == 3);
}"#;
    a_place_that_the_program_asks_for_is_given_if_it_is_free = everywhere r#"
enum { N = 1 << 20 };
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
int main(int argc, char **argv) {
    // Java, sbcl, GHC, Go
    char *wish[] = {
        (char *)0x100000000, (char *)0x700000000, (char *)0x1000000000, (char *)0x4200000000, (char *)0xc000000000};
    for (int i = 0; i < 5; i++) {
        char *p = mmap(wish[i], 64 * N, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
        CHECK(p == wish[i] && mmap(p + N, N, 3, ANON | MAP_FIXED, -1, 0) == p + N);
        memset(p + N, 1, N);
        CHECK(mmap(p, 4096, 3, ANON, -1, 0) != p);
        CHECK(mmap(p, 4096, 3, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
        CHECK(mmap(p + 64 * N, 4096, 3, ANON | MAP_FIXED_NOREPLACE, -1, 0) == p + 64 * N);
        CHECK(munmap(p, 65 * N) == 0 && mmap(p, 8192, 3, ANON, -1, 0) == p && p[0] == 0);
    }
    // who asks for the impossible and insists gets it elsewhere
    char *far = (char *)0x40000000000, *p = MAP_FAILED;
    for (int i = 0; i < 3 && p != far; i++) {
        p = mmap(far, 16 * N, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
        CHECK(p != MAP_FAILED && (p == far || munmap(p, 16 * N) == 0));
    }
}"#;
    files_and_shared_memory_are_mapped_over_managed_memory_and_away_again = everywhere r#"
enum { P = 4096, N = 1 << 20 };
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
int main(int argc, char **argv) {
    int fd = memfd_create("x", 0);
    CHECK(ftruncate(fd, N) == 0 && pwrite(fd, "file", 4, P) == 4);
    char *p = mmap(NULL, 4 * N, 3, ANON, -1, 0);
    memset(p, 1, 4 * N);
    char *a = mmap(p + N, N, 3, MAP_SHARED | MAP_FIXED, fd, 0),
         *b = mmap(p + 2 * N, N, 3, MAP_SHARED | MAP_FIXED, fd, 0);
    CHECK(a == p + N && b == p + 2 * N && !strcmp(a + P, "file") && !strcmp(b + P, "file"));
    strcpy(a + P, "both"); CHECK(!strcmp(b + P, "both") && p[N - 1] == 1 && p[3 * N] == 1);
    CHECK(madvise(p, 4 * N, MADV_WILLNEED) == 0 && mprotect(p, 4 * N, PROT_READ) == 0 && mprotect(p, 4 * N, 3) == 0);
    pid_t child = fork();
    if (child == 0) { strcpy(a + P, "kid"); CHECK(p[0] == 1 && p[3 * N] == 1); _exit(0); }
    int status; CHECK(waitpid(child, &status, 0) == child && status == 0 && !strcmp(b + P, "kid"));
    // moved out of the span, into it and within
    char *far = (char *)0x100000000000;
    CHECK(mremap(a, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, far) == far && !strcmp(far + P, "kid"));
    CHECK(mprotect(a, P, 3) == -1 && errno == ENOMEM && mmap(a, N, 3, ANON | MAP_FIXED_NOREPLACE, -1, 0) == a);
    memset(a, 2, N);
    CHECK(mremap(far, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, a) == a && !strcmp(a + P, "kid") && p[0] == 1);
    CHECK(mremap(a, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p && !strcmp(p + P, "kid"));
    CHECK(mremap(p, N, N / 2, 0) == p && mprotect(p + N / 2, P, 3) == -1 && errno == ENOMEM);
    CHECK(mmap(p, 4 * N, 3, ANON | MAP_FIXED, -1, 0) == p);
    for (int i = 0; i < 4 * N; i += P) CHECK(p[i] == 0);
    memset(p, 3, 4 * N);
    CHECK(munmap(p, 4 * N) == 0);
}"#;
    memory_moves_with_its_content_and_leaves_out_what_has_none = everywhere r#"
enum { P = 4096, N = 1 << 20 };
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
int main(void) {
    size_t huge = 8ul << 30;
    char *p = mmap(NULL, huge, 3, ANON | MAP_NORESERVE, -1, 0), *q;
    CHECK(p != MAP_FAILED);
    for (size_t i = 0; i < huge; i += huge / 64) p[i] = i / (huge / 64) + 1;
    CHECK(mmap(p + huge, P, 3, ANON | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED || errno == EEXIST);
    q = mremap(p, huge, huge + N, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && q != p);
    for (size_t i = 0; i < huge; i += huge / 64) CHECK(q[i] == (char)(i / (huge / 64) + 1));
    CHECK(munmap(q, huge + N) == 0);
    // the old place stays, empty
    p = mmap(NULL, N, 3, ANON, -1, 0); memset(p, 5, N);
    CHECK(mprotect(p, N, PROT_READ) == 0);
    q = mremap(p, N, N, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    CHECK(q != MAP_FAILED && q != p && q[N - 1] == 5 && p[0] == 0);
    CHECK(mprotect(p, N, 3) == 0 && mprotect(q, N, 3) == 0); p[0] = 1; q[0] = 2; CHECK(p[0] == 1 && q[0] == 2);
    // what cannot be accessed moves too
    CHECK(mprotect(q, N, PROT_NONE) == 0);
    p = mremap(q, N, 2 * N, MREMAP_MAYMOVE);
    CHECK(p != MAP_FAILED && mprotect(p, 2 * N, 3) == 0 && p[0] == 2 && p[P] == 5 && p[N] == 0);
    CHECK(mremap(p + 1, N, N, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap(p, N, N, MREMAP_FIXED, q) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap(p, N, 2 * N, MREMAP_MAYMOVE | MREMAP_FIXED, p + P) == MAP_FAILED && errno == EINVAL);
}"#;
}

/// A garbage collector (libgc, which guile and others use) reads all writable data of libraries, including this one's.
#[test]
fn every_byte_of_the_data_of_all_libraries_can_be_read() {
    let source = r#"
#include <link.h>
static size_t seen, libraries;
static int look(struct dl_phdr_info *info, size_t size, void *none) {
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W)) continue;
        const volatile char *at = (const volatile char *)(info->dlpi_addr + part->p_vaddr);
        for (size_t k = 0; k < part->p_memsz; k += 64) seen += at[k] == 0;
        libraries++;
    }
    return 0;
}
int main(void) { dl_iterate_phdr(look, NULL); CHECK(libraries >= 3 && seen > 0); return 0; }"#;
    check("data", source);
    check_paged("data", source, 1 << 20, &[]);
}

programs! {
    what_a_program_advises_itself_by_its_own_pidfd_is_done_and_another_process_is_left_to_the_kernel = everywhere r#"
#include <sys/prctl.h>
#include <sys/uio.h>
enum { P = 4096, PAGES = 4096 };
static long advise(int by_number, int fd, struct iovec *parts, long count, int advice, long flags) {
    return by_number ? syscall(SYS_process_madvise, fd, parts, count, advice, flags)
                     : process_madvise(fd, parts, count, advice, flags);
}
int main(void) {
    char *p = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), outside[2] = {1, 2};
    CHECK(p != MAP_FAILED);
    int own = syscall(SYS_pidfd_open, getpid(), 0), other;
    if (own < 0 || (advise(1, own, NULL, 0, MADV_DONTNEED, 0) == -1 && errno == EINVAL)) return 0; // before Linux 6.13
    pid_t child = fork();
    if (child == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL); pause(); _exit(0); }
    CHECK((other = syscall(SYS_pidfd_open, child, 0)) >= 0);
    int advices[] = {MADV_DONTNEED, MADV_FREE, 24};
    for (int i = 0; i < 6; i++) {
        for (int page = 0; page < PAGES; page++) memset(p + page * P, page + 1, P);
        struct iovec parts[2] = {{p, PAGES / 4 * P}, {p + PAGES / 2 * P, PAGES / 4 * P}};
        CHECK(advise(i % 2, own, parts, 2, advices[i / 2], 0) == PAGES / 2 * P);
        for (int page = 0; page < PAGES; page++) {
            int kept = page / (PAGES / 4) % 2 || (advices[i / 2] == MADV_FREE && p[page * P]);
            CHECK(p[page * P] == (kept ? (char)(page + 1) : 0));
        }
        CHECK(advise(i % 2, own, parts, 2, MADV_DONTNEED, 1) == -1 && errno == EINVAL);
        CHECK(advise(i % 2, own, parts, 2, 4711, 0) == -1 && errno == EINVAL);
        CHECK(advise(i % 2, own, NULL, 1, MADV_DONTNEED, 0) == -1 && errno == EFAULT);
        parts[1].iov_base = p + 1;
        CHECK(advise(i % 2, own, parts, 2, MADV_WILLNEED, 0) == PAGES / 4 * P);
        CHECK(advise(i % 2, other, parts, 1, MADV_DONTNEED, 0) == -1 && errno == EINVAL);
        CHECK(advise(i % 2, other, parts, 1, MADV_COLD, 0) == PAGES / 4 * P);
        CHECK(advise(i % 2, 0, parts, 1, MADV_DONTNEED, 0) == -1 && errno == EBADF);
    }
    kill(child, SIGKILL);
    return 0;
}"#;
}

#[test]
fn shared_memory_does_not_take_the_place_of_managed_memory() {
    let source = r#"
#include <sys/ipc.h>
#include <sys/shm.h>
int main(void) {
    enum { LEN = 1 << 20 };
    char *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MANAGED(memory)); memset(memory, 7, LEN);
    int id = shmget(IPC_PRIVATE, LEN, 0600); CHECK(id >= 0);
    void *there = shmat(id, memory, SHM_REMAP); int error = errno;
    void *bare = (void *)syscall(SYS_shmat, id, memory, SHM_REMAP), *free = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    CHECK(there == (void *)-1 && error == EINVAL && bare == (void *)-1 && free != (void *)-1);
    for (int i = 0; i < LEN; i++) CHECK(memory[i] == 7);
}"#;
    check("remapped", source);
    check_paged("remapped", source, 4 << 20, &[]);
}
