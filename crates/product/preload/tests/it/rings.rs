//! Memory that a program gives to its own io_uring.

use std::process::Output;

use crate::common::{check_paged, program, program_with, run, with};
use coldframe_live::Wait;
use coldframe_toolbox::skip;

const RAM: u64 = 4 << 20;

/// C code that makes a ring by hand: `begin`, and `transfer` between a fixed buffer and a file.
const RING: &str = r#"
#include <linux/io_uring.h>
enum { P = 4096, BUFFERS = 64, LEN = 4 * P, OTHER = 12 << 20 };
static int ring;
static unsigned *tail, *mask, *array, *chead, *ctail, *cmask;
static struct io_uring_sqe *sqes;
static struct io_uring_cqe *cqes;
static int begin(void) {
    struct io_uring_params p = {0};
    ring = syscall(SYS_io_uring_setup, 8, &p);
    if (ring < 0) { fprintf(stderr, "no io_uring\n"); _exit(77); }
    char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, 3, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    char *cq =
        mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof *cqes, 3, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
    sqes = mmap(NULL, p.sq_entries * sizeof *sqes, 3, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    CHECK(sq != MAP_FAILED && cq != MAP_FAILED && sqes != MAP_FAILED);
    tail = (void *)(sq + p.sq_off.tail);
    mask = (void *)(sq + p.sq_off.ring_mask);
    array = (void *)(sq + p.sq_off.array);
    chead = (void *)(cq + p.cq_off.head);
    ctail = (void *)(cq + p.cq_off.tail);
    cmask = (void *)(cq + p.cq_off.ring_mask);
    cqes = (void *)(cq + p.cq_off.cqes);
    return ring;
}
static void transfer(int op, int fd, int buffer, char *at, long offset) {
    unsigned t = *tail, i = t & *mask;
    memset(&sqes[i], 0, sizeof *sqes);
    sqes[i].opcode = op;
    sqes[i].fd = fd;
    sqes[i].addr = (uintptr_t)at;
    sqes[i].len = LEN;
    sqes[i].off = offset;
    sqes[i].buf_index = buffer;
    array[i] = i;
    __atomic_store_n(tail, t + 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
    unsigned h = *chead; CHECK(h != __atomic_load_n(ctail, __ATOMIC_ACQUIRE));
    CHECK(cqes[h & *cmask].res == LEN);
    __atomic_store_n(chead, h + 1, __ATOMIC_RELEASE);
}
static char *other; static void press(void) { for (int i = 0; i < OTHER; i += P) other[i]++; }

static char *buffers; static struct iovec vectors[BUFFERS];
static void make(void) {
    other = malloc(OTHER); buffers = mmap(NULL, BUFFERS * LEN, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MANAGED(other) && MANAGED(buffers));
    for (int i = 0; i < BUFFERS; i++) vectors[i] = (struct iovec){buffers + i * LEN, LEN};
}
static void fill(char *p, int x) { for (int i = 0; i < LEN; i++) p[i] = x + i / P; }
static int filled(char *p, int x) { for (int i = 0; i < LEN; i++) if (p[i] != (char)(x + i / P)) return 0; return 1; }
static int file(void) {
    char name[] = "/var/tmp/coldframe-ring-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    unlink(name);
    return fd;
}
/// Through the buffers to a file and back, while everything that may leave RAM does.
static void round_trips(int fd, int rounds) {
    for (int round = 0; round < rounds; round++) {
        for (int b = 0; b < BUFFERS; b++) fill(buffers + b * LEN, round + b);
        press();
        for (int b = 0; b < BUFFERS; b++) transfer(IORING_OP_WRITE_FIXED, fd, b, buffers + b * LEN, b * LEN);
        press();
        for (int b = 0; b < BUFFERS; b++) memset(buffers + b * LEN, 0xee, LEN);
        press();
        for (int b = 0; b < BUFFERS; b++) transfer(IORING_OP_READ_FIXED, fd, b, buffers + b * LEN, b * LEN);
        press();
        for (int b = 0; b < BUFFERS; b++) CHECK(filled(buffers + b * LEN, round + b));
    }
}
"#;

/// What the program did; `None`: it cannot run here.
fn ran(name: &str, source: &str, ram: u64) -> Option<Output> {
    let output = run(&mut program(name, source)?.paged(ram)?);
    if output.status.code() == Some(77) {
        skip("io_uring is not allowed here");
        return None;
    }
    Some(output)
}

fn checked(name: &str, main: &str) {
    let source = if main.contains("static int begin") { main.to_string() } else { format!("{RING}{main}") };
    let Some(output) = ran(name, &source, RAM) else { return };
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn fixed_buffers_of_an_io_uring_stay_where_the_kernel_has_them() {
    checked(
        "fixed",
        r#"
int main(void) {
    begin(); make(); int fd = file();
    // Registered, given back, with tags, in parts: and again, so that what is given back is free again.
    for (int again = 0; again < 3; again++) {
        CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == 0);
        round_trips(fd, 3);
        CHECK(syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0);
        struct io_uring_rsrc_register sparse = {.nr = BUFFERS, .flags = 1};
        CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS2, &sparse, sizeof sparse) == 0);
        for (int half = 0; half < 2; half++) {
            struct io_uring_rsrc_update2 update = {
                .offset = half * BUFFERS / 2, .data = (uintptr_t)(vectors + half * BUFFERS / 2), .nr = BUFFERS / 2};
            CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update)
                == BUFFERS / 2);
        }
        round_trips(fd, 3);
        close(ring); begin();
    }
}"#,
    );
}

/// The buffers' owner is idle, and two hungry processes of the run ask for its frames all the time.
#[test]
fn fixed_buffers_stay_where_the_kernel_has_them_while_other_processes_want_the_frames() {
    checked(
        "wanted",
        r#"
static void hungry(int end) {
    char c; int n = 0; other = calloc(1, OTHER); CHECK(fcntl(end, F_SETFL, O_NONBLOCK) == 0);
    while (read(end, &c, 1) < 0) { press(); n++; for (int i = 0; i < OTHER; i += P) CHECK(other[i] == (char)n); }
    _exit(0);
}
int main(void) {
    int ends[2], status; CHECK(pipe(ends) == 0); pid_t child[2];
    for (int i = 0; i < 2; i++) if ((child[i] = fork()) == 0) { close(ends[1]); hungry(ends[0]); }
    begin(); make(); int fd = file();
    for (int again = 0; again < 10; again++) {
        for (int b = 0; b < BUFFERS; b++) fill(buffers + b * LEN, again + b);
        CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == 0);
        usleep(50000);
        for (int b = 0; b < BUFFERS; b++) transfer(IORING_OP_WRITE_FIXED, fd, b, buffers + b * LEN, b * LEN);
        for (int b = 0; b < BUFFERS; b++) memset(buffers + b * LEN, 0xee, LEN);
        usleep(50000);
        for (int b = 0; b < BUFFERS; b++) transfer(IORING_OP_READ_FIXED, fd, b, buffers + b * LEN, b * LEN);
        usleep(50000); for (int b = 0; b < BUFFERS; b++) CHECK(filled(buffers + b * LEN, again + b));
        round_trips(fd, again % 2);
        CHECK(syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0) == 0);
        usleep(50000); // Nothing holds them any more: they leave.
    }
    close(ends[1]);
    for (int i = 0; i < 2; i++) CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0);
}"#,
    );
}

/// SIEVE chooses among the newest pages first, and a page that cannot leave comes back as the newest.
#[test]
fn a_policy_that_chooses_the_same_held_pages_again_finds_others_in_the_end() {
    let main = r#"
int main(void) {
    begin(); make();
    struct iovec held = {buffers, 48 * P};
    for (int i = 0; i < 48; i++) buffers[i * P] = i;
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &held, 1) == 0);
    // New pages first, then old ones that were written to.
    for (int round = 0; round < 2; round++) press();
    for (int i = 0; i < OTHER; i += P) CHECK(other[i] == 2);
}"#;
    let Some(program) = program("sieve", &format!("{RING}{main}")) else { return };
    // An invalid list that takes such pages back sends others to the aside mapping.
    for policy in ["sieve", "fifo-sc:valid=60%", "fifo-sc:valid=90%"] {
        let Some(mut command) = program.paged(512 << 10) else { return };
        let output = run(with(&mut command, |options| {
            (options.wait, options.policy) = (Wait::Read, Some(policy.into()));
        }));
        let code = output.status.code();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(code == Some(0) || code == Some(77), "{policy}: {}{stderr}", output.status);
    }
}

#[test]
fn more_fixed_buffers_than_may_stay_in_ram_are_refused_and_the_program_goes_on() {
    checked(
        "many",
        r#"
int main(void) {
    begin(); make();
    struct iovec all[] = {{other, OTHER}, {buffers, LEN}};
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, all, 2) == -1 && errno == ENOMEM);
    // What was pinned before that is free again, or the half would not fit.
    for (int i = 0; i < 4; i++)
        CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, all, 2) == -1 && errno == ENOMEM);
    int fd = file();
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == 0);
    round_trips(fd, 2);
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == -1 && errno == EBUSY);
    round_trips(fd, 2);
    // A ring with two descriptors outlives one of them.
    int copy = dup(ring); close(ring); ring = copy; round_trips(fd, 2);
}"#,
    );
}

#[test]
fn liburing_as_a_shared_library_is_seen_too() {
    // Its header need not be installed: the functions are enough, and a structure that is at least as large.
    let source = format!(
        r#"{RING}
#include <dlfcn.h>
int main(void) {{
    void *library = dlopen("liburing.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!library) return 77;
    make(); int fd = file();
    static char space[4096];
    int (*init)(unsigned, void *, unsigned) = dlsym(library, "io_uring_queue_init");
    int (*buffers_of)(void *, void *, unsigned) = dlsym(RTLD_DEFAULT, "io_uring_register_buffers");
    int (*none_of)(void *) = dlsym(RTLD_DEFAULT, "io_uring_unregister_buffers");
    void (*end)(void *) = dlsym(RTLD_DEFAULT, "io_uring_queue_exit");
    CHECK(init(8, space, 0) == 0);
    for (int again = 0; again < 3; again++) {{
        CHECK(buffers_of(space, vectors, BUFFERS) == 0);
        // Where the pages are now they must be later.
        for (int b = 0; b < BUFFERS; b++) memset(buffers + b * LEN, b + 1, LEN);
        unsigned long before[BUFFERS], after[BUFFERS];
        int map = open("/proc/self/pagemap", O_RDONLY);
        for (int b = 0; b < BUFFERS; b++) CHECK(pread(map, &before[b], 8, (uintptr_t)(buffers + b * LEN) / P * 8) == 8);
        press(); press();
        for (int b = 0; b < BUFFERS; b++) CHECK(pread(map, &after[b], 8, (uintptr_t)(buffers + b * LEN) / P * 8) == 8);
        for (int b = 0; b < BUFFERS; b++)
            CHECK(before[b] >> 63 && (before[b] & ((1ul << 55) - 1)) == (after[b] & ((1ul << 55) - 1)));
        close(map);
        CHECK(none_of(space) == 0);
    }}
    CHECK(buffers_of(space, vectors, BUFFERS) == 0);
    end(space);
    CHECK(init(8, space, 0) == 0 && buffers_of(space, vectors, BUFFERS) == 0);
    return 0;
}}"#
    );
    let Some(program) = program_with("liburing", &source, &["-ldl"]) else { return };
    let Some(mut command) = program.paged(RAM) else { return };
    let output = run(&mut command);
    if output.status.code() == Some(77) {
        return skip("liburing.so.2 is missing; on Debian: apt-get install liburing2");
    }
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_ring_of_provided_buffers_stays_where_the_kernel_has_it() {
    if check_paged("alive", "int main(void) { return 0; }", RAM, &[]).is_none() {
        return;
    }
    checked(
        "provided",
        r#"
int main(void) {
    begin(); make();
    struct io_uring_buf_reg reg = {0};
    char *own = aligned_alloc(P, P); CHECK(MANAGED(own));
    reg.ring_addr = (uintptr_t)own; reg.ring_entries = 256; reg.bgid = 7;
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_PBUF_RING, &reg, 1) != 0) _exit(77);
    struct io_uring_buf_ring *provided = (void *)own;
    int ends[2]; CHECK(pipe(ends) == 0);
    for (int round = 0; round < 6; round++) {
        press();
        provided->bufs[round].addr = (uintptr_t)(buffers + round * LEN);
        provided->bufs[round].len = LEN;
        provided->bufs[round].bid = round;
        __atomic_store_n(&provided->tail, round + 1, __ATOMIC_RELEASE);
        press();
        fill(buffers + BUFFERS / 2 * LEN, round); CHECK(write(ends[1], buffers + BUFFERS / 2 * LEN, LEN) == LEN);
        unsigned t = *tail, i = t & *mask;
        memset(&sqes[i], 0, sizeof *sqes);
        sqes[i].opcode = IORING_OP_READ;
        sqes[i].fd = ends[0];
        sqes[i].len = LEN;
        sqes[i].flags = IOSQE_BUFFER_SELECT;
        sqes[i].buf_group = 7;
        array[i] = i; __atomic_store_n(tail, t + 1, __ATOMIC_RELEASE);
        CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
        unsigned h = *chead; CHECK(cqes[h & *cmask].res == LEN && cqes[h & *cmask].flags >> 16 == round);
        __atomic_store_n(chead, h + 1, __ATOMIC_RELEASE);
        press(); CHECK(filled(buffers + round * LEN, round));
    }
}"#,
    );
}

/// In place of the C library's function: a system call that is not intercepted, as liburing makes it.
const BARE: &str = r#"
static long bare(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f; long result;
    asm volatile("syscall"
        : "=a"(result)
        : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
        : "rcx", "r11", "memory");
    if (result < 0) { errno = -result; return -1; }
    return result;
}
#define BARE(n, a, b, c, d, e, f, ...) bare(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define syscall(...) BARE(__VA_ARGS__, 0, 0, 0, 0, 0, 0)
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn buffers_registered_by_a_call_that_nobody_sees_stay_too() {
    let main = r#"
int main(void) {
    begin(); make(); int fd = file(); memset(buffers, 1, BUFFERS * LEN); usleep(200000);
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == 0);
    round_trips(fd, 6);
}"#;
    checked("bare", &format!("{BARE}{RING}{main}"));
}

/// Pages that came in beside another one, and are zeros when the first page is to leave.
#[test]
#[cfg(target_arch = "x86_64")]
fn buffers_of_zeros_registered_by_such_a_call_stay_though_they_need_no_write() {
    let main = r#"
int main(void) {
    begin(); make(); int fd = file(); memset(buffers, 1, BUFFERS * LEN); usleep(200000);
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == 0);
    for (int b = 0; b < BUFFERS; b++) transfer(IORING_OP_WRITE_FIXED, fd, b, buffers + b * LEN, b * LEN);
    memset(buffers, 0, BUFFERS * LEN);
    press();
    for (int b = 0; b < BUFFERS; b++) transfer(IORING_OP_READ_FIXED, fd, b, buffers + b * LEN, b * LEN);
    for (int i = 0; i < BUFFERS * LEN; i++) CHECK(buffers[i] == 1);
}"#;
    let Some(output) = ran("zeros", &format!("{BARE}{RING}{main}"), 8 << 20) else { return };
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_whose_pages_may_have_left_during_such_a_call_is_stopped() {
    let main = r#"
static volatile int done;
static void *pressing(void *none) { while (!done) press(); return NULL; }
int main(void) {
    begin(); make(); int fd = file(); memset(buffers, 1, BUFFERS * LEN);
    pthread_t thread; CHECK(pthread_create(&thread, NULL, pressing, NULL) == 0); usleep(100000);
    CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, vectors, BUFFERS) == 0);
    usleep(1000000);
    round_trips(fd, 3);
    done = 1; pthread_join(thread, NULL);
}"#;
    let Some(output) = ran("caught", &format!("{BARE}{RING}{main}"), RAM) else { return };
    use std::os::unix::process::ExitStatusExt;
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(9), "{}\n{words}", output.status);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_is_stopped_if_the_kernel_holds_more_pages_than_there_are_frames() {
    let main = r#"
#include <sys/uio.h>
enum { P = 4096, N = 640 * P };
int main(void) {
    char params[120] = {0};
    if ((syscall)(SYS_io_uring_setup, 4L, params) < 0) return 77;
    char *wide = malloc(N), *copy = malloc(N); memset(wide, 1, N);
    struct iovec into = {copy, N}, from = {wide, N};
    return syscall(SYS_process_vm_readv, getpid(), &into, 1, &from, 1);
}"#;
    let Some(output) = ran("wide", &format!("{BARE}{main}"), 256 << 10) else { return };
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(output.status.signal(), Some(9), "{}", output.status);
}

/// What only may be read is the child's, too, until one of both writes. It still leaves.
#[test]
fn read_only_memory_of_a_parent_leaves_though_the_kernel_may_hold_frames() {
    let main = r#"
enum { P = 4096, N = 1024 };
int main(void) {
    char params[120] = {0}; int ring = syscall(SYS_io_uring_setup, 4, params); CHECK(ring >= 0);
    char *text = mmap(NULL, N * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); CHECK(MANAGED(text));
    for (int i = 0; i < N; i++) text[i * P] = i % 127;
    CHECK(mprotect(text, N * P, PROT_READ) == 0);
    int ends[2]; CHECK(pipe(ends) == 0);
    pid_t child = fork(); CHECK(child >= 0);
    if (!child) { char c; close(ends[1]); _exit(read(ends[0], &c, 1) != 0); }
    for (int round = 0; round < 3; round++) for (int i = 0; i < N; i++) CHECK(text[i * P] == i % 127);
    close(ends[1]); int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
}"#;
    check_paged("text", main, 2 << 20, &[]);
}

/// Pages that were only read are write-protected, and cannot be moved while a child has them, too.
#[test]
fn unwritten_memory_of_a_parent_leaves_though_the_kernel_may_hold_frames() {
    let main = r#"
enum { P = 4096, N = 1024 };
int main(void) {
    char params[120] = {0}; int ring = syscall(SYS_io_uring_setup, 4, params); CHECK(ring >= 0);
    char *data = mmap(NULL, N * P, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); CHECK(MANAGED(data));
    for (int i = 0; i < N; i++) data[i * P] = i % 127;
    for (int i = 0; i < N; i++) CHECK(data[i * P] == i % 127);
    int ends[2]; CHECK(pipe(ends) == 0);
    pid_t child = fork(); CHECK(child >= 0);
    if (!child) {
        char c; close(ends[1]); CHECK(read(ends[0], &c, 1) == 0);
        for (int i = 0; i < N; i++) CHECK(data[i * P] == i % 127 && data[i * P + 1] == 0);
        _exit(0);
    }
    for (int round = 0; round < 4; round++) for (int i = 0; i < N; i++) {
        CHECK(data[i * P] == i % 127 && data[i * P + 1] == (i % 3 ? 0 : round));
        if (i % 3 == 0) data[i * P + 1]++;
    }
    close(ends[1]); int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
}"#;
    check_paged("data", main, 2 << 20, &[]);
}
