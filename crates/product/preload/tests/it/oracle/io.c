/* System calls that move bytes to and from memory, in RAM or not. */
#include "oracle.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* A file without a name. Its descriptor is the lowest free number, which a program may rely on. */
static int new_file(int flags) {
    char name[] = "oracle.io.XXXXXX";
    int file = mkostemp(name, 0);
    if (file < 0) {
        say_outcome("file", file);
        return -1;
    }
    if (flags) {
        int again = open(name, O_RDWR | flags);
        close(file);
        file = again;
    }
    unlink(name);
    say(" descriptor %d", file);
    return file;
}
static size_t split(struct iovec *parts, int n, unsigned char *at, size_t len) {
    size_t each = len / n;
    for (int i = 0; i < n; i++) parts[i] = (struct iovec){at + each * i, i + 1 < n ? each : len - each * i};
    return len;
}
/* Whole transfers, even if the kernel moves fewer bytes at a time. */
static void pour(int to, const unsigned char *at, size_t len) {
    while (len) {
        ssize_t n = write(to, at, len);
        must(n > 0, "write");
        at += n, len -= n;
    }
}
static void draw(int from, unsigned char *at, size_t len) {
    while (len) {
        ssize_t n = read(from, at, len);
        must(n > 0, "read");
        at += n, len -= n;
    }
}
static void compare(const unsigned char *got, const struct range *r, size_t skip, size_t len, const char *way) {
    static unsigned char wanted[SCRATCH / 2];
    expect(r, wanted);
    if (memcmp(got, wanted + skip, len)) {
        size_t at = 0;
        while (got[at] == wanted[skip + at]) at++;
        wrong("%s took wrong bytes from %zu on of %zu (offset %zu)", way, at, len, skip);
    }
}

/* Bytes leave memory. */
static void op_write(void) {
    struct range r;
    if (!pick_with(&r, 100, PROT_READ)) return;
    size_t skip = one_in(2) ? below(PAGE) : 0, len = length(&r) - skip;
    unsigned char *at = start(&r) + skip;
    struct iovec parts[5];
    int file, ends[2], way = below(7);
    if (one_in(2)) churn(300);
    static const char *const ways[] = {"write", "pwrite", "writev", "pipe", "socket", "vmsplice", "process_vm_readv"};
    say(" %s", ways[way]);
    switch (way) {
    case 0:
    case 1:
    case 2:
        if ((file = new_file(0)) < 0) return;
        if (way == 0) pour(file, at, len);
        if (way == 1) must(pwrite(file, at, len, 0) == (ssize_t)len, "pwrite");
        if (way == 2) must(writev(file, parts, (split(parts, 5, at, len), 5)) == (ssize_t)len, "writev");
        must(pread(file, scratch(), len, 0) == (ssize_t)len, "reading back");
        close(file);
        break;
    case 5: /* the pages themselves are lent to the pipe, so they must not change before they are read */
        if (len > 60000) len = 60000;
        must(pipe(ends) == 0, "a pipe");
        parts[0] = (struct iovec){at, len};
        {
            ssize_t n = vmsplice(ends[1], parts, 1, 0);
            must(n > 0, "vmsplice");
            len = n;
        }
        churn(300);
        draw(ends[0], scratch(), len);
        close(ends[0]);
        close(ends[1]);
        len = len > 60000 ? 60000 : len;
        break;
    case 6:
        parts[0] = (struct iovec){scratch(), len};
        parts[1] = (struct iovec){at, len};
        must(process_vm_readv(getpid(), parts, 1, parts + 1, 1, 0) == (ssize_t)len, "process_vm_readv");
        break;
    default:
        must((way == 3 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) == 0, "two ends");
        for (size_t done = 0; done < len;) {
            size_t n = len - done < 60000 ? len - done : 60000;
            pour(ends[1], at + done, n);
            draw(ends[0], scratch() + done, n);
            done += n;
        }
        close(ends[0]);
        close(ends[1]);
    }
    compare(scratch(), &r, skip, len, ways[way]);
}

/* Bytes come into memory; the pages around them keep theirs. */
static void op_read(void) {
    struct range r;
    static unsigned char wanted[SCRATCH / 2];
    if (!pick_with(&r, 100, RW)) return;
    size_t skip = one_in(2) ? below(PAGE) : 0, len = length(&r) - skip;
    if (len > PAGE && one_in(2)) len -= below(PAGE);
    unsigned char *at = start(&r) + skip;
    struct iovec parts[5];
    int file, ends[2], way = below(7);
    uint64_t number = next_version();
    fill(scratch(), len, number, 0);
    expect(&r, wanted);
    memcpy(wanted + skip, scratch(), len);
    if (one_in(2)) churn(300);
    static const char *const ways[] = {"read", "pread", "readv", "pipe", "socket", "preadv2", "process_vm_writev"};
    say(" %s", ways[way]);
    switch (way) {
    case 3:
    case 4:
        must((way == 3 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) == 0, "two ends");
        for (size_t done = 0; done < len;) {
            size_t n = len - done < 60000 ? len - done : 60000;
            pour(ends[1], scratch() + done, n);
            if (way == 4 && one_in(2)) {
                must(recv(ends[0], at + done, n, MSG_WAITALL) == (ssize_t)n, "recv");
            } else {
                draw(ends[0], at + done, n);
            }
            done += n;
        }
        close(ends[0]);
        close(ends[1]);
        break;
    case 6:
        parts[0] = (struct iovec){scratch(), len};
        parts[1] = (struct iovec){at, len};
        must(process_vm_writev(getpid(), parts, 1, parts + 1, 1, 0) == (ssize_t)len, "process_vm_writev");
        break;
    default:
        if ((file = new_file(0)) < 0) return;
        pour(file, scratch(), len);
        lseek(file, 0, SEEK_SET);
        if (way == 0) draw(file, at, len);
        if (way == 1) must(pread(file, at, len, 0) == (ssize_t)len, "pread");
        if (way == 2) must(readv(file, parts, (split(parts, 5, at, len), 5)) == (ssize_t)len, "readv");
        if (way == 5) must(preadv2(file, parts, (split(parts, 5, at, len), 5), 0, 0) == (ssize_t)len, "preadv2");
        close(file);
    }
    if (one_in(3)) churn(300);
    if (memcmp(start(&r), wanted, length(&r))) {
        size_t byte = 0;
        while (start(&r)[byte] == wanted[byte]) byte++;
        wrong("%s left wrong bytes at %zu of %zu (offset %zu)", ways[way], byte, len, skip);
    }
    write_range(&r);
}

/* Without the page cache: the device writes to memory directly. The flag is set by open or later. */
static void op_direct(void) {
    struct range r;
    if (!pick_with(&r, 100, RW)) return;
    int late = one_in(2), file = new_file(late ? 0 : O_DIRECT);
    if (file < 0) return;
    if (late && fcntl(file, F_SETFL, O_DIRECT) != 0) { /* a file system without it */
        close(file);
        return;
    }
    uint32_t first = next_version();
    for (unsigned i = 1; i < r.n; i++) next_version();
    check_range(&r);
    if (one_in(2)) churn(300);
    must(pwrite(file, start(&r), length(&r), 0) == (ssize_t)length(&r), "pwrite past the cache");
    must(fcntl(file, F_SETFL, 0) == 0 && pread(file, scratch(), length(&r), 0) == (ssize_t)length(&r), "reading back");
    compare(scratch(), &r, 0, length(&r), "O_DIRECT");
    for (unsigned i = 0; i < r.n; i++) fill(scratch() + (size_t)i * PAGE, PAGE, first + i, 0);
    must(pwrite(file, scratch(), length(&r), 0) == (ssize_t)length(&r), "writing the file");
    must(fcntl(file, F_SETFL, O_DIRECT) == 0, "O_DIRECT again");
    must(pread(file, start(&r), length(&r), 0) == (ssize_t)length(&r), "pread past the cache");
    for (unsigned i = 0; i < r.n; i++) {
        page(&r, i)->version = first + i;
        if (page(&r, i)->kind == SHARED) page(&r, i)->original = first + i;
    }
    churn(200);
    check_range(&r);
    close(file);
}

/* Memory that system calls read or write besides bytes of files: names, times, vectors, sets. */
static void op_structures(void) {
    size_t len = 40 * PAGE;
    unsigned char *at = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED, "memory");
    for (unsigned i = 0; i < 40; i++) at[i * PAGE + 3000] = i;
    churn(300);
    /* Each is on its own page; some cross a border. */
    char *name = (char *)at + 3 * PAGE - 4;
    strcpy(name, "/dev/null");
    churn(100);
    int null = open(name, O_RDWR), ends[2];
    say(" descriptor %d", null);
    say_outcome("stat", fstat(null, (struct stat *)(at + 5 * PAGE - 16)));
    say(" device %d", S_ISCHR(((struct stat *)(at + 5 * PAGE - 16))->st_mode));
    struct timespec *time = (void *)(at + 7 * PAGE - 8);
    say_outcome("time", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, time));
    *time = (struct timespec){0, 1000};
    churn(200);
    say_outcome("sleep", nanosleep(time, (struct timespec *)(at + 8 * PAGE)));
    must(pipe(ends) == 0, "a pipe");
    struct pollfd *polled = (void *)(at + 10 * PAGE - 8);
    polled[0] = (struct pollfd){ends[0], POLLIN, 0}, polled[1] = (struct pollfd){ends[1], POLLOUT, 0};
    churn(200);
    say_outcome("poll", poll(polled, 2, 1000));
    say(" %d %d", polled[0].revents, polled[1].revents);
    fd_set *set = (void *)(at + 12 * PAGE - 64);
    FD_ZERO(set);
    FD_SET(ends[1], set);
    churn(200);
    say(" select %d", select(ends[1] + 1, NULL, set, NULL, (struct timeval *)(at + 14 * PAGE)));
    int all = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event *events = (void *)(at + 16 * PAGE - 4);
    *events = (struct epoll_event){.events = EPOLLIN, .data.u32 = 77};
    say_outcome("epoll", epoll_ctl(all, EPOLL_CTL_ADD, ends[0], events));
    must(write(ends[1], "x", 1) == 1, "write");
    churn(200);
    say(" %d events", epoll_wait(all, events, 3, 1000));
    say(" data %u", events->data.u32);
    struct iovec *parts = (void *)(at + 18 * PAGE - 8);
    parts[0] = (struct iovec){at + 20 * PAGE, 10}, parts[1] = (struct iovec){at + 22 * PAGE - 5, 10};
    churn(200);
    say(" readv %d", (int)readv(ends[0], parts, 2));
    say_outcome("cwd", syscall(SYS_getcwd, at + 24 * PAGE - 2, PAGE));
    say_outcome("link", readlink("/proc/self/cwd", (char *)at + 26 * PAGE - 3, 2000) > 0 ? 0 : -1);
    sigset_t *mask = (void *)(at + 28 * PAGE - 4);
    say_outcome("mask", sigprocmask(SIG_BLOCK, NULL, mask));
    say_outcome("random", syscall(SYS_getrandom, at + 30 * PAGE - 20, 40, 0) == 40 ? 0 : -1);
    say_outcome("bad", write(ends[1], (void *)(uintptr_t)8, 1));
    for (unsigned i = 0; i < 40; i++) must(at[i * PAGE + 3000] == i, "a page beside the structures");
    close(all);
    close(ends[0]);
    close(ends[1]);
    close(null);
    munmap(at, len);
}
/* Through a debugger's view of the memory. */
static void op_proc_mem(void) {
    struct range r;
    if (!pick_with(&r, 20, RW)) return;
    int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    churn(300);
    ssize_t n = pread(file, scratch(), length(&r), (off_t)(uintptr_t)start(&r));
    say(" %zd of %zu", n, length(&r));
    if (n == (ssize_t)length(&r)) compare(scratch(), &r, 0, length(&r), "/proc/self/mem");
    close(file);
}
/* A file's mapping past its end gives SIGBUS, which is the program's own. */
static void op_past_the_end(void) {
    int file = new_file(0);
    if (file < 0) return;
    must(ftruncate(file, 3 * PAGE) == 0, "ftruncate");
    unsigned char *at = mmap(NULL, 8 * PAGE, RW, one_in(2) ? MAP_SHARED : MAP_PRIVATE, file, 0);
    must(at != MAP_FAILED, "a mapping");
    say(" inside %s", probed(probe_write(at + 2 * PAGE)));
    say(" outside %s", probed(probe_read(at + 4 * PAGE)));
    must(ftruncate(file, PAGE) == 0, "ftruncate");
    say(" cut off %s", probed(probe_read(at + 2 * PAGE)));
    munmap(at, 8 * PAGE);
    close(file);
}

/* A file that a process serves (FUSE) and that the kernel reads straight into the pages of the buffer, which it holds
 * meanwhile. Each word of the file is its offset times a number. The judge makes the file, where it may. */
enum { SERVED = 16 };
static volatile int pressing;
static void *press(void *argument) {
    volatile unsigned char sink;
    for (uint64_t i = (uintptr_t)argument; pressing; i++) {
        struct slab *s = &slabs[mix(i, 3) % SLABS];
        unsigned page = s->n ? mix(i, 4) % s->n : 0;
        if (s->n && s->page[page].prot & PROT_READ) sink = s->at[(size_t)page * PAGE];
    }
    (void)sink;
    return NULL;
}
static void op_served(void) {
    struct range r;
    struct stat status;
    if (!pick_with(&r, SERVED, RW)) return;
    int file = open("oracle.served", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) || status.st_size == 0) {
        if (file >= 0) close(file);
        return;
    }
    sigset_t all, old; /* the first thread handles the process's signals */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    pressing = 1;
    must(pthread_create(&thread, NULL, press, (void *)(uintptr_t)(chance() >> 8)) == 0, "a thread");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    unsigned rounds = between(1, 6);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t from = (uint64_t)below(10000) * PAGE;
        must(pread(file, start(&r), length(&r), from) == (ssize_t)length(&r), "a file that is served is read");
        for (size_t at = 0; at < length(&r); at += 8) {
            uint64_t word;
            memcpy(&word, start(&r) + at, 8);
            if (word != (from + at) * 0x9e3779b97f4a7c15u)
                wrong("a file that is served has other bytes at %zu of %zu", at, length(&r));
        }
    }
    pressing = 0;
    must(pthread_join(thread, NULL) == 0, "a thread ends");
    close(file);
    write_range(&r);
    say(" %u of %u", rounds, r.n);
}

const struct op io_ops[] = {
    {"write", "write", 6, op_write},
    {"read", "read", 6, op_read},
    {"direct", "direct", 4, op_direct},
    {"structures", "structures", 3, op_structures},
    {"served", "served", 3, op_served},
    {"proc-mem", "proc-mem", 1, op_proc_mem},
    {"past-the-end", "past-the-end", 1, op_past_the_end},
    {0},
};
