/* Processes: fork and similar calls, while the parent works, and this program executed again. */
#include "oracle.h"
#include <dlfcn.h>
#include <spawn.h>

extern char **environ;
enum { DEEPEST = 4 };

static void say_end(pid_t child) {
    int status;
    if (child < 0) {
        say_outcome("", -1);
        return;
    }
    must(waitpid(child, &status, 0) == child, "a child is waited for");
    if (WIFEXITED(status)) {
        say(" exit %d", WEXITSTATUS(status));
    } else {
        say(" signal %s", sigabbrev_np(WTERMSIG(status)));
    }
}
static void end(int code) {
    if (one_in(2)) _exit(code);
    exit(code);
}
static void some_steps(uint64_t number, unsigned n) {
    become_child();
    steps(number, n);
    end(n);
}

/* A child works alone while the parent changes the memory that they shared. */
static void op_fork(void) {
    if (depth >= DEEPEST) return;
    uint64_t number = chance();
    unsigned n = between(1, 6);
    pid_t child = fork();
    if (child == 0) some_steps(number, n);
    children++;
    for (unsigned i = below(6); i > 0; i--) {
        struct range r;
        if (pick(&r, 100)) write_range(&r);
    }
    check_some(4);
    children--;
    say_end(child);
}
/* Children that check their memory only after the parent has changed its own. */
static void op_fork_many(void) {
    if (depth >= 2) return;
    unsigned n = one_in(8) ? between(10, 24) : between(2, 6);
    int go[2];
    pid_t all[24];
    must(pipe(go) == 0, "a pipe");
    for (unsigned i = 0; i < n; i++) {
        uint64_t number = chance();
        if ((all[i] = fork()) == 0) {
            char byte;
            close(go[1]);
            become_child();
            seed(number);
            must(read(go[0], &byte, 1) == 0, "the parent says go");
            check_some(10);
            struct range r;
            for (int k = 0; k < 3 && pick(&r, 60); k++) write_range(&r);
            check_some(10);
            _exit(i + 1);
        }
        if (one_in(3) && all[i] > 0) {
            struct range r;
            children = 1;
            if (pick(&r, 60)) write_range(&r);
        }
    }
    children = 1;
    for (struct slab *s = slabs; s < slabs + SLABS; s++) {
        struct range r = {s, 0, s->n};
        if (s->n && one_in(2)) write_range(&r);
    }
    close(go[0]);
    close(go[1]);
    for (unsigned i = 0; i < n; i++) say_end(all[i]);
    children = 0;
    check_some(10);
}
/* A child of a child of a child; the middle one may end first. */
static void nested(unsigned more) {
    if (!more) _exit(7);
    pid_t child = fork();
    if (child == 0) {
        become_child();
        struct range r;
        check_some(3);
        if (pick(&r, 40)) write_range(&r);
        nested(more - 1);
    }
    int status;
    must(child > 0 && waitpid(child, &status, 0) == child, "a nested child");
    check_some(3);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) + 1 : 90);
}
static void op_fork_nested(void) {
    if (depth) return;
    unsigned levels = between(3, 9);
    uint64_t number = chance();
    pid_t child = fork();
    if (child == 0) {
        become_child();
        seed(number);
        nested(levels);
    }
    say_end(child);
}
/* The parent ends; its child reports the result through a pipe. */
static void op_orphan(void) {
    if (depth >= 2) return;
    int ends[2];
    uint64_t number = chance();
    must(pipe(ends) == 0, "a pipe");
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become_child();
        seed(number);
        pid_t orphan = fork();
        if (orphan != 0) _exit(orphan > 0 ? 1 : 2);
        become_child();
        usleep(2000);
        struct range r;
        check_all();
        if (pick(&r, 100)) write_range(&r);
        check_all();
        _exit(write(ends[1], "good", 4) != 4);
    }
    close(ends[1]);
    children++;
    say_end(child);
    struct range r;
    if (pick(&r, 100)) write_range(&r);
    char word[5] = "";
    ssize_t n = read(ends[0], word, 4);
    say(" orphan %s", n == 4 ? word : "never spoke");
    close(ends[0]);
    children--;
}
/* A fork that the C library's handlers do not see: the child may only do what a signal handler may. */
void raw_child(unsigned look) {
    unsigned char sum = 0;
    for (struct slab *s = slabs; s < slabs + SLABS && look; s++)
        for (unsigned i = 0; i < s->n && look; i += 3, look--) {
            struct page *p = &s->page[i];
            if (p->kind == SHARED || p->not_in_child || p->wiped_in_child || !(p->prot & PROT_READ)) continue;
            unsigned char *at = s->at + (size_t)i * PAGE;
            if (!same(at, PAGE, p->version, 0)) _exit(99);
            if (is_rw(p)) fill(at, PAGE, p->version + 1, 0), sum++;
        }
    _exit(sum % 50);
}
static void op_fork_raw(void) {
    if (depth >= DEEPEST) return;
    unsigned look = between(1, 300);
    pid_t child = _Fork();
    if (child == 0) raw_child(look);
    struct range r;
    children++;
    if (pick(&r, 100)) write_range(&r);
    children--;
    say_end(child);
}
static void op_clone(void) {
    if (depth >= DEEPEST) return;
    unsigned look = between(1, 300);
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) raw_child(look);
    struct range r;
    children++;
    if (pick(&r, 100)) write_range(&r);
    children--;
    say_end(child);
}

/* The same by the C library of another link namespace, which has handlers and a heap of its own. */
static void op_fork_other(void) {
    static void *other;
    if (depth >= DEEPEST) return;
    if (!other) other = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    must(other != NULL, "another C library");
    pid_t (*fork_there)(void) = dlsym(other, "fork");
    void *(*take)(size_t) = dlsym(other, "malloc"), (*give)(void *) = dlsym(other, "free");
    size_t len = between(1, 200) * 1000;
    unsigned char *block = take(len);
    unsigned look = between(1, 300);
    must(block != NULL, "another heap's block");
    fill(block, len, 5, 0);
    churn(200);
    pid_t child = fork_there();
    if (child == 0) {
        if (!same(block, len, 5, 0)) _exit(98);
        raw_child(look);
    }
    struct range r;
    children++;
    if (pick(&r, 100)) write_range(&r);
    children--;
    say_end(child);
    must(same(block, len, 5, 0), "another heap's bytes");
    give(block);
}

/* A command line in managed memory, for this program. */
static char **command(const char *first, const char *second) {
    char **words = malloc(6 * sizeof *words);
    must(words != NULL, "memory for words");
    words[0] = strdup("oracle");
    words[1] = strdup(first);
    words[2] = strdup(second);
    words[3] = strdup(without);
    must(asprintf(&words[4], "%d", depth + 1) > 0, "memory for words");
    words[5] = NULL;
    return words;
}
static char **command_of_steps(void) {
    char number[32], n[16];
    snprintf(number, sizeof number, "%llu", (unsigned long long)chance());
    snprintf(n, sizeof n, "%u", between(1, 12));
    return command(number, n);
}
static void free_command(char **words) {
    for (int i = 0; words[i]; i++) free(words[i]);
    free(words);
}
static void op_exec(void) {
    if (depth >= 2) return;
    char **words = command_of_steps();
    churn(500);
    unsigned way = below(4);
    say(" way %u", way);
    pid_t child = -1;
    int error = 0;
    switch (way) {
    case 0:
        if ((child = fork()) == 0) {
            execv(myself, words);
            _exit(96);
        }
        break;
    case 1:
        if ((child = vfork()) == 0) {
            execve(myself, words, environ);
            _exit(96);
        }
        break;
    case 2: error = posix_spawn(&child, myself, NULL, NULL, words, environ); break;
    default:
        if ((child = vfork()) == 0) _exit(17);
    }
    say(" %s", name_of(error));
    struct range r;
    if (pick(&r, 100)) write_range(&r);
    say_end(child);
    free_command(words);
}
/* Bytes go through a program that is spawned with pipes. */
static void op_spawn_sum(void) {
    int to[2], from[2];
    struct range r;
    if (!pick_with(&r, 100, PROT_READ)) return;
    must(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "pipes");
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    char *words[] = {"oracle", "-sum", NULL};
    pid_t child = -1;
    say(" %s", name_of(posix_spawn(&child, myself, &actions, &attributes, words, environ)));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(to[0]);
    close(from[1]);
    for (size_t done = 0; done < length(&r);) {
        ssize_t n = write(to[1], start(&r) + done, length(&r) - done);
        must(n > 0, "writing to a program");
        done += n;
    }
    close(to[1]);
    char answer[64] = "";
    ssize_t n = read(from[0], answer, sizeof answer - 1);
    close(from[0]);
    say_end(child);
    expect(&r, scratch());
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)checksum(scratch(), length(&r)));
    if (n != 16 || strcmp(answer, wanted)) wrong("a spawned program read something else: %s, not %s", answer, wanted);
}
static void op_shell(void) {
    FILE *shell = popen("(read a; echo \"$a\" | tr a-z A-Z; wc -c) 2>&1", "w");
    must(shell != NULL, "popen");
    int words = between(1, 4000);
    fprintf(shell, "a line of %d\n", words);
    for (int i = 0; i < words; i++) fprintf(shell, "%d ", i);
    say(" %d", pclose(shell));
    say(" %d", system("exit 3"));
}

static int sum_of_input(void) {
    size_t len = 0, space = 1000;
    unsigned char *all = malloc(space);
    for (ssize_t n; (n = read(0, all + len, space - len)) > 0;) {
        len += n;
        if (len == space) all = realloc(all, space *= 2);
    }
    printf("%016llx", (unsigned long long)checksum(all, len));
    free(all);
    return 5;
}
int special(int count, char **words) {
    if (count == 2 && strcmp(words[1], "-sum") == 0) return sum_of_input();
    if (count == 2 && strcmp(words[1], "-who") == 0) return who();
    return 2;
}

const struct op process_ops[] = {
    {"fork", "fork", 6, op_fork},
    {"fork-many", "fork-many", 2, op_fork_many},
    {"fork-nested", "fork-nested", 1, op_fork_nested},
    {"orphan", "orphan", 2, op_orphan},
    {"fork-raw", "fork-raw", 2, op_fork_raw},
    {"clone", "clone", 2, op_clone},
    {"fork-other", "fork-other", 1, op_fork_other},
    {"exec", "exec", 3, op_exec},
    {"spawn-sum", "spawn", 3, op_spawn_sum},
    {"shell", "shell", 1, op_shell},
    {0},
};
