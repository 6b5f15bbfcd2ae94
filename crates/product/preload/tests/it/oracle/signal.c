/* Signals: timers, alternate stacks, handlers that repair the cause of the signal, and deaths. */
#include "oracle.h"
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>

typedef void handler(int, siginfo_t *, void *);
static struct sigaction set(int signal, handler *run, int flags) {
    struct sigaction action = {.sa_sigaction = run, .sa_flags = SA_SIGINFO | flags}, old;
    must(sigaction(signal, &action, &old) == 0, "sigaction");
    return old;
}
static void put_back(int signal, struct sigaction *old) { must(sigaction(signal, old, NULL) == 0, "sigaction"); }

static unsigned char *beaten; /* memory that handlers touch */
static volatile unsigned beats;
enum { BEATEN = 64 };
static void on_beat(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    int error = errno;
    unsigned i = ++beats;
    unsigned char *at = beaten + (size_t)(i % BEATEN) * PAGE;
    at[0]++;
    errno = error;
}
/* The program's own timer while it pages. */
static void op_timer(void) {
    beaten = calloc(BEATEN, PAGE);
    must(beaten != NULL, "memory");
    beats = 0;
    int way = below(3);
    struct sigaction old = set(SIGALRM, on_beat, SA_RESTART | SA_ONSTACK);
    unsigned wanted = between(3, 20), us = 1u << between(8, 12);
    struct itimerval often = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
    struct itimerspec exact = {{0, us * 1000}, {0, us * 1000}};
    timer_t timer;
    if (way == 0) {
        must(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
    } else {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
        must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &exact, NULL) == 0,
            "a timer");
    }
    while (beats < wanted) {
        struct range r;
        if (pick(&r, 20)) write_range(&r);
        check_some(1);
        if (way == 2) {
            int ends[2];
            must(pipe(ends) == 0 && write(ends[1], beaten, 100) == 100 && read(ends[0], scratch(), 100) == 100,
                "a pipe");
            close(ends[0]);
            close(ends[1]);
        }
    }
    if (way == 0) {
        setitimer(ITIMER_REAL, &never, NULL);
    } else {
        timer_delete(timer);
    }
    put_back(SIGALRM, &old);
    unsigned sum = 0;
    for (unsigned i = 0; i < BEATEN; i++) sum += beaten[(size_t)i * PAGE];
    must(sum == beats % 256 || sum == beats, "each signal left its mark");
    say(" way %d", way);
    free(beaten);
}

/* The write barrier of a garbage collector: pages are protected, and the handler of a page's first access opens it. */
static unsigned char *barred;
static volatile unsigned opened;
static unsigned barred_pages;
static void on_barrier(int signal, siginfo_t *info, void *context) {
    (void)context;
    size_t at = (unsigned char *)info->si_addr - barred;
    if (signal != SIGSEGV || at >= (size_t)barred_pages * PAGE || info->si_code != SEGV_ACCERR) {
        say(" signal %d code %d instead of the barrier's", signal, info->si_code);
        end_line();
        _exit(95);
    }
    opened++;
    if (mprotect(barred + at / PAGE * PAGE, PAGE, RW)) _exit(94);
}
static void op_barrier(void) {
    barred_pages = between(4, 200);
    size_t len = (size_t)barred_pages * PAGE;
    barred = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(barred != MAP_FAILED, "memory");
    uint64_t number = next_version();
    int touched = one_in(3) ? 0 : 1;
    if (touched) fill(barred, len, number, 0);
    opened = 0;
    struct sigaction old = set(SIGSEGV, on_barrier, one_in(2) ? SA_ONSTACK : SA_NODEFER);
    int prot = one_in(2) ? PROT_READ : PROT_NONE;
    must(mprotect(barred, len, prot) == 0, "mprotect");
    churn(300);
    unsigned writes = between(1, barred_pages);
    static unsigned char hit[256];
    memset(hit, 0, sizeof hit);
    for (unsigned i = 0; i < writes; i++) {
        unsigned at = below(barred_pages);
        barred[(size_t)at * PAGE + 17] = 99;
        hit[at] = 1;
    }
    put_back(SIGSEGV, &old);
    must(mprotect(barred, len, RW) == 0, "mprotect");
    unsigned distinct = 0;
    for (unsigned i = 0; i < barred_pages; i++) {
        distinct += hit[i];
        unsigned char *at = barred + (size_t)i * PAGE, was[32];
        fill(was, 32, touched ? number : 0, (size_t)i * PAGE);
        must(at[17] == (hit[i] ? 99 : was[17]) && at[16] == was[16], "a page behind the barrier");
    }
    say(" rights %d opened %u of %u", prot, opened, distinct);
    munmap(barred, len);
}

/* A handler on a stack in managed memory, which is not in RAM when the signal comes. */
static unsigned char *other_stack;
static size_t other_len;
static volatile int on_other;
static sigjmp_buf away;
static volatile int leaves;
static void on_stack(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    unsigned char here;
    on_other += &here > other_stack && &here < other_stack + other_len;
    if (leaves) siglongjmp(away, 1);
}
static void op_altstack(void) {
    size_t least = sysconf(_SC_SIGSTKSZ) > 0 ? (size_t)sysconf(_SC_MINSIGSTKSZ) : 8192;
    other_len = one_in(2) ? least + 4096 : 64 << 10;
    other_stack = malloc(other_len);
    must(other_stack != NULL, "memory");
    stack_t mine = {.ss_sp = other_stack, .ss_size = other_len}, old;
    struct sigaction was = set(SIGUSR1, on_stack, SA_ONSTACK);
    must(sigaltstack(&mine, &old) == 0, "sigaltstack");
    on_other = 0;
    unsigned n = between(1, 8);
    for (unsigned i = 0; i < n; i++) {
        leaves = one_in(3);
        churn(300);
        if (sigsetjmp(away, 1) == 0) raise(SIGUSR1);
    }
    must(sigaltstack(&old, NULL) == 0, "sigaltstack");
    put_back(SIGUSR1, &was);
    say(" %u, there %d", n, on_other);
    free(other_stack);
}

/* A thread overflows its stack and continues. */
static unsigned deep(unsigned n) {
    volatile unsigned char room[600];
    room[n % 600] = n;
    return deep(n + 1) + room[n % 600];
}
static void *overflow(void *argument) {
    unsigned char *memory = malloc(64 << 10);
    stack_t mine = {.ss_sp = memory, .ss_size = 64 << 10}, none = {.ss_flags = SS_DISABLE};
    if (!memory || sigaltstack(&mine, NULL)) return NULL;
    other_stack = memory, other_len = 64 << 10;
    if (sigsetjmp(away, 1) == 0) deep(0);
    sigaltstack(&none, NULL);
    free(memory);
    return argument;
}
static void op_overflow(void) {
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, 256 << 10);
    struct sigaction old = set(SIGSEGV, on_stack, SA_ONSTACK);
    on_other = 0, leaves = 1;
    pthread_t thread;
    void *result = NULL;
    must(pthread_create(&thread, &how, overflow, (void *)&leaves) == 0 && pthread_join(thread, &result) == 0,
        "a thread");
    put_back(SIGSEGV, &old);
    say(" lived %d there %d", result != NULL, on_other);
}

/* All signals are blocked: memory still works, and pending signals are delivered afterwards. */
static void *held_back(void *argument) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    unsigned char *memory = malloc(1 << 20);
    for (unsigned i = 0; i < 256; i++) memory[(size_t)i * PAGE] = i;
    *(int *)argument = 1;
    for (unsigned i = 0; i < 256; i++) *(int *)argument &= memory[(size_t)i * PAGE] == (unsigned char)i;
    free(memory);
    return NULL;
}
static void op_blocked(void) {
    sigset_t all, old, pending;
    sigfillset(&all);
    beaten = calloc(BEATEN, PAGE);
    beats = 0;
    struct sigaction was = set(SIGUSR2, on_beat, SA_ONSTACK);
    must(sigprocmask(SIG_SETMASK, &all, &old) == 0, "sigprocmask");
    raise(SIGUSR2);
    raise(SIGUSR2);
    struct range r;
    for (int i = 0; i < 3 && pick(&r, 60); i++) write_range(&r);
    check_some(10);
    must(sigpending(&pending) == 0, "sigpending");
    say(" pending %d before %u", sigismember(&pending, SIGUSR2), beats);
    must(sigprocmask(SIG_SETMASK, &old, NULL) == 0, "sigprocmask");
    say(" after %u", beats);
    put_back(SIGUSR2, &was);
    int *good = calloc(1, sizeof *good);
    pthread_t thread;
    must(pthread_create(&thread, NULL, held_back, good) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    say(" thread %d", *good);
    free(good);
    free(beaten);
}
static void op_wait(void) {
    sigset_t two, old;
    sigemptyset(&two);
    sigaddset(&two, SIGUSR1);
    sigaddset(&two, SIGRTMIN + 2);
    must(sigprocmask(SIG_BLOCK, &two, &old) == 0, "sigprocmask");
    siginfo_t *info = malloc(sizeof *info + PAGE);
    must(info != NULL, "memory");
    must(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 42}) == 0 && kill(getpid(), SIGUSR1) == 0,
        "signals");
    churn(300);
    int signal = sigwaitinfo(&two, info);
    say(" %d code %d", signal == SIGUSR1, info->si_code);
    signal = sigwaitinfo(&two, info);
    say(" %d code %d value %d", signal == SIGRTMIN + 2, info->si_code, info->si_value.sival_int);
    int file = signalfd(-1, &two, SFD_CLOEXEC);
    struct signalfd_siginfo *read_info = malloc(sizeof *read_info);
    must(file >= 0 && read_info && raise(SIGUSR1) == 0, "signalfd");
    say(" read %d", read(file, read_info, sizeof *read_info) == sizeof *read_info && read_info->ssi_signo == SIGUSR1);
    close(file);
    struct timespec none = {0, 0};
    say_outcome("none left", sigtimedwait(&two, info, &none));
    must(sigprocmask(SIG_SETMASK, &old, NULL) == 0, "sigprocmask");
    free(read_info);
    free(info);
}
/* The program sees no signal settings but its own. */
static void op_query(void) {
    char seen[65] = "";
    for (int i = 1; i <= 31; i++) {
        struct sigaction now;
        seen[i - 1] = sigaction(i, NULL, &now) ? '?'
            : now.sa_handler == SIG_DFL        ? 'd'
            : now.sa_handler == SIG_IGN        ? 'i'
                                               : 'h';
    }
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    int held = 0;
    for (int i = 1; i <= 64; i++) held += sigismember(&mask, i) == 1;
    say(" %s held back %d", seen, held);
}

/* Deaths, seen by the parent. */
static void op_death(void) {
    if (depth >= 3) return;
    int way = below(8);
    struct range r;
    int any = pick(&r, 20);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        volatile unsigned char *at = mmap(NULL, 1 << 20, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at[5] = 1;
        switch (way) {
        case 0: munmap((void *)at, 1 << 20); break;
        case 1: mprotect((void *)at, 1 << 20, PROT_NONE); break;
        case 2: mprotect((void *)at, 1 << 20, PROT_READ); break;
        case 3: abort();
        case 4: raise(SIGTERM); break;
        case 5: kill(getpid(), SIGKILL); break;
        case 6: *(volatile int *)8 = 1; break;
        default: __builtin_trap();
        }
        at[5] = 2;
        _exit(way);
    }
    children++;
    if (any) write_range(&r);
    children--;
    int status = 0;
    must(waitpid(child, &status, 0) == child, "a child is waited for");
    say(" way %d %s", way, WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "exit");
}
static void on_child(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    beats += info->si_code == CLD_EXITED && info->si_status == 9;
}
static void op_child_signal(void) {
    if (depth >= 3) return;
    struct sigaction old = set(SIGCHLD, on_child, SA_RESTART);
    beats = 0;
    pid_t child = fork();
    if (child == 0) _exit(9);
    while (!beats) check_some(1);
    int status;
    must(waitpid(child, &status, 0) == child, "a child is waited for");
    put_back(SIGCHLD, &old);
    say(" %u", beats);
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    must(pipe(ends) == 0, "a pipe");
    close(ends[0]);
    say_outcome("broken pipe", write(ends[1], scratch(), 10));
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
}

const struct op signal_ops[] = {
    {"timer", "timer", 3, op_timer},
    {"barrier", "barrier", 3, op_barrier},
    {"altstack", "altstack", 2, op_altstack},
    {"overflow", "overflow", 1, op_overflow},
    {"blocked", "blocked", 2, op_blocked},
    {"wait", "signal-wait", 1, op_wait},
    {"query", "query", 1, op_query},
    {"death", "death", 2, op_death},
    {"child-signal", "child-signal", 1, op_child_signal},
    {0},
};
