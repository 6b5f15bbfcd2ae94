//! The addresses of blocks, and that they are valid blocks.

use crate::common::{check, compile, compile_cxx, good, library, paged, program, run, with, ROOMY};
use coldframe_live::StatsFile;
use coldframe_toolbox::{have, GCC};

programs! {
    every_block_of_the_program_is_managed = check r#"
int main(void) {
    size_t sizes[] = {2000, 4096, 100000, 1 << 20, (4 << 20) - 1, 4 << 20, 50 << 20, 200 << 20};
    for (int i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        char *a = malloc(n), *b = calloc(n, 1);
        CHECK(MANAGED(a) && MANAGED(b) && (uintptr_t)a % 16 == 0 && malloc_usable_size(a) >= n);
        for (size_t k = 0; k < n; k += 1000) { CHECK(b[k] == 0); a[k] = k / 1000; }
        a = realloc(a, n * 2 + 100);
        CHECK(MANAGED(a));
        for (size_t k = 0; k < n; k += 1000) CHECK(a[k] == (char)(k / 1000));
        a = realloc(a, n / 3 + 1);
        CHECK(MANAGED(a));
        for (size_t k = 0; k < n / 3; k += 1000) CHECK(a[k] == (char)(k / 1000));
        free(a); free(b);
        for (size_t align = 8; align <= 64 << 20; align *= 8) {
            void *p = NULL;
            CHECK(posix_memalign(&p, align, n) == 0 && MANAGED(p) && (uintptr_t)p % align == 0);
            memset(p, 1, n);
            free(p);
            p = aligned_alloc(align, n); CHECK(MANAGED(p) && (uintptr_t)p % align == 0); free(p);
            p = memalign(align, n); CHECK(MANAGED(p) && (uintptr_t)p % align == 0); free(p);
        }
    }
    CHECK(MANAGED(valloc(1)) && MANAGED(pvalloc(1)) && MANAGED(reallocarray(NULL, 100, 100)));
    CHECK(realloc(malloc(10), 0) == NULL);
    errno = 0; CHECK(malloc(SIZE_MAX) == NULL && errno == ENOMEM);
    errno = 0; CHECK(calloc(SIZE_MAX, 2) == NULL && errno == ENOMEM);
    errno = 0; CHECK(reallocarray(NULL, SIZE_MAX, 2) == NULL && errno == ENOMEM);
    void *p; CHECK(posix_memalign(&p, 24, 1) == EINVAL && posix_memalign(&p, 4, 1) == EINVAL);
    errno = 77; free(malloc(10)); free(malloc(10 << 20)); CHECK(errno == 77);
}"#;
    a_block_that_grows_in_steps_stays_where_it_is_most_of_the_time = check r#"
int main(void) {
    char *a = malloc(8 << 20), *old; int moves = 0;
    for (size_t n = 8 << 20; n < 512 << 20; n += 4 << 20) {
        a[n - 1] = 1;
        old = a;
        a = realloc(a, n + (4 << 20));
        moves += a != old;
    }
    CHECK(moves <= 8);
    for (size_t n = 8 << 20; n < 512 << 20; n += 4 << 20) CHECK(a[n - 1] == 1);
}"#;
}

/// With RAM for all, for one block and a half, and for less than one.
#[test]
fn a_large_block_that_was_used_before_is_zeros_for_calloc() {
    let source = r#"
enum { N = 8 << 20 };
static void filled(char *p, int with) {
    memset(p, with, N);
    for (int i = 0; i < N; i += 1000) CHECK(p[i] == with);
}
int main(int argc, char **argv) {
    for (int i = 1; i < 10; i++) {
        char *p = malloc(N), *q; filled(p, i); free(p);
        q = malloc(N - 100000); memset(q, i, N - 100000); free(q);
        q = calloc(N, 1);
        for (int k = 0; k < N; k += 100) CHECK(q[k] == 0);
        filled(q, i); q = realloc(q, 3 * N); CHECK(q[N - 1] == i); free(q);
        q = malloc(3 * N); q[0] = 1; free(q);
        pid_t child = fork();
        if (!child) { q = malloc(N); filled(q, 7); free(q); q = malloc(N); filled(q, 8); _exit(0); }
        int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    char *blocks[20];
    for (int i = 0; i < 20; i++) blocks[i] = malloc(N);
    for (int i = 0; i < 20; i++) free(blocks[i]);
    sleep(1); free(malloc(N));
    FILE *f = fopen("/proc/self/statm", "r"); long size, resident = 0;
    CHECK(f && fscanf(f, "%ld %ld", &size, &resident) == 2 && resident < 16384);
}"#;
    let Some(program) = program("kept", source) else { return };
    for ram in [ROOMY, 12 << 20, 6 << 20] {
        let (Some(mut command), stats) = (program.paged(ram), StatsFile::create().unwrap()) else { return };
        good(with(&mut command, |options| options.stats_fd = Some(stats.fd())));
        let counts = stats.snapshot();
        assert!(ram > 8 << 20 || counts.device_writes > 0, "{counts:?}");
        assert!(ram < ROOMY || counts.pages_written == 0, "{counts:?}");
    }
}

programs! {
    the_c_librarys_own_blocks_are_of_the_same_heap = check r#"
int compare(const void *a, const void *b) { return *(char *)a - *(char *)b; }
static void look(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char *line = NULL; size_t n = 0;
    CHECK(f && getline(&line, &n, f) > 0);
    line = realloc(line, 10000);
    CHECK(MANAGED(line) && !strncmp(line, "Name:", 5));
    free(line); fclose(f);
    char *text; CHECK(asprintf(&text, "%d", 5) == 1); free(text);
    char *big = calloc(1 << 20, 1); qsort(big, 1 << 20, 1, compare); free(big);
}
static void *thread(void *x) { int here; CHECK(!MANAGED(&here)); look(); return malloc(10); }
int main(void) {
    look();
    pthread_t t; void *p;
    for (int i = 0; i < 20; i++) {
        pthread_create(&t, NULL, thread, NULL);
        pthread_join(t, &p);
        CHECK(MANAGED(p));
        free(p);
    }
    if (fork() == 0) { look(); pthread_create(&t, NULL, thread, NULL); pthread_join(t, &p); exit(0); }
    int status; wait(&status); CHECK(status == 0);
}"#;
}

#[test]
fn the_heap_grows_arena_by_arena_until_memory_is_full_and_says_so_once() {
    let source = r#"
int main(void) {
    struct cell { struct cell *next; long n; char pad[984]; } *all = NULL, *c;
    long n = 0, again = 0;
    errno = 0;
    while ((c = malloc(sizeof *c))) { CHECK(MANAGED(c)); c->next = all; c->n = n++; all = c; }
    CHECK(errno == ENOMEM && n > 200 * 1024);
    CHECK(malloc(64 << 20) == NULL && mmap(NULL, 64 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    for (long k = n; all; all = c) { CHECK(all->n == --k); c = all->next; free(all); }
    while (again < n / 2 && malloc(1000)) again++;
    CHECK(again == n / 2);
}"#;
    let Some(program) = program("full", source) else { return };
    let Some(mut command) = program.paged(ROOMY) else { return };
    let output = good(with(&mut command, |options| options.max_memory = 300 << 20));
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words.matches("max_memory").count(), 1, "{words}");
}

programs! {
    the_statistics_and_settings_of_malloc_are_the_c_librarys = check r#"
static struct mallinfo2 info; static void look(void) { info = mallinfo2(); }
int main(void) {
    enum { N = 5000, LEN = 20000 }; static char *all[N];
    look(); size_t before = info.uordblks;
    for (int i = 0; i < N; i++) all[i] = memset(malloc(LEN), i, LEN);
    CHECK(MANAGED(all[0]) && MANAGED(all[N - 1]));
    look(); CHECK(info.uordblks - before >= (size_t)N * LEN && info.uordblks - before < (size_t)N * LEN * 11 / 10);
    CHECK(info.arena >= info.uordblks && info.arena < (200 << 20) && info.hblks == 0);
    for (int i = 0; i < N; i += 2) free(all[i]);
    look(); CHECK(info.fordblks > (size_t)N / 2 * LEN * 9 / 10);
    char *text; size_t len; FILE *f = open_memstream(&text, &len);
    CHECK(malloc_info(0, f) == 0 && fclose(f) == 0 && strstr(text, "<heap nr=\"0\">"));
    for (int i = 1; i < N; i += 2) { for (int k = 0; k < LEN; k += 999) CHECK(all[i][k] == (char)i); free(all[i]); }
    look(); size_t system = info.arena;
    CHECK(malloc_trim(0) == 1); look(); CHECK(info.arena + (4 << 20) < system || info.arena < 4 << 20);
    char *own = malloc(8 << 20); look(); CHECK(info.hblks == 1 && info.hblkhd >= 8 << 20 && MANAGED(own));
    memset(own, 1, 8 << 20); own = realloc(own, 20 << 20); CHECK(MANAGED(own) && own[(8 << 20) - 1] == 1); free(own);
    CHECK(mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1);
    own = malloc(8 << 20); look(); CHECK(info.hblks == 0 && MANAGED(own) && malloc_usable_size(malloc(100)) == 104);
}"#;
    an_arena_is_enough_where_the_program_wants_one = check r#"
static void *work(void *x) {
    for (int i = 0; i < 1000; i++) { char *p = malloc(i * 10); p[0] = 1; if (i % 2) free(p); }
    return NULL;
}
int main(int argc, char **argv) {
    if (argc == 1) { setenv("MALLOC_ARENA_MAX", "1", 1); char *again[] = {argv[0], "x", NULL}; execv(argv[0], again); }
    pthread_t t[8];
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    char *text; size_t len; FILE *f = open_memstream(&text, &len);
    CHECK(malloc_info(0, f) == 0 && fclose(f) == 0);
    CHECK(strstr(text, "<heap nr=\"0\">") && !strstr(text, "<heap nr=\"1\">"));
}"#;
    threads_share_the_heap = check r#"
enum { N = 4096 };
static void *_Atomic box[N];
static void *thread(void *x) {
    unsigned seed = (uintptr_t)x;
    for (int i = 0; i < 300000; i++) {
        size_t n = 8 + rand_r(&seed) % 3000;
        unsigned char *p = malloc(n);
        CHECK(p); memset(p, n, 8); *(unsigned short *)p = n;
        p = __atomic_exchange_n(&box[rand_r(&seed) % N], p, __ATOMIC_ACQ_REL);
        if (p) { CHECK(p[7] == (unsigned char)*(unsigned short *)p); free(p); }
    }
    return NULL;
}
int main(void) {
    pthread_t t[8];
    for (long i = 0; i < 8; i++) pthread_create(&t[i], NULL, thread, (void *)(i + 1));
    for (long i = 0; i < 8; i++) pthread_join(t[i], NULL);
}"#;
}

/// Where code may not be changed, malloc of the C library is the kernel's; mappings of the program are paged.
#[test]
fn without_the_right_to_change_code_the_programs_mappings_are_paged_and_one_line_says_so() {
    let source = r#"
#include <sys/prctl.h>
int main(int argc, char **argv) {
    char *again[] = {argv[0], "x", NULL};
    if (argc == 1) { if (prctl(65, 1, 0, 0, 0)) return 0; execv(argv[0], again); }   // PR_SET_MDWE
    enum { N = 20 << 20 }; char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = malloc(N);
    CHECK(MANAGED(p) && !MANAGED(q));
    for (int i = 0; i < N; i += 1000) p[i] = q[i] = i / 1000;
    for (int round = 0; round < 4; round++) {
        pid_t child = fork(); int status;
        for (int i = 0; i < N; i += 1000) CHECK(p[i] == (char)(i / 1000) && q[i] == p[i]);
        if (child == 0) { free(q); q = malloc(N); q[0] = 1; exit(0); }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return 7;
}"#;
    let Some(program) = program("fixed", source) else { return };
    let Some(mut command) = program.paged(8 << 20) else { return };
    let output = run(&mut command);
    if output.status.code() == Some(0) {
        return coldframe_toolbox::skip("PR_SET_MDWE needs Linux 6.3");
    }
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{words}");
    assert_eq!(words.matches("does not let a program change code").count(), 1, "{words}");
}

const ADDRESSES: &str = r#"
int main(void) {
    unsigned seed = 1; void *held[256] = {0}; uintptr_t hash = 0;
    for (int i = 0; i < 20000; i++) {
        int k = rand_r(&seed) % 256;
        if (i % 50 == 7) { free(held[k]); held[k] = malloc((4 << 20) + rand_r(&seed) % (9 << 20)); }
        else { free(held[k]); held[k] = malloc(rand_r(&seed) % 40000); }
        if (MANAGED(held[k])) hash = hash * 31 + (uintptr_t)held[k];
    }
    void *m = mmap(NULL, 1 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%lx %p %p\n", hash, held[0], m);
}"#;

#[test]
fn addresses_are_the_same_in_every_run() {
    let Some(first) = check("addresses", ADDRESSES) else { return };
    for _ in 0..3 {
        assert_eq!(check("addresses", ADDRESSES).unwrap().stdout, first.stdout);
    }
}

#[test]
fn a_library_that_cannot_start_stops_the_program_with_a_word() {
    let say = |name: &str, value: &str| {
        let output = run(std::process::Command::new("/bin/true").env("LD_PRELOAD", library()).env(name, value));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, words) = say("NOTHING", "");
    assert_eq!(code, Some(2));
    assert_eq!(words, "coldframe: COLDFRAME_OPTIONS is not set; start the program with `coldframe run`\n");
    let (code, words) = say("COLDFRAME_OPTIONS", "{");
    assert_eq!(code, Some(2));
    assert!(words.starts_with("coldframe: COLDFRAME_OPTIONS: options: cannot be read"), "{words}");
}

#[test]
fn a_library_that_binds_to_itself_first_frees_managed_blocks_all_the_same() {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    compile(dir.path(), "deep.so", "void give(void *p) { free(p); }", &["-shared", "-fPIC"]);
    let source = r#"
#include <dlfcn.h>
int main(void) {
    void *library = dlopen("deep.so", RTLD_NOW | RTLD_DEEPBIND);      // found by the program's own run path
    void (*give)(void *) = dlsym(library, "give");
    for (int i = 0; i < 1000; i++) { void *p = malloc(2000 + i); CHECK(MANAGED(p)); give(p); }
}"#;
    let program = compile(dir.path(), "deepbind", source, &["-Wl,--disable-new-dtags,-rpath,$ORIGIN"]);
    paged(program, ROOMY).iter_mut().for_each(|command| _ = good(command));
}

#[test]
fn operators_new_and_the_standard_library_of_c_plus_plus_take_managed_blocks() {
    if !have(&[crate::common::CXX]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let source = r#"
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static std::vector<int> before_main(1000, 1);
struct alignas(256) Wide { char c[512]; };
int main() {
    auto managed = [](const void *p) { auto a = (std::uintptr_t)p; return a >= 0x80000000 && a < 0x20000000000; };
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 200000; i++) m["a key that is not small " + std::to_string(i % 5000)].push_back(i);
    std::vector<std::thread> threads; long sums[4] = {};
    for (int k = 0; k < 4; k++)
        threads.emplace_back([&, k] {
            std::vector<long> v;
            for (long i = 0; i < 1000000; i++) v.push_back(i * k);
            for (auto x : v) sums[k] += x;
        });
    for (auto &t : threads) t.join();
    auto wide = std::make_unique<Wide[]>(10);
    bool all = managed(before_main.data()) && managed(m.begin()->second.data()) && managed(wide.get())
        && (std::uintptr_t)wide.get() % 256 == 0;
    try {
        throw std::runtime_error("thrown");
    } catch (std::exception &e) { std::cout << e.what() << " " << m.size() << " " << sums[3] << " " << all << "\n"; }
}"#;
    let program = compile_cxx(dir.path(), "a", source);
    let Some(mut command) = paged(&program, ROOMY) else { return };
    assert_eq!(String::from_utf8(good(&mut command).stdout).unwrap(), "thrown 5000 1499998500000 1\n");
}
