//! Memory that one thread maps again or moves while another thread touches it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{everywhere, good, program, run, with};
use coldframe_live::Inject;

/// As [`everywhere`], where the pager pauses between its calls, so that other threads come in between.
fn with_pauses(name: &str, source: &str) {
    let Some(program) = program(name, source) else { return };
    good(&mut program.plain());
    let Some(mut command) = program.paged(4 << 20) else { return };
    good(with(&mut command, |options| options.inject = Some(Inject { pause: 4, ..Inject::default() })));
}

#[test]
fn no_page_that_is_touched_while_its_place_is_mapped_anew_is_unknown_to_the_pager() {
    with_pauses(
        "anew",
        r#"
#include <sched.h>
enum { P = 4096, PAGES = 64, ROUNDS = 500 };
static volatile char *memory;
static volatile int asked, still; // the round after which the other thread is to rest, and in which it rests
static void *touch(void *none) {
    for (unsigned i = 0, seen = 0; seen < ROUNDS; i++) {
        if (asked > seen) { still = asked; while (still) sched_yield(); seen++; }
        memory[i % PAGES * P] = 1;
    }
    return none;
}
int main(void) {
    pthread_t thread;
    unsigned char there[PAGES];
    memory = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && pthread_create(&thread, NULL, touch, NULL) == 0);
    for (int i = 1; i <= ROUNDS; i++) {
        CHECK(mmap((void *)memory, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
        for (asked = i; still != i;) sched_yield();
        CHECK(madvise((void *)memory, PAGES * P, MADV_DONTNEED) == 0 && mincore((void *)memory, PAGES * P, there) == 0);
        for (int page = 0; page < PAGES; page++) CHECK(!there[page]);
        still = 0;
    }
    return pthread_join(thread, NULL);
}"#,
    );
}

programs! {
    memory_that_is_mapped_anew_is_as_new_memory = everywhere r#"
enum { P = 4096, PAGES = 64 };
static int dumped(char *p) {
    char line[512];
    uintptr_t from, to;
    int inside = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = (uintptr_t)p >= from && (uintptr_t)p < to;
        if (inside && !strncmp(line, "VmFlags:", 8)) { fclose(maps); return !strstr(line, " dd"); }
    }
    _exit(97);
}
static char *anew(char *p, int protection) {
    CHECK(mmap(p, PAGES * P, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
    return p;
}
int main(int argc, char **argv) {
    char *p = mmap(NULL, PAGES * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, PAGES * P);
    CHECK(madvise(p, PAGES * P, MADV_DONTDUMP) == 0 && !dumped(p));
    if (madvise(p + 8 * P, P, 102) == -1) CHECK(errno == EINVAL); // guards, from Linux 6.13 on
    int key = pkey_alloc(0, PKEY_DISABLE_ACCESS); // not on every processor
    if (key >= 0) CHECK(pkey_mprotect(p + 16 * P, P, 3, key) == 0);
    CHECK(mmap(p + 32 * P, P, 1, MAP_PRIVATE | MAP_FIXED, open(argv[0], O_RDONLY), 0) == p + 32 * P);
    CHECK(munmap(p + 40 * P, P) == 0 && mprotect(p + 48 * P, P, 0) == 0 && mlock(p + 50 * P, P) == 0);
    anew(p, 3);
    for (int i = 0; i < PAGES * P; i++) CHECK(p[i] == 0);
    memset(p, 1, PAGES * P);
    CHECK(dumped(p) && dumped(p + 63 * P));
    anew(p, PROT_NONE);
    CHECK(write(1, p, 1) == -1 && errno == EFAULT && write(1, p + 32 * P, 1) == -1);
    anew(p, PROT_READ | 8); // mmap does not look at other bits
    for (int i = 0; i < PAGES * P; i++) CHECK(p[i] == 0);
    CHECK(read(open("/dev/zero", O_RDONLY), p, 1) == -1 && errno == EFAULT);
}"#;

    no_write_is_lost_while_memory_moves = everywhere r#"
#include <setjmp.h>
enum { N = 8 << 20, ROUNDS = 20 };
static volatile long *place;
static volatile long written; // surely
static volatile int begun;
static sigjmp_buf out;
static void gone(int signal) { siglongjmp(out, 1); }
static void *write_on(void *none) {
    if (sigsetjmp(out, 1)) return none;
    for (long i = 1;; i++) { *place = i; written = i; begun = 1; }
}
int main(void) {
    signal(SIGSEGV, gone);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        char *memory = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *other = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(MANAGED(memory) || !getenv("LD_PRELOAD"));
        memset(memory, 1, N);
        place = (long *)memory;
        begun = 0;
        CHECK(pthread_create(&thread, NULL, write_on, NULL) == 0);
        while (!begun) usleep(100);
        CHECK(mremap(memory, N, N, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
        pthread_join(thread, NULL);
        CHECK(*(long *)other == written || *(long *)other == written + 1);
        CHECK(other[N - 1] == 1 && munmap(other, N) == 0);
    }
}"#;

    a_child_has_the_rights_that_the_kernel_gives_it_though_they_change_meanwhile = everywhere r#"
enum { P = 4096 };
static char *p; static volatile int over;
static void *change(void *x) { for (int i = 0; !over; i++) CHECK(mprotect(p, 16 * P, i & 1 ? 3 : 1) == 0); return x; }
static int can_write(char *at) {
    int null = open("/dev/zero", O_RDONLY), can = read(null, at, 1) == 1;
    close(null);
    return can;
}
int main(void) {
    pthread_t thread;
    p = mmap(NULL, 16 * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && pthread_create(&thread, NULL, change, NULL) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork(); int status;
        if (child == 0) {
            int before = can_write(p); char *more = mremap(p, 16 * P, 4000 * P, MREMAP_MAYMOVE);
            CHECK(more != MAP_FAILED && can_write(more + 3000 * P) == before); _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    over = 1;
    return pthread_join(thread, NULL);
}"#;
}

/// While it compacts memory, the kernel may say of a page that it moved that there is one already (Linux 6.18 to 7.2).
#[test]
fn no_page_is_lost_while_the_kernel_compacts_memory() {
    let source = r#"
#include <time.h>
enum { P = 4096, N = 1400, T = 2 };
static unsigned *memory, count = 900;
static void *turns(void *number) {
    unsigned me = (uintptr_t)number, n = 0; time_t end = time(NULL) + 4;
    for (; time(NULL) < end; n++)
        for (unsigned i = me; i < count; i += T) { CHECK(memory[i * P / 4] == n); memory[i * P / 4] = n + 1; }
    return NULL;
}
int main(int argc, char **argv) {
    alarm(60);
    memory = mmap(NULL, N * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); CHECK(MANAGED(memory));
    for (int i = 0; i < N; i++) memory[i * P / 4] = 0;
    if (argc > 1) { count = N; if (syscall(SYS_io_uring_setup, 4, (char[256]){0}) < 0) return 77; }
    pthread_t threads[T];
    for (uintptr_t i = 0; i < T; i++) CHECK(pthread_create(&threads[i], NULL, turns, (void *)i) == 0);
    for (int i = 0; i < T; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}"#;
    let Some(program) = program("compacted", source) else { return };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Without root it does so only when it wants.
            while !over.load(Ordering::Relaxed) && std::fs::write("/proc/sys/vm/compact_memory", "1").is_ok() {
                std::thread::yield_now();
            }
        });
        // Pages go to the aside mapping and come back; with a ring, all pages that were written go there.
        let outputs = [&[][..], &["ring"]].map(|arguments| {
            let mut command = program.paged(4 << 20)?;
            with(&mut command, |options| options.policy = Some("fifo-sc:valid=5%".into()));
            Some(run(command.args(arguments)))
        });
        over.store(true, Ordering::Relaxed);
        for output in outputs.iter().flatten() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 77)), "{}\n{stderr}", output.status);
        }
    });
}
