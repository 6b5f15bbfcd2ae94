//! Programs that bring an allocator: in a library before or after ours, or inside the executable.

use std::ffi::OsString;
use std::process::Command;

use crate::common::{check_paged, compile_cxx, good, library, paged, CXX};
use coldframe_toolbox::{have, skip, Tool};

const RAM: u64 = 8 << 20;

/// C++ that mixes all ways to get memory, with threads and forks, far above its RAM; prints a sum and the most RAM that
/// it had.
const MIXED: &str = r#"
#include <cstdlib>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 60000; i++) m[std::to_string(i)].assign(500, i);
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; k++)
        threads.emplace_back([] {
            std::vector<std::string> v;
            for (int i = 0; i < 10000; i++) v.push_back(std::string(100, 'x'));
        });
    for (auto &t : threads) t.join();
    free(strdup("hello")); free(strndup("hello", 3)); delete[] new char[10];
    void *aligned; if (posix_memalign(&aligned, 64, 1000)) return 1; free(aligned);
    char *line = nullptr;
    size_t n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (getline(&line, &n, file) > 0);
    free(line);
    char *printed; if (asprintf(&printed, "%d", 7) < 0) return 1; free(printed);
    free(reallocarray(reallocarray(nullptr, 10, 10), 100, 100));
    for (int k = 0; k < 3; k++) {
        pid_t child = fork();
        if (child == 0) {
            long s = 0;
            for (auto &x : m) s += x.second[1];
            rewind(file);
            _exit(s == 1799970000 && fgetc(file) == 'N' ? 0 : 1);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "child %x\n", status);
            return 2;
        }
    }
    fclose(file);
    long s = 0; for (auto &x : m) s += x.second[0];
    std::ifstream status("/proc/self/status"); std::string word; long most = 0;
    while (status >> word) if (word == "VmHWM:") status >> most;
    std::cout << s << " " << most << "\n";
    return 0;
}"#;

const ALLOCATORS: [Tool; 3] = [
    ("libmimalloc.so.2", "libmimalloc2.0"),
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
];

fn loads(library: &str) -> bool {
    let output = Command::new("true").env("LD_PRELOAD", library).output().unwrap();
    output.stderr.is_empty()
}

#[test]
fn an_allocator_in_a_library_before_or_behind_ours_works_and_its_memory_is_paged() {
    if !have(&[CXX]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compile_cxx(dir.path(), "mixed", MIXED);
    for (allocator, package) in ALLOCATORS {
        if !loads(allocator) {
            skip(&format!("{allocator} is missing; on Debian: apt-get install {package}"));
            continue;
        }
        for behind in [false, true] {
            let ours = library().into_os_string().into_string().unwrap();
            let order = if behind { format!("{ours}:{allocator}") } else { format!("{allocator}:{ours}") };
            let Some(mut command) = paged(&program, RAM) else { return };
            let output = good(command.env("LD_PRELOAD", OsString::from(&order)));
            let words = String::from_utf8(output.stdout).unwrap();
            let (sum, most) = words.trim().split_once(' ').unwrap();
            assert_eq!(sum, "1799970000", "{order}");
            // Its data is at least 130 MB. RAM is 8 MiB; the pager's code, tables and buffers come on top.
            assert!(most.parse::<u64>().unwrap() < 80 << 10, "{order}: {most} KiB in RAM");
        }
    }
}

/// An allocator that knows its blocks, takes memory as the program's argument says, and never reuses any.
const OWN: &str = r#"
enum { CHUNK = 1 << 20, MAGIC = 0x600d };
struct head { size_t size; size_t magic; };
static char *chunk, *chunk_end; static int by_sbrk = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *take(size_t n) {
    n = (n + 15) & ~15ul;
    pthread_mutex_lock(&lock);
    if (chunk_end - chunk < n) {
        size_t more = n > CHUNK ? n : CHUNK;
        chunk = by_sbrk ? sbrk(more) : mmap(NULL, more, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == (void *)-1) abort();
        chunk_end = chunk + more; by_sbrk = !by_sbrk;
    }
    void *p = chunk; chunk += n;
    pthread_mutex_unlock(&lock);
    return p;
}
void *malloc(size_t n) { struct head *h = take(n + sizeof *h); h->size = n; h->magic = MAGIC; return h + 1; }
void free(void *p) {
    if (p && ((struct head *)p)[-1].magic != MAGIC) {
        static const char t[] = "free: not mine\n";
        write(2, t, sizeof t - 1);
        abort();
    }
}
void *calloc(size_t a, size_t b) { void *p = malloc(a * b); memset(p, 0, a * b); return p; }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p) {
        size_t had = ((struct head *)p)[-1].size;
        free(p);
        memcpy(q, p, had < n ? had : n);
    }
    return q;
}
"#;

#[test]
fn an_allocator_inside_the_executable_gets_its_own_blocks_back_and_its_files_survive_a_fork() {
    let main = r#"
enum { P = 4096, OTHER = 24 << 20, FILES = 40 };
int main(void) {
    free(strdup("hello")); free(strndup("hello", 3)); free(reallocarray(malloc(10), 10, 10));
    char *line = NULL;
    size_t n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (getline(&line, &n, f) > 0);
    free(line);
    fclose(f);
    char *printed; CHECK(asprintf(&printed, "%d", 7) == 1); free(printed);
    char *cwd = getcwd(NULL, 0); free(cwd); free(realpath("/", NULL));
    FILE *files[FILES]; char name[] = "/tmp/coldframe-own-XXXXXX"; int fd = mkstemp(name); unlink(name);
    for (int i = 0; i < FILES; i++) { files[i] = fdopen(dup(fd), "r+"); free(malloc(2 * P)); }
    char *other[24]; for (int i = 0; i < 24; i++) { other[i] = malloc(1 << 20); CHECK(MANAGED(other[i])); }
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 24; i++) memset(other[i], i + round, 1 << 20);
        pid_t child = fork(); int status;
        if (child == 0) {
            for (int i = 0; i < FILES; i++) CHECK(fprintf(files[i], "%d", i) > 0 && fileno(files[i]) > 2);
            for (int i = 0; i < 24; i++) for (int k = 0; k < 1 << 20; k += P) CHECK(other[i][k] == (char)(i + round));
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    // The break goes back and forth, and what comes again is zeros.
    char *at = sbrk(0); CHECK(sbrk(3 * P) == at && sbrk(0) == at + 3 * P); memset(at, 7, 3 * P);
    CHECK(sbrk(-2 * P - 100) == at + 3 * P && sbrk(2 * P + 100) == at + P - 100);
    char *kept = at + P - 100 + (-(uintptr_t)(at - 100) & P - 1);             // the kernel takes whole pages
    for (int i = 0; i < 3 * P; i++) CHECK(at[i] == (at + i < kept ? 7 : 0));
    CHECK(brk(at) == 0 && sbrk(0) == at && sbrk(1l << 50) == (void *)-1 && errno == ENOMEM);
}"#;
    check_paged("own", &format!("{OWN}{main}"), RAM, &[]);
}

/// Other preloaded libraries' functions, as libfaketime's: they run when the program calls them, not before their own
/// constructor and not in the pager, whose clock would stand still here. They may be made of the C library's `syscall`.
#[test]
fn the_functions_of_other_preloaded_libraries_are_the_programs_and_may_use_syscall() {
    let other = r#"
#include <stdarg.h>
#include <sys/socket.h>
#define LAST(type, name) va_list all; va_start(all, name); type last = va_arg(all, type); va_end(all)
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        LAST(int, flags); \
        count(); \
        return syscall(SYS_openat, AT_FDCWD, path, flags, last); \
    }
static int begun, early, strange, calls;
static pid_t process;
static void count(void) { early += !begun; strange += begun && syscall(SYS_getpid) != process; calls++; }
__attribute__((constructor)) static void begin(void) {
    char *e = getenv("OTHER");
    process = syscall(SYS_getpid);
    begun = e && !strcmp(e, "set");
}
int other_is_good(void) { return begun && !early && !strange && calls == 8; }
int clock_gettime(clockid_t c, struct timespec *t) { count(); memset(t, 0, sizeof *t); return 0; }
ssize_t read(int d, void *at, size_t n) { count(); return syscall(SYS_read, d, at, n); }
long sysconf(int name) { count(); return -1; }
int poll(void *all, unsigned long n, int time) { count(); return syscall(SYS_poll, all, n, time); }
int close(int d) { count(); return syscall(SYS_close, d); }
OPEN(open) OPEN(open64)
int fcntl(int d, int command, ...) { LAST(long, command); count(); return syscall(SYS_fcntl, d, command, last); }
int dup2(int from, int to) { count(); return syscall(SYS_dup3, from, to, 0); }
int dup3(int from, int to, int flags) { count(); return syscall(SYS_dup3, from, to, flags); }
ssize_t recvmsg(int d, struct msghdr *m, int flags) { count(); return syscall(SYS_recvmsg, d, m, flags); }
"#;
    let main = r#"
#include <dlfcn.h>
#include <sys/socket.h>
int main(void) {
    struct timespec t = {1, 1}; struct msghdr m = {0}; int (*good)(void) = dlsym(RTLD_DEFAULT, "other_is_good"); char c;
    char *p = malloc(16 << 20); for (int i = 0; i < 16 << 20; i += 4096) p[i] = i >> 12;
    int d = open("/dev/null", O_RDWR);
    CHECK(d >= 0 && fcntl(d, F_GETFD) == 0 && dup2(d, d + 1) == d + 1 && dup3(d, d + 2, 0) == d + 2);
    CHECK(read(d, &c, 1) == 0 && clock_gettime(CLOCK_MONOTONIC, &t) == 0 && t.tv_sec == 0);
    CHECK(recvmsg(d, &m, 0) == -1 && errno == ENOTSOCK && close(d) == 0);
    for (int i = 0; i < 16 << 20; i += 4096) CHECK(p[i] == (char)(i >> 12));
    pid_t child = fork(); int status;
    if (child == 0) { for (int i = 0; i < 16 << 20; i += 4096) CHECK(p[i] == (char)(i >> 12)); _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0); CHECK(good && good());
}"#;
    let Some(program) = crate::common::program_with("finds", main, &["-ldl"]) else { return };
    let other = crate::common::compile(program.dir.path(), "other.so", other, &["-shared", "-fPIC"]);
    let Some(mut command) = program.paged(RAM) else { return };
    for order in [[library(), other.clone()], [other, library()]] {
        good(command.env("LD_PRELOAD", std::env::join_paths(order).unwrap()).env("OTHER", "set"));
    }
}

/// This library's own constructor is the first to allocate, and the allocator in the executable then registers its
/// handlers (jemalloc in rustc does). The allocator's handlers still run before this library's `prepare`: after it, no
/// handler would load the pages that they touch.
#[test]
fn handlers_of_an_allocator_in_the_executable_find_their_memory_during_a_fork() {
    let source = r#"
enum { P = 4096, N = 4000 };
static char *big; static int handled;
static void touch(void) { for (long i = 0; big && i < N; i++) big[i * P]++; handled++; }
static char *chunk; static size_t left;
void *malloc(size_t n) {
    static int begun;
    if (!begun) { begun = 1; CHECK(pthread_atfork(touch, touch, touch) == 0); }
    n = (n + 31) & ~15UL;
    if (n > left) {
        left = n > 1 << 20 ? n : 1 << 20;
        chunk = mmap(NULL, left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED) return NULL;
    }
    size_t *p = (size_t *)chunk; chunk += n; left -= n; *p = n - 16;
    return p + 2;
}
void free(void *p) {}
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) {
    void *q = malloc(n);
    if (p && q) { size_t had = ((size_t *)p)[-2]; memcpy(q, p, had < n ? had : n); }
    return q;
}
int main(void) {
    big = malloc(N * P); CHECK(MANAGED(big));
    for (int round = 1; round <= 4; round++) {
        pid_t child = fork(); CHECK(child >= 0);
        for (long i = 0; i < N; i++) CHECK(big[i * P] == 2 * round);
        CHECK(handled == 2 * round);
        if (child == 0) _exit(0);
        int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}"#;
    check_paged("own", source, RAM, &[]);
}
