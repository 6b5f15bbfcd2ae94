/* The oracle: a program that does random but legal things with memory, processes, threads, signals and files. It prints
 * only what must be equal plain and paged: the operation, success or errno, and the results. It knows what every byte of
 * its memory must be (a function of a number stored for each page), so it finds a wrong byte without a second run. Errors,
 * signals and exit codes are checked by comparing two runs.
 *
 * Its own tables are static variables, which are not managed, so a wrong byte in managed memory cannot change them.
 * Addresses, process numbers and times are never printed. Where the kernel may choose (an address, or whether a mapping
 * can grow in place), the program continues in the same way with either answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };
enum { RW = PROT_READ | PROT_WRITE };

/* chance.c: the same seed gives the same random numbers; each step has its own seed. */
void seed(uint64_t value);
uint64_t chance(void);
unsigned below(unsigned limit);          /* 0 to limit - 1 */
unsigned between(unsigned least, unsigned most);
int one_in(unsigned n);
uint64_t mix(uint64_t a, uint64_t b);

/* say.c: the line of a step. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_outcome(const char *what, long result); /* "what ok" or "what ENOMEM" */
const char *outcome(long result);                /* of a call that gives -1 and errno */
const char *name_of(int error);
void end_line(void);
void fresh_line(void); /* in a forked child: drops the parent's unfinished line */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn)); /* a wrong byte: ends the process */
void must(int good, const char *what);                                                /* a condition that holds in every legal program */

/* bytes.c: a stream of bytes for each number; number 0 is all zeros. */
void fill(void *at, size_t len, uint64_t number, size_t from);
int same(const void *at, size_t len, uint64_t number, size_t from);
uint64_t checksum(const void *at, size_t len);

/* model.c: mappings with known contents in every page. */
enum kind { PRIVATE, FILED, SHARED };
struct page {
    uint32_t version;  /* the number of its bytes */
    uint32_t original; /* what MADV_DONTNEED brings back */
    uint8_t prot, kind, not_in_child, wiped_in_child;
};
enum { SLABS = 40, SLAB_PAGES = 640, PAGES_MAX = 6000 };
struct slab {
    unsigned char *at;
    unsigned n;    /* pages; 0: not there */
    int whole;     /* one mapping to the kernel: nothing has split it */
    struct page page[SLAB_PAGES];
};
struct range {
    struct slab *slab;
    unsigned first, n;
};
extern struct slab slabs[SLABS];
extern unsigned pages_all, locked_pages;
extern int children; /* living children, which share the shared memory: meanwhile it is only read */
struct slab *new_slab(void *at, unsigned n, int prot, int kind);
struct slab *free_slab(void);
void forget(struct slab *s, unsigned first, unsigned n); /* the pages are gone: the slab is cut */
int pick(struct range *r, unsigned most);                /* any part of any slab */
int pick_with(struct range *r, unsigned most, int prot); /* the same, with these rights on every page; 0: found none */
int is_rw(const struct page *p);
unsigned char *start(const struct range *r);
size_t length(const struct range *r);
struct page *page(const struct range *r, unsigned i);
void write_page(struct slab *s, unsigned i);
void write_range(const struct range *r);
void check_page(struct slab *s, unsigned i);
void check_range(const struct range *r);
void check_some(unsigned n);
void check_all(void);
void expect(const struct range *r, unsigned char *to); /* the bytes that it must have */
void churn(unsigned n);                                /* touches other pages, so the last touched ones leave RAM */
uint32_t next_version(void);
void model_in_child(void);

/* probe.c: signals for forbidden access. 0, or `signal * 100 + si_code`. */
int probe_read(const void *at);
int probe_write(void *at);
const char *probed(int result);
const char *probed_free(int result);
void catch_faults(void);

/* self.c */
void say_self(void);

/* child.c */
void say_child(int way); /* starts this program to say what it is */
int child_ways(void);
int who(void);

/* process.c: what a child does whose fork the C library's handlers did not see */
void raw_child(unsigned look) __attribute__((noreturn));

/* bare.c: a system call without the C library; -1 and errno */
long bare(long number, long a, long b, long c, long d, long e, long f);

/* main.c */
struct op {
    const char *name, *class;
    unsigned weight;
    void (*run)(void);
};
extern const struct op map_ops[], heap_ops[], io_ops[], ring_ops[], process_ops[], thread_ops[], signal_ops[], stack_ops[], limit_ops[],
    storm_ops[], narrow_ops[], bare_ops[], child_ops[], kernel_ops[];
extern int depth;          /* forks between the first process and this one */
extern const char *myself; /* path of this program */
extern const char *without;
void steps(uint64_t number, unsigned n);
void become_child(void); /* after a fork, in the child */
void workers_forget(void);
void workers_end(void);
unsigned workers_now(void); /* threads in the background */
int special(int count, char **words); /* the work of this program when a step has executed it */
unsigned char *scratch(void); /* plain memory, 1 MiB */
enum { SCRATCH = 1 << 20 };
