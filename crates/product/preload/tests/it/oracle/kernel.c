/* Words that the kernel writes by itself, pages that it refers to after a call, and changes of memory beside a fork. */
#include "oracle.h"
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <stddef.h>

static void say_ended(pid_t child) {
    int status = 0;
    if (child < 0) return;
    must(waitpid(child, &status, __WALL) == child, "a child is waited for");
    say(" ended %d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

/* Children whose numbers the kernel stores in pages that are out; they may share the descriptors. */
struct words {
    unsigned char before[2 * PAGE];
    int parent;
    unsigned char between[2 * PAGE];
    int child;
    unsigned char after[2 * PAGE];
};
static struct words *words;
static int words_flags, shared_file;
static int numbered(void *nothing) {
    become_child();
    if (words_flags & CLONE_CHILD_SETTID && words->child != (int)syscall(SYS_gettid)) _exit(98);
    check_some(6);
    struct range r;
    if (pick(&r, 60)) write_range(&r);
    check_some(6);
    if (words_flags & CLONE_FILES) close(shared_file);
    _exit(47);
}
static void op_clone_words(void) {
    static char stack[256 << 10];
    static const int some[] = {CLONE_PARENT_SETTID, CLONE_PIDFD, CLONE_CHILD_SETTID,
        CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID, 0};
    if (depth >= 3) return;
    int way = below(3), flags = some[below(6)] | (one_in(3) ? CLONE_FILES : 0) | (one_in(4) ? CLONE_FS : 0);
    words = malloc(sizeof *words);
    must(words != NULL, "memory for words");
    memset(words, 9, sizeof *words);
    words_flags = flags, shared_file = dup(0);
    churn(500);
    pid_t child = -1;
    struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD, .child_tid = (uintptr_t)&words->child};
    if (flags & CLONE_PIDFD) arguments.pidfd = (uintptr_t)&words->parent;
    if (flags & CLONE_PARENT_SETTID) arguments.parent_tid = (uintptr_t)&words->parent;
    if (way == 0)
        child = clone(numbered, stack + sizeof stack, flags | SIGCHLD, NULL, &words->parent, NULL, &words->child);
#if defined __x86_64__
    if (way == 1) child = syscall(SYS_clone, flags | SIGCHLD, 0, &words->parent, &words->child, 0);
#else
    if (way == 1) child = syscall(SYS_clone, flags | SIGCHLD, 0, &words->parent, 0, &words->child);
#endif
    if (way == 2) child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child == 0) numbered(NULL);
    say(" way %d flags %x %s", way, flags, outcome(child));
    struct range r;
    children++;
    if (pick(&r, 60)) write_range(&r);
    children--;
    if (flags & CLONE_PIDFD && child > 0)
        must(words->parent != 0x09090909 && close(words->parent) == 0, "a pidfd is stored");
    if (flags & CLONE_PARENT_SETTID && child > 0) must(words->parent == child, "the child's number is stored");
    if (flags & CLONE_CHILD_SETTID) must(words->child == 0x09090909, "the child's word is the child's");
    for (size_t i = 0; i < sizeof words->before; i++)
        must(words->before[i] == 9 && words->between[i] == 9 && words->after[i] == 9, "bytes beside words");
    say_ended(child);
    say_outcome("file", close(shared_file));
    free(words);
}

/* A page that a pipe refers to is changed before it is read. */
static void op_given(void) {
    int ends[2], n = between(1, 12);
    unsigned char *at = aligned_alloc(PAGE, n * PAGE);
    must(at && pipe(ends) == 0, "a pipe and memory");
    fill(at, n * PAGE, 11, 0);
    churn(200);
    struct iovec part = {at, n * PAGE};
    long given = one_in(2) ? vmsplice(ends[1], &part, 1, 0) : syscall(SYS_vmsplice, ends[1], &part, 1, 0);
    churn(300);
    fill(at, n * PAGE, 12, 0);
    churn(300);
    must(read(ends[0], scratch(), SCRATCH) == given, "a pipe has what it was given");
    say(" given %ld later %d", given, same(scratch(), given, 12, 0));
    close(ends[0]);
    close(ends[1]);
    free(at);
}

/* The kernel marks the words on a thread's robust list when the thread ends. */
struct entry {
    struct robust_list list;
    unsigned char between[PAGE];
    unsigned word;
    unsigned char after[PAGE];
};
struct robust {
    struct robust_list_head head;
    unsigned char between[PAGE];
    struct entry entry[3];
};
static void *own_list(void *argument) {
    struct robust *r = argument;
    unsigned me = syscall(SYS_gettid);
    r->head = (struct robust_list_head){{&r->entry[0].list}, offsetof(struct entry, word), NULL};
    for (int i = 0; i < 3; i++)
        r->entry[i].list.next = i < 2 ? &r->entry[i + 1].list : &r->head.list, r->entry[i].word = me;
    must(syscall(SYS_set_robust_list, &r->head, sizeof r->head) == 0, "a list of the thread's own");
    churn(500);
    if (one_in(2)) syscall(SYS_exit, 0);
    return NULL;
}
static void op_own_list(void) {
    struct robust *r = calloc(1, sizeof *r);
    pthread_t thread;
    must(r && pthread_create(&thread, NULL, own_list, r) == 0 && pthread_join(thread, NULL) == 0, "a thread");
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 100 && !(r->entry[i].word & FUTEX_OWNER_DIED); k++) usleep(1000);
        say(" died %d", !!(r->entry[i].word & FUTEX_OWNER_DIED));
    }
    free(r);
}

/* Words that a futex call writes. */
static void op_futex_writes(void) {
    unsigned char *at = calloc(8, PAGE);
    must(at != NULL, "memory");
    unsigned *lock = (unsigned *)(at + 2 * PAGE), *other = (unsigned *)(at + 6 * PAGE);
    for (int i = 0; i < 3; i++) {
        churn(400);
        say(" lock %s",
            outcome(syscall(SYS_futex, lock, one_in(2) ? FUTEX_LOCK_PI : FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0)));
        churn(400);
        say(" unlock %s", outcome(syscall(SYS_futex, lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0)));
        churn(400);
        say(" op %s",
            outcome(
                syscall(SYS_futex, lock, FUTEX_WAKE_OP, 1, 1L, other, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0))));
        churn(400);
        say(" requeue %s", outcome(syscall(SYS_futex, at, FUTEX_CMP_REQUEUE_PI, 1, 1L, lock, 0)));
        say(" words %u %u", *lock, *other);
    }
    free(at);
}

/* Rights that a thread changes while another one forks: the child has one or the other, and so has what it maps. */
static unsigned char *changing;
static volatile int over;
static void *change(void *nothing) {
    for (int i = 0; !over; i++)
        must(mprotect(changing, 16 * PAGE, i & 1 ? RW : PROT_READ) == 0, "mprotect beside a fork");
    return NULL;
}
static void op_change_forks(void) {
    if (depth >= 3) return;
    pthread_t thread;
    sigset_t all, old;
    changing = mmap(NULL, 16 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), over = 0;
    must(changing != MAP_FAILED, "memory");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    must(pthread_create(&thread, NULL, change, NULL) == 0, "a thread");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    int differ = 0;
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        if (child == 0) {
            become_child();
            int before = probe_write(changing);
            unsigned char *more = mremap(changing, 16 * PAGE, 4096 * PAGE, MREMAP_MAYMOVE);
            must(more != MAP_FAILED, "memory that grows");
            _exit((before == 0) != (probe_write(more + 3000 * PAGE) == 0));
        }
        int status = 0;
        must(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "a child beside a change");
        differ += WEXITSTATUS(status);
    }
    over = 1;
    must(pthread_join(thread, NULL) == 0 && munmap(changing, 16 * PAGE) == 0, "the thread ends");
    say(" %d differ", differ);
}

const struct op kernel_ops[] = {
    {"clone-words", "clone-words", 3, op_clone_words},
    {"given", "given", 2, op_given},
    {"own-list", "own-list", 1, op_own_list},
    {"futex-writes", "futex-writes", 2, op_futex_writes},
    {"change-forks", "change-forks", 1, op_change_forks},
    {0},
};
