//! The program's own signals while it waits for pages. A signal wakes a thread that waits for a page of its own access;
//! the thread runs the handler and waits again. So a timer keeps its rate on any device. Only a system call that waits
//! for a page delays signals, for one read of the device. `make signals` measures it.

use crate::common::{check_paged, good, program, with};
use coldframe_live::{Inject, Wait};

/// A program with a 1 kHz timer that reads pages which have been evicted. It prints the most signals during one access,
/// and the gaps between signals in microseconds: median, 99th percentile, longest.
const PROGRAM: &str = r#"
#include <sys/time.h>
#include <time.h>
enum { P = 4096, GAPS = 1 << 16 };
static volatile unsigned beats, ended, waiting, ended_while_waiting;
static unsigned gaps[GAPS];
static long long last;
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}
static void beat(int s) { long long t = now(); if (last && beats < GAPS) gaps[beats] = t - last; last = t; beats++; }
static void end(int s) { ended++; ended_while_waiting |= waiting; }
static int by_size(const void *a, const void *b) { return *(unsigned *)a < *(unsigned *)b ? -1 : 1; }
int main(int argc, char **argv) {
    unsigned pages = atoi(argv[1]), rounds = atoi(argv[2]), most = 0;
    char *p = malloc(pages * P);
    CHECK(MANAGED(p));
    for (unsigned i = 0; i < pages; i++) memset(p + i * P, i % 251, P);
    signal(SIGALRM, beat); signal(SIGTERM, end);
    pid_t me = getpid(), other = 0;
    if (argc > 3) { /* somebody else ends it, ten times a second */
        int pipe_ends[2]; CHECK(pipe(pipe_ends) == 0);
        char line[200]; snprintf(line, sizeof line, "while kill -TERM %d 2>/dev/null; do sleep 0.1; done", me);
        char *words[] = {"sh", "-c", line, NULL}, *none[] = {NULL};
        CHECK(posix_spawn(&other, "/bin/sh", NULL, NULL, words, none) == 0);
    }
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    unsigned chance = 1;
    for (unsigned k = 0; k < rounds; k++) {
        chance = chance * 1103515245 + 12345;
        unsigned i = (chance >> 8) % pages, before = beats;
        waiting = 1;
        CHECK(((volatile char *)p)[i * P] == (char)(i % 251));
        waiting = 0;
        if (beats - before > most) most = beats - before;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    if (other) { kill(other, SIGKILL); waitpid(other, NULL, 0); }
    unsigned n = beats < GAPS ? beats : GAPS;
    qsort(gaps, n, sizeof *gaps, by_size);
    printf("%u %u %u %u %u %u %u\n", most, beats, n ? gaps[n / 2] : 0, n ? gaps[n * 99 / 100] : 0, n ? gaps[n - 1] : 0,
        ended, ended_while_waiting);
}"#;

struct Beats {
    most_in_one_access: u64,
    all: u64,
    /// Microseconds between two signals.
    gaps: [u64; 3],
    ended: u64,
    ended_while_waiting: bool,
}

/// `None`: no program pages here. `paged`: the delay of the device, and the handlers.
fn run(words: &[&str], paged: Option<(u32, usize)>) -> Option<Beats> {
    let program = program("beats", PROGRAM)?;
    let mut command = program.plain();
    if let Some((slow_us, handlers)) = paged {
        command = program.paged(512 << 10)?;
        with(&mut command, |options| {
            (options.handlers, options.read_ahead, options.wait) = (handlers, 0, Wait::Auto);
            options.inject = Some(Inject { slow_us, ..Inject::default() });
        });
    }
    let output = String::from_utf8(good(command.args(words)).stdout).unwrap();
    let figures: Vec<u64> = output.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [most_in_one_access, all, middle, p99, longest, ended, waiting] = figures[..] else { panic!("{output}") };
    let gaps = [middle, p99, longest];
    Some(Beats { most_in_one_access, all, gaps, ended, ended_while_waiting: waiting == 1 })
}

#[test]
fn a_timer_keeps_its_pace_while_one_page_is_waited_for() {
    for handlers in [1, 2] {
        // A read of the device takes 40 ms here: a timer that was delayed would fire once.
        let Some(beats) = run(&["3000", "12"], Some((40_000, handlers))) else { return };
        let most = beats.most_in_one_access;
        assert!(most >= 10, "{handlers} handlers: at most {most} signals while one page was waited for, of some 40");
    }
}

#[test]
fn a_program_that_waits_for_a_page_hears_sigterm() {
    let Some(beats) = run(&["3000", "12", "end"], Some((40_000, 2))) else { return };
    assert!(beats.ended > 0 && beats.ended_while_waiting, "SIGTERM came {} times, none while it waited", beats.ended);
}

/// The kernel's own calls may be made in a handler, whatever it has interrupted: the C library's malloc, or ours.
#[test]
fn a_handler_may_call_what_is_a_system_call_without_a_pager() {
    let source = r#"
#include <time.h>
enum { P = 4096, PIECES = 24 };
static char *pieces[PIECES];
static volatile unsigned beats, busy[PIECES];
static time_t end;
static void beat(int s) {
    unsigned k = __sync_fetch_and_add(&beats, 1) % PIECES, error = errno; unsigned char there[16];
    if (__sync_lock_test_and_set(&busy[k], 1)) return; /* another thread's handler is not done with it */
    char *p = pieces[k];
    CHECK(mprotect(p + 3 * P, P, k & 1 ? PROT_READ : PROT_NONE) == 0
        && mprotect(p + 3 * P, P, PROT_READ | PROT_WRITE) == 0);
    CHECK(mincore(p, 16 * P, there) == 0 && madvise(p + 8 * P, 4 * P, MADV_DONTNEED) == 0
        && msync(p, 16 * P, MS_ASYNC) == 0);
    if (k % 4 == 0) {
        CHECK(munmap(p, 32 * P) == 0);
        pieces[k] = p = mmap(NULL, 32 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
    }
    p[0] = k; errno = error; __sync_lock_release(&busy[k]);
}
static void *works(void *file) {
    for (unsigned k = 0; time(NULL) < end; k++) {
        char *line = NULL, *text; size_t room = 0;
        CHECK(asprintf(&text, "%u %*d", k, 20 + k % 300, k) > 0);
        FILE *f = fopen(file, "r"); CHECK(f);
        for (int i = 0; i < 20 && getline(&line, &room, f) > 0; i++);
        char *p = malloc(100 + k % 3000); CHECK(p); p[0] = 1;
        fclose(f); free(line); free(text); free(p);
    }
    return NULL;
}
int main(int argc, char **argv) {
    for (int k = 0; k < PIECES; k++)
        pieces[k] = mmap(NULL, 32 * P, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    struct itimerspec fast = {{0, 60000}, {0, 60000}};
    timer_t timer; pthread_t other; end = time(NULL) + 4;
    CHECK(signal(SIGPROF, beat) != SIG_ERR && timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
    if (argc > 1) CHECK(pthread_create(&other, NULL, works, argv[0]) == 0);
    CHECK(timer_settime(timer, 0, &fast, NULL) == 0); works(argv[0]);
    CHECK(timer_delete(timer) == 0 && beats > 1000);
    if (argc > 1) pthread_join(other, NULL);
}"#;
    let Some(program) = program("handler", source) else { return };
    for words in [&[][..], &["two"]] {
        good(program.plain().args(words));
        let Some(mut command) = program.paged(4 << 20) else { return };
        good(command.args(words));
    }
}

/// `make signals` asserts nothing, because its times also depend on the load of the machine.
#[test]
#[ignore = "a measurement"]
fn how_late_signals_are() {
    println!("1 kHz timer              signals   gap p50    p99      max (us)");
    for (name, rounds, paged) in
        [("plain", "40000000", None), ("paged", "40000", Some((0, 2))), ("device 1 ms slower", "1500", Some((1000, 2)))]
    {
        let Some(beats) = run(&["1024", rounds], paged) else { return };
        let [middle, p99, longest] = beats.gaps;
        println!("{name:<24} {:>7} {middle:>9} {p99:>6} {longest:>8}", beats.all);
    }
}

/// The C library's fork waits for the locks of its own heap after the pager has stopped.
#[test]
fn a_handler_may_need_a_page_while_its_thread_is_in_the_librarys_heap_and_another_thread_forks() {
    let main = r#"
#include <time.h>
enum { P = 4096, N = 2048 };
static char *big; static volatile int done; static volatile unsigned at; static timer_t timer;
static void touch(int signal) {
    int error = errno;
    for (int i = 0; i < 3; i++) { at = (at + 7) % N; big[(size_t)at * P]++; }
    struct itimerspec soon = {.it_value = {0, 30000}}; if (!done) timer_settime(timer, 0, &soon, NULL);
    errno = error;
}
static void *library(void *x) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1}; event._sigev_un._tid = gettid();
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0); touch(0);
    while (!done) {
        char *text = NULL; CHECK(asprintf(&text, "%0300d", 7) == 300); free(text);
        size_t len; FILE *stream = open_memstream(&text, &len); fputs("some words", stream); fclose(stream); free(text);
    }
    return NULL;
}
int main(void) {
    alarm(100);
    big = malloc(N * P); CHECK(MANAGED(big)); memset(big, 0, N * P);
    struct sigaction act = {.sa_handler = touch, .sa_flags = SA_RESTART}; CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    pthread_t thread; CHECK(pthread_create(&thread, NULL, library, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork(); CHECK(child >= 0); if (!child) _exit(0);
        int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    done = 1; CHECK(pthread_join(thread, NULL) == 0);
}"#;
    check_paged("handlers-and-forks", main, 1536 << 10, &[]);
}

/// The C library holds a lock while it looks for the handlers of a fork.
#[test]
fn a_handler_may_need_memory_while_its_thread_begins_a_fork_and_another_thread_forks() {
    let source = r#"
#include <time.h>
enum { P = 4096, T = 4 };
static __thread timer_t timer;
static void soon(void) { struct itimerspec in = {.it_value = {0, 20000}}; timer_settime(timer, 0, &in, NULL); }
static void gust(int s) {
    int error = errno; char *p = mmap(NULL, 16 * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED); p[P] = 1; CHECK(munmap(p, 16 * P) == 0);
    soon(); errno = error;
}
static void nothing(void) {}
static void *forks(void *none) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 4};
    event._sigev_un._tid = gettid(); CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0); soon();
    for (int i = 0; i < 300; i++) {
        pid_t child = fork(); if (!child) _exit(0);
        CHECK(child > 0); while (waitpid(child, NULL, 0) != child) CHECK(errno == EINTR);
    }
    timer_delete(timer); return NULL;
}
int main(void) {
    alarm(60);
    for (int i = 0; i < 300; i++) CHECK(pthread_atfork(nothing, nothing, nothing) == 0); // looks for them longer
    struct sigaction action = {.sa_handler = gust, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGRTMIN + 4, &action, NULL) == 0);
    pthread_t threads[T];
    for (int i = 0; i < T; i++) CHECK(pthread_create(&threads[i], NULL, forks, NULL) == 0);
    for (int i = 0; i < T; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}"#;
    check_paged("forking", source, 1536 << 10, &[]);
}
