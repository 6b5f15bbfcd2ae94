//! Programs that change their user, or what else their process may do, under a pager: it has no thread of the pager.

use std::process::Command;

use crate::common::{check_paged, good, program, with, Program};
use coldframe_live::StatsFile;

fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// The start of every program here: memory of four times the RAM that is checked repeatedly, and every thread's
/// identity.
const MEMORY: &str = r#"
#include <dirent.h>
#include <grp.h>
#include <sched.h>
enum { SIZE = 16 << 20 };
static char *big;
static void fill(void) {
    big = malloc(SIZE);
    CHECK(MANAGED(big));
    for (long i = 0; i < SIZE; i += 4096) big[i] = i >> 12;
}
static void look(void) { for (long i = 0; i < SIZE; i += 4096) CHECK(big[i] == (char)(i >> 12)); }
static char *status_of(int process) {
    static char text[4096]; char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    int file = open(path, O_RDONLY); ssize_t n = file < 0 ? 0 : read(file, text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0; close(file);
    return text;
}
/* The pager's process of another one has the same memory. */
static int pager_of(int process) {
    int found = 0;
    for (int try = 0; try < 50 && !found; try++) {
        DIR *all = opendir("/proc"); struct dirent *entry;
        while ((entry = readdir(all))) {
            char size[64], *text = status_of(atoi(entry->d_name));
            if (strncmp(text, "Name:\tcoldframe-pager\n", 22) || !(text = strstr(text, "VmSize:"))) continue;
            snprintf(size, sizeof size, "%.*s", (int)strcspn(text, "\n") + 1, text);
            if (strstr(status_of(process), size)) found = atoi(entry->d_name);
        }
        closedir(all);
    }
    CHECK(found); return found;
}
/* The pager's own process has no right, and none of this process's files. Its end would end this process. It is no
 * child. */
static void rights(void) {
    char path[64]; int pager = pager_of(getpid()); char *text = status_of(pager);
    CHECK(strstr(text, "CapEff:\t0000000000000000") && strstr(text, "CapPrm:\t0000000000000000")
        && strstr(text, "NoNewPrivs:\t1") && strstr(text, "Seccomp:\t2"));
    snprintf(path, sizeof path, "PPid:\t%d\n", getpid()); CHECK(!strstr(text, path));
    char ours[256] = "", theirs[256] = "";
    snprintf(path, sizeof path, "/proc/%d/fd/2", pager);
    readlink(path, theirs, 255); readlink("/proc/self/fd/2", ours, 255); CHECK(strcmp(ours, theirs));
}
/* Each thread of the process has these lines in its status. */
static int threads(const char *line) {
    rights();
    DIR *tasks = opendir("/proc/self/task"); struct dirent *entry; int count = 0;
    while ((entry = readdir(tasks))) {
        if (entry->d_name[0] == '.') continue;
        char path[300], text[4096] = ""; snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r"); if (!file) continue;
        size_t n = fread(text, 1, sizeof text - 1, file); fclose(file);
        /* A ring's worker in the kernel acts for whoever asked, and comes and goes. */
        if (strstr(text, "Name:\tiou-")) continue;
        if (!strstr(text, line)) { fprintf(stderr, "%s is not in %s:\n%s", line, path, text); _exit(98); }
        count++;
    }
    closedir(tasks);
    return count;
}
"#;

fn check(name: &str, source: &str) {
    if is_root() {
        check_paged(name, &format!("{MEMORY}{source}"), 4 << 20, &[]);
    }
}

/// The program in a folder that any user may enter, with statistics of its own; `None`: not here.
fn with_statistics(name: &str, source: &str) -> Option<(Program, Command, StatsFile)> {
    let program = is_root().then(|| program(name, &format!("{MEMORY}{source}")))??;
    std::fs::set_permissions(program.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (mut command, stats) = (program.paged(4 << 20)?, StatsFile::create().unwrap());
    with(&mut command, |options| options.stats_fd = Some(stats.fd())).current_dir("/");
    Some((program, command, stats))
}

programs! {
    no_thread_keeps_the_rights_that_a_program_drops = check r#"
static volatile int stop;
static void *other(void *x) { while (!stop) look(); return NULL; }
int main(void) {
    fill();
    pthread_t t; CHECK(pthread_create(&t, NULL, other, NULL) == 0);
    gid_t group = 7; CHECK(setgroups(1, &group) == 0); CHECK(threads("Groups:\t7 \n") == 2);
    CHECK(initgroups("root", 0) == 0);
    CHECK(setgroups(0, NULL) == 0); CHECK(threads("Groups:\t \n") == 2);
    CHECK(setegid(12) == 0); CHECK(threads("Gid:\t0\t12\t0\t12\n") == 2);
    CHECK(setregid(12, 12) == 0); CHECK(setresgid(13, 13, 13) == 0); CHECK(setgid(65534) == 0);
    CHECK(threads("Gid:\t65534\t65534\t65534\t65534\n") == 2);
    CHECK(seteuid(12) == 0); CHECK(threads("Uid:\t0\t12\t0\t12\n") == 2); CHECK(seteuid(0) == 0);
    CHECK(setreuid(0, 0) == 0); CHECK(setresuid(0, 0, 0) == 0);
    CHECK(setuid(65534) == 0); CHECK(threads("Uid:\t65534\t65534\t65534\t65534\n") == 2);
    look(); stop = 1; CHECK(pthread_join(t, NULL) == 0); look();
    CHECK(setuid(0) == -1 && errno == EPERM);
}"#;
    a_child_drops_its_rights_after_the_fork = check r#"
int main(void) {
    fill();
    pid_t child = fork(); CHECK(child >= 0);
    if (child == 0) {
        alarm(30);
        CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
        CHECK(threads("Uid:\t65534\t65534\t65534\t65534\n") == 1);
        look(); exit(0);
    }
    int status; CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(threads("Uid:\t0\t0\t0\t0\n") == 1); look();
    // A child that shares this memory changes itself alone.
    child = vfork();
    if (child == 0) { if (setgid(65534) || setuid(65534)) _exit(1); _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(threads("Uid:\t0\t0\t0\t0\n") == 1); look();
}"#;
    a_program_enters_a_namespace_of_users = check r#"
int main(void) {
    fill();
    int ends[2]; char c; CHECK(pipe(ends) == 0);
    pid_t child = fork(); CHECK(child >= 0);
    if (child == 0) {
        CHECK(syscall(SYS_unshare, CLONE_NEWUSER) == 0);
        look();
        CHECK(write(ends[1], "x", 1) == 1);
        sleep(60);
        _exit(0);
    }
    CHECK(read(ends[0], &c, 1) == 1);
    char path[50]; snprintf(path, sizeof path, "/proc/%d/ns/user", child);
    int space = open(path, O_RDONLY); CHECK(space >= 0);
    pid_t second = fork(); CHECK(second >= 0);
    if (second == 0) { CHECK(setns(space, CLONE_NEWUSER) == 0); look(); _exit(0); }
    int status; CHECK(waitpid(second, &status, 0) == second && status == 0);
    kill(child, SIGKILL); waitpid(child, NULL, 0); look();
    CHECK(unshare(CLONE_NEWUSER) == 0);
    look(); CHECK(threads("Uid:\t65534") == 1);
    CHECK(unshare(1 << 30 | 1 << 2) == -1 && errno == EINVAL); look();
}"#;
}

#[test]
fn a_later_program_of_another_user_runs_unpaged_and_the_first_is_refused() {
    if may_all() {
        return;
    }
    let source = r#"
int main(int argc, char **argv) {
    if (argc > 1) {
        char *p = malloc(9 << 20);
        CHECK(!MANAGED(p));
        p[5] = 1;
        pid_t c = fork();
        if (!c) _exit(p[5] - 1);
        int s;
        wait(&s);
        free(p);
        return s ? 8 : 7;
    }
    fill(); pid_t child = fork(); int status;
    if (child == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        execl(argv[0], argv[0], "later", NULL);
        _exit(97);
    }
    CHECK(waitpid(child, &status, 0) == child); CHECK(WEXITSTATUS(status) == 7); look();
    return 0;
}"#;
    let Some((_program, mut command, _stats)) = with_statistics("later", source) else { return };
    let mut run = |user: u32| crate::common::run(std::os::unix::process::CommandExt::uid(&mut command, user));
    assert_eq!(run(65534).status.code(), Some(4), "the first program of a run must be paged");
    let output = run(0);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), words.matches("is not paged").count()), (Some(0), 1), "{words}");
}

/// Whatever descriptor a child of another user finds, it must not use it against the run.
#[test]
fn a_program_without_rights_can_neither_cut_nor_change_the_statistics_of_its_run() {
    let source = r#"
#include <sys/resource.h>
static void attack(int fd) {
    char garbage[4096]; memset(garbage, 0x77, sizeof garbage);
    for (int at = 0; at < 1 << 15; at += 4096) pwrite(fd, garbage, 4096, at);
    char *p = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0); if (p != MAP_FAILED) memset(p, 0x77, 4096);
    ftruncate(fd, 0);
}
int main(int argc, char **argv) {
    if (argc > 1) {
        struct rlimit most; getrlimit(RLIMIT_NOFILE, &most); char name[64];
        for (int fd = 3; fd < 1 << 20; fd++) if (fcntl(fd, F_GETFD) >= 0) {
                attack(fd);
                snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
                int again = open(name, O_RDWR);
                if (again >= 0) {
                    attack(again);
                    close(again);
                }
        }
        return 7;
    }
    fill(); pid_t child = fork(); int status;
    if (child == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        unsetenv("LD_PRELOAD");
        execl(argv[0], argv[0], "attack", NULL);
        _exit(97);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7); look();
    return 0;
}"#;
    let Some((_program, mut command, stats)) = with_statistics("attack", source) else { return };
    good(&mut command);
    let counts = stats.snapshot();
    assert!(counts.evictions > 1000 && counts.counters().iter().all(|(_, n)| *n < 1 << 40), "{counts:?}");
}

/// What the program finds of its descriptors.
const DESCRIPTORS: &str = r#"
#include <sys/resource.h>
/* The process has the descriptors up to this one, and no others. */
static void only(int last) {
    DIR *all = opendir("/proc/self/fd"); struct dirent *entry; int count = 0; CHECK(all);
    while ((entry = readdir(all))) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd == dirfd(all)) continue;
        char path[300], what[300] = ""; snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        readlink(path, what, sizeof what - 1);
        if (fd > last) { fprintf(stderr, "descriptor %d is %s\n", fd, what); _exit(98); }
        count++;
    }
    closedir(all); CHECK(count == last + 1);
}
static void drop(uid_t user) { CHECK(setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0); }
static void ends(pid_t child, int code) {
    int status; CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) { fprintf(stderr, "status %x\n", status); _exit(97); }
}
"#;

/// As [`with_statistics`]; the program inherits the descriptor of its statistics and none of those of other tests.
fn with_few_descriptors(name: &str, source: &str) -> Option<(Program, Command, StatsFile)> {
    let (program, mut command, stats) = with_statistics(name, &format!("{DESCRIPTORS}{source}"))?;
    let own = stats.fd() as libc::c_uint;
    let leave = move || {
        let flag = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
        // SAFETY: no pointers.
        unsafe { (libc::close_range(3, own - 1, flag), libc::close_range(own + 1, libc::c_uint::MAX, flag)) };
        Ok(())
    };
    // SAFETY: system calls alone.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, leave) };
    Some((program, command, stats))
}

#[test]
fn a_process_has_no_descriptor_of_the_pager_whatever_it_has_dropped_and_shares() {
    let source = r#"
int main(void) {
    only(2); fill(); only(2);
    CHECK(open("/dev/null", O_RDONLY) == 3);
    pid_t child = fork();
    if (child == 0) { only(3); drop(65534); only(3); look(); only(3); _exit(0); }
    ends(child, 0);
    // It shares the table of descriptors, and has no pager.
    child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) { only(3); drop(65534); look(); only(3); _exit(0); }
    ends(child, 0); only(3);
    // A user of which there is no other process.
    drop(54321); only(3); look();
    struct rlimit two = {2, 2}; CHECK(setrlimit(RLIMIT_NPROC, &two) == 0);
    child = fork();
    if (child == 0) {
        only(3); CHECK(fork() == -1 && errno == EAGAIN); only(3);
        for (long i = 0; i < SIZE; i += 4096) { CHECK(big[i] == (char)(i >> 12)); big[i] = 1; }
        only(3); _exit(0);
    }
    ends(child, 0); look(); only(3); return 0;
}"#;
    let Some((_program, mut command, _stats)) = with_few_descriptors("few", source) else { return };
    let output = good(&mut command);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(words.matches("runs without paging").count(), 2, "{words}");
}

/// The first program's memory fits.
#[test]
fn a_program_that_is_executed_later_is_paged_in_the_same_run_and_finds_only_its_own_descriptors() {
    let source = r#"
int main(int argc, char **argv) {
    only(2);
    if (argc > 1) { fill(); look(); look(); only(2); return 7; }
    for (int i = 0; i < 3; i++) {
        pid_t child = i ? fork() : vfork();
        if (child == 0) {
            if (i == 2) CHECK(execl("/nowhere", "nothing", NULL) == -1 && errno == ENOENT);
            execl(argv[0], argv[0], "later", NULL);
            _exit(97);
        }
        ends(child, 7); only(2);
    }
    CHECK(execl("/nowhere", "nothing", NULL) == -1 && errno == ENOENT); only(2);
    return 0;
}"#;
    let Some((_program, mut command, stats)) = with_few_descriptors("executed", source) else { return };
    good(&mut command);
    let evictions = stats.snapshot().evictions;
    assert!(evictions > 3 * 3000, "three programs of 4,096 pages in the RAM of 1,024: {evictions}");
}

/// As in a server that separates privileges.
#[test]
fn a_child_that_has_dropped_its_rights_finds_no_way_to_its_parents_memory() {
    let source = r#"
static const char secret[] = "a secret that is younger than the fork";
static char text[1 << 20];
/* Opens the descriptors of a process anew. */
static void search(const char *process) {
    char path[600], what[300]; snprintf(path, sizeof path, "/proc/%s/fd", process);
    DIR *all = opendir(path); struct dirent *entry; if (!all) return;
    while ((entry = readdir(all))) {
        struct stat is; ssize_t n; off_t at = 0;
        snprintf(path, sizeof path, "/proc/%s/fd/%s", process, entry->d_name);
        memset(what, 0, sizeof what); readlink(path, what, sizeof what - 1);
        CHECK(strcmp(process, "self") || !strstr(what, "userfaultfd"));
        int file = stat(path, &is) == 0 && S_ISREG(is.st_mode) ? open(path, O_RDONLY) : -1;
        while (file >= 0 && (n = pread(file, text, sizeof text, at)) > 0) {
            CHECK(!memmem(text, n, secret, sizeof secret));
            at += n;
        }
        close(file);
    }
    closedir(all);
}
int main(int argc, char **argv) {
    fill();
    int ready[2]; char c, jail[] = "/tmp/jailXXXXXX"; CHECK(pipe(ready) == 0 && mkdtemp(jail));
    pid_t child = fork();
    if (child == 0) {
        drop(65534); close(ready[1]); CHECK(read(ready[0], &c, 1) == 1);
        search("self");
        DIR *all = opendir("/proc"); struct dirent *entry;
        while ((entry = readdir(all)))
            if (strstr(status_of(atoi(entry->d_name)), "Name:\tcoldframe-pager\n")) search(entry->d_name);
        closedir(all); look(); _exit(0);
    }
    pid_t locked_in = fork();
    if (locked_in == 0) {
        CHECK(chroot(jail) == 0 && chdir("/") == 0); drop(65534);
        struct stat is;
        for (int fd = 3; fd < 1 << 17; fd++) CHECK(syscall(SYS_fstat, fd, &is) || S_ISFIFO(is.st_mode));
        look(); _exit(0);
    }
    ends(locked_in, 0); CHECK(rmdir(jail) == 0); close(ready[0]);
    for (int i = 0; i + sizeof secret < SIZE; i += 512) memcpy(big + i, secret, sizeof secret);
    for (int pass = 0; pass < 2; pass++) for (int i = 0; i < SIZE; i += 4096) big[i + 4095]++;
    CHECK(write(ready[1], "x", 1) == 1); ends(child, 0); return 0;
}"#;
    let Some((_program, mut command, stats)) = with_few_descriptors("separate", source) else { return };
    good(&mut command);
    assert!(stats.snapshot().evictions > 3000, "the secret is on the disk");
}

/// Whether every user may have a userfaultfd here.
fn may_all() -> bool {
    std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|text| text.trim() == "1")
}

programs! {
    /// What the note of the program's process says about itself: threads, affinity, and what a filter for all threads
    /// does.
    the_program_finds_its_own_process_as_without_a_pager = check r#"
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
static int count(void) { return threads(""); }
int main(void) {
    fill(); CHECK(count() == 1);
    // Only calls that this program makes itself, for all of its threads.
    CHECK(system("taskset -ap 1 $PPID >taskset.txt") == 0); look();
    cpu_set_t set; CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpgid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0); look();
    errno = 0; CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}"#;
}

programs! {
    a_program_whose_pager_is_killed_ends_and_one_that_is_killed_takes_its_pager_along = check r#"
static void gone(int process) {
    for (int i = 0; i < 5000; i++) {
        if (kill(process, 0)) return;
        usleep(1000);
        waitpid(process, NULL, __WALL | WNOHANG);
    }
    CHECK(!"it is gone");
}
int main(void) {
    fill(); CHECK(syscall(SYS_prctl, 36 /* PR_SET_CHILD_SUBREAPER */, 1, 0, 0, 0) == 0);
    for (int way = 0; way < 2; way++) {
        int ready[2]; char c; CHECK(pipe(ready) == 0);
        pid_t child = fork();
        if (child == 0) { close(ready[0]); look(); CHECK(write(ready[1], "x", 1) == 1); for (;;) look(); }
        close(ready[1]); CHECK(read(ready[0], &c, 1) == 1);
        int pager = pager_of(child), status; CHECK(pager > 0);
        CHECK(kill(way ? child : pager, SIGKILL) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        // The last of the child's files is closed with it, and not kept by its pager.
        CHECK(read(ready[0], &c, 1) == 0); close(ready[0]);
        gone(pager);
    }
    look();
}"#;

    /// Programs that wait for all their children, or end them.
    a_program_has_no_child_that_it_has_not_made_and_memory_lives_as_long_as_its_last_user = check r#"
static int children(void) {
    char text[4096] = "";
    int file = open("/proc/thread-self/children", O_RDONLY);
    read(file, text, sizeof text - 1);
    close(file);
    return strlen(text) > 0;
}
static char stack[64 << 10]; static int ready[2];
static int later(void *x) { usleep(300000); look(); big[5] = 1; CHECK(write(ready[1], "y", 1) == 1); _exit(0); }
int main(void) {
    int status; char c = 0;
    fill(); CHECK(!children() && waitpid(-1, &status, __WALL) == -1 && errno == ECHILD);
    CHECK(waitpid(-1, &status, __WCLONE) == -1 && errno == ECHILD);
    pid_t child = fork();
    if (child == 0) { CHECK(!children()); look(); pause(); }
    CHECK(kill(child, SIGKILL) == 0 && waitpid(-1, &status, __WALL) == child && waitpid(-1, &status, __WALL) == -1
        && errno == ECHILD);
    // A child ends; another one has its memory, and goes on.
    CHECK(pipe(ready) == 0);
    child = fork();
    if (child == 0) { look(); CHECK(clone(later, stack + sizeof stack, CLONE_VM, NULL) > 0); _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && close(ready[1]) == 0);
    CHECK(read(ready[0], &c, 1) == 1 && c == 'y');
    look(); return 0;
}"#;

    a_program_that_a_paged_one_becomes_has_no_child_that_it_has_not_made = check r#"
int main(int argc, char **argv) {
    if (argc > 1) {
        // The pager's process of the program before this one is gone, and so is the news of it.
        int status; errno = 0; CHECK(waitpid(-1, &status, __WALL | WNOHANG) == -1 && errno == ECHILD); fill(); look();
        return 0;
    }
    fill(); execl("/proc/self/exe", argv[0], "later", NULL); return 97;
}"#;
}

/// The last user of the memory may be a program that runs another one and has few descriptors: its end of the socket
/// is closed before the pipe is.
#[test]
fn a_program_with_few_descriptors_runs_others_and_no_end_of_a_pager_ends_them() {
    let source = r#"
int main(int argc, char **argv) {
    if (argc > 1) return 7;
    for (int i = 0; i < 60; i++) {
        pid_t child = i % 2 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork(); int status;
        if (child == 0) { execl("/proc/self/exe", "later", "later", NULL); _exit(97); }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    return 0;
}"#;
    let Some(program) = program("few", source) else { return };
    for limit in ["ulimit -n 64", "ulimit -n 256"] {
        let Some(ready) = program.paged(4 << 20) else { return };
        good(&mut crate::common::in_shell(&ready, limit));
    }
}

programs! {
    /// A tracer waits for children of any kind until it has none.
    a_wait_for_children_of_any_kind_ends_as_without_a_pager = check r#"
#include <sys/ptrace.h>
#include <sys/resource.h>
static int ends(void *x) { return 5; }
static pid_t any(int way, int *status) {
    siginfo_t info = {0}; struct rusage usage;
    switch (way) {
    case 0: return waitpid(-1, status, __WALL);
    case 1: return wait4(-1, status, __WALL, &usage);
    case 2: return waitpid(0, status, __WALL);
    case 3: return wait4(-getpgrp(), status, __WALL | __WCLONE, NULL);
    case 4: return wait3(status, __WALL, NULL);
    case 5: return syscall(SYS_wait4, -1, status, __WALL, NULL);
    case 6: if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | __WALL)) return -1; break;
    case 7: if (syscall(SYS_waitid, P_PGID, getpgrp(), &info, WEXITED | WSTOPPED | __WALL, NULL)) return -1; break;
    }
    *status = info.si_code == CLD_EXITED ? info.si_status << 8 : SIGSTOP << 8 | 0x7f;
    return info.si_pid;
}
int main(void) {
    fill(); alarm(60);
    for (int way = 0; way < 8; way++) {
        pid_t child = fork(), got; int status, stops = 0;
        if (child == 0) { ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP); look(); _exit(7); }
        while ((got = any(way, &status)) == child && WIFSTOPPED(status)) {
            CHECK(ptrace(PTRACE_CONT, child, 0, 0) == 0);
            stops++;
        }
        CHECK(got == child && WEXITSTATUS(status) == 7 && stops == 1);
        errno = 0; CHECK(any(way, &status) == -1 && errno == ECHILD);
    }
    // A child of another kind is found as ever, and one that forks has no such child.
    static char stack[64 << 10]; int status;
    pid_t child = clone(ends, stack + sizeof stack, CLONE_VM, NULL); CHECK(child > 0);
    CHECK(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
    CHECK(any(0, &status) == child && WEXITSTATUS(status) == 5);
    child = fork();
    if (child == 0) { errno = 0; _exit(any(0, &status) == -1 && errno == ECHILD ? 0 : 1); }
    CHECK(waitpid(child, &status, 0) == child && status == 0); look();
}"#;
}
