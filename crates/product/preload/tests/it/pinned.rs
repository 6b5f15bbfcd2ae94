//! Memory whose frames the kernel holds while it fills them, past the page table.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::sync::Mutex;
use std::time::Duration;

use crate::common::{self, everywhere, fuse, program, with};

/// So little that the pages of a buffer leave it while a read is under way.
const RAM: u64 = 512 << 10;

/// One thread reads a file into memory, while another one touches more memory than there is RAM.
const READER: &str = r#"
enum { P = 4096, READ = 8, BUFFERS = 4, OTHER = 2 << 20 };
static char *other; static volatile int done;
static void *press(void *none) {
    unsigned long long state = 1;
    while (!done) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        other[(state >> 33) % (OTHER / P) * P]++;
    }
    return NULL;
}
// While the kernel fills a buffer, its rights change, and a child inherits it.
static char *volatile filled;
static void *disturb(void *none) {
    for (int i = 0; !done; usleep(500)) {
        if (!filled) continue;
        usleep(3000); CHECK(mprotect(filled, READ * P, ++i % 2 ? PROT_NONE : PROT_READ) == 0);
        usleep(30000); CHECK(mprotect(filled, READ * P, PROT_READ | PROT_WRITE) == 0);
        pid_t child = fork(); if (child == 0) _exit(0); CHECK(waitpid(child, NULL, 0) == child);
        filled = NULL;
    }
    return NULL;
}
// Opens the file; or has it inherited (-), from a stream (=), or in a message (!) after a call that is not intercepted.
#include <sys/socket.h>
static int get(char *how) {
    if (*how == '-') return 3;
    if (*how == '=') return fileno(fopen(how + 1, "r"));
    if (*how != '!') return open(how, O_RDONLY);
    long file = SYS_open; int ends[2], got = -1; char byte = 0;
#ifdef __x86_64__
    asm volatile("syscall" : "+a"(file) : "D"(how + 1), "S"(O_RDONLY), "d"(0) : "rcx", "r11", "memory");
#endif
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    struct { struct cmsghdr head; int file; } part = {{CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS}, file};
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &part, .msg_controllen = sizeof part};
    CHECK(sendmsg(ends[0], &message, 0) == 1); close(file); part.file = -1;
    CHECK(recvmsg(ends[1], &message, 0) == 1); return part.file;
}
int main(int argc, char **argv) {
    int file = get(argv[1]), wrong = 0; CHECK(file >= 0);
    other = malloc(OTHER); memset(other, 1, OTHER);
    char *all = aligned_alloc(P, BUFFERS * READ * P); memset(all, 0xee, BUFFERS * READ * P);
    pthread_t thread, other_thread; CHECK(pthread_create(&thread, NULL, press, NULL) == 0);
    if (argc > 3) CHECK(pthread_create(&other_thread, NULL, disturb, NULL) == 0);
    for (int i = 0; i < atoi(argv[2]); i++) {
        char *buffer = all + i % BUFFERS * READ * P; long at = i * (long)READ * P;
        memset(buffer, 0xee, READ * P);
        if (argc > 3) filled = buffer;
        // Where the kernel may not write any more, it stops.
        for (long n; (n = pread(file, buffer, READ * P, at)) != READ * P;) CHECK(n >= 0 || errno == EFAULT);
        while (filled) usleep(500);
        for (int page = 0; page < READ; page++) {
            int bad = 0;
            for (int b = 0; b < P; b += 8)
                bad |= *(unsigned long *)(buffer + page * P + b) != (at + page * P + b) * 0x9e3779b97f4a7c15ul;
            wrong += bad;
        }
    }
    done = 1; pthread_join(thread, NULL);
    printf("%d pages of %d are wrong\n", wrong, atoi(argv[2]) * READ);
    return wrong != 0;
}"#;

/// Each of these programs keeps two processors busy.
static ALONE: Mutex<()> = Mutex::new(());

/// Reads this many times, each for this long, with each setting.
fn reads(how: &str, direct: bool, disturb: bool, wait: Duration, count: u32) {
    let Some(program) = program("reader", READER) else { return };
    let (_alone, file) = (ALONE.lock(), program.dir.path().join("file"));
    if !fuse::serve(&file, direct, wait) {
        return;
    }
    let disturbed = ["disturbed"];
    let more: &[&str] = if disturb { &disturbed } else { &[] };
    for policy in ["fifo", "fifo-sc:valid=60%"] {
        let Some(mut command) = program.paged(RAM) else { return };
        with(&mut command, |options| options.policy = Some(policy.to_string()));
        let held = std::fs::File::open(&file).unwrap();
        let number = held.as_raw_fd();
        if how == "-" {
            // Where the file is descriptor 3 itself, dup2 leaves it to be closed at the start of the program.
            // SAFETY: two system calls.
            let inherit = move || match unsafe { libc::dup2(number, 3) == 3 && libc::fcntl(3, libc::F_SETFD, 0) == 0 } {
                true => Ok(()),
                false => Err(std::io::Error::last_os_error()),
            };
            // SAFETY: `inherit` makes system calls only.
            unsafe { command.pre_exec(inherit) };
        }
        let output = common::run(command.arg(format!("{how}{}", file.display())).arg(count.to_string()).args(more));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{policy}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_file_that_a_server_provides_is_read_by_way_of_the_page_cache() {
    reads("", false, false, Duration::from_millis(5), 20);
}

#[test]
fn what_the_kernel_reads_straight_into_paged_memory_is_there() {
    reads("", true, false, Duration::from_millis(20), 40);
}

#[test]
fn it_is_there_when_rights_change_and_children_are_made_meanwhile() {
    reads("", true, true, Duration::from_millis(20), 40);
}

#[test]
fn it_is_there_however_the_program_has_come_by_the_file() {
    let hows: &[&str] = if cfg!(target_arch = "x86_64") { &["-", "=", "!"] } else { &["-", "="] };
    hows.iter().for_each(|how| reads(how, true, false, Duration::from_millis(20), 10));
}

programs! {
    the_reader_of_a_pipe_finds_what_was_written_to_a_page_that_the_pipe_refers_to = everywhere r#"
#include <sys/uio.h>
enum { P = 4096, N = 16 << 20 };
int main(void) {
    char *p = aligned_alloc(P, N), got[3 * P]; int ends[2]; memset(p, 1, N);
    for (int k = 0; k < 400; k++) {
        char *q = p + (k * 97 % 4000) * P; struct iovec v[2] = {{q, P}, {q + P, 2 * P}};
        CHECK(pipe(ends) == 0); memset(q, 2, 3 * P);
        CHECK((k & 1 ? vmsplice(ends[1], v, 2, 0) : syscall(SYS_vmsplice, ends[1], v, 2, 0)) == 3 * P);
        if (k % 20 == 0) for (int i = 0; i < N; i += P) if (p + i < q || p + i >= q + 3 * P) p[i + 8]++;
        memset(q, 3, 3 * P);
        CHECK(read(ends[0], got, 3 * P) == 3 * P); for (int i = 0; i < 3 * P; i++) CHECK(got[i] == 3);
        close(ends[0]); close(ends[1]);
    }
}"#;
}

#[test]
fn a_userfaultfd_of_the_programs_own_is_refused_however_it_is_asked_for() {
    let source = r#"
int main(int argc, char **argv) {
    int device = open("/dev/userfaultfd", O_RDWR);
    CHECK(argc > 1 || (device == -1 && (errno == EPERM || errno == ENOENT)));
    CHECK(argc > 1 || (syscall(SYS_userfaultfd, O_CLOEXEC) == -1 && errno == EPERM));
}"#;
    common::check_paged("own-userfaultfd", source, 4 << 20, &[]);
}

#[test]
fn memory_that_the_kernel_fills_unseen_is_not_given_to_it() {
    let source = r#"
int main(int argc, char **argv) {
    int file = open("/dev/fuse", O_RDWR), plain = argc > 1;
    if (file < 0 && plain) _exit(77);
    CHECK(plain ? file >= 0 : file < 0 && errno == EPERM);
    CHECK(plain || (syscall(SYS_openat, AT_FDCWD, "/dev/fuse", O_RDWR) == -1 && errno == EPERM));
}"#;
    let Some(program) = program("unseen", source) else { return };
    if common::run(program.plain().arg("plain")).status.code() == Some(77) {
        return coldframe_toolbox::skip("/dev/fuse cannot be opened here");
    }
    if let Some(mut command) = program.paged(4 << 20) {
        common::good(&mut command);
    }
}
