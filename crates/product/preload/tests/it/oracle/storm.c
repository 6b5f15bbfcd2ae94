/* Storms: timers of tens of microseconds, whose handlers change mappings and use them. The threads that they interrupt
 * may be anywhere: in the C library's heap or streams, in a fault, in a call, in a fork. The handlers call only what
 * makes a bare system call in a plain program, which is allowed there. */
#include "oracle.h"
#include <dirent.h>
#include <regex.h>
#include <time.h>

enum { ARENA = 48, SQUALLS = 4 };
/* A thread with a timer, and the memory that its handler owns. */
struct squall {
    pthread_t thread;
    timer_t timer;
    unsigned char *arena;
    uint32_t version[ARENA];
    uint64_t chance, works;
    volatile unsigned beats;
    unsigned wanted;
    int alone;               /* no other thread maps memory */
    const char *volatile bad; /* what a handler found */
    int error;
    void *stack;
};
static __thread struct squall *mine; /* of the program itself, so a handler may read it */

static unsigned roll(struct squall *s, unsigned limit) { return mix(s->chance += 0x9e3779b97f4a7c15u, 1) % limit; }
static void must_here(struct squall *s, int good, const char *what) {
    if (!good && !s->bad) s->bad = what, s->error = errno;
}
static void look(struct squall *s, unsigned first, unsigned n) {
    for (unsigned i = first; i < first + n; i++)
        must_here(s, same(s->arena + (size_t)i * PAGE, PAGE, s->version[i], 0), "a page of a handler has other bytes");
}
static void give(struct squall *s, unsigned first, unsigned n) {
    for (unsigned i = first; i < first + n; i++)
        fill(s->arena + (size_t)i * PAGE, PAGE, s->version[i] = roll(s, 1 << 30), 0);
}
static void empty(struct squall *s, unsigned first, unsigned n) {
    memset(s->version + first, 0, n * sizeof *s->version);
}
static void fresh(struct squall *s, int moves) {
    size_t len = (size_t)(16 + roll(s, 40)) * PAGE, used = len;
    unsigned char *at = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must_here(s, at != MAP_FAILED, "mmap in a handler");
    if (s->bad) return;
    for (size_t i = 0; i < used; i += 5 * PAGE) at[i] = 1 + i / PAGE;
    if (moves) {
        unsigned char *to = mremap(at, len, len * 2, MREMAP_MAYMOVE);
        must_here(s, to != MAP_FAILED, "mremap in a handler");
        if (to != MAP_FAILED) at = to, len *= 2;
        must_here(s, at[len - 1] == 0, "a mapping that has grown");
    }
    for (size_t i = 0; i < used; i += 5 * PAGE)
        must_here(s, at[i] == (unsigned char)(1 + i / PAGE), "a handler's mapping");
    must_here(s, munmap(at, len) == 0, "munmap in a handler");
}
/* What a handler does. */
static void blow(struct squall *s) {
    unsigned first = roll(s, ARENA), n = 1 + roll(s, ARENA - first < 16 ? ARENA - first : 16);
    unsigned char *at = s->arena + (size_t)first * PAGE, resident[ARENA];
    size_t len = (size_t)n * PAGE;
    switch (roll(s, 13)) {
    case 0:
    case 1: {
        int prot = roll(s, 2) ? PROT_NONE : PROT_READ;
        must_here(s, mprotect(at, len, prot) == 0, "mprotect in a handler");
        if (prot) look(s, first, n);
        must_here(s, mprotect(at, len, RW) == 0, "mprotect back in a handler");
        break;
    }
    case 2:
        must_here(s, madvise(at, len, MADV_DONTNEED) == 0, "madvise in a handler");
        empty(s, first, n);
        break;
    case 3:
        must_here(s, syscall(SYS_madvise, at, len, MADV_DONTNEED) == 0, "madvise by its number in a handler");
        empty(s, first, n);
        break;
    case 4:
    case 5: fresh(s, roll(s, 3) == 0); break;
    case 6:
        must_here(s, mmap(at, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at, "MAP_FIXED in a handler");
        empty(s, first, n);
        break;
    case 7:
        must_here(s, mincore(at, len, resident) == 0, "mincore in a handler");
        must_here(s, msync(at, len, MS_ASYNC) == 0, "msync in a handler");
        break;
    case 8:
        if (s->alone) {
            must_here(s, munmap(at, len) == 0, "munmap of a part in a handler");
            must_here(s, mincore(at, len, resident) == -1 && errno == ENOMEM, "what is unmapped is not there");
            must_here(s, mmap(at, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at,
                "a hole is filled in a handler");
            empty(s, first, n);
        }
        break;
    case 9:
        must_here(s, mlock(at, PAGE) == 0 && munlock(at, PAGE) == 0, "mlock in a handler");
        must_here(s, madvise(at, len, MADV_WILLNEED) == 0, "advice in a handler");
        break;
    case 10: must_here(s, madvise(at, len, MADV_POPULATE_WRITE) == 0, "pages are brought in in a handler"); break;
    default: give(s, first, n);
    }
    look(s, first, n);
}
/* The timer starts anew at the end: otherwise a slow handler would leave the thread no time at all. */
static void set_timer(struct squall *s) {
    struct itimerspec soon = {.it_value = {0, (5 + roll(s, 75)) * 1000}};
    if (s->beats < s->wanted) timer_settime(s->timer, 0, &soon, NULL);
}
static void on_gust(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    int error = errno;
    struct squall *s = mine;
    if (!s || s->bad) return;
    blow(s);
    s->beats++;
    set_timer(s);
    errno = error;
}

/* What the signals interrupt. */
static int up(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void in_the_library(uint64_t number) {
    char *text = NULL, *line = NULL;
    size_t len = 0;
    regex_t pattern;
    switch (number % 8) {
    case 0:
        for (int i = 0; i < 20; i++) {
            must(asprintf(&text, "%d and %0*d", i, 1 + (int)(number >> 20) % 900, i) > 0, "asprintf");
            free(text);
        }
        break;
    case 1: {
        FILE *stream = open_memstream(&text, &len);
        for (int i = 0; i < 600; i++) fprintf(stream, "line %d\n", i);
        fclose(stream);
        stream = fmemopen(text, len, "r");
        int n = 0;
        for (size_t space = 0; getline(&line, &space, stream) > 0;) n++;
        must(n == 600, "lines");
        fclose(stream);
        free(line);
        free(text);
        break;
    }
    case 2:
        must(regcomp(&pattern, "a(b|c)*[d-g]{2,5}(hi|jk+)?", REG_EXTENDED) == 0, "regcomp");
        must(regexec(&pattern, "xxabcbcdefhix", 0, NULL, 0) == 0, "regexec");
        regfree(&pattern);
        break;
    case 3: {
        FILE *file = fopen("/proc/self/status", "r");
        must(file != NULL, "fopen");
        while (getline(&line, &len, file) > 0) {}
        fclose(file);
        free(line);
        break;
    }
    case 4: {
        DIR *folder = opendir(".");
        if (folder) {
            while (readdir(folder)) {}
            closedir(folder);
        }
        break;
    }
    case 5: {
        int n = 200 + number % 3000, *all = malloc(n * sizeof *all);
        fill(all, n * sizeof *all, number | 1, 0);
        for (int i = 0; i < n; i++) all[i] &= 0xffffff;
        qsort(all, n, sizeof *all, up);
        for (int i = 1; i < n; i++) must(all[i - 1] <= all[i], "qsort");
        free(all);
        break;
    }
    default: {
        void *blocks[24];
        for (int i = 0; i < 24; i++) {
            size_t size = 1 + mix(number, i) % (i < 20 ? 5000 : 400000);
            blocks[i] = i % 3 ? malloc(size) : calloc(1, size);
            must(blocks[i] != NULL, "memory in a storm");
            memset(blocks[i], i, size < 9000 ? size : 9000);
        }
        for (int i = 0; i < 24; i++) free(blocks[i]);
    }
    }
}
static void fork_in_a_storm(struct squall *s) {
    pid_t child = fork();
    must(child >= 0, "a fork in a storm");
    if (child == 0) {
        mine = NULL;
        look(s, 0, ARENA);
        _exit(s->bad ? 1 : 44);
    }
    int status;
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 44,
        "a child of a storm has its memory");
}
static void *stand(void *argument) {
    struct squall *s = argument;
    stack_t none = {.ss_flags = SS_DISABLE}, other = {.ss_sp = s->stack, .ss_size = 32 << 10};
    if (s->stack) must(sigaltstack(&other, NULL) == 0, "sigaltstack");
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 4};
    event._sigev_un._tid = gettid();
    must(timer_create(CLOCK_MONOTONIC, &event, &s->timer) == 0, "a timer");
    mine = s;
    set_timer(s);
    for (uint64_t i = 1; s->beats < s->wanted && !s->bad; i++) {
        uint64_t number = mix(s->works, i);
        if ((number >> 40) % 24 == 0) {
            fork_in_a_storm(s);
        } else {
            in_the_library(number);
        }
    }
    timer_delete(s->timer);
    mine = NULL;
    if (s->stack) sigaltstack(&none, NULL);
    return NULL;
}
static void op_storm(void) {
    static struct squall squalls[SQUALLS];
    unsigned n = one_in(2) ? 1 : between(2, SQUALLS);
    struct sigaction action = {.sa_sigaction = on_gust, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK}, old;
    must(sigaction(SIGRTMIN + 4, &action, &old) == 0, "sigaction");
    for (unsigned i = 0; i < n; i++) {
        struct squall *s = &squalls[i];
        *s = (struct squall){.chance = chance(), .works = chance(), .wanted = between(20, 80), .alone = n == 1};
        s->arena = mmap(NULL, ARENA * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        must(s->arena != MAP_FAILED, "memory");
        s->stack = i && one_in(2) ? malloc(32 << 10) : NULL;
        if (i) must(pthread_create(&s->thread, NULL, stand, s) == 0, "a thread");
    }
    stand(squalls);
    for (unsigned i = 0; i < n; i++) {
        struct squall *s = &squalls[i];
        if (i) must(pthread_join(s->thread, NULL) == 0, "a thread ends");
        errno = s->error;
        must(!s->bad, s->bad);
        look(s, 0, ARENA);
        must(!s->bad, "what handlers wrote stays");
        munmap(s->arena, ARENA * PAGE);
        free(s->stack);
    }
    must(sigaction(SIGRTMIN + 4, &old, NULL) == 0, "sigaction");
    say(" %u", n);
}

const struct op storm_ops[] = {
    {"storm", "storm", 4, op_storm},
    {0},
};
