/* Asynchronous I/O by raw system calls: io_uring with plain and with registered buffers, and Linux's older interface.
 * If the kernel or the pager refuses a ring or a registration, the program uses plain reads and writes and prints
 * nothing. */
#include "oracle.h"
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

struct ring {
    int file;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *answers;
    void *sq, *cq;
    size_t sq_len, cq_len, entries_len;
};
static int ring_open(struct ring *ring, unsigned flags) {
    struct io_uring_params p = {.flags = flags, .sq_thread_idle = 20};
    ring->file = syscall(SYS_io_uring_setup, 16, &p);
    if (ring->file < 0) return 0;
    ring->sq_len = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    ring->cq_len = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    ring->entries_len = p.sq_entries * sizeof(struct io_uring_sqe);
    ring->sq = mmap(NULL, ring->sq_len, RW, MAP_SHARED | MAP_POPULATE, ring->file, IORING_OFF_SQ_RING);
    ring->cq = mmap(NULL, ring->cq_len, RW, MAP_SHARED | MAP_POPULATE, ring->file, IORING_OFF_CQ_RING);
    ring->entries = mmap(NULL, ring->entries_len, RW, MAP_SHARED | MAP_POPULATE, ring->file, IORING_OFF_SQES);
    must(ring->sq != MAP_FAILED && ring->cq != MAP_FAILED && ring->entries != MAP_FAILED, "a ring's mappings");
    unsigned char *sq = ring->sq, *cq = ring->cq;
    ring->sq_tail = (unsigned *)(sq + p.sq_off.tail);
    ring->sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
    ring->sq_array = (unsigned *)(sq + p.sq_off.array);
    ring->cq_head = (unsigned *)(cq + p.cq_off.head);
    ring->cq_tail = (unsigned *)(cq + p.cq_off.tail);
    ring->cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
    ring->answers = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
    return 1;
}
static void ring_close(struct ring *ring) {
    munmap(ring->sq, ring->sq_len);
    munmap(ring->cq, ring->cq_len);
    munmap(ring->entries, ring->entries_len);
    close(ring->file);
}
static void ring_add(struct ring *ring, int code, int file, const void *at, size_t len, size_t offset, int buffer) {
    unsigned tail = *ring->sq_tail, i = tail & *ring->sq_mask;
    ring->entries[i] = (struct io_uring_sqe){.opcode = code,
        .fd = file,
        .addr = (uintptr_t)at,
        .len = len,
        .off = offset,
        .buf_index = buffer,
        .user_data = len};
    if (one_in(3)) ring->entries[i].flags = IOSQE_ASYNC;
    ring->sq_array[i] = i;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}
/* Submits all operations, checks other memory meanwhile, and waits for all. */
static void ring_run(struct ring *ring, unsigned n) {
    must(syscall(SYS_io_uring_enter, ring->file, n, 0, 0, NULL, 0) == (long)n, "io_uring_enter");
    if (one_in(2)) churn(150);
    for (unsigned seen = 0; seen < n;) {
        unsigned head = *ring->cq_head;
        if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
            must(syscall(SYS_io_uring_enter, ring->file, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0 || errno == EINTR,
                "io_uring_enter");
            continue;
        }
        struct io_uring_cqe *answer = &ring->answers[head & *ring->cq_mask];
        if (answer->res != (int)answer->user_data)
            wrong("a ring's operation gave %d, not %llu", answer->res, (unsigned long long)answer->user_data);
        __atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
        seen++;
    }
}

static int named_file(int flags) {
    char name[] = "oracle.ring.XXXXXX";
    int file = mkostemp(name, 0);
    must(file >= 0, "a file");
    if (flags) {
        int again = open(name, O_RDWR | flags);
        if (again >= 0) {
            close(file);
            file = again;
        }
    }
    unlink(name);
    return file;
}
static void same_as_model(const struct range *r, const unsigned char *got, const char *what) {
    for (unsigned i = 0; i < r->n; i++)
        if (!same(got + (size_t)i * PAGE, PAGE, page(r, i)->version, 0))
            wrong("%s: page %u of %u has other bytes", what, i, r->n);
}
static uint32_t new_numbers(struct range *r) {
    uint32_t first = next_version();
    for (unsigned i = 1; i < r->n; i++) next_version();
    return first;
}
static void adopt(struct range *r, uint32_t first) {
    for (unsigned i = 0; i < r->n; i++) {
        page(r, i)->version = first + i;
        if (page(r, i)->kind == SHARED) page(r, i)->original = first + i;
    }
}
static void prepare_file(int file, const struct range *r, uint32_t first) {
    for (unsigned i = 0; i < r->n; i++) fill(scratch() + (size_t)i * PAGE, PAGE, first + i, 0);
    int flags = fcntl(file, F_GETFL);
    fcntl(file, F_SETFL, flags & ~O_DIRECT);
    must(pwrite(file, scratch(), length(r), 0) == (ssize_t)length(r), "writing the file");
    fcntl(file, F_SETFL, flags);
}
static void read_file(int file, const struct range *r) {
    int flags = fcntl(file, F_GETFL);
    fcntl(file, F_SETFL, flags & ~O_DIRECT);
    must(pread(file, scratch(), length(r), 0) == (ssize_t)length(r), "reading back");
    fcntl(file, F_SETFL, flags);
}

static void ring_round(int registered) {
    struct range r;
    if (!pick_with(&r, 60, RW)) return;
    for (unsigned i = 0; i < r.n; i++)
        if (page(&r, i)->kind != PRIVATE) r.n = i; /* a kernel may not register a file's pages */
    if (!r.n) return;
    int file = named_file(one_in(2) ? O_DIRECT : 0);
    struct ring ring;
    unsigned char *at = start(&r);
    unsigned parts = between(1, r.n < 8 ? r.n : 8), each = r.n / parts;
    say(" %u", r.n);
    int has = ring_open(&ring, 0), holds = 0;
    if (has && registered) {
        struct iovec all = {at, length(&r)};
        holds = syscall(SYS_io_uring_register, ring.file, IORING_REGISTER_BUFFERS, &all, 1) == 0;
        if (!holds) {
            ring_close(&ring);
            has = 0;
        }
    }
    for (unsigned round = between(1, 3); round > 0; round--) {
        write_range(&r);
        churn(300);
        for (unsigned i = 0; has && i < parts; i++) {
            size_t from = (size_t)i * each * PAGE, len = i + 1 < parts ? (size_t)each * PAGE : length(&r) - from;
            ring_add(&ring, holds ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE, file, at + from, len, from, 0);
        }
        if (has) {
            ring_run(&ring, parts);
        } else {
            must(pwrite(file, at, length(&r), 0) == (ssize_t)length(&r), "pwrite");
        }
        read_file(file, &r);
        same_as_model(&r, scratch(), "written by a ring");
        uint32_t first = new_numbers(&r);
        prepare_file(file, &r, first);
        churn(300);
        for (unsigned i = 0; has && i < parts; i++) {
            size_t from = (size_t)i * each * PAGE, len = i + 1 < parts ? (size_t)each * PAGE : length(&r) - from;
            ring_add(&ring, holds ? IORING_OP_READ_FIXED : IORING_OP_READ, file, at + from, len, from, 0);
        }
        if (has) {
            ring_run(&ring, parts);
        } else {
            must(pread(file, at, length(&r), 0) == (ssize_t)length(&r), "pread");
        }
        adopt(&r, first);
        if (one_in(2)) churn(200);
        check_range(&r);
    }
    if (has) ring_close(&ring);
    close(file);
}
static void op_ring(void) { ring_round(0); }
static void op_ring_fixed(void) { ring_round(1); }

static void op_aio(void) {
    struct range r;
    if (!pick_with(&r, 60, RW)) return;
    int file = named_file(one_in(2) ? O_DIRECT : 0);
    aio_context_t context = 0;
    say(" %u", r.n);
    int has = syscall(SYS_io_setup, 8, &context) == 0;
    struct iocb *call = calloc(1, sizeof *call), **calls = calloc(1, sizeof *calls);
    struct io_event *event = calloc(1, sizeof *event);
    must(call && calls && event, "memory");
    calls[0] = call;
    write_range(&r);
    for (unsigned round = 0; round < 2; round++) {
        uint32_t first = new_numbers(&r);
        long got;
        if (round) prepare_file(file, &r, first);
        churn(300);
        *call = (struct iocb){.aio_lio_opcode = round ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
            .aio_fildes = file,
            .aio_buf = (uintptr_t)start(&r),
            .aio_nbytes = length(&r)};
        if (has) {
            must(syscall(SYS_io_submit, context, 1, calls) == 1, "io_submit");
            if (one_in(2)) churn(100);
            while ((got = syscall(SYS_io_getevents, context, 1, 1, event, NULL)) == -1 && errno == EINTR) {}
            must(got == 1, "io_getevents");
            must(event->res == (long long)length(&r), "an asynchronous transfer is whole");
        } else if (round) {
            must(pread(file, start(&r), length(&r), 0) == (ssize_t)length(&r), "pread");
        } else {
            must(pwrite(file, start(&r), length(&r), 0) == (ssize_t)length(&r), "pwrite");
        }
        if (round) {
            adopt(&r, first);
            churn(200);
            check_range(&r);
        } else {
            read_file(file, &r);
            same_as_model(&r, scratch(), "written by io_submit");
        }
    }
    if (has) syscall(SYS_io_destroy, context);
    free(event);
    free(calls);
    free(call);
    close(file);
}

const struct op ring_ops[] = {
    {"ring", "ring", 3, op_ring},
    {"ring-fixed", "ring-fixed", 3, op_ring_fixed},
    {"aio", "aio", 3, op_aio},
    {0},
};
