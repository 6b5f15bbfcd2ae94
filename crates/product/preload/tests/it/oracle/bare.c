/* System calls without the C library. A pager that replaces its functions does not see them, but the kernel must find
 * the memory that they name. (Calls that change managed mappings by themselves are not covered, as the README says.) */
#include "oracle.h"
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

long bare(long number, long a, long b, long c, long d, long e, long f) {
    long result;
#if defined __x86_64__
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
        : "=a"(result)
        : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
        : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    result = x0;
#endif
    if (result < 0 && result > -4096) {
        errno = -result;
        return -1;
    }
    return result;
}
static long call(int by_library, long number, long a, long b, long c, long d) {
    return by_library ? syscall(number, a, b, c, d, 0L, 0L) : bare(number, a, b, c, d, 0, 0);
}

/* Bytes to a file and back. */
static void op_bare_file(void) {
    struct range r;
    if (!pick_with(&r, 60, RW)) return;
    long at = (long)start(&r), len = length(&r);
    int file = call(one_in(2), SYS_memfd_create, (long)"oracle", 0, 0, 0), library = one_in(3);
    uint32_t first = next_version();
    for (unsigned i = 1; i < r.n; i++) next_version();
    say(" %u descriptor %d", r.n, file);
    churn(300);
    must(call(library, SYS_pwrite64, file, at, len, 0) == len, "a bare pwrite");
    must(pread(file, scratch(), len, 0) == len, "reading back");
    for (unsigned i = 0; i < r.n; i++)
        must(same(scratch() + (size_t)i * PAGE, PAGE, page(&r, i)->version, 0), "what a bare call wrote");
    for (unsigned i = 0; i < r.n; i++) fill(scratch() + (size_t)i * PAGE, PAGE, first + i, 0);
    must(pwrite(file, scratch(), len, 0) == len, "writing the file");
    churn(300);
    must(call(library, SYS_pread64, file, at, len, 0) == len, "a bare pread");
    for (unsigned i = 0; i < r.n; i++) {
        page(&r, i)->version = first + i;
        if (page(&r, i)->kind == SHARED) page(&r, i)->original = first + i;
    }
    churn(200);
    check_range(&r);
    say_outcome("close", call(library, SYS_close, file, 0, 0, 0));
    say_outcome("twice", call(library, SYS_close, file, 0, 0, 0));
}
/* Words and structures in memory that is not in RAM. */
static void op_bare_words(void) {
    unsigned char *at = calloc(16, PAGE);
    must(at != NULL, "memory");
    int library = one_in(3);
    uint32_t *word = (uint32_t *)(at + 2 * PAGE);
    churn(300);
    say(" futex %s", outcome(call(library, SYS_futex, (long)word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, 0)));
    say(" wake %ld", call(library, SYS_futex, (long)word, FUTEX_WAKE, 1, 0));
    struct timespec *time = (void *)(at + 5 * PAGE - 8);
    say_outcome("time", call(library, SYS_clock_gettime, CLOCK_REALTIME, (long)time, 0, 0));
    must(time->tv_sec > 1000000000, "a time");
    *time = (struct timespec){0, 1000};
    churn(200);
    say_outcome("sleep", call(library, SYS_nanosleep, (long)time, 0, 0, 0));
    say_outcome("random", call(library, SYS_getrandom, (long)(at + 7 * PAGE - 9), 40, 0, 0) == 40 ? 0 : -1);
    int *ends = (void *)(at + 9 * PAGE - 4);
    churn(200);
    say_outcome("pipe", call(library, SYS_pipe2, (long)ends, O_CLOEXEC, 0, 0));
    say(" %d %d", ends[0], ends[1]);
    struct pollfd *polled = (void *)(at + 11 * PAGE - 8);
    polled[0] = (struct pollfd){ends[1], POLLOUT, 0}, polled[1] = (struct pollfd){ends[0], POLLIN, 0};
    churn(200);
    say(" ready %ld", call(library, SYS_poll, (long)polled, 2, 0, 0));
    struct iovec *parts = (void *)(at + 13 * PAGE - 8);
    parts[0] = (struct iovec){"ab", 2}, parts[1] = (struct iovec){at + 14 * PAGE, 3};
    churn(200);
    say(" writev %ld", call(library, SYS_writev, ends[1], (long)parts, 2, 0));
    say(" affinity %ld", call(library, SYS_sched_getaffinity, 0, 128, (long)(at + 15 * PAGE - 64), 0));
    call(library, SYS_close, ends[0], 0, 0, 0);
    call(library, SYS_close, ends[1], 0, 0, 0);
    free(at);
}
/* Mappings outside of managed memory (shared ones), made and changed without the C library. */
static void op_bare_map(void) {
    unsigned n = between(2, 60);
    long len = (long)n * PAGE, at = bare(SYS_mmap, 0, len, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    say_outcome("map", at);
    if (at == -1) return;
    fill((void *)at, len, 7, 0);
    say_outcome("protect", bare(SYS_mprotect, at, PAGE, PROT_READ, 0, 0, 0));
    say(" write %s", probed(probe_write((void *)at)));
    say_outcome("advise", bare(SYS_madvise, at, len, MADV_WILLNEED, 0, 0, 0));
    churn(100);
    must(same((void *)at, len, 7, 0), "a bare mapping");
    say_outcome("unmap", bare(SYS_munmap, at, len, 0, 0, 0, 0));
    say(" touch %s", probed(probe_read((void *)at)));
}

/* Advice to itself by way of its own pidfd. The kernel may refuse (before Linux 6.13); what it does must hold. */
static void op_advise_self(void) {
    static const int advice[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT};
    struct range r[3];
    struct iovec parts[3];
    int which = advice[below(5)], n = between(1, 3), self = syscall(SYS_pidfd_open, getpid(), 0);
    must(self >= 0, "a descriptor of this process");
    if (locked_pages) which = MADV_WILLNEED;
    for (int i = 0; i < n; i++) {
        if (!pick(&r[i], 100)) {
            n = i;
            break;
        }
        parts[i] = (struct iovec){start(&r[i]), length(&r[i])};
    }
    long done =
        one_in(2) ? process_madvise(self, parts, n, which, 0) : syscall(SYS_process_madvise, self, parts, n, which, 0);
    say(" advice %d parts %d %s %ld", which, n, outcome(done), done);
    say(" flags %s", outcome(process_madvise(self, parts, n, which, 64)));
    close(self);
    for (int i = 0; i < n && which == MADV_DONTNEED; i++) {
        if (done < (long)length(&r[i])) break; /* whole parts only: the model knows no more */
        done -= length(&r[i]);
        for (unsigned k = 0; k < r[i].n; k++) {
            struct page *p = page(&r[i], k);
            p->version = p->kind == PRIVATE ? 0 : p->original;
        }
    }
    for (int i = 0; i < n; i++) {
        r[i].slab->whole = 0;
        check_range(&r[i]);
        if (one_in(2)) write_range(&r[i]);
    }
}

const struct op bare_ops[] = {
    {"bare-file", "bare", 2, op_bare_file},
    {"bare-words", "bare", 1, op_bare_words},
    {"bare-map", "bare", 1, op_bare_map},
    {"advise-self", "advise-self", 3, op_advise_self},
    {0},
};
