/* Things that a process may give up: users and groups, the root folder, descriptors, limits, processors. Each in a
 * child, which then continues to use memory and forks again. */
#include "oracle.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The pager may have refused a limit: then the child is not what it is without a pager. A program that is started under
 * a hard limit of a few descriptors has its pager's among them. */
static int limit_refused, crowded;
/* The child's part: old and new memory, its own child, and what it is now. */
static void live_on(void) {
    struct range r;
    check_some(4);
    for (int i = 0; i < 3 && pick(&r, 60); i++) write_range(&r);
    unsigned char *more = malloc(700000);
    must(more != NULL, "memory");
    fill(more, 700000, 5, 0);
    churn(200);
    must(same(more, 700000, 5, 0), "new memory");
    free(more);
    check_some(6);
    pid_t child = fork();
    say(" fork %s", child < 0 ? name_of(errno) : "ok");
    if (child == 0) {
        become_child();
        check_some(6);
        if (pick(&r, 60)) write_range(&r);
        check_some(4);
        _exit(4);
    }
    int status = 0;
    if (child > 0) must(waitpid(child, &status, 0) == child, "a child");
    say(" %d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    if (limit_refused) return;
    if (one_in(2)) say_self();
    if (one_in(3) && !crowded) say_child(below(child_ways()));
}
static void in_child(void (*change)(void)) {
    if (depth >= 3) return;
    uint64_t number = chance();
    pid_t child = fork();
    if (child == 0) {
        become_child();
        seed(number);
        say("%.*s", depth, "................");
        change();
        live_on();
        end_line();
        _exit(6);
    }
    struct range r;
    children++;
    if (pick(&r, 60)) write_range(&r);
    children--;
    int status;
    must(waitpid(child, &status, 0) == child, "a child");
    say(" %d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void drop_rights(void) {
    gid_t groups[1] = {65534};
    int way = below(4);
    say(" way %d", way);
    if (way == 0) say_outcome("setgroups", setgroups(1, groups));
    if (way == 1) say_outcome("setgroups", setgroups(0, NULL));
    say_outcome("setgid", way == 2 ? setresgid(65534, 65534, 65534) : setgid(65534));
    if (way != 3) say_outcome("setuid", way == 2 ? setresuid(65534, 65534, 65534) : setuid(65534));
    say(" %d %d", getuid() == 65534, getgid() == 65534);
    say_outcome("back", setuid(0));
}
static void op_rights(void) { in_child(drop_rights); }

static void rights_for_a_while(void) {
    say_outcome("seteuid", seteuid(65534));
    live_on();
    say_outcome("seteuid", seteuid(getuid()));
}
static void op_rights_for_a_while(void) { in_child(rights_for_a_while); }

static void new_root(void) {
    char name[] = "oracle.root.XXXXXX";
    must(mkdtemp(name) != NULL, "a folder");
    int result = chroot(name);
    say_outcome("chroot", result);
    if (result == 0) {
        say_outcome("chdir", chdir("/"));
        say_outcome("open", open("/proc/self/maps", O_RDONLY));
        live_on();
        if (one_in(2)) say_outcome("setuid", setuid(65534));
    } else {
        rmdir(name);
    }
}
static void op_root(void) { in_child(new_root); }

/* As a daemon does: closes all descriptors above 2; the next descriptor is 3. */
static void close_all(void) {
    int way = below(5);
    say(" way %d", way);
    switch (way) {
    case 0: closefrom(3); break;
    case 1: say_outcome("close_range", close_range(3, ~0u, 0)); break;
    case 2:
        for (int d = 3; d < 1100; d++) close(d);
        break;
    case 3: {
        int null = open("/dev/null", O_RDWR);
        for (int d = 3; d < 40; d++) must(dup2(null, d) == d, "dup2 onto a low number");
        for (int d = 3; d < 40; d++) must(close(d) == 0, "and closed");
        break;
    }
    default: say_outcome("on exec", close_range(3, ~0u, CLOSE_RANGE_CLOEXEC));
    }
    int next = open("/dev/null", O_RDONLY);
    say(" next %d", next);
    close(next);
}
static void op_close(void) { in_child(close_all); }
/* The same without a child: the program's descriptors are known. */
static void op_descriptors(void) {
    int low = between(3, 30), null = open("/dev/null", O_RDWR);
    say(" %d %d", null, dup2(null, low));
    say(" %d", fcntl(null, F_DUPFD_CLOEXEC, 10));
    say_outcome("close", close(low));
    say(" twice %s", low == null ? "" : outcome(close(low)));
    closefrom(3);
    int memory = memfd_create("x", 0);
    say(" %d", memory);
    close(memory);
    check_some(5);
}

static void few_descriptors(void) {
    struct rlimit now, few = {between(16, 80), 0};
    must(getrlimit(RLIMIT_NOFILE, &now) == 0, "getrlimit");
    few.rlim_max = one_in(2) ? few.rlim_cur : now.rlim_max;
    crowded = few.rlim_cur == few.rlim_max;
    say(" %d", crowded);
    say_outcome("setrlimit", setrlimit(RLIMIT_NOFILE, &few));
    int n = 0;
    while (n < 200 && open("/dev/null", O_RDONLY) >= 0) n++;
    say(" opened %d then %s", n, name_of(errno));
    closefrom(3);
}
static void op_few_descriptors(void) { in_child(few_descriptors); }

/* The pager may refuse this call, because its own file may be longer. A granted limit holds for the program's files,
 * but not for the pager's. */
static void small_files(void) {
    /* More than this program prints. */
    enum { MOST = 1 << 20 };
    struct rlimit small = {MOST, MOST};
    limit_refused = 1;
    signal(SIGXFSZ, one_in(2) ? SIG_IGN : SIG_DFL);
    int granted = setrlimit(RLIMIT_FSIZE, &small) == 0;
    for (struct slab *s = slabs; s < slabs + SLABS; s++) {
        struct range r = {s, 0, s->n};
        write_range(&r);
    }
    check_all();
    signal(SIGXFSZ, SIG_IGN);
    int file = memfd_create("y", 0);
    ssize_t n = pwrite(file, scratch(), 20 * PAGE, MOST - 10 * PAGE);
    must(n == (granted ? 10 : 20) * PAGE, "a limit that is granted holds");
    must(!granted || (pwrite(file, scratch(), PAGE, MOST) == -1 && errno == EFBIG), "nothing is written beyond it");
    close(file);
}
static void op_small_files(void) { in_child(small_files); }

static void few_processes(void) {
    struct rlimit few = {between(1, 3), 3};
    say_outcome("setrlimit", setrlimit(RLIMIT_NPROC, &few));
    struct rlimit none = {0, 0};
    say_outcome("core", setrlimit(RLIMIT_CORE, &none));
    say_outcome("locked", setrlimit(RLIMIT_MEMLOCK, &none));
    struct rlimit stack = {1 << 20, 8 << 20};
    say_outcome("stack", setrlimit(RLIMIT_STACK, &stack));
    struct rlimit signals = {0, 0};
    say_outcome("signals", setrlimit(RLIMIT_SIGPENDING, &signals));
}
static void op_limits(void) { in_child(few_processes); }

static void filtered(void) {
    /* As a sandbox does: forbids new descriptors of most kinds. */
    static const int forbidden[] = {SYS_openat, SYS_userfaultfd, SYS_io_uring_setup, SYS_memfd_create, SYS_open};
    enum { N = sizeof forbidden / sizeof *forbidden };
    struct sock_filter filter[N + 3];
    filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < N; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], N - i, 0);
    filter[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {N + 3, filter};
    say_outcome("no new rights", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    say_outcome("filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
    say_outcome("open", open("/dev/null", O_RDONLY));
}
static void op_filter(void) { in_child(filtered); }

static void alone_and_first(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    say_outcome("affinity", sched_setaffinity(0, sizeof one, &one));
    struct sched_param first = {.sched_priority = 1};
    say_outcome("fifo", one_in(2) ? sched_setscheduler(0, SCHED_FIFO, &first) : 0);
    check_some(10);
    errno = 0;
    say_outcome("nice", nice(3) == -1 && errno ? -1 : 0);
}
static void op_processors(void) { in_child(alone_and_first); }

static void daemonize(void) {
    umask(077);
    say(" session %d", setsid() == getpid());
    int null = open("/dev/null", O_RDWR);
    say(" 0 %d", dup2(null, 0));
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    say_outcome("name", prctl(PR_SET_NAME, "a-daemon", 0, 0, 0));
    close_range(3, ~0u, 0);
}
static void op_daemon(void) { in_child(daemonize); }

/* Rights that a process may drop without the C library's functions for users. */
static void drop_one(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2];
    int way = below(9);
    say(" way %d", way);
    switch (way) {
    case 0: /* all, or those of a list */
    case 1:
        must(syscall(SYS_capget, &head, caps) == 0, "capget");
        for (int i = 0; i < 2; i++) {
            caps[i].effective &= way ? 0x2000f3 : 0;
            caps[i].permitted &= way ? 0x2000f3 : 0;
        }
        say_outcome("capset", syscall(SYS_capset, &head, caps));
        break;
    case 2: say_outcome("no new rights", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); break;
    case 3: say_outcome("bounding set", prctl(PR_CAPBSET_DROP, 21 /* CAP_SYS_ADMIN */, 0, 0, 0)); break;
    case 4: say_outcome("secure bits", prctl(PR_SET_SECUREBITS, 0x2f, 0, 0, 0)); break;
    case 5: /* by the bare call, which is this thread's alone */
        say_outcome("setgid", syscall(SYS_setgid, 65534));
        say_outcome("setuid", syscall(SYS_setuid, 65534));
        break;
    case 6:
        say_outcome("keep", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
        say_outcome("setuid", setuid(65534));
        break;
    case 7: { /* as OpenSSH's sandbox does */
        struct rlimit none = {0, 0};
        say_outcome("no processes", setrlimit(RLIMIT_NPROC, &none));
        say_outcome("setgid", setgid(65534));
        say_outcome("setuid", setuid(65534));
        break;
    }
    default:
        say_outcome("dumpable", prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
        say_outcome("slack", prctl(PR_SET_TIMERSLACK, 77000, 0, 0, 0));
        say_outcome("huge pages", prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
        say_outcome("death", prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0));
        say_outcome("persona", personality(ADDR_NO_RANDOMIZE));
    }
}
static void op_drop(void) { in_child(drop_one); }

/* A filter for all threads, which may kill those that make a call the program itself never makes. */
static void filtered_together(void) {
    int kills = one_in(2);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {5, filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new rights");
    say_outcome("filter", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}
static void op_filter_together(void) { in_child(filtered_together); }

static void apart(void) {
    static const int ways[] = {CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_FILES, CLONE_FS, CLONE_NEWNET};
    int way = below(6);
    say(" way %d", way);
    say_outcome("unshare", unshare(ways[way]));
}
static void op_apart(void) { in_child(apart); }
static void apart_as_a_user(void) { say_outcome("unshare", unshare(CLONE_NEWUSER)); }
static void op_apart_as_a_user(void) { in_child(apart_as_a_user); }

const struct op limit_ops[] = {
    {"rights", "rights", 2, op_rights},
    {"rights-for-a-while", "rights", 1, op_rights_for_a_while},
    {"root", "chroot", 1, op_root},
    {"close", "close", 2, op_close},
    {"descriptors", "descriptors", 1, op_descriptors},
    {"few-descriptors", "few-descriptors", 1, op_few_descriptors},
    {"small-files", "small-files", 1, op_small_files},
    {"limits", "limits", 1, op_limits},
    {"drop", "drop", 3, op_drop},
    {"filter", "filter", 1, op_filter},
    {"filter-together", "filter", 1, op_filter_together},
    {"processors", "processors", 1, op_processors},
    {"daemon", "daemon", 1, op_daemon},
    {"apart", "apart", 1, op_apart},
    {"apart-user", "apart-user", 1, op_apart_as_a_user},
    {0},
};
