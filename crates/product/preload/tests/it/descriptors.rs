//! Descriptor numbers belong to the program: it may write to any, close all, and copy onto any.

use crate::common::{check_paged, good, in_shell, paged, program, PAGING};
use coldframe_toolbox::have;

const RAM: u64 = 1 << 20;

/// The shell's own commands with a pager: each writes to a file by descriptor number, and the test reads the file.
fn shell_writes(shell: (&'static str, &'static str), numbers: &[u32]) {
    if !have(&[shell]) {
        return;
    }
    for number in numbers {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut command) = paged(shell.0, RAM) else { return };
        let words = format!("exec {number}>f; echo x >&{number}; exec {number}<f; read y <&{number}; echo $y");
        let output = good(command.current_dir(dir.path()).args(["-c", &words]));
        assert_eq!(std::fs::read_to_string(dir.path().join("f")).unwrap(), "x\n", "{} {number}", shell.0);
        assert_eq!(output.stdout, b"x\n", "{} {number}", shell.0);
    }
}

#[test]
fn a_shell_writes_to_descriptors_that_a_program_is_used_to_find_free() {
    shell_writes(("dash", "dash"), &[3, 4, 5, 9]);
    shell_writes(("bash", "bash"), &[3, 7, 11, 42, 200]);
}

#[test]
fn no_descriptor_of_the_pager_is_in_the_program_which_may_use_all_numbers() {
    let source = format!(
        r#"{PAGING}
#include <dirent.h>
int main(int argc, char **argv) {{
    struct rlimit limit; CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int ours = 0;
    DIR *all = opendir("/proc/self/fd"); struct dirent *one;
    while ((one = readdir(all))) {{
        char path[64], to[256] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", atoi(one->d_name));
        readlink(path, to, sizeof to - 1);
        // Pipes are like those that the test's own surroundings leave open.
        ours += strstr(to, "userfaultfd") || strstr(to, "io_uring") || strstr(to, "pidfd") || strstr(to, "coldframe");
    }}
    closedir(all);
    CHECK(ours == 0);
    int top = limit.rlim_cur < 4096 ? limit.rlim_cur : 4096;
    int other = open("/dev/null", O_RDWR);
    for (int n = other + 1; n < top; n++) CHECK(dup2(other, n) == n);
    page(); fork_and_page();
    for (int n = 3; n < top + 4096; n++) close(n);
    CHECK(close_range(3, ~0u, 0) == 0); closefrom(3);
    page(); fork_and_page();
    // All numbers are taken: where the hard limit leaves room, a fork finds some all the same.
    if (limit.rlim_cur < limit.rlim_max) {{
        while (open("/dev/null", O_RDONLY) >= 0);
        CHECK(errno == EMFILE); fork_and_page(); closefrom(3);
    }}
    // A lower limit is the program's own affair.
    limit.rlim_cur = 20; CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    page(); fork_and_page();
    return 0;
}}"#
    );
    let Some(program) = program("numbers", &source) else { return };
    for limits in ["ulimit -Sn 256", "ulimit -n 256", "ulimit -n 1024"] {
        let Some(ready) = program.paged(RAM) else { return };
        good(&mut in_shell(&ready, limits));
    }
}

#[test]
fn forty_descriptors_are_enough_to_start() {
    let Some(mut ready) = paged("/bin/echo", RAM) else { return };
    assert_eq!(good(&mut in_shell(ready.arg("started"), "ulimit -n 40")).stdout, b"started\n");
}

/// C code that reads a file repeatedly through `in` into memory of three times the RAM, and checks its bytes.
const READS: &str = r#"
enum { P = 4096, N = 3 << 20, ROUNDS = 24 };
static char name[64];
static int made(void) {
    snprintf(name, sizeof name, "/var/tmp/coldframe-direct-%d", getpid());
    int out = open(name, O_CREAT | O_RDWR, 0600); static char page[P];
    CHECK(out >= 0);
    for (int i = 0; i < N / P; i++) { memset(page, i % 251 + 1, P); CHECK(write(out, page, P) == P); }
    fsync(out);
    return out;
}
static int really_direct(int fd) {
    char path[64], text[256] = ""; snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "r"); unsigned flags = 0;
    while (fgets(text, sizeof text, info)) if (sscanf(text, "flags: %o", &flags) == 1) break;
    fclose(info);
    return !!(flags & O_DIRECT);
}
static void reads(int in) {
    CHECK(in >= 0);
    CHECK((fcntl(in, F_GETFL) & O_DIRECT) && !really_direct(in));
    int copy = fcntl(in, F_DUPFD_CLOEXEC, 50); CHECK(fcntl(copy, F_GETFL) & O_DIRECT); close(copy);
    char *p = mmap(NULL, N, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MANAGED(p));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N / P; i += 16) CHECK(pread(in, p + i * P, 16 * P, i * P) == 16 * P);
        for (int i = 0; i < N / P; i++)
            CHECK(p[i * P] == (char)(i % 251 + 1) && p[i * P + P - 1] == (char)(i % 251 + 1));
        memset(p, 0, N);
    }
    munmap(p, N); close(in);
}
"#;

#[test]
fn o_direct_is_taken_off_however_it_was_put_on_and_the_program_is_told_that_it_is_there() {
    let source = format!(
        r#"{READS}
#include <linux/openat2.h>
int main(void) {{
    int out = made(); close(out);
    int in = open(name, O_RDONLY); CHECK(!(fcntl(in, F_GETFL) & O_DIRECT));
    CHECK(fcntl(in, F_SETFL, O_DIRECT) == 0); reads(in);
    reads(open(name, O_RDONLY | O_DIRECT)); reads(openat(AT_FDCWD, name, O_RDONLY | O_DIRECT));
    reads(syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_DIRECT));
#ifdef SYS_open
    reads(syscall(SYS_open, name, O_RDONLY | O_DIRECT));
#endif
    struct open_how how = {{ .flags = O_RDONLY | O_DIRECT }};
    reads(syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof how));
    in = open(name, O_RDONLY); CHECK(syscall(SYS_fcntl, in, F_SETFL, O_DIRECT) == 0); reads(in);
    // The flag that is gone is gone, and a pipe's is another one.
    in = open(name, O_RDONLY | O_DIRECT);
    CHECK(fcntl(in, F_SETFL, 0) == 0 && !(fcntl(in, F_GETFL) & O_DIRECT));
    int ends[2]; CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_DIRECT) == 0 && really_direct(ends[1]));
    unlink(name);
    return 0;
}}"#
    );
    check_paged("late", &source, RAM, &[]);
}

#[test]
fn o_direct_is_taken_off_where_the_compiler_checks_open() {
    let source = format!(
        r#"{READS}
int main(int argc, char **argv) {{
    int out = made(); close(out);
    // Flags that the compiler does not know make it call `__open_2` and its kin.
    volatile int flags = O_RDONLY | O_DIRECT;
    reads(open(name, flags)); reads(openat(AT_FDCWD, name, flags)); reads(open64(name, flags));
    unlink(name);
    return 0;
}}"#
    );
    check_paged("fortified", &source, RAM, &["-O2", "-fbuiltin", "-D_FORTIFY_SOURCE=2"]);
}
