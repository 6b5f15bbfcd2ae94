/* Small stacks: threads with the least that the system allows, and coroutines on 8 KiB, do all that may have to work in
 * a pager: memory is taken, changed and given back, processes are made. Their own frames are small. */
#include "oracle.h"
#include <limits.h>
#include <ucontext.h>

enum { CORO = 8 << 10, BIG = 5 << 20 };

static unsigned char *some_memory(uint64_t number, size_t len) {
    unsigned char *at = number & 1 ? malloc(len)
        : number & 2               ? calloc(1, len)
                                   : mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != NULL && at != MAP_FAILED, "memory on a small stack");
    return at;
}
static void give_back(uint64_t number, unsigned char *at, size_t len) {
    if (number & 3) {
        free(at);
    } else {
        must(munmap(at, len) == 0, "munmap on a small stack");
    }
}
static void fork_here(void) {
    pid_t child = fork();
    must(child >= 0, "a fork on a small stack");
    if (child == 0) {
        for (struct slab *s = slabs; s < slabs + SLABS; s++)
            if (s->n && s->page[0].kind == PRIVATE && !s->page[0].not_in_child && !s->page[0].wiped_in_child)
                check_page(s, 0);
        _exit(45);
    }
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 45,
        "a child of a small stack has its memory");
}
static void call_here(uint64_t number) {
    size_t len = number >> 8 & 1 ? BIG : (64 << 10) + (number >> 9) % (1 << 20);
    unsigned char *at = some_memory(number, len), *page = (unsigned char *)(((uintptr_t)at + PAGE - 1) / PAGE * PAGE);
    for (size_t i = 0; i < len; i += 16 * PAGE) at[i] = i / PAGE + 1;
    switch (number >> 4 & 7) {
        case 0:
            must(mprotect(page, 8 * PAGE, PROT_READ) == 0 && mprotect(page, 8 * PAGE, RW) == 0,
                "mprotect on a small stack");
            break;
        case 1: must(mlock(page, PAGE) == 0 && munlock(page, PAGE) == 0, "mlock on a small stack"); break;
        case 2:
            must(madvise(page + PAGE, 8 * PAGE, MADV_DONTNEED) == 0 && madvise(page, 12 * PAGE, MADV_WILLNEED) == 0,
                "madvise on a small stack");
            break;
        case 3:
            if (number & 3) {
                at = realloc(at, len + len / 2);
            } else {
                at = mremap(at, len, len + 16 * PAGE, MREMAP_MAYMOVE);
                len += 16 * PAGE;
            }
            must(at != NULL && at != MAP_FAILED && at[0] == 1, "memory that grows on a small stack");
            break;
        case 4: fork_here(); break;
        case 5: {
            int ends[2];
            must(pipe(ends) == 0 && write(ends[1], at, 3000) == 3000 && read(ends[0], page + 3 * PAGE, 3000) == 3000,
                "a pipe on a small stack");
            close(ends[0]);
            close(ends[1]);
            break;
        }
    default:
        for (size_t i = 0; i < len; i += 16 * PAGE)
            must(at[i] == (unsigned char)(i / PAGE + 1), "what a small stack wrote");
    }
    give_back(number, at, len);
}

static void *in_a_thread(void *argument) {
    uint64_t number = (uintptr_t)argument;
    for (unsigned i = 0; i < 1 + number % 4; i++) call_here(mix(number, i));
    return NULL;
}
static void op_narrow_threads(void) {
    unsigned n = one_in(6) ? between(20, 40) : between(1, 6);
    pthread_t threads[40];
    pthread_attr_t how;
    pthread_attr_init(&how);
    must(pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN) == 0, "the least stack");
    sigset_t all, old; /* the first thread handles the process's signals */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < n; i++)
        must(pthread_create(&threads[i], &how, in_a_thread, (void *)(uintptr_t)(chance() >> 16)) == 0, "a thread");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (n < 20) churn(200);
    for (unsigned i = 0; i < n; i++) must(pthread_join(threads[i], NULL) == 0, "a thread ends");
    say(" %u", n);
}

static ucontext_t home;
static uint64_t task;
static volatile int done;
static void in_a_coroutine(void) {
    for (unsigned i = 0; i < 3; i++) call_here(mix(task, i));
    done = 1;
}
/* The stack is in the heap, between bytes that must stay, or above a guard page. */
static void op_narrow_coroutine(void) {
    static ucontext_t there;
    int guarded = one_in(2);
    size_t len = 32 * PAGE, from = 4 * PAGE;
    unsigned char *memory = guarded ? mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(len);
    must(memory && memory != MAP_FAILED && getcontext(&there) == 0, "a coroutine");
    uint32_t number = next_version();
    fill(memory, len, number, 0);
    if (guarded) must(mprotect(memory, from, PROT_NONE) == 0, "a guard");
    there.uc_stack = (stack_t){.ss_sp = memory + from, .ss_size = CORO};
    there.uc_link = &home;
    task = chance(), done = 0;
    makecontext(&there, in_a_coroutine, 0);
    churn(300);
    swapcontext(&home, &there);
    must(done && same(memory + from + CORO, len - from - CORO, number, from + CORO), "the memory above a small stack");
    if (guarded) {
        munmap(memory, len);
    } else {
        must(same(memory, from, number, 0), "the memory below a small stack");
        free(memory);
    }
    say(" guarded %d", guarded);
}

const struct op narrow_ops[] = {
    {"narrow-threads", "narrow", 3, op_narrow_threads},
    {"narrow-coroutine", "narrow", 3, op_narrow_coroutine},
    {0},
};
