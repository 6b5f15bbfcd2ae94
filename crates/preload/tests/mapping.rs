//! mmap and its kin, and descriptors.

mod common;

use coldframe_toolbox::{have, GCC};
use common::{check, compile, good, layout_only};

#[test]
fn large_private_anonymous_mappings_are_managed_and_no_others() {
    check(
        "which",
        r#"
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
static void *map(size_t n, int flags, int fd) { void *p = mmap(NULL, n, 3, flags, fd, 0); CHECK(p != MAP_FAILED); *(char *)p = 1; return p; }
int main(int argc, char **argv) {
    CHECK(MANAGED(map(128 << 10, ANON, -1)) && MANAGED(map(1 << 20, ANON | MAP_NORESERVE, -1)));
    CHECK(!MANAGED(map(64 << 10, ANON, -1)) && !MANAGED(map(1 << 20, MAP_SHARED | MAP_ANONYMOUS, -1)));
    CHECK(!MANAGED(map(1 << 20, ANON | MAP_STACK, -1)) && !MANAGED(map(1 << 20, ANON | MAP_GROWSDOWN, -1)));
    CHECK(!MANAGED(map(4096, MAP_PRIVATE, open(argv[0], O_RDONLY))));
#ifdef MAP_32BIT
    CHECK(!MANAGED(map(1 << 20, ANON | MAP_32BIT, -1)));
#endif
    CHECK(mmap((void *)0x10000000, 1 << 20, 3, ANON, -1, 0) == (void *)0x10000000);
    CHECK(MANAGED(syscall(SYS_mmap, NULL, 1 << 20, 3, ANON, -1, 0)));
    char *huge = mmap(NULL, 1ul << 40, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    CHECK(huge != MAP_FAILED && !MANAGED(huge));
    return 0;
}"#,
    );
}

#[test]
fn managed_mappings_behave_like_mappings() {
    check(
        "behave",
        r#"
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
    CHECK(madvise(p, N, MADV_DONTFORK) == -1 && errno == EINVAL);
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
    CHECK(mremap(q, N / 2, 2 * N, 0) == MAP_FAILED && errno == ENOMEM);
    char *r = mremap(q, N / 2, 2 * N, MREMAP_MAYMOVE);
    CHECK(MANAGED(r) && r[0] == 9 && r[N / 2 - 1] == 9 && r[N / 2] == 0 && (r == q || dies(q)));
    CHECK(mremap(r, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, 0x100000000000) == MAP_FAILED && errno == EINVAL);
    char *u = mmap(NULL, P, 3, ANON, -1, 0);
    CHECK(mremap(u, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, r) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap(u, P, 8 * P, MREMAP_MAYMOVE) != MAP_FAILED);
    // over managed memory
    r[0] = 5; r[P] = 5;
    CHECK(mmap(r, P, 3, ANON | MAP_FIXED, -1, 0) == r && r[0] == 0 && r[P] == 5);
    CHECK(mmap(r, P, PROT_NONE, ANON | MAP_FIXED, -1, 0) == r && dies(r) && mprotect(r, P, 3) == 0);
    CHECK(mmap(r, P, 1, MAP_PRIVATE | MAP_FIXED, open(argv[0], O_RDONLY), 0) == MAP_FAILED && errno == ENOMEM);
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
    return 0;
}"#,
    );
}

#[test]
fn a_program_that_closes_everything_leaves_our_descriptors_open() {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
int main(int argc, char **argv) {
    struct stat before, now; int ours = 900;
    CHECK(fstat(ours, &before) == 0);
#define ALIVE CHECK(fstat(ours, &now) == 0 && now.st_ino == before.st_ino)
    for (int d = 3; d < 1024; d++) { errno = 0; if (close(d) && d == ours) CHECK(errno == EBADF); }
    ALIVE;
    int other = open("/dev/null", O_RDONLY); CHECK(dup2(other, 899) == 899 && dup2(other, 901) == 901);
    CHECK(dup2(other, ours) == -1 && errno == EBADF && dup3(other, ours, 0) == -1 && errno == EBADF && dup2(ours, ours) == ours);
    ALIVE;
    CHECK(close_range(3, ~0u, 0) == 0); ALIVE;
    CHECK(fcntl(899, F_GETFD) == -1 && fcntl(901, F_GETFD) == -1 && fcntl(other, F_GETFD) == -1);
    CHECK(close_range(ours, ours, 0) == 0); ALIVE;
    CHECK(close_range(5, 4, 0) == -1 && errno == EINVAL);
    closefrom(3); ALIVE;
    CHECK(syscall(SYS_close, ours) == -1 && errno == EBADF && syscall(SYS_close_range, 3, ~0u, 0) == 0); ALIVE;
    CHECK(close(77) == -1 && errno == EBADF && dup2(77, 77) == -1 && errno == EBADF);
    int copy = dup(ours); CHECK(copy >= 0 && close(copy) == 0); ALIVE;
    pid_t child = fork(); int status;
    if (child == 0) { closefrom(3); ALIVE; _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    if (argc == 1) { execl(argv[0], argv[0], "again", NULL); _exit(98); }
    return 0;
}"#;
    let program = compile(dir.path(), "closes", source, &[]);
    let mut options = coldframe_live::Options::new(1 << 20);
    options.stats_fd = Some(900);
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "exec 900<>/dev/zero; exec env LD_PRELOAD=\"$LIBRARY\" \"$PROGRAM\""]);
    let ready = layout_only(program.clone());
    for (name, value) in ready.get_envs().filter(|(name, _)| *name != "LD_PRELOAD") {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.env("LIBRARY", common::library()).env("PROGRAM", program).env("COLDFRAME_OPTIONS", options.encode());
    good(&mut shell);
}

#[test]
fn pages_that_were_made_inaccessible_keep_their_bytes_out_of_ram() {
    check(
        "shut",
        r#"
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
    return 0;
}"#,
    );
}

#[test]
fn a_file_opened_with_o_direct_is_read_into_pages_that_come_and_go() {
    check(
        "direct",
        r#"
enum { P = 4096, N = 32 << 20 };
int main(int argc, char **argv) {
    char name[64]; snprintf(name, sizeof name, "/var/tmp/coldframe-direct-%d", getpid());
    int out = open(name, O_CREAT | O_RDWR, 0600), in = open(name, O_RDONLY | O_DIRECT);
    unlink(name);
    CHECK(out >= 0 && in >= 0 && !(fcntl(in, F_GETFL) & O_DIRECT));
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < N / P; i++) { memset(p, i % 251, P); CHECK(write(out, p, P) == P); }
    CHECK(read(in, p, N) == N);
    for (int i = 0; i < N / P; i++) CHECK(p[i * P] == (char)(i % 251) && p[i * P + P - 1] == (char)(i % 251));
    int raw = syscall(SYS_openat, AT_FDCWD, argv[0], O_RDONLY | O_DIRECT);
    CHECK(raw >= 0 && !(fcntl(raw, F_GETFL) & O_DIRECT));
    return 0;
}"#,
    );
}
