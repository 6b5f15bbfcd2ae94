//! How the kernel uses the program's memory when a thread ends, and while a thread lives.

use crate::common::{check_paged, good, program, with};

const RAM: u64 = 2 << 20;

const PRESS: &str = r#"
#include <sched.h>
enum { P = 4096, OTHER = 8 << 20 };
static char *other;
static void press(void) {
    if (!other) other = malloc(OTHER);
    CHECK(MANAGED(other));
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < OTHER; i += P) other[i]++;
}
static volatile int go;
static void until(volatile int *word, int value) {
    for (int i = 0; i < 5000 && *word != value; i++) usleep(1000);
    CHECK(*word == value);
}
"#;

fn check_pressed(name: &str, main: &str) {
    check_paged(name, &format!("{PRESS}{main}"), RAM, &[]);
}

programs! {
    a_word_that_the_kernel_clears_at_the_end_of_a_thread_is_cleared_though_its_page_would_be_out = check_pressed r#"
struct word { char a[2 * P]; volatile int tid; char b[2 * P]; };
static int child(void *x) { while (!go) usleep(1000); syscall(SYS_exit, 0); return 0; }
static void *own(void *word) {
    syscall(SYS_set_tid_address, word);
    while (go != 2) usleep(1000);
    syscall(SYS_exit, 0);
    return NULL;
}
int main(void) {
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID
        | CLONE_CHILD_CLEARTID;
    // Its page cannot be in RAM by chance: only the kernel touches it after the pressure, which the page table shows.
    for (int k = 0; k < 5; k++) {
        go = 0;
        struct word *w = malloc(sizeof *w);
        char *stack = mmap(NULL, 64 << 10, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        w->tid = -1;
        CHECK(clone(child, stack + (64 << 10), flags, NULL, (void *)&w->tid, NULL, (void *)&w->tid) > 0);
        press(); go = 1; usleep(50000); until(&w->tid, 0);
        free(w);
    }
    struct word *w = malloc(sizeof *w); pthread_t t; w->tid = -1;
    CHECK(pthread_create(&t, NULL, own, (void *)&w->tid) == 0);
    press(); go = 2; usleep(50000); until(&w->tid, 0);
}"#;
}

#[test]
fn a_thread_on_a_stack_in_managed_memory_can_be_joined_cancelled_and_left_alone() {
    let main = r#"
enum { S = 64 << 10, N = 8 };
static void *waits(void *x) { while (!go) usleep(1000); return x; }
static void *ends(void *x) { while (!go) usleep(1000); pthread_exit(x); }
static int pipes[2];
// Waits and ends far from the top of its stack, where the control block is.
static void *leaves(void *x) {
    volatile char deep[16 << 10];
    deep[0] = 1;
    syscall(SYS_read, pipes[0], deep, 1);
    syscall(SYS_exit, 0);
    return NULL;
}
static void cleanup(void *x) { ++*(int *)x; }
static int cleaned;
static void *cancelled(void *x) {
    pthread_cleanup_push(cleanup, &cleaned);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}
int main(void) {
    char *stacks[N];
    for (int i = 0; i < N; i++) { stacks[i] = aligned_alloc(P, S); CHECK(MANAGED(stacks[i])); }
    for (int round = 0; round < 6; round++) {
        pthread_t threads[N]; go = 0; CHECK(pipe(pipes) == 0);
        for (int i = 0; i < N; i++) {
            pthread_attr_t a; pthread_attr_init(&a); CHECK(pthread_attr_setstack(&a, stacks[i], S) == 0);
            void *(*routine[])(void *) = {waits, ends, cancelled, leaves};
            CHECK(pthread_create(&threads[i], &a, routine[i % 4], (void *)(long)i) == 0); pthread_attr_destroy(&a);
        }
        press();
        for (int i = 2; i < N; i += 4) CHECK(pthread_cancel(threads[i]) == 0);
        CHECK(write(pipes[1], "xx", 2) == 2); go = 1; usleep(20000);
        for (int i = 0; i < N; i++) {
            void *result; struct timespec end; clock_gettime(CLOCK_REALTIME, &end); end.tv_sec += 20;
            CHECK(pthread_timedjoin_np(threads[i], &result, &end) == 0);
            if (i % 4 != 3) CHECK(result == (i % 4 == 2 ? PTHREAD_CANCELED : (void *)(long)i));
        }
        close(pipes[0]); close(pipes[1]);
    }
    CHECK(cleaned == 12);
}"#;
    let Some(program) = program("stacks", &format!("{PRESS}{main}")) else { return };
    // With restartable sequences, the kernel touches the block whenever the thread has been interrupted, which loads
    // the page.
    for rseq in ["glibc.pthread.rseq=0", "glibc.pthread.rseq=1"] {
        let Some(mut command) = program.paged(RAM) else { return };
        good(command.env("GLIBC_TUNABLES", rseq));
    }
}

programs! {
    the_next_owner_of_a_robust_mutex_learns_of_the_last_ones_death = check_pressed r#"
struct big { char a[2 * P]; pthread_mutex_t m; char b[2 * P]; };
static void *dies(void *m) {
    CHECK(pthread_mutex_lock(m) == 0);
    __atomic_fetch_add(&go, 1, __ATOMIC_SEQ_CST);
    while (go < 100) usleep(1000);
    return NULL;
}
int main(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    CHECK(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) == 0);
    enum { N = 6 };
    for (int round = 0; round < 4; round++) {
        struct big *all[N]; pthread_t threads[N]; go = 0;
        for (int i = 0; i < N; i++) {
            all[i] = malloc(sizeof *all[i]); CHECK(MANAGED(all[i]) && pthread_mutex_init(&all[i]->m, &a) == 0);
            CHECK(pthread_create(&threads[i], NULL, dies, &all[i]->m) == 0);
        }
        until(&go, N); press(); go = 100;
        for (int i = 0; i < N; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        for (int i = 0; i < N; i++) {
            struct timespec end; clock_gettime(CLOCK_REALTIME, &end); end.tv_sec += 5;
            CHECK(pthread_mutex_timedlock(&all[i]->m, &end) == EOWNERDEAD);
            CHECK(pthread_mutex_consistent(&all[i]->m) == 0 && pthread_mutex_unlock(&all[i]->m) == 0);
            CHECK(pthread_mutex_destroy(&all[i]->m) == 0); free(all[i]);
        }
    }
    // What was held is free again: many more mutexes than the RAM has pages come and go.
    struct big *one = malloc(sizeof *one);
    for (int i = 0; i < 2000; i++) CHECK(pthread_mutex_init(&one->m, &a) == 0 && pthread_mutex_destroy(&one->m) == 0);
}"#;

    the_kernel_marks_a_robust_list_of_the_programs_own = check_pressed r#"
#include <linux/futex.h>
#include <stddef.h>
struct entry { struct robust_list list; char a[2 * P]; unsigned word; char b[2 * P]; };
static struct robust_list_head *head; static struct entry *entry[3];
static void *dies(void *by_call) {
    *head = (struct robust_list_head){{&entry[0]->list}, offsetof(struct entry, word), NULL};
    for (int i = 0; i < 3; i++)
        entry[i]->list.next = i < 2 ? &entry[i + 1]->list : &head->list, entry[i]->word = syscall(SYS_gettid);
    CHECK(syscall(SYS_set_robust_list, head, sizeof *head) == 0);
    press();
    if (by_call) syscall(SYS_exit, 0);
    return NULL;
}
int main(void) {
    head = malloc(4 * P);
    for (int i = 0; i < 3; i++) entry[i] = malloc(sizeof *entry[i]);
    for (long round = 0; round < 200; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, dies, (void *)(round & 1)) == 0 && pthread_join(thread, NULL) == 0);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < 1000 && !(entry[i]->word & FUTEX_OWNER_DIED); k++) usleep(1000);
            CHECK(entry[i]->word == FUTEX_OWNER_DIED);
        }
    }
}"#;

    a_futex_call_writes_a_word_though_its_page_is_out = check_pressed r#"
#include <linux/futex.h>
static char *at; static unsigned *lock;
static void *takes(void *x) {
    CHECK(syscall(SYS_futex, lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == 0);
    CHECK(syscall(SYS_futex, lock, FUTEX_UNLOCK_PI, 0) == 0);
    return x;
}
int main(void) {
    at = calloc(8, P), lock = (unsigned *)(at + 2 * P); unsigned *other = (unsigned *)(at + 6 * P);
    for (int i = 1; i <= 4; i++) {
        pthread_t thread;
        press(); CHECK(syscall(SYS_futex, lock, i & 1 ? FUTEX_LOCK_PI : FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0) == 0);
        CHECK(pthread_create(&thread, NULL, takes, NULL) == 0); usleep(20000);
        press(); CHECK(syscall(SYS_futex, lock, FUTEX_UNLOCK_PI, 0) == 0 && pthread_join(thread, NULL) == 0);
        press();
        CHECK(syscall(SYS_futex, at, FUTEX_WAKE_OP, 1, 1L, other, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0)) == 0
            && *other == 3 * i);
        press(); CHECK(syscall(SYS_futex, at, FUTEX_CMP_REQUEUE_PI, 1, 1L, lock, 0) == 0 && *lock == 0);
    }
}"#;
}

#[test]
fn a_mutex_with_priority_inheritance_is_taken_while_pages_leave() {
    let main = r#"
struct big { char a[2 * P]; pthread_mutex_t m; char b[2 * P]; };
static struct big *all; static volatile int count, done;
static void *takes(void *none) {
    for (int i = 0; i < 4000; i++) {
        CHECK(pthread_mutex_lock(&all->m) == 0);
        count++;
        if (i % 8 == 0) sched_yield();
        CHECK(pthread_mutex_unlock(&all->m) == 0);
    }
    return NULL;
}
static void *presses(void *none) { while (!done) press(); return NULL; }
int main(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    CHECK(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT) == 0);
    all = malloc(sizeof *all); CHECK(MANAGED(all) && pthread_mutex_init(&all->m, &a) == 0);
    pthread_t threads[4], presser; CHECK(pthread_create(&presser, NULL, presses, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, takes, NULL) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    done = 1; CHECK(pthread_join(presser, NULL) == 0 && count == 16000);
}"#;
    let Some(program) = program("inherits", &format!("{PRESS}{main}")) else { return };
    let Some(mut command) = program.paged(256 << 10) else { return };
    // What was touched last leaves soon.
    good(with(&mut command, |options| options.policy = Some("fifo".into())));
}

/// The pager's threads do not keep the process alive: when the program's last thread ends, the process ends, with the
/// exit code that it has without a pager.
#[test]
fn a_program_whose_last_thread_ends_by_the_system_call_alone_ends() {
    let source = r#"
static void *slow(void *x) { usleep(100000); syscall(SYS_exit, 9); return NULL; }
static void ends(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    printf("%d\n", WEXITSTATUS(status));
}
int main(void) {
    char *p = malloc(8 << 20); memset(p, 1, 8 << 20);
    for (int way = 0; way < 3; way++) {
        pid_t child = fork(); CHECK(child >= 0);
        if (!child) {
            pthread_t t; memset(p, 3, 8 << 20);
            CHECK(way == 0 || pthread_create(&t, NULL, slow, NULL) == 0);
            if (way < 2) syscall(SYS_exit, 3);
            pthread_exit(NULL);
        }
        ends(child);
    }
}"#;
    let Some(program) = program("last", source) else { return };
    let plain = good(&mut program.plain()).stdout;
    assert!(plain.starts_with(b"3\n"));
    let Some(mut command) = program.paged(RAM) else { return };
    assert_eq!(good(&mut command).stdout, plain);
}

/// All of the pager's work is done on stacks of its own.
#[test]
fn the_smallest_stack_and_a_coroutines_are_enough() {
    let main = r#"
#include <limits.h>
#include <ucontext.h>
enum { P = 4096, BIG = 5 << 20, CO = 8 << 10 };
static void calls(void) {
    for (int k = 0; k < 3; k++) {
        volatile char *volatile p = malloc(BIG);
        CHECK(MANAGED(p));
        for (int i = 0; i < BIG; i += 16 * P) p[i] = k;
        free((void *)p);
        char *volatile m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(MANAGED(m));
        for (int i = 0; i < 1 << 20; i += P) m[i] = k;
        CHECK(mprotect(m, 8 * P, PROT_READ) == 0 && mprotect(m, 8 * P, PROT_READ | PROT_WRITE) == 0);
        CHECK(mlock(m + 16 * P, 4 * P) == 0 && munlock(m + 16 * P, 4 * P) == 0);
        CHECK(madvise(m + 32 * P, 64 * P, MADV_DONTNEED) == 0 && madvise(m, 1 << 20, MADV_WILLNEED) == 0);
        m = mremap(m, 1 << 20, 2 << 20, MREMAP_MAYMOVE); CHECK(m != MAP_FAILED && m[31 * P] == k && m[32 * P] == 0);
        CHECK(munmap(m, 2 << 20) == 0);
    }
}
static void *thread(void *x) { calls(); return NULL; }
static ucontext_t back;
static void coroutine(void) { calls(); setcontext(&back); }
int main(void) {
    pthread_attr_t a; pthread_attr_init(&a); CHECK(pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN) == 0);
    enum { N = 40 /* more than work at a time */ }; pthread_t threads[N];
    for (int i = 0; i < N; i++) CHECK(pthread_create(&threads[i], &a, thread, NULL) == 0);
    for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
    /* Below a guard page. */
    char *stack = mmap(NULL, P + CO, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(mprotect(stack + P, CO, PROT_READ | PROT_WRITE) == 0);
    volatile int done = 0; getcontext(&back);
    if (!done++) {
        static ucontext_t own; getcontext(&own);
        own.uc_stack.ss_sp = stack + P; own.uc_stack.ss_size = CO; own.uc_link = &back;
        makecontext(&own, coroutine, 0); setcontext(&own);
    }
}"#;
    check_paged("small", main, 2 * RAM, &[]);
}

/// While a thread waits for the map's lock, its stack may leave RAM; then it has the lock, and its stack can only come
/// back with that lock.
#[test]
fn what_the_pager_works_with_is_not_on_a_stack_that_can_leave() {
    let main = r#"
enum { P = 4096, N = 512, S = 64 << 10 };
static char *big; static volatile int done;
static void *churn(void *from) {
    for (unsigned i = (uintptr_t)from; !done; i = (i * 5 + 1) % N) big[(size_t)i * P]++;
    return NULL;
}
static void *changes(void *x) {
    char *own = x;
    for (int i = 0; i < 500; i++) {
        char *at = own + (size_t)(i * 7 % 56) * P;
        CHECK(mprotect(at, 8 * P, PROT_READ) == 0 && mprotect(at, 8 * P, PROT_READ | PROT_WRITE) == 0);
        CHECK(madvise(at, 8 * P, i % 2 ? MADV_DONTFORK : MADV_DOFORK) == 0);
    }
    return NULL;
}
static void *maps(void *x) {
    while (!done) {
        char *at = mmap(NULL, 256 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(at != MAP_FAILED);
        for (int i = 0; i < 256; i++) at[(size_t)i * P] = i;
        CHECK(munmap(at, 256 * P) == 0);
    }
    return NULL;
}
int main(void) {
    enum { T = 6 }; alarm(100);
    big = malloc((size_t)N * P); CHECK(big); memset(big, 0, N * P);
    pthread_t t[T], c[3];
    for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&c[i], NULL, i ? churn : maps, (void *)(i * 77)) == 0);
    for (int i = 0; i < T; i++) {
        char *own = mmap(NULL, 64 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
             *stack = aligned_alloc(P, S);
        pthread_attr_t how; pthread_attr_init(&how); CHECK(pthread_attr_setstack(&how, stack, S) == 0);
        CHECK(pthread_create(&t[i], &how, changes, own) == 0);
    }
    for (int i = 0; i < T; i++) CHECK(pthread_join(t[i], NULL) == 0);
    done = 1; for (int i = 0; i < 3; i++) CHECK(pthread_join(c[i], NULL) == 0);
}"#;
    check_paged("own-stacks", main, 256 << 10, &[]);
}
