//! Fork, spawn, and who comes first.

mod common;

use coldframe_toolbox::{have, GCC};
use common::{check, compile, good, layout_only};

#[test]
fn this_library_starts_before_all_others_and_forks_around_them() {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Its handlers allocate: were this library's `prepare` first, they would wait at the gate for ever.
    let library = r#"
char *early; int handled;
static void handler(void) { CHECK(MANAGED(early) && !strcmp(early, "early")); char *p = malloc(100); CHECK(MANAGED(p)); free(p); handled++; }
__attribute__((constructor(101))) static void begin(void) {
    early = strdup("early"); CHECK(MANAGED(early));
    CHECK(pthread_atfork(handler, handler, handler) == 0);
}"#;
    compile(dir.path(), "libearly.so", library, &["-shared", "-fPIC"]);
    let program = r#"
extern char *early; extern int handled;
static char *before; __attribute__((constructor(101))) static void begin(void) { before = malloc(10); }
static void first(void) { before = malloc(10); CHECK(MANAGED(before)); }
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = first;
int main(void) {
    CHECK(MANAGED(early) && MANAGED(before));
    pid_t child = fork();
    if (child == 0) { CHECK(handled == 2); exit(0); }
    CHECK(handled == 2);
    int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}"#;
    let here = format!("-L{}", dir.path().display());
    let program = compile(dir.path(), "order", program, &[&here, "-learly", "-Wl,-rpath,$ORIGIN"]);
    good(&mut layout_only(&program));
}

#[test]
fn children_of_a_busy_parent_allocate() {
    check(
        "busy",
        r#"
enum { N = 512, BIG = 5 << 20 };
static void *_Atomic box[N]; static volatile int stop;
static void *thread(void *x) {
    unsigned seed = (uintptr_t)x;
    while (!stop) {
        size_t n = rand_r(&seed) % 500 ? 8 + rand_r(&seed) % 5000 : BIG;
        char *p = malloc(n); CHECK(p); p[0] = 1; p[n - 1] = 1;
        free(__atomic_exchange_n(&box[rand_r(&seed) % N], p, __ATOMIC_ACQ_REL));
        if (rand_r(&seed) % 1000 == 0) { FILE *f = fopen("/dev/null", "w"); fprintf(f, "%p", p); fclose(f); fflush(NULL); }
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
    return 0;
}"#,
    );
}

#[test]
fn spawned_programs_are_managed_too() {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
int main(int argc, char **argv) {
    CHECK(MANAGED(malloc(1)));
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
    good(&mut layout_only(compile(dir.path(), "spawn", source, &[])));
}
