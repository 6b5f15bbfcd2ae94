//! Addresses that are not memory of the program's: pointers that cannot be read, holes, the pager's own memory; and
//! attributes of memory that gets another address.

use crate::common::{check, check_paged, everywhere};

programs! {
    /// Tables of gigabytes would make a core file as large.
    a_core_dump_of_a_program_and_of_its_child_has_no_memory_of_the_pagers = check r#"
static void look(void) {
    char line[512]; unsigned long start = 0, end = 0, large = 0; FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long a, b;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &a, &b, rights) == 3) start = a, end = rights[1] == 'w' ? b : a;
        if (!strncmp(line, "VmFlags", 7) && !strstr(line, " dd")) large += end - start;
    }
    fclose(maps); CHECK(large < 64 << 20);
}
int main(void) {
    char *big = malloc(8 << 20); for (int i = 0; i < 8 << 20; i += 4096) big[i] = 1;
    look(); pid_t child = fork(); int status;
    if (child == 0) { look(); _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0); look();
}"#;

    a_pointer_that_cannot_be_read_is_an_error_and_no_signal = everywhere r#"
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
enum { P = 4096 };
static int pipes[2];
static void refused(long bad) {
#define FAULT(...) CHECK(syscall(__VA_ARGS__) == -1 && errno == EFAULT)
    FAULT(SYS_openat2, AT_FDCWD, "/", bad, 24);
    FAULT(SYS_vmsplice, pipes[1], bad, 1, 0); CHECK(vmsplice(pipes[1], (void *)bad, 1, 0) == -1 && errno == EFAULT);
    FAULT(SYS_prlimit64, 0, RLIMIT_NOFILE, bad, 0); FAULT(SYS_setrlimit, RLIMIT_NOFILE, bad);
    CHECK(setrlimit(RLIMIT_NOFILE, (void *)bad) == -1 && errno == EFAULT);
    FAULT(SYS_seccomp, 1, 0, bad); FAULT(SYS_clone3, bad, 88);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, 2, bad, 0, 0) == -1 && errno == EFAULT);
    struct { unsigned short len; void *lines; } filter = {4, (void *)bad};
    FAULT(SYS_seccomp, 1, 0, &filter);
    struct iovec near = {&filter, 2}, far = {pipes, 2};
    FAULT(SYS_process_vm_readv, getpid(), bad, 1, &far, 1, 0);
    FAULT(SYS_process_vm_readv, getpid(), &near, 1, bad, 1, 0);
    FAULT(SYS_process_vm_writev, getpid(), &near, 1, bad, 1, 0);
    int own = syscall(SYS_pidfd_open, getpid(), 0);
    if (own >= 0) CHECK(syscall(SYS_process_madvise, own, bad, 1, MADV_DONTNEED, 0) == -1);
    close(own);
    unsigned char resident[1];
    if (syscall(SYS_io_uring_setup, 8, bad) == -1 && errno != EPERM && errno != ENOSYS) CHECK(errno == EFAULT);
    if (bad % P == 0) CHECK(mincore(pipes - (uintptr_t)pipes % P / sizeof *pipes, 1, (void *)bad) == -1);
}
int main(void) {
    CHECK(pipe(pipes) == 0);
    char *none = mmap(NULL, 16 * P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *gone = mmap(NULL, P, 3,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *managed = mmap(NULL, 64 * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(munmap(gone, P) == 0 && mprotect(managed + 8 * P, P, PROT_NONE) == 0);
    refused((long)none); refused((long)gone); refused((long)managed + 8 * P); refused((long)managed + 8 * P - 4);
    refused(8); refused(-8); FAULT(SYS_vmsplice, pipes[1], 0, 1, 0); FAULT(SYS_clone3, 0, 88);
    // What is out of RAM can be read.
    struct rlimit *limit = (void *)managed; CHECK(getrlimit(RLIMIT_NOFILE, limit) == 0);
    char *other = malloc(12 << 20); memset(other, 1, 12 << 20);
    CHECK(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, limit, 0) == 0);
}"#;
    a_hole_that_the_program_made_stays_its_own_also_in_a_child = everywhere r#"
enum { HEAP = 6 << 20 };
static char *heap;
static void child(char *hole, size_t len, int kind) {
    char *again = mmap(hole, len, 3, kind | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(again == hole);
    memset(again, 0x5a, len);
    for (int round = 0; round < 2; round++) for (int i = 0; i < HEAP; i += 4096) CHECK(heap[i]++ == 7 + round);
    pid_t grandchild = fork(); if (grandchild == 0) _exit(0);
    int status; CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
    for (size_t i = 0; i < len; i++) CHECK(again[i] == 0x5a);
    _exit(0);
}
int main(void) {
    heap = malloc(HEAP); memset(heap, 7, HEAP);
    size_t lens[] = {4096, 8192, 65536, 1 << 20};
    for (int i = 0; i < 16; i++) {
        int kind = i / 8 ? MAP_SHARED : MAP_PRIVATE, then = i / 4 % 2 ? MAP_SHARED : MAP_PRIVATE;
        char *hole = mmap(NULL, lens[i % 4], 3, kind | MAP_ANONYMOUS, -1, 0); int status;
        CHECK(hole != MAP_FAILED); memset(hole, 1, lens[i % 4]); CHECK(munmap(hole, lens[i % 4]) == 0);
        pid_t one = fork(); if (one == 0) child(hole, lens[i % 4], then);
        CHECK(waitpid(one, &status, 0) == one && status == 0);
    }
}"#;
    several_mappings_move_together_and_holes_stay_behind = check r#"
enum { P = 4096 };
int main(void) {
    for (int managed = 0; managed < 2; managed++) {
        char *from = mmap(NULL, 64 * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *place = mmap(NULL, 64 * P, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *to = managed ? place : (char *)0x110000000000;
        memset(from, 1, 64 * P);
        CHECK(mprotect(from + 8 * P, 8 * P, PROT_READ) == 0 && munmap(from + 20 * P, 4 * P) == 0);
        CHECK(madvise(from + 24 * P, P, MADV_DONTFORK) == 0);
        CHECK(mremap(from, 32 * P, 32 * P, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        for (int i = 0; i < 32; i++) if (i < 20 || i >= 24) CHECK(to[i * P] == 1 && to[i * P + P - 1] == 1);
        pid_t child = fork(); int status;
        if (child == 0) { to[8 * P] = 2; _exit(0); }
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        to[7 * P] = 2; to[16 * P] = 2; to[24 * P] = 2;
        CHECK(mremap(from, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED && errno == EFAULT);
        CHECK(from[32 * P] == 1);
    }
}"#;
    what_is_advised_and_locked_goes_with_mremap_to_any_place = check r#"
enum { P = 4096, N = 64 };
static int has(char *at, const char *flag) {
    char line[512]; unsigned long from, to; int here = 0; FILE *all = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, all)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) here = from <= (unsigned long)at && (unsigned long)at < to;
        if (here && !strncmp(line, "VmFlags:", 8)) { fclose(all); return strstr(line, flag) != NULL; }
    }
    fclose(all); return -1;
}
int main(void) {
    int advice[] = {MADV_DONTFORK, 18 /* WIPEONFORK */, MADV_DONTDUMP, MADV_MERGEABLE};
    const char *flags[] = {" dc", " wf", " dd", " mg"};
    for (int i = 0; i < 4; i++) {
        char *all = mmap(NULL, 2 * N * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *away = (char *)0x110000000000;
        if (madvise(all, N * P, advice[i]) == -1) { CHECK(errno == EINVAL); continue; }
        memset(all, 7, N * P); CHECK(MANAGED(all));
        CHECK(i != 2 || has(all, " dd") == 1);
        char *inside = mremap(all, N * P, N * P, MREMAP_MAYMOVE | MREMAP_FIXED, all + N * P);
        CHECK(inside == all + N * P && (i != 2 || has(inside, " dd") == 1));
        CHECK(mremap(inside, N * P, N * P, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away && away[N * P - 1] == 7);
        CHECK(has(away, flags[i]) == 1 && has(away, flags[(i + 1) % 4]) == 0 && munmap(away, N * P) == 0);
    }
    char *locked = mmap(NULL, N * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *away = (char *)0x110000000000;
    CHECK(mlock(locked, N * P) == 0 && has(away, " lo") == -1);
    CHECK(mremap(locked, N * P, N * P, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away && has(away, " lo") == 1);
}"#;
    a_stack_that_grows_by_itself_does_so_where_the_program_wishes_it = everywhere r#"
enum { P = 4096 };
int main(void) {
    char *hole = mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(hole != MAP_FAILED && munmap(hole, 64 << 20) == 0);
    char *stack = mmap(hole + (48 << 20), 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
    CHECK(stack != MAP_FAILED);
    for (int i = 0; i <= 16; i++) stack[-i * P] = i;
    for (int i = 0; i <= 16; i++) CHECK(stack[-i * P] == i);
}"#;
}

programs! {
    calls_about_all_that_is_in_proc_maps_leave_the_pagers_own_memory_alone_and_end_at_once = in_little r#"
enum { P = 4096, N = 8 << 20, LINES = 4096 };
static struct { unsigned long from, to; int writes; } lines[LINES];
static int count(void) {
    char line[512], rights[8]; int n = 0; FILE *all = fopen("/proc/self/maps", "r");
    while (n < LINES && fgets(line, sizeof line, all))
        if (sscanf(line, "%lx-%lx %7s", &lines[n].from, &lines[n].to, rights) == 3)
            lines[n++].writes = rights[1] == 'w';
    fclose(all); return n;
}
static long resident(void) {
    long kib = 0; char line[256]; FILE *all = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, all)) if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
    fclose(all); return kib;
}
int main(void) {
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < N; i += P) p[i] = i / P;
    long before = resident(); int n = count(), own = 0;
    for (int i = 0; i < n; i++) {
        char *at = (char *)lines[i].from; size_t len = lines[i].to - lines[i].from;
        CHECK(!lines[i].writes || len < 1ul << 40); // a collector of garbage would read it all
        // Managed memory is more than may be locked.
        if (!MANAGED(at) || !lines[i].writes) mlock(at, len), mlock2(at, len, 1), munlock(at, len);
        madvise(at, len, MADV_WILLNEED); msync(at, len, MS_ASYNC);
        if (lines[i].from < 1ul << 46 || lines[i].from >= 5ul << 44) continue;
        own++;
        unsigned char byte;
        CHECK(munmap(at, len) == 0 && mprotect(at, len, PROT_NONE) == -1 && errno == ENOMEM);
        CHECK(madvise(at, len, MADV_DONTNEED) == -1 && errno == ENOMEM && mlock(at, len) == -1 && errno == ENOMEM);
        CHECK(mincore(at, P, &byte) == -1 && errno == ENOMEM);
        CHECK(mmap(at, P, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == ENOMEM);
        CHECK(mmap(at, P, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED
            && errno == EEXIST);
        CHECK(mremap(at, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, p) == MAP_FAILED && errno == EFAULT);
        CHECK(mremap(p, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED && errno == ENOMEM);
        void *wish = (void *)(lines[i].from ^ 1ul << 43), *got = mmap(wish, P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(got != MAP_FAILED && got != wish);
    }
    CHECK(own > 10 && resident() < before + (64 << 10));
    pid_t child = fork(); int status;
    for (int i = 0; i < N; i += P) CHECK(p[i] == (char)(i / P));
    if (child == 0) _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}"#;
}

fn in_little(name: &str, source: &str) {
    check_paged(name, source, 4 << 20, &[]);
}
