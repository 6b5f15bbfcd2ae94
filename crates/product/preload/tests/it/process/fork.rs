//! Fork, spawn, and the order of handlers.

use crate::common::{check, compile, everywhere, good, paged, program, with, ROOMY};
use coldframe_toolbox::{have, GCC};

#[test]
fn this_library_starts_before_all_others_and_forks_around_them() {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Its handlers allocate: were this library's `prepare` first, they would wait at the gate for ever.
    let library = r#"
char *early; int handled;
static void handler(void) {
    CHECK(MANAGED(early) && !strcmp(early, "early"));
    char *p = malloc(5000);
    CHECK(MANAGED(p));
    free(p);
    handled++;
}
__attribute__((constructor(101))) static void begin(void) {
    early = strcpy(malloc(5000), "early"); CHECK(MANAGED(early));
    CHECK(pthread_atfork(handler, handler, handler) == 0);
}"#;
    compile(dir.path(), "libearly.so", library, &["-shared", "-fPIC"]);
    let program = r#"
extern char *early; extern int handled;
static char *before; __attribute__((constructor(101))) static void begin(void) { before = malloc(5000); }
static void first(void) { before = malloc(5000); CHECK(MANAGED(before)); }
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = first;
int main(void) {
    CHECK(MANAGED(early) && MANAGED(before));
    pid_t child = fork();
    if (child == 0) { CHECK(handled == 2); exit(0); }
    CHECK(handled == 2);
    int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
}"#;
    let here = format!("-L{}", dir.path().display());
    let program = compile(dir.path(), "order", program, &[&here, "-learly", "-Wl,-rpath,$ORIGIN"]);
    paged(&program, ROOMY).iter_mut().for_each(|command| _ = good(command));
}

programs! {
    children_of_a_busy_parent_allocate = check r#"
enum { N = 512, BIG = 5 << 20 };
static void *_Atomic box[N]; static volatile int stop;
static void *thread(void *x) {
    unsigned seed = (uintptr_t)x;
    while (!stop) {
        size_t n = rand_r(&seed) % 500 ? 8 + rand_r(&seed) % 5000 : BIG;
        char *p = malloc(n); CHECK(p); p[0] = 1; p[n - 1] = 1;
        free(__atomic_exchange_n(&box[rand_r(&seed) % N], p, __ATOMIC_ACQ_REL));
        if (rand_r(&seed) % 1000 == 0) {
            FILE *f = fopen("/dev/null", "w");
            fprintf(f, "%p", p);
            fclose(f);
            fflush(NULL);
        }
    }
    return NULL;
}
static void *short_lived(void *x) { free(malloc(100)); return NULL; }
int main(void) {
    pthread_t t[6], u;
    for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, thread, (void *)(i + 1));
    for (int round = 0; round < 150; round++) {
        pthread_create(&u, NULL, short_lived, NULL);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            stop = 1;
            for (int i = 0; i < N; i++) { free(box[i]); box[i] = NULL; }     // other threads' blocks
            for (long i = 4; i < 6; i++) { stop = 0; pthread_create(&t[i], NULL, thread, (void *)i); }
            usleep(2000); stop = 1;
            for (long i = 4; i < 6; i++) pthread_join(t[i], NULL);
            pid_t grandchild = fork();
            if (grandchild == 0) { free(malloc(1 << 20)); exit(0); }
            int status; CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            exit(0);
        }
        pthread_join(u, NULL);
        int status; CHECK(waitpid(child, &status, 0) == child); CHECK(status == 0);
    }
    stop = 1;
    for (long i = 0; i < 4; i++) pthread_join(t[i], NULL);
}"#;

    spawned_programs_are_managed_too = check r#"
int main(int argc, char **argv) {
    CHECK(MANAGED(malloc(5000)));
    if (argc > 1) return 7;
    char *words[] = {argv[0], "child", NULL}, command[1000]; pid_t child; int status;
    CHECK(posix_spawn(&child, argv[0], NULL, NULL, words, environ) == 0);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    if ((child = vfork()) == 0) { execv(argv[0], words); _exit(1); }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    snprintf(command, sizeof command, "%s child", argv[0]);
    CHECK(WEXITSTATUS(system(command)) == 7);
    FILE *f = popen(command, "r"); CHECK(WEXITSTATUS(pclose(f)) == 7);
    if ((child = fork()) == 0) { execv(argv[0], words); _exit(1); }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    return 0;
}"#;
}

/// Memory of twice the RAM, with a word in each page.
const MEMORY: &str = r#"
#include <sched.h>
#include <sys/resource.h>
enum { SIZE = 8 << 20 };
static char *big;
static void fill(int round) {
    if (!big) big = aligned_alloc(4096, SIZE);
    CHECK(MANAGED(big));
    for (long i = 0; i < SIZE; i += 4096) *(int *)(big + i) = (i >> 12) * 7 + round;
}
static void look(int round) { for (long i = 0; i < SIZE; i += 4096) CHECK(*(int *)(big + i) == (i >> 12) * 7 + round); }
static void work(void) {
    look(1);
    fill(2);
    look(2);
    char *more = calloc(1, SIZE);
    for (long i = 0; i < SIZE; i += 4096) {
        CHECK(!more[i]);
        more[i] = 1;
    }
    free(more);
    more = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    more[5] = 1;
    CHECK(munmap(more, SIZE) == 0);
}
static void ends(pid_t child) {
    int status;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, __WALL) == child);
    CHECK(status == 0);
    look(1);
}
"#;

/// A program with 4 MiB of RAM and this many handlers ends well and says nothing.
fn quiet(name: &str, handlers: usize, source: &str) {
    let Some(program) = program(name, &format!("{MEMORY}{source}")) else { return };
    let Some(mut command) = program.paged(4 << 20) else { return };
    let output = good(with(&mut command, |options| options.handlers = handlers));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{handlers} handlers");
}

fn quiet_with_two_handlers(name: &str, source: &str) {
    quiet(name, 2, source);
}

programs! {
    children_that_are_made_without_fork_have_managed_memory = quiet_with_two_handlers r#"
static int body(void *argument) { CHECK(argument == big); work(); return 0; }
static int shared(void *argument) { CHECK(*(int *)(big + 4096) == 8); return 0; }
int main(void) {
    fill(1);
    pid_t child = _Fork(); if (!child) { work(); _exit(0); } ends(child);
    child = syscall(SYS_fork); if (!child) { work(); _exit(0); } ends(child);
    child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); if (!child) { work(); _exit(0); } ends(child);
    CHECK(clone(body, NULL, SIGCHLD, big) == -1 && errno == EINVAL);
    char *stack = malloc(1 << 20);
    ends(clone(body, stack + (1 << 20), SIGCHLD, big));
    ends(clone(shared, stack + (1 << 20), CLONE_VM | CLONE_VFORK | SIGCHLD, big));
    child = vfork(); if (!child) _exit(*(int *)(big + 8192) != 15); ends(child);
}"#;

    a_child_may_close_all_descriptors_while_its_parent_lives_on = quiet_with_two_handlers r#"
int main(void) {
    fill(1);
    for (int round = 0; round < 3; round++) {
        int ends_[2]; CHECK(pipe(ends_) == 0);
        pid_t child = fork();
        if (!child) {
            for (int fd = 3; fd < 5000; fd++) if (fd != ends_[0]) close(fd);
            char byte; CHECK(read(ends_[0], &byte, 1) == 1);
            work(); _exit(0);
        }
        /* What it sees must stay where it is while the parent rewrites everything. */
        for (int i = 3; i < 9; i++) { fill(i); look(i); }
        CHECK(write(ends_[1], "x", 1) == 1);
        int status; CHECK(waitpid(child, &status, 0) == child); CHECK(status == 0);
        close(ends_[0]); close(ends_[1]); fill(1);
    }
}"#;
}

#[test]
fn ten_generations_page_with_one_handler_and_with_sixteen() {
    for handlers in [1, 5, 16] {
        quiet(
            "generations",
            handlers,
            r#"
int main(void) {
    fill(1);
    for (int depth = 0; depth < 10; depth++) {
        pid_t child = fork(); CHECK(child >= 0);
        if (child) {
            int status;
            CHECK(waitpid(child, &status, 0) == child);
            look(depth + 1);
            exit(WEXITSTATUS(status) | WTERMSIG(status));
        }
        look(depth + 1); fill(depth + 2);
    }
}"#,
        );
    }
}

programs! {
    a_signal_that_comes_during_a_fork_is_handled_when_the_fork_is_over = quiet_with_two_handlers r#"
#include <sys/time.h>
static volatile int count;
static void handler(int signal) { free(malloc(100 + count % 5000)); big[(count % 2000) * 4096 + 8] = 1; count++; }
int main(void) {
    fill(1);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, 0) == 0);
    struct itimerval often = {{0, 200}, {0, 200}}; CHECK(setitimer(ITIMER_REAL, &often, 0) == 0);
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (!child) { char *p = malloc(9000); p[0] = 1; free(p); _exit(0); }
        int status; while (waitpid(child, &status, 0) != child); CHECK(status == 0);
    }
    CHECK(count > 0);
}"#;

    a_program_forks_on_a_stack_in_managed_memory = quiet_with_two_handlers r#"
#include <ucontext.h>
static ucontext_t main_, other;
static void body(void) {
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (!child) { work(); _exit(0); }
        ends(child);
    }
}
int main(void) {
    fill(1);
    CHECK(getcontext(&other) == 0);
    other.uc_stack.ss_sp = malloc(1 << 20); other.uc_stack.ss_size = 1 << 20; other.uc_link = &main_;
    makecontext(&other, body, 0);
    CHECK(MANAGED(other.uc_stack.ss_sp) && swapcontext(&main_, &other) == 0);
}"#;
}

/// The thread itself touches so many pages that the page of its own stack must be evicted.
#[test]
fn a_coroutine_whose_stack_is_paged_out_forks_and_ends() {
    quiet(
        "cold-coroutine",
        1,
        r#"
#include <ucontext.h>
static ucontext_t main_, other;
static int status;
static void body(void) {
    for (int round = 0; round < 12; round++) {
        swapcontext(&other, &main_);
        CHECK(madvise(big, SIZE / 2, MADV_WILLNEED) == 0 && madvise(big + SIZE / 2, SIZE / 2, MADV_WILLNEED) == 0);
        pid_t child = fork();
        if (!child) { CHECK(madvise(big, SIZE, MADV_WILLNEED) == 0); look(1); exit(0); }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}
int main(void) {
    alarm(60);
    CHECK(getcontext(&other) == 0);
    other.uc_stack.ss_sp = malloc(64 << 10); other.uc_stack.ss_size = 64 << 10; other.uc_link = &main_;
    makecontext(&other, body, 0);
    CHECK(MANAGED(other.uc_stack.ss_sp));
    for (int round = 0; round < 13; round++) { fill(1); CHECK(swapcontext(&main_, &other) == 0); }
}"#,
    );
}

programs! {
    a_child_that_may_have_no_ring_pages_with_plain_reads = quiet_with_two_handlers r#"
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
int main(void) {
    fill(1);
    pid_t child = fork();
    if (!child) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {4, code};
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
        pid_t grandchild = fork(); CHECK(grandchild >= 0);
        if (!grandchild) { work(); _exit(0); }
        ends(grandchild); _exit(0);
    }
    ends(child);
}"#;
}

/// Slow memory needs a descriptor for each child.
#[test]
fn a_child_that_is_refused_once_is_made_the_next_time() {
    let source = r#"
int main(void) {
    fill(1);
    struct rlimit few = {100, 100}; CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int way = 0; way < 4; way++) {
        int last = -1, next; while ((next = dup(2)) >= 0) last = next;
        pid_t child = way == 1 ? _Fork() : way == 2 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
        if (child == 0) _exit(3);
        CHECK(child == -1 && errno == EAGAIN && waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
        for (int fd = last; fd > last - 20; fd--) close(fd);
        child = way == 3 ? _Fork() : fork();
        if (child == 0) { look(1); _exit(0); }
        ends(child);
    }
}"#;
    let Some(program) = program("refused", &format!("{MEMORY}{source}")) else { return };
    if let Some(mut command) = program.paged(4 << 20) {
        good(with(&mut command, |options| options.slow = Some("/dev/shm".into())));
    }
}

programs! {
    /// The kernel writes them while no page can be brought in.
    the_words_of_a_child_are_written_though_their_pages_are_out = everywhere r#"
#include <sched.h>
enum { N = (16 << 20) / 4 };
static unsigned *p; static char stack[256 << 10];
static int ends(void *word) { _exit(word && *(int *)word != syscall(SYS_gettid)); }
int main(void) {
    alarm(120);
    p = malloc(N * 4);
    for (int way = 0; way < 8; way++) {
        for (int i = 0; i < N; i++) p[i] = i;
        unsigned at = (way * 37 + 5) * 1024 + 9, *word = p + at, *of_child = p + at + 5000; int fd = -1, status;
        int flags = (way & 1 ? CLONE_PIDFD : CLONE_PARENT_SETTID)
            | (way & 2 ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0) | SIGCHLD;
        void *argument = way & 2 ? of_child : NULL;
        pid_t child = way & 4 ? clone(ends, stack + sizeof stack, flags, argument, word, NULL, of_child)
#ifdef __x86_64__
            : syscall(SYS_clone, flags, 0, word, of_child, 0);
#else
            : syscall(SYS_clone, flags, 0, word, 0, of_child);
#endif
        if (child == 0) ends(argument);
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        CHECK(way & 1 ? *word < at && close(*word) == 0 : *word == child);
        for (unsigned i = 0; i < N; i++) CHECK(i == at || p[i] == i);
    }
}"#;

    a_child_that_shares_the_descriptors_leaves_its_parents_memory_alone = everywhere r#"
#include <sched.h>
enum { N = (16 << 20) / 4 };
static unsigned *p; static char stack[256 << 10]; static int file;
static void look(unsigned more) { for (unsigned i = 0; i < N; i++) CHECK(p[i] == i * 7 + more); }
static int child(void *x) {
    look(0);
    close(file);
    file = 0;
    usleep(20000);
    look(0);
    for (int i = 0; i < N; i++) p[i] += 5;
    look(5);
    return 3;
}
int main(void) {
    p = malloc(N * 4);
    for (int i = 0; i < N; i++) p[i] = i * 7;
    for (int round = 0; round < 3; round++) {
        int status; file = dup(2);
        pid_t made = clone(child, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL); CHECK(made > 0); look(0);
        for (int i = 0; i < N; i++) p[i] += 9;
        look(9);
        CHECK(waitpid(made, &status, 0) == made && status == 3 << 8 && close(file) == -1 && errno == EBADF);
        look(9);
        for (int i = 0; i < N; i++) p[i] -= 9;
    }
}"#;

    a_child_of_another_c_library_has_the_memory = everywhere r#"
#include <dlfcn.h>
enum { N = 16 << 20 };
static void look(char *p, char *q) {
    for (int i = 0; i < N; i++) CHECK(p[i] == (char)(i * 7 >> 3));
    for (int i = 0; i < N / 4; i++) CHECK(q[i] == 3);
}
int main(void) {
    char *p = malloc(N); for (int i = 0; i < N; i++) p[i] = i * 7 >> 3;
    for (int round = 0; round < 2; round++) { // the second time, the handlers are registered once more
        void *library = dlmopen(round ? LM_ID_BASE : LM_ID_NEWLM, "libc.so.6", RTLD_NOW); CHECK(library);
        if (round) {
            Lmid_t one;
            CHECK(dlinfo(dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW), RTLD_DI_LMID, &one) == 0);
            CHECK(library = dlmopen(one, "libc.so.6", RTLD_NOW));
        }
        int (*fork_)(void) = dlsym(library, "fork"), status, child; void *(*malloc_)(size_t) = dlsym(library, "malloc");
        char *q = malloc_(N / 4); memset(q, 3, N / 4);
        child = fork_();
        if (child == 0) { look(p, q); memset(p, 1, N); _exit(0); }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0); look(p, q);
    }
}"#;

    a_child_of_clone3_by_number_has_the_memory_and_one_with_a_stack_of_its_own_is_not_to_be_had = everywhere r#"
#include <linux/sched.h>
enum { P = 4096, N = 16 << 20 };
static char *p;
static void work(void) {
    for (int i = 0; i < N; i += P) {
        CHECK(p[i] == (char)(i / P * 7 + 1));
        p[i]++;
    }
    for (int i = 0; i < N; i += P) CHECK(p[i] == (char)(i / P * 7 + 2));
}
static void ends(long child) { int status; CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0); }
int main(void) {
    p = malloc(N);
    for (int i = 0; i < N; i += P) p[i] = i / P * 7 + 1;
    for (int way = 0; way < 3; way++) {
        int fd = -1; pid_t number = 0;
        struct clone_args args = {.exit_signal = SIGCHLD}, *given = &args;
        if (way == 1)
            args.flags = CLONE_PIDFD | CLONE_PARENT_SETTID, args.pidfd = (uintptr_t)&fd,
            args.parent_tid = (uintptr_t)&number;
        if (way == 2) given = memcpy(malloc(1 << 20), &args, sizeof args);
        long child = syscall(SYS_clone3, given, sizeof args);
        if (child == 0) { work(); _exit(0); }
        ends(child);
        CHECK(way != 1 || (fd >= 0 && number == child));
    }
    struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD};
    CHECK(syscall(SYS_clone3, &args, 8L) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_clone3, NULL, sizeof args) == -1 && errno == EFAULT);
    if (getenv("LD_PRELOAD")) {
        args.flags = 0, args.stack = (uintptr_t)malloc(N), args.stack_size = N;
        CHECK(syscall(SYS_clone3, &args, sizeof args) == -1 && errno == ENOSYS);
    }
    work();
}"#;
}
