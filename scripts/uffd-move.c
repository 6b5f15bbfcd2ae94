// Fault by fault: a page read into a buffer and copied to its place (UFFDIO_COPY), or moved there (UFFDIO_MOVE, Linux 6.8).
// The second is the nearest form on Linux of DDB's page that stays in the buffer it was read into.
//
//   cc -O2 -pthread -o uffd-move scripts/uffd-move.c && ./uffd-move
//
// A thread touches the pages of a region one after the other; a second thread answers each fault: pread of the page from
// a file (in the page cache) into a buffer page, then COPY or MOVE. A moved buffer page is gone, so that the next pread
// faults a new one in. Prints the median, p99 and mean nanoseconds from the touch to its end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef UFFDIO_MOVE
struct uffdio_move { uint64_t dst, src, len, mode; int64_t move; };
#define UFFDIO_MOVE _IOWR(0xAA, 0x05, struct uffdio_move)
#define UFFD_FEATURE_MOVE (1 << 16)
#endif

enum { PAGE = 4096, PAGES = 1 << 14 };
static int uffd, file, move;
static char *region, *buffer;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *answers(void *unused) {
    for (int i = 0; i < PAGES; i++) {
        struct uffd_msg msg;
        if (read(uffd, &msg, sizeof msg) != sizeof msg) die("read");
        uint64_t at = msg.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
        if (pread(file, buffer, PAGE, at - (uint64_t)region) != PAGE) die("pread");
        if (move) {
            struct uffdio_move m = {.dst = at, .src = (uint64_t)buffer, .len = PAGE};
            if (ioctl(uffd, UFFDIO_MOVE, &m)) die("UFFDIO_MOVE");
        } else {
            struct uffdio_copy c = {.dst = at, .src = (uint64_t)buffer, .len = PAGE};
            if (ioctl(uffd, UFFDIO_COPY, &c)) die("UFFDIO_COPY");
        }
    }
    return unused;
}

static int less(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name) {
    static uint64_t took[PAGES];
    region = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    buffer = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_MOVE};
    if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) die("userfaultfd with UFFD_FEATURE_MOVE");
    struct uffdio_register r = {.range = {(uint64_t)region, (uint64_t)PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(uffd, UFFDIO_REGISTER, &r)) die("UFFDIO_REGISTER");
    pthread_t thread;
    pthread_create(&thread, NULL, answers, NULL);
    uint64_t sum = 0;
    for (int i = 0; i < PAGES; i++) {
        uint64_t before = now();
        char first = *(volatile char *)(region + (size_t)i * PAGE);
        took[i] = now() - before;
        sum += took[i];
        if (first != (char)i) die("wrong bytes");
    }
    pthread_join(thread, NULL);
    qsort(took, PAGES, sizeof *took, less);
    printf("%-4s median %6lu ns  p99 %6lu ns  mean %6lu ns\n", name, took[PAGES / 2], took[PAGES * 99 / 100], sum / PAGES);
    munmap(region, (size_t)PAGES * PAGE);
    munmap(buffer, PAGE);
    close(uffd);
}

int main(void) {
    char path[] = "/var/tmp/uffd-move-XXXXXX", page[PAGE];
    file = mkstemp(path);
    unlink(path);
    for (int i = 0; i < PAGES; i++) {
        memset(page, i, PAGE);
        if (write(file, page, PAGE) != PAGE) die("write");
    }
    for (int round = 0; round < 5; round++) {
        for (move = 0; move < 2; move++) measure(move ? "MOVE" : "COPY");
    }
}
