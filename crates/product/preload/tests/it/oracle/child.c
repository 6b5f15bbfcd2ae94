/* Programs that are started in every way there is print what they are: affinity, limits, rights, descriptors. The
 * process that starts them has used the pager before, in its first thread or in the one that starts them. */
#include "oracle.h"
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>

extern char **environ;

int who(void) {
    say_self();
    end_line();
    return 0;
}
static char *const words[] = {"oracle", "-who", NULL};
/* What a file or a pipe has, as a part of the line. */
static void say_all(int from) {
    static char text[12000];
    size_t len = 0;
    for (ssize_t n; len < sizeof text - 1
        && ((n = read(from, text + len, sizeof text - 1 - len)) > 0 || (n < 0 && errno == EINTR));)
        len += n > 0 ? n : 0;
    text[len] = 0;
    text[strcspn(text, "\n")] = 0;
    say("%s", text);
}
static void say_status(int status) { say(" ended %d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)); }
static void run_myself(int out) {
    dup2(out, 1);
    execve(myself, words, environ);
    _exit(96);
}
static const char *command_line(const char *more) {
    static char line[PATH_MAX + 100], path[PATH_MAX];
    ssize_t len = readlink(myself, path, sizeof path - 1);
    path[len < 0 ? 0 : len] = 0;
    snprintf(line, sizeof line, "'%s' -who %s", path, more);
    return line;
}
static void by_popen(void) {
    FILE *from = popen(command_line(""), "r");
    if (!from) {
        say_outcome("popen", -1);
        return;
    }
    say_all(fileno(from));
    say_status(pclose(from));
}
static void by_system(void) {
    char name[] = "oracle.who.XXXXXX", more[64];
    int file = mkostemp(name, O_CLOEXEC);
    if (file < 0) {
        say_outcome("file", -1);
        return;
    }
    snprintf(more, sizeof more, "> %s", name);
    int status = system(command_line(more));
    unlink(name);
    say_all(file);
    close(file);
    say_status(status);
}
/* A copy by clone3 itself, or an errno. The child's and the parent's part are the same process's code. */
static pid_t copy_by_clone3(int way) {
    static int pidfd;
    static pid_t number;
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    if (way & 1) arguments.flags |= CLONE_PIDFD, arguments.pidfd = (uintptr_t)&pidfd;
    if (way & 2) arguments.flags |= CLONE_PARENT_SETTID, arguments.parent_tid = (uintptr_t)&number;
    pidfd = -1, number = 0;
    pid_t child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child > 0) {
        if (way & 1) say(" pidfd %d", pidfd);
        if (way & 1) close(pidfd);
        if (way & 2) must(number == child, "clone3 stores the child's number");
    }
    return child;
}
void say_child(int way) {
    int ends[2];
    static const char *const ways[] = {"popen", "system", "vfork", "fork", "spawn", "clone3"};
    say(" by %s", ways[way]);
    if (way < 2) {
        (way ? by_system : by_popen)();
        return;
    }
    if (pipe2(ends, O_CLOEXEC)) {
        say_outcome("pipe", -1);
        return;
    }
    pid_t child = -1;
    int error = 0, how = below(4);
    if (way == 2 && (child = vfork()) == 0) run_myself(ends[1]);
    if (way == 3 && (child = fork()) == 0) run_myself(ends[1]);
    if (way == 5 && (child = copy_by_clone3(how)) == 0) run_myself(ends[1]);
    if (way == 4) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        error = posix_spawn(&child, myself, &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    } else if (child < 0) {
        error = errno;
    }
    close(ends[1]);
    say(" %s", name_of(error));
    if (!error) {
        int status = 0;
        say_all(ends[0]);
        must(waitpid(child, &status, 0) == child, "a program that was started ends");
        say_status(status);
    }
    close(ends[0]);
}
int child_ways(void) { return 6; }

static void *start_there(void *argument) {
    churn(200);
    say_child(*(int *)argument);
    return NULL;
}
static void op_who(void) {
    int way = below(child_ways());
    churn(300);
    if (one_in(2)) {
        say_child(way);
        return;
    }
    pthread_t thread;
    must(pthread_create(&thread, NULL, start_there, &way) == 0 && pthread_join(thread, NULL) == 0,
        "a thread that starts a program");
}
static void op_self(void) {
    churn(100);
    say_self();
}
/* clone3 for its own sake: the child checks what a child has. */
static void op_clone3(void) {
    if (depth >= 3) return;
    int way = below(4);
    struct range r;
    pid_t child = copy_by_clone3(way);
    if (child == 0) {
        become_child();
        check_some(6);
        if (pick(&r, 60)) write_range(&r);
        check_some(6);
        _exit(46);
    }
    say(" way %d %s", way, outcome(child));
    if (child < 0) return;
    int status;
    children++;
    if (pick(&r, 60)) write_range(&r);
    children--;
    must(waitpid(child, &status, 0) == child, "a child is waited for");
    say_status(status);
}

/* For all kinds of children, as a debugger does. */
static void op_wait_all(void) {
    say_outcome("wait", waitpid(-1, NULL, WNOHANG | __WALL));
}
/* The kind of waiting to which the pager's own process is a child: as a subreaper, which inherits the children of its
 * children. */
static void op_subreaper(void) {
    if (depth >= 3) return;
    pid_t child = fork();
    if (child == 0) {
        become_child();
        must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "a subreaper");
        for (int i = 0; i < 3; i++)
            if (fork() == 0) _exit(7);
        int n = 0;
        while (waitpid(-1, NULL, 0) > 0) n++, usleep(20000);
        _exit(n);
    }
    int status = 0;
    must(child < 0 || waitpid(child, &status, 0) == child, "a child is waited for");
    say_status(status);
}
/* A subreaper gets the children of its children; what else it inherits does not count here. */
static void op_reaps(void) {
    if (depth >= 3) return;
    unsigned n = between(1, 4), look = between(1, 100);
    pid_t child = fork();
    if (child == 0) {
        become_child();
        must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "a subreaper");
        for (unsigned i = 0; i < n; i++)
            if (fork() == 0) {
                if (fork() == 0) usleep(3000), check_some(3), _exit(7);
                churn(100);
                _exit(7);
            }
        unsigned reaped = 0;
        for (int status; waitpid(-1, &status, 0) > 0;) reaped += status == 7 << 8;
        if (reaped != 2 * n || errno != ECHILD) _exit(98);
        raw_child(look);
    }
    say(" %u", n);
    int status = 0;
    must(child < 0 || waitpid(child, &status, 0) == child, "a child is waited for");
    say_status(status);
}

/* A child shares its memory with a process that goes on when the child has ended, was killed or has become another
 * program. */
static int later[2];
static pid_t sharer;
static unsigned look_later;
static int lives_on(void *nothing) {
    while (syscall(SYS_getppid) == sharer) usleep(200);
    check_some(8);
    struct range r;
    if (pick(&r, 100)) write_range(&r);
    unsigned char *at = mmap(NULL, 60 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(at != MAP_FAILED, "memory of a process that outlives another");
    fill(at, 60 * PAGE, 21, 0);
    churn(400);
    int status = 0, good = same(at, 60 * PAGE, 21, 0) && munmap(at, 60 * PAGE) == 0;
    pid_t child = _Fork();
    if (child == 0) raw_child(look_later);
    check_some(8);
    good = good && child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) < 50;
    _exit(write(later[1], good ? "good" : "bad!", 4) != 4);
}
static void op_outlives(void) {
    if (depth >= 3) return;
    static char stack[256 << 10];
    unsigned how = below(3), flags = one_in(2) ? CLONE_FILES | CLONE_FS : 0;
    look_later = between(1, 200);
    must(pipe(later) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        become_child();
        sharer = getpid();
        churn(300);
        if (clone(lives_on, stack + sizeof stack, CLONE_VM | flags | SIGCHLD, NULL) < 0) _exit(98);
        if (one_in(2)) usleep(1000);
        if (how == 0) kill(sharer, SIGKILL);
        if (how == 1 && !flags) execl("/bin/true", "true", NULL);
        _exit(5);
    }
    close(later[1]);
    int status = 0;
    char word[5] = "";
    must(child < 0 || waitpid(child, &status, 0) == child, "a child is waited for");
    say_status(status);
    say(" later %s", read(later[0], word, 4) == 4 ? word : "nothing");
    close(later[0]);
}

const struct op child_ops[] = {
    {"reaps", "subreaper", 1, op_reaps},
    {"outlives", "outlives", 2, op_outlives},
    {"wait-all", "wait-all", 1, op_wait_all},
    {"subreaper", "pager-process", 1, op_subreaper},
    {"who", "who", 3, op_who},
    {"self", "self", 3, op_self},
    {"clone3", "clone3", 3, op_clone3},
    {0},
};
