/* Short-lived threads with stacks of every kind; locks in managed memory; threads that work in the background. */
#include "oracle.h"
#include <semaphore.h>

/* In the background: a few threads that write and check their bytes during all other steps. */
enum { WORKERS = 4, WORKER_PAGES = 120 };
static struct worker {
    pthread_t thread;
    unsigned char *memory;
    uint32_t numbers[WORKER_PAGES];
    uint64_t chance;
    int works, bad;
} workers[WORKERS];
static volatile int stop;

static void *work(void *argument) {
    struct worker *w = argument;
    for (uint64_t step = 1; !stop; step++) {
        uint64_t roll = mix(w->chance, step);
        unsigned i = roll % WORKER_PAGES;
        if (!same(w->memory + (size_t)i * PAGE, PAGE, w->numbers[i], 0)) w->bad++;
        if (roll >> 32 & 1) fill(w->memory + (size_t)i * PAGE, PAGE, w->numbers[i] = roll >> 33 | 1, 0);
        if (step % 8 == 0) usleep(200);
    }
    return NULL;
}
static unsigned workers_stop(void) {
    unsigned n = 0;
    stop = 1;
    for (struct worker *w = workers; w < workers + WORKERS; w++) {
        if (!w->works) continue;
        must(pthread_join(w->thread, NULL) == 0 && !w->bad, "a thread in the background found what it wrote");
        for (unsigned i = 0; i < WORKER_PAGES; i++)
            must(same(w->memory + (size_t)i * PAGE, PAGE, w->numbers[i], 0), "what a thread wrote stays");
        free(w->memory);
        w->works = 0, n++;
    }
    stop = 0;
    return n;
}
void workers_forget(void) {
    for (struct worker *w = workers; w < workers + WORKERS; w++) w->works = 0;
}
void workers_end(void) { workers_stop(); }
unsigned workers_now(void) {
    unsigned n = 0;
    for (struct worker *w = workers; w < workers + WORKERS; w++) n += w->works;
    return n;
}
static void op_workers(void) {
    say(" %u end", workers_stop());
    if (one_in(2)) return;
    unsigned n = between(1, WORKERS);
    sigset_t all, old; /* the first thread handles the process's signals */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.memory = calloc(WORKER_PAGES, PAGE), .chance = chance(), .works = 1};
        must(w->memory && pthread_create(&w->thread, NULL, work, w) == 0, "a thread in the background");
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    say(" %u begin", n);
}

/* A crowd: each thread allocates, checks its own bytes, and adds to a sum under a lock. */
struct shared {
    pthread_mutex_t lock;
    pthread_rwlock_t both;
    pthread_barrier_t meet;
    pthread_cond_t turn;
    unsigned long sum, whose;
    sem_t done;
};
struct member {
    struct shared *all;
    unsigned id, n, small;
    void *stack;
    pthread_t thread;
};
static __thread unsigned long own;
static pthread_key_t key;
static volatile int destroyed;
static void destroy(void *value) {
    free(value);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}
static void *member(void *argument) {
    struct member *m = argument;
    own = m->id;
    if (!m->small) {
        pthread_setspecific(key, malloc(100));
        unsigned char *blocks[12];
        for (unsigned i = 0; i < 12; i++) {
            size_t len = 16u << i;
            must((blocks[i] = malloc(len)) != NULL, "a thread's memory");
            fill(blocks[i], len, m->id * 100 + i + 1, 0);
        }
        for (unsigned i = 0; i < 12; i++) {
            must(same(blocks[i], 16u << i, m->id * 100 + i + 1, 0), "a thread's bytes stay");
            free(blocks[i]);
        }
    }
    pthread_barrier_wait(&m->all->meet);
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&m->all->lock);
        m->all->sum += own;
        pthread_mutex_unlock(&m->all->lock);
        pthread_rwlock_rdlock(&m->all->both);
        if (m->all->sum == 0) m->all->sum = 0;
        pthread_rwlock_unlock(&m->all->both);
    }
    pthread_mutex_lock(&m->all->lock);
    while (m->all->whose != m->id) pthread_cond_wait(&m->all->turn, &m->all->lock);
    m->all->whose++;
    pthread_cond_broadcast(&m->all->turn);
    pthread_mutex_unlock(&m->all->lock);
    return (void *)(own + 1);
}
static struct shared *new_shared(unsigned n) {
    struct shared *all = calloc(1, sizeof *all + PAGE);
    must(all != NULL, "memory for locks");
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (one_in(3)) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&all->lock, &attributes);
    pthread_rwlock_init(&all->both, NULL);
    pthread_cond_init(&all->turn, NULL);
    pthread_barrier_init(&all->meet, NULL, n);
    sem_init(&all->done, 0, 0);
    return all;
}
static size_t least_stack(void) { return ((size_t)sysconf(_SC_THREAD_STACK_MIN) + PAGE - 1) / PAGE * PAGE; }
static void op_threads(void) {
    unsigned n = between(1, 10);
    struct shared *all = new_shared(n);
    struct member *members = calloc(n, sizeof *members);
    must(members && pthread_key_create(&key, destroy) == 0, "memory for threads");
    destroyed = 0;
    unsigned keyed = 0;
    for (unsigned i = 0; i < n; i++) {
        struct member *m = &members[i];
        *m = (struct member){.all = all, .id = i, .n = n};
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        switch (below(5)) {
        case 0: /* the smallest stack that the system allows */
            pthread_attr_setstacksize(&attributes, least_stack());
            m->small = 1;
            break;
        case 1: /* a stack in the heap */
            must(posix_memalign(&m->stack, PAGE, 128 << 10) == 0, "memory for a stack");
            must(pthread_attr_setstack(&attributes, m->stack, 128 << 10) == 0, "a stack in the heap");
            break;
        case 2: pthread_attr_setguardsize(&attributes, 0); break;
        }
        keyed += !m->small;
        must(pthread_create(&m->thread, &attributes, member, m) == 0, "a thread");
        pthread_attr_destroy(&attributes);
    }
    churn(100);
    unsigned long results = 0;
    for (unsigned i = 0; i < n; i++) {
        void *result;
        must(pthread_join(members[i].thread, &result) == 0, "a thread ends");
        results += (unsigned long)result;
        free(members[i].stack);
    }
    say(" %u sum %lu results %lu keys %d", n, all->sum, results, destroyed - (int)keyed);
    pthread_key_delete(key);
    free(members);
    free(all);
}

static void *post(void *argument) {
    struct shared *all = argument;
    unsigned char *memory = malloc(200000);
    memset(memory, 7, 200000);
    pthread_mutex_lock(&all->lock);
    all->sum += memory[100000];
    pthread_mutex_unlock(&all->lock);
    free(memory);
    sem_post(&all->done);
    return NULL;
}
static void op_detached(void) {
    unsigned n = between(1, 12);
    struct shared *all = new_shared(1);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t every, old; /* such a thread may still be ending when a signal comes that the first thread waits for */
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
    for (unsigned i = 0; i < n; i++) {
        pthread_t thread;
        must(pthread_create(&thread, &attributes, post, all) == 0, "a thread");
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    churn(200);
    for (unsigned i = 0; i < n; i++)
        while (sem_wait(&all->done) && errno == EINTR) {}
    say(" %u sum %lu", n, all->sum);
    /* The last one may still be in sem_post: the memory stays. */
}

/* A thread that is cancelled while it waits, sleeps or tests, or at any place. */
struct victim {
    int way, ends[2];
    unsigned char *memory;
    size_t len;
    volatile int cleaned, ready;
};
static void clean(void *argument) { ((struct victim *)argument)->cleaned++; }
static void *be_cancelled(void *argument) {
    struct victim *v = argument;
    pthread_cleanup_push(clean, v);
    if (v->way == 3) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    v->ready = 1;
    for (size_t i = 0;; i++) {
        switch (v->way) {
        case 0:
            if (read(v->ends[0], v->memory, v->len) < 0) return NULL;
            break;
        case 1: usleep(1000000); break;
        case 2:
            pthread_testcancel();
            v->memory[i * 64 % v->len]++;
            break;
        default: ((volatile unsigned char *)v->memory)[i * 64 % v->len]++;
        }
    }
    pthread_cleanup_pop(0);
    return NULL;
}
static void op_cancel(void) {
    struct victim *v = calloc(1, sizeof *v);
    must(v && (v->memory = malloc(v->len = 600000)), "memory");
    v->way = below(4);
    must(pipe(v->ends) == 0, "a pipe");
    pthread_t thread;
    void *result = NULL;
    must(pthread_create(&thread, NULL, be_cancelled, v) == 0, "a thread");
    while (!v->ready) sched_yield();
    churn(200);
    must(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0, "a thread is cancelled");
    say(" way %d cancelled %d cleaned %d", v->way, result == PTHREAD_CANCELED, v->cleaned);
    close(v->ends[0]);
    close(v->ends[1]);
    free(v->memory);
    free(v);
}

/* A thread that ends while it has a lock: the next owner gets an error. */
static void *die_with(void *argument) {
    pthread_mutex_lock(argument);
    churn(0);
    return NULL;
}
static void op_robust(void) {
    unsigned char *memory = malloc(3 * PAGE);
    must(memory != NULL, "memory");
    pthread_mutex_t *lock = (void *)(memory + PAGE);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock, &attributes);
    pthread_attr_t how;
    pthread_attr_init(&how);
    void *stack = NULL;
    if (one_in(2)) {
        must(posix_memalign(&stack, PAGE, 128 << 10) == 0 && pthread_attr_setstack(&how, stack, 128 << 10) == 0,
            "a stack in the heap");
    }
    pthread_t thread;
    must(pthread_create(&thread, &how, die_with, lock) == 0, "a thread");
    churn(500);
    must(pthread_join(thread, NULL) == 0, "a thread ends");
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 20;
    int first = pthread_mutex_timedlock(lock, &soon);
    say(" first %s", name_of(first));
    say(" repaired %s", name_of(first == EOWNERDEAD ? pthread_mutex_consistent(lock) : 0));
    say(" given back %s", name_of(pthread_mutex_unlock(lock)));
    free(stack);
    free(memory);
}
/* A thread forks, from a stack that may be managed; others are in the heap meanwhile. */
static void *fork_there(void *argument) {
    long *code = argument;
    uint64_t number = chance();
    pid_t child = fork();
    if (child == 0) {
        become_child();
        seed(number);
        check_some(5);
        free(malloc(300000));
        struct range r;
        if (pick(&r, 50)) write_range(&r);
        check_some(5);
        _exit(33);
    }
    int status = 0;
    *code = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return NULL;
}
static void op_thread_forks(void) {
    if (depth >= 3) return;
    long *code = malloc(sizeof *code);
    void *stack = NULL;
    pthread_attr_t how;
    pthread_attr_init(&how);
    if (one_in(2)) {
        must(posix_memalign(&stack, PAGE, 256 << 10) == 0 && pthread_attr_setstack(&how, stack, 256 << 10) == 0,
            "a stack in the heap");
    }
    pthread_t thread;
    *code = -2;
    must(pthread_create(&thread, &how, fork_there, code) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    say(" %ld", *code);
    free(stack);
    free(code);
}

const struct op thread_ops[] = {
    {"workers", "workers", 3, op_workers},
    {"threads", "threads", 3, op_threads},
    {"detached", "detached", 1, op_detached},
    {"cancel", "cancel", 2, op_cancel},
    {"robust", "robust", 1, op_robust},
    {"thread-forks", "thread-forks", 2, op_thread_forks},
    {0},
};
