/* Stacks: coroutines on small stacks in the heap, long jumps, large arrays on the ordinary stack. */
#include "oracle.h"
#include <alloca.h>
#include <setjmp.h>
#include <ucontext.h>

static ucontext_t home;
static struct coroutine {
    ucontext_t context;
    unsigned char *stack;
    size_t len;
    unsigned id, rounds;
    int ended;
} *coroutines;

/* Small frames only: the smallest stack has 4 KiB. */
static void coroutine(unsigned id) {
    struct coroutine *c = &coroutines[id];
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < c->rounds; i++) {
        struct slab *s = &slabs[(id * 7 + i * 3) % SLABS];
        if (s->n) check_page(s, (id * 31 + i * 17) % s->n);
        if (c->len >= 16 << 10) {
            unsigned char *block = malloc(5000 * (i + 1));
            must(block != NULL, "a coroutine's memory");
            memset(block, id, 5000 * (i + 1));
            sum += block[4999];
            free(block);
        } else {
            sum += id;
        }
        swapcontext(&c->context, &home);
    }
    must(sum == c->rounds * id, "a coroutine's own sum");
    c->ended = 1;
}
static void op_coroutines(void) {
    unsigned n = between(2, 16), alive = n;
    coroutines = calloc(n, sizeof *coroutines);
    must(coroutines != NULL, "memory");
    for (unsigned i = 0; i < n; i++) {
        struct coroutine *c = &coroutines[i];
        c->id = i, c->rounds = between(1, 6), c->len = (size_t)4096 << below(3);
        must((c->stack = malloc(c->len)) && getcontext(&c->context) == 0, "a coroutine");
        c->context.uc_stack = (stack_t){.ss_sp = c->stack, .ss_size = c->len};
        c->context.uc_link = &home;
        makecontext(&c->context, (void (*)(void))coroutine, 1, i);
    }
    unsigned rounds = 0;
    while (alive) {
        for (unsigned i = 0; i < n; i++) {
            struct coroutine *c = &coroutines[i];
            if (c->ended) continue;
            swapcontext(&home, &c->context);
            rounds++;
            alive -= c->ended;
        }
        churn(150);
    }
    for (unsigned i = 0; i < n; i++) free(coroutines[i].stack);
    free(coroutines);
    say(" %u rounds %u", n, rounds);
}

/* fork, and the code after it, on a managed stack. */
static long forked;
static void fork_here(void) {
    uint64_t number = chance();
    pid_t child = fork();
    if (child == 0) {
        become_child();
        seed(number);
        check_some(6);
        struct range r;
        if (pick(&r, 60)) write_range(&r);
        check_some(6);
        exit(21);
    }
    int status = 0;
    forked = waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static void op_fork_on_heap(void) {
    if (depth >= 3) return;
    static ucontext_t there;
    size_t len = 64 << 10;
    void *stack = malloc(len);
    must(stack && getcontext(&there) == 0, "a coroutine");
    there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = len};
    there.uc_link = &home;
    makecontext(&there, fork_here, 0);
    swapcontext(&home, &there);
    say(" %ld", forked);
    free(stack);
}

static jmp_buf back;
static unsigned fall(unsigned n, unsigned char *over) {
    unsigned char room[500];
    memset(room, n, sizeof room);
    over[n % 100] += room[n % 500];
    if (n == 0) longjmp(back, 5);
    return fall(n - 1, room) + room[3];
}
static void op_jump(void) {
    volatile unsigned times = 0;
    unsigned char *over = calloc(1, 4 * PAGE);
    must(over != NULL, "memory");
    int how = setjmp(back);
    if (times < 3) {
        times++;
        churn(50);
        fall(between(1, 400), over);
    }
    say(" %d %u", how, times);
    free(over);
}
static void op_alloca(void) {
    size_t len = between(1, 400) * 1000;
    unsigned char *room = alloca(len);
    fill(room, len, 77, 0);
    unsigned char *copy = malloc(len);
    must(copy != NULL, "memory");
    memcpy(copy, room, len);
    churn(200);
    must(same(copy, len, 77, 0) && memcmp(copy, room, len) == 0, "a copy of the stack");
    say(" %zu", len);
    free(copy);
}

const struct op stack_ops[] = {
    {"coroutines", "coroutines", 3, op_coroutines},
    {"fork-on-heap", "fork-on-heap", 1, op_fork_on_heap},
    {"jump", "jump", 1, op_jump},
    {"alloca", "alloca", 1, op_alloca},
    {0},
};
