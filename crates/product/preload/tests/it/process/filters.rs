//! Programs with a filter of system calls that refuses calls of the pager. Either the program is refused at its start
//! with the reason, or its own call fails, or it runs. It never ends later and never hangs.

use crate::common::{check_paged, compile, program, run};

/// `deny(call)` makes the kernel refuse a system call with EPERM from now on, in this thread and in threads that it
/// starts. The program touches four times its RAM, forks, and touches the memory again.
const PROGRAM: &str = r#"
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
static unsigned ANSWER = SECCOMP_RET_ERRNO | EPERM;
static int deny(int call, int by_syscall) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, ANSWER),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
                      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
enum { SIZE = 16 << 20 };
static char *big;
static void fill(int k) { for (long i = 0; i < SIZE; i += 4096) big[i] = (i >> 12) * k; }
static void look(int k) { for (long i = 0; i < SIZE; i += 4096) CHECK(big[i] == (char)((i >> 12) * k)); }
static void work(void) {
    fill(1); look(1);
    pid_t child = fork(); CHECK(child >= 0);
    if (child == 0) { look(1); fill(5); look(5); _exit(0); }
    int status; CHECK(waitpid(child, &status, 0) == child); CHECK(status == 0);
    fill(3); look(3);
    madvise(big, SIZE / 2, MADV_DONTNEED); CHECK(big[4096] == 0); fill(3);
    char *other = malloc(SIZE); memset(other, 1, SIZE); free(other);
}
"#;

/// The pager's calls that a filter may refuse.
const CALLS: [i64; 14] = [
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_vmsplice,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mremap,
    libc::SYS_fallocate,
    libc::SYS_memfd_create,
    libc::SYS_sched_yield,
    libc::SYS_prctl,
];

#[test]
fn a_filter_that_is_there_before_the_program_refuses_it_at_the_start_or_lets_it_run() {
    // The first one sets the filter and becomes the second.
    let main = "int main(int c, char **v) { CHECK(deny(atoi(v[1]), 0) == 0); setenv(\"LD_PRELOAD\", v[2], 1);
        execl(v[3], v[3], NULL); return 97; }";
    let Some(first) = program("first", &format!("{PROGRAM}{main}")) else { return };
    let main = "int main(void) { write(1, \"begun\\n\", 6); big = aligned_alloc(4096, SIZE); work(); return 0; }";
    let second = compile(first.dir.path(), "second", &format!("{PROGRAM}{main}"), &[]);
    for call in CALLS {
        let Some(mut command) = first.paged(4 << 20) else { return };
        command.env_remove("LD_PRELOAD").arg(call.to_string()).args([crate::common::library(), second.clone()]);
        let output = run(&mut command);
        let (begun, stderr) = (output.stdout == b"begun\n", String::from_utf8_lossy(&output.stderr));
        let refused = !begun && matches!(output.status.code(), Some(4 | 5)) && stderr.starts_with("coldframe: ");
        assert!(refused || (begun && output.status.success()), "{call}: {}, begun: {begun}; {stderr}", output.status);
    }
}

#[test]
fn a_filter_that_a_program_sets_for_itself_is_refused_or_stops_nothing() {
    let main = r#"
static void *other(void *x) { look(1); return NULL; }
int main(int c, char **v) {
    big = aligned_alloc(4096, SIZE); CHECK(MANAGED(big)); fill(1);
    errno = 0; int result = deny(atoi(v[1]), atoi(v[2])); CHECK(result == 0 || errno == EINVAL);
    printf("%s\n", result ? "refused" : "set"); fflush(stdout);
    pthread_t t; CHECK(pthread_create(&t, NULL, other, NULL) == 0 && pthread_join(t, NULL) == 0);
    work();
}"#;
    let Some(program) = program("itself", &format!("{PROGRAM}{main}")) else { return };
    for call in CALLS {
        for way in ["0", "1"] {
            let Some(mut command) = program.paged(4 << 20) else { return };
            let output = run(command.args([&call.to_string(), way]));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{call}, way {way}: {} {stderr}", output.status);
        }
    }
}

/// A filter that would end the program at a call of this library's in its threads is not set; other filters are, and
/// children do not page if their pagers could not work.
#[test]
fn a_filter_that_would_end_the_program_is_refused_with_the_reason() {
    let main = r#"
int main(void) {
    big = aligned_alloc(4096, SIZE); CHECK(MANAGED(big)); fill(1);
    ANSWER = SECCOMP_RET_KILL_PROCESS;
    int calls[] = {SYS_futex, SYS_gettid, SYS_rt_sigprocmask};
    for (int i = 0; i < 3; i++)
        for (int way = 0; way < 2; way++) {
            errno = 0;
            CHECK(deny(calls[i], way) == -1 && errno == EINVAL);
        }
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == -1 && errno == EINVAL);
    ANSWER = SECCOMP_RET_ERRNO | EPERM;
    CHECK(deny(SYS_futex, 0) == -1 && errno == EINVAL);
    ANSWER = SECCOMP_RET_KILL_PROCESS;
    int others[] = {SYS_io_uring_enter, SYS_vmsplice, SYS_process_madvise, SYS_ioctl, SYS_pwrite64, SYS_socket,
        SYS_listen};
    for (int i = 0; i < 7; i++) CHECK(deny(others[i], i % 2) == 0);
    work();
    CHECK(deny(SYS_madvise, 0) == 0);
    look(3); fill(4); look(4);
    errno = 0; CHECK(fork() == -1 && errno == EAGAIN); look(4);
}"#;
    let Some(output) = check_paged("ends", &format!("{PROGRAM}{main}"), 4 << 20, &[]) else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.matches("the program does not get its filter of system calls").count(), 1, "{stderr}");
}
