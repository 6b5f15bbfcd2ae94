/* What a process sees of itself: `/proc/self/{status,task,fd,limits}`, and what it can ask the kernel. A pager must
 * change nothing here but the fields of `differs`. */
#include "oracle.h"
#include <dirent.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* The start of a field of `/proc/PID/status` that may differ. */
static const char *const differs[] = {
    "Tgid:", "Pid:", "PPid:", "NStgid:", "NSpid:", "NSpgid:", "NSsid:", /* numbers of processes */
    "Vm", "Rss",            /* memory: what a pager is for */
    "FDSize:",              /* the kernel's table has room for the pager's descriptors, whose numbers are high */
    "SigQ:",                /* signals that wait, of all processes of the user */
    "voluntary_ctxt", "nonvoluntary_ctxt", /* time */
    "Threads:",             /* counted below: a worker of a ring, in the kernel, comes and goes */
    "State:",               /* of other threads: time. The thread that reads is running */
};

static size_t read_whole(const char *path, char *to, size_t space) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    for (ssize_t n; file >= 0 && (n = read(file, to + len, space - 1 - len)) > 0;) len += n;
    if (file >= 0) close(file);
    to[len] = 0;
    return len;
}
static int may_differ(const char *line) {
    for (size_t i = 0; i < sizeof differs / sizeof *differs; i++)
        if (strncmp(line, differs[i], strlen(differs[i])) == 0) return 1;
    return 0;
}
/* The fields of a thread's status that must be equal, in one line. */
static void status_of(int thread, char *to, size_t space) {
    char path[64], text[8192], *rest = text;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    read_whole(path, text, sizeof text);
    size_t len = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!*line || may_differ(line)) continue;
        len += snprintf(to + len, space - len, " ");
        for (; *line && len + 2 < space; line++)
            if (*line != '\t') to[len++] = *line == ' ' ? '_' : *line;
        to[len] = 0;
    }
}
static int is_a_rings(int thread) {
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    return read_whole(path, name, sizeof name) == 0 || strncmp(name, "iou-", 4) == 0;
}
/* The numbers of the process's threads, the least first. */
static unsigned threads_of(int *threads, unsigned most) {
    unsigned n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        int thread = atoi(entry->d_name);
        if (thread && n < most && !is_a_rings(thread)) threads[n++] = thread;
    }
    if (tasks) closedir(tasks);
    return n;
}
/* All threads have the status of the first one, but for the signals that they block. A thread that has been waited for
 * may be there for a moment longer. */
static void say_threads(void) {
    static char first[8192], other[8192];
    int threads[64];
    unsigned n = 0, wanted = 1 + workers_now();
    for (int tries = 0; (n = threads_of(threads, 64)) != wanted && n && tries < 2000; tries++) usleep(1000);
    if (!n) { /* no /proc: another root, or not dumpable */
        say(" unseen");
        return;
    }
    status_of(gettid(), first, sizeof first);
    say(" threads %d%s", (int)(n - wanted), first);
    for (unsigned i = 0; i < n; i++) {
        if (threads[i] == gettid()) continue;
        status_of(threads[i], other, sizeof other);
        char *a = strstr(first, " SigBlk:"), *b = strstr(other, " SigBlk:");
        int alike = a && b && a - first == b - other && !strncmp(first, other, a - first)
            && !strcmp(strchr(a + 1, ' '), strchr(b + 1, ' '));
        if (!alike) say(" another thread:%s", other);
    }
}
static void say_limits(void) {
    char text[4096], *rest = text;
    read_whole("/proc/self/limits", text, sizeof text);
    say(" limits");
    strsep(&rest, "\n");
    for (char *line; rest && (line = strsep(&rest, "\n")) && *line;) {
        char soft[32] = "", hard[32] = "";
        sscanf(line + 26, "%31s %31s", soft, hard);
        say(" %s/%s", soft, hard);
    }
}
static long bare_fcntl(int file, int command) { return bare(SYS_fcntl, file, command, 0, 0, 0, 0); }
/* Without numbers that change from run to run: those of pipes and sockets, and random names. */
static void say_target(char *target) {
    char *name = strstr(target, "/oracle."), *number = strchr(target, '[');
    if (name && (name = strchr(name + 8, '.'))) name[1] = 0;
    if (number) *number = 0;
    say("%s", target);
}
/* The pager's descriptors are not open for the program: the C library's calls say so. Without a pager there are none of
 * them; a program that a paged one has started finds the descriptor of the run's statistics. */
static void say_descriptors(void) {
    int shown[256];
    unsigned n = 0;
    DIR *files = opendir("/proc/self/fd");
    for (struct dirent *entry; files && (entry = readdir(files)) && n < 256;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(files)) shown[n++] = atoi(entry->d_name);
    if (files) closedir(files);
    say(" fd");
    for (unsigned i = 0; i < n; i++) {
        char path[64], target[512] = "";
        if (fcntl(shown[i], F_GETFD) == -1 && errno == EBADF && bare_fcntl(shown[i], F_GETFD) >= 0) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", shown[i]);
        ssize_t len = readlink(path, target, sizeof target - 1);
        if (len < 0 || strstr(target, "coldframe-stats")) continue;
        say(" %d:%d:", shown[i], fcntl(shown[i], F_GETFD));
        say_target(target);
    }
}
/* Children that `wait` would report, or that the process has without knowing. The pager's own is there by its name. */
static void say_children(void) {
    char path[64], text[4096], *rest = text;
    int seen = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)gettid());
    read_whole(path, text, sizeof text);
    for (char *word; (word = strsep(&rest, " "));) {
        char name[32] = "";
        if (!*word) continue;
        snprintf(path, sizeof path, "/proc/%s/comm", word);
        read_whole(path, name, sizeof name);
        seen += strcmp(name, "coldframe-pager\n") != 0;
    }
    say(" children %d", seen);
    if (!children) say_outcome("wait", waitpid(-1, NULL, WNOHANG));
}
static void say_file(const char *path) {
    char text[256];
    read_whole(path, text, sizeof text);
    text[strcspn(text, "\n")] = 0;
    say(" %s", text);
}
static void say_asked(void) {
    static const int controls[] = {PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECUREBITS, PR_GET_TIMERSLACK,
        PR_GET_NO_NEW_PRIVS, PR_GET_THP_DISABLE, 65 + 1 /* PR_GET_MDWE */};
    int death = -1, reaper = -1;
    say(" asked");
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) say(" %d", prctl(controls[i], 0, 0, 0, 0));
    prctl(PR_GET_PDEATHSIG, &death);
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    say(" %d %d %lx", death, reaper, (long)personality(0xffffffff));
    stack_t stack;
    must(sigaltstack(NULL, &stack) == 0, "sigaltstack");
    say(" %d %d %ld %d", sched_getscheduler(0), getpriority(PRIO_PROCESS, 0), syscall(SYS_ioprio_get, 1, 0),
        stack.ss_flags);
    say_file("/proc/self/oom_score_adj");
    say_file("/proc/self/coredump_filter");
    cpu_set_t set;
    say(" processors %d", sched_getaffinity(0, sizeof set, &set) ? -1 : CPU_COUNT(&set));
}
/* Names of the environment's variables: a child gets those of its parent. */
static void say_environment(void) {
    extern char **environ;
    unsigned n = 0;
    for (char **at = environ; *at; at++) n += strncmp(*at, "LD_PRELOAD=", 11) && strncmp(*at, "COLDFRAME_", 10);
    say(" environment %u", n);
}
void say_self(void) {
    say_threads();
    say_limits();
    say_descriptors();
    say_children();
    say_asked();
    say_environment();
}
