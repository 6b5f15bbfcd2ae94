/* Mappings: made, replaced, cut, moved, protected, advised, locked. */
#include "oracle.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

/* A file of this many pages with known bytes: page i has the number `first + i`. Only its mappings keep the file. */
static int file_of(unsigned pages, uint32_t *first) {
    char name[] = "oracle.file.XXXXXX";
    int file = one_in(2) ? memfd_create("oracle", MFD_CLOEXEC) : mkostemp(name, O_CLOEXEC);
    must(file >= 0, "a file");
    unlink(name);
    *first = next_version();
    for (unsigned i = 1; i < pages; i++) next_version();
    for (unsigned i = 0; i < pages; i++) {
        fill(scratch(), PAGE, *first + i, 0);
        must(pwrite(file, scratch(), PAGE, (off_t)i * PAGE) == PAGE, "writing the file");
    }
    return file;
}
static void bytes_of_file(struct slab *s, unsigned at, unsigned n, uint32_t first) {
    for (unsigned i = 0; i < n; i++) s->page[at + i].version = s->page[at + i].original = first + i;
}
static int some_rights(void) {
    static const int rights[] = {RW, RW, RW, RW, PROT_READ, PROT_NONE, RW | PROT_EXEC};
    return rights[below(7)];
}

enum source { ANONYMOUS, FILE_PRIVATE, FILE_SHARED, ANONYMOUS_SHARED };

/* A mapping of n pages, at an address that the kernel chooses, or over the mapping at `at`. */
static unsigned char *map(unsigned char *at, unsigned n, int prot, enum source source, int more, uint32_t *first) {
    int flags = more | (source == FILE_SHARED || source == ANONYMOUS_SHARED ? MAP_SHARED : MAP_PRIVATE);
    int file = -1;
    if (source == ANONYMOUS || source == ANONYMOUS_SHARED) {
        flags |= MAP_ANONYMOUS;
    } else {
        file = file_of(n, first);
    }
    size_t len = (size_t)n * PAGE - (one_in(3) ? below(PAGE) : 0); /* rounded up to pages by the kernel */
    void *got = mmap(at, len, prot, flags, file, 0);
    int error = errno;
    if (file >= 0) close(file);
    errno = error;
    return got;
}
static const char *const source_names[] = {"anon", "file", "file-shared", "anon-shared"};
static enum source some_source(void) { return one_in(2) ? ANONYMOUS : below(4); }
static int kind_of(enum source source) {
    return source == ANONYMOUS ? PRIVATE : source == FILE_PRIVATE ? FILED : SHARED;
}

static void op_map(void) {
    unsigned n = one_in(4) ? between(100, 500) : between(1, 100);
    if (!free_slab() || pages_all + n > PAGES_MAX) {
        say(" full");
        return;
    }
    enum source source = one_in(3) ? some_source() : ANONYMOUS;
    int prot = some_rights(), more = 0;
    if (one_in(4)) more |= MAP_NORESERVE;
    if (one_in(6)) more |= MAP_POPULATE;
    unsigned char *hint = NULL;
    if (one_in(3)) { /* only a hint: the answer is not compared */
        hint = (unsigned char *)(one_in(2) ? 0x300000000 + (uintptr_t)below(1 << 20) * PAGE
                                           : 0x7e0000000000 + (uintptr_t)below(1 << 20) * PAGE);
    }
    uint32_t first = 0;
    unsigned char *at = map(hint, n, prot, source, more, &first);
    say(" %s %u rights %d", source_names[source], n, prot);
    say_outcome("", (long)at);
    if (at == MAP_FAILED) return;
    must((uintptr_t)at % PAGE == 0, "a mapping starts at a page");
    for (struct slab *s = slabs; s < slabs + SLABS; s++)
        must(!s->n || at + (size_t)n * PAGE <= s->at || s->at + (size_t)s->n * PAGE <= at,
            "a new mapping meets no other");
    struct slab *s = new_slab(at, n, prot, kind_of(source));
    if (first) bytes_of_file(s, 0, n, first);
    struct range all = {s, 0, n};
    check_range(&all);
    if (one_in(4)) all.n = between(1, n);
    write_range(&all);
}

/* Over a part of an existing mapping. */
static void op_fixed(void) {
    struct range r;
    if (!pick(&r, 120)) return;
    enum source source = some_source();
    int prot = some_rights();
    uint32_t first = 0;
    unsigned char *at = map(start(&r), r.n, prot, source, MAP_FIXED | (one_in(3) ? MAP_NORESERVE : 0), &first);
    say(" %s %u rights %d", source_names[source], r.n, prot);
    say_outcome("", (long)at);
    if (at == MAP_FAILED) return;
    must(at == start(&r), "MAP_FIXED is obeyed");
    r.slab->whole = 0;
    for (unsigned i = 0; i < r.n; i++) *page(&r, i) = (struct page){.prot = prot, .kind = kind_of(source)};
    if (first) bytes_of_file(r.slab, r.first, r.n, first);
    check_range(&r);
    if (one_in(2)) write_range(&r);
}

static void op_refused(void) {
    struct range r;
    if (!pick(&r, 30)) return;
    unsigned char *at = start(&r);
    size_t len = length(&r);
    say_outcome("noreplace", (long)mmap(at, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    say_outcome("odd", (long)mmap(at + 1, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    say_outcome("empty", (long)mmap(at, 0, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    say_outcome("empty anywhere", (long)mmap(NULL, 0, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    say_outcome("typeless", (long)mmap(NULL, 1 << 20, RW, MAP_ANONYMOUS, -1, 0));
    say_outcome("fileless", (long)mmap(NULL, 1 << 20, RW, MAP_PRIVATE, -1, 0));
    say_outcome("too long", (long)mmap(NULL, (size_t)1 << 60, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    say_outcome("protect odd", mprotect(at + 8, len, RW));
    say_outcome("protect wrapped", mprotect(at, -(size_t)PAGE, RW));
    say_outcome("unmap odd", munmap(at + 8, len));
    say_outcome("unmap empty", munmap(at, 0));
    say_outcome("advise odd", madvise(at + 8, len, MADV_DONTNEED));
    say_outcome("advise unknown", madvise(at, len, 9999));
    say_outcome("remap odd", (long)mremap(at + 8, len, len, 0));
    say_outcome("remap to nothing", (long)mremap(at, len, 0, MREMAP_MAYMOVE));
    say_outcome("remap unknown", (long)mremap(at, len, len, 64));
    say_outcome("sync odd", msync(at + 8, len, MS_SYNC));
    check_range(&r);
}

/* Unmaps a part, checks the hole, and fills it or leaves it. No other code maps memory meanwhile. */
static void op_unmap(void) {
    struct range r;
    if (!pick(&r, 200)) return;
    unsigned char *at = start(&r);
    size_t len = length(&r);
    if (r.first && r.first + r.n < r.slab->n && !free_slab()) return;
    say_outcome("unmap", munmap(at, len - (one_in(3) ? below(PAGE) : 0)));
    say(" touch %s", probed_free(probe_read(at + below(len))));
    say(" write %s", probed_free(probe_write(at + len - 1)));
    if (one_in(2)) say_outcome("again", munmap(at, len));
    if (one_in(4)) {
        unsigned char resident[SLAB_PAGES];
        say_outcome("mincore", mincore(at, len, resident));
        say_outcome("protect", mprotect(at, len, RW));
        say_outcome("advise", madvise(at, len, MADV_DONTNEED));
        say_outcome("willneed", madvise(at, len, MADV_WILLNEED));
        say_outcome("lock", mlock(at, len));
        say_outcome("sync", msync(at, len, MS_SYNC));
        int ends[2];
        must(pipe(ends) == 0, "a pipe");
        say_outcome("write from it", write(ends[1], at, 1));
        close(ends[0]);
        close(ends[1]);
        int file = open("/dev/zero", O_RDONLY);
        say_outcome("read into it", read(file, at, len));
        close(file);
    }
    struct slab *s = r.slab;
    switch (below(4)) {
    case 0: { /* the rest goes too, over the hole */
        say_outcome("whole", munmap(s->at, (size_t)s->n * PAGE));
        say(" touch %s", probed_free(probe_read(s->at)));
        forget(s, 0, s->n);
        return;
    }
    case 1: { /* filled again */
        int prot = some_rights();
        void *got =
            mmap(at, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | (one_in(2) ? MAP_FIXED : MAP_FIXED_NOREPLACE), -1, 0);
        say_outcome("fill", (long)got);
        must(got == at, "the hole is filled where it is");
        for (unsigned i = 0; i < r.n; i++) *page(&r, i) = (struct page){.prot = prot, .kind = PRIVATE};
        s->whole = 0;
        check_range(&r);
        write_range(&r);
        return;
    }
    default:
        forget(s, r.first, r.n);
    }
}

static struct slab *whole_slab(void) {
    for (int tries = 0; tries < 30; tries++) {
        struct slab *s = &slabs[below(SLABS)];
        if (s->n && s->whole && s->page[0].kind == PRIVATE) return s;
    }
    return NULL;
}
/* A length may change in place or by moving; both are right. */
static void op_remap(void) {
    struct slab *s = whole_slab();
    if (!s) return;
    unsigned old = s->n, n = one_in(3) ? old : one_in(2) ? between(1, old) : old + between(1, 200);
    if (n > SLAB_PAGES || pages_all + n > PAGES_MAX + old) n = old;
    int prot = s->page[0].prot;
    void *was = s->at,
         *got = mremap(s->at, (size_t)old * PAGE, (size_t)n * PAGE, n > old || one_in(2) ? MREMAP_MAYMOVE : 0);
    say(" %u to %u", old, n);
    say_outcome("", (long)got);
    if (got == MAP_FAILED) return;
    if (got != was) say("%s", probe_read(was) / 100 == SIGSEGV ? "" : " the old place is still there");
    s->at = got, s->n = n, pages_all += n - old;
    for (unsigned i = old; i < n; i++) s->page[i] = (struct page){.prot = prot, .kind = PRIVATE};
    struct range all = {s, 0, n};
    check_range(&all);
    if (one_in(2)) write_range(&all);
}
/* To a given address: a free one, or over a part of another mapping. */
static void op_remap_fixed(void) {
    struct slab *s = whole_slab();
    if (!s) return;
    unsigned n = s->n;
    size_t len = (size_t)n * PAGE;
    unsigned char *to = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(to != MAP_FAILED, "a reservation");
    int keep = one_in(3);
    void *got = mremap(s->at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | (keep ? MREMAP_DONTUNMAP : 0), to);
    say("%s %u", keep ? " keep" : "", n);
    say_outcome("", (long)got);
    say_outcome("odd", (long)mremap(to, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to + 1));
    say_outcome("upon itself", (long)mremap(to, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to));
    if (got == MAP_FAILED) {
        munmap(to, len);
        return;
    }
    must(got == to, "MREMAP_FIXED is obeyed");
    if (keep) { /* the old place is still mapped, and empty */
        int prot = s->page[0].prot;
        must(!(prot & PROT_READ) || same(s->at, len, 0, 0), "what MREMAP_DONTUNMAP leaves is empty");
        munmap(s->at, len);
    } else {
        say(" touch %s", probed_free(probe_read(s->at)));
    }
    s->at = to;
    struct range all = {s, 0, n};
    check_range(&all);
    write_range(&all);
}

static void op_protect(void) {
    static const int rights[] = {PROT_NONE, PROT_READ, RW, RW, RW, RW | PROT_EXEC};
    struct range r;
    if (!pick(&r, 120)) return;
    int prot = rights[below(6)];
    say(" %u rights %d", r.n, prot);
    long result = mprotect(start(&r), length(&r) - (one_in(3) ? below(PAGE) : 0), prot);
    say_outcome("", result);
    if (result) return;
    r.slab->whole = 0;
    for (unsigned i = 0; i < r.n; i++) page(&r, i)->prot = prot;
    unsigned char *some = start(&r) + below(length(&r));
    say(" read %s", probed(probe_read(some)));
    say(" write %s", probed(probe_write(some)));
    check_range(&r);
    if (one_in(2)) write_range(&r);
}

static void op_touch(void) {
    struct range r;
    unsigned ranges = between(1, 4);
    for (unsigned i = 0; i < ranges && pick(&r, 100); i++) {
        if (one_in(3)) check_range(&r);
        write_range(&r);
    }
    check_some(4);
    say(" %u", ranges);
}
/* Sums over all readable memory: at the end, and sometimes in between. */
static void op_look(void) {
    check_all();
    say(" slabs all right");
}

static void zero_or_original(struct range *r) {
    for (unsigned i = 0; i < r->n; i++)
        page(r, i)->version = page(r, i)->kind == PRIVATE ? 0 : page(r, i)->original;
}
/* Advice that affects only time. */
static void op_advise(void) {
    static const int advice[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_WILLNEED, MADV_DONTDUMP,
        MADV_DODUMP, MADV_DOFORK, MADV_COLD, MADV_PAGEOUT, MADV_NOHUGEPAGE};
    struct range r;
    if (!pick(&r, 120)) return;
    int which = advice[below(11)];
    r.slab->whole = 0;
    say(" advice %d %u", which, r.n);
    int special = 0;
    for (unsigned i = 0; i < r.n; i++) {
        if (which == MADV_DOFORK) page(&r, i)->not_in_child = 0;
        if (page(&r, i)->kind == SHARED) special = 1;
    }
    long result = madvise(start(&r), length(&r), which);
    if (which == MADV_COLD || which == MADV_PAGEOUT) {
        if (locked_pages) result = 0; /* EINVAL for locked pages */
    }
    if (!special) say_outcome("", result);
    check_range(&r);
}
/* Advice that changes bytes. */
static void op_discard(void) {
    struct range r;
    if (!pick(&r, 200)) return;
    unsigned lock = 0;
    for (unsigned i = 0; i < r.n; i++) lock |= page(&r, i)->kind; /* only DONTNEED for shared and file pages */
    enum { DONTNEED_LOCKED = 24 };
    int which = locked_pages ? DONTNEED_LOCKED
        : lock || one_in(2)  ? MADV_DONTNEED
        : one_in(2)          ? MADV_FREE
                             : DONTNEED_LOCKED;
    say(" advice %d %u", which, r.n);
    long result = madvise(start(&r), length(&r), which);
    say_outcome("", result);
    if (result) return;
    if (which == MADV_FREE) { /* the old bytes or zeros, until it is written to */
        for (unsigned i = 0; i < r.n; i++) {
            struct page *p = page(&r, i);
            unsigned char *at = start(&r) + (size_t)i * PAGE;
            if (!(p->prot & PROT_READ)) {
                must(mprotect(at, PAGE, p->prot = RW) == 0, "mprotect");
                r.slab->whole = 0;
            }
            must(same(at, PAGE, 0, 0) || same(at, PAGE, p->version, 0), "after MADV_FREE: old bytes or zeros");
            if (!is_rw(p)) {
                must(mprotect(at, PAGE, p->prot = RW) == 0, "mprotect");
                r.slab->whole = 0;
            }
            write_page(r.slab, r.first + i);
        }
        return;
    }
    zero_or_original(&r);
    check_range(&r);
    if (one_in(2)) write_range(&r);
}
static void op_populate(void) {
    struct range r;
    int writes = one_in(2);
    if (!pick_with(&r, 120, writes ? RW : PROT_READ)) return;
    say(" %s %u", writes ? "write" : "read", r.n);
    say_outcome("", madvise(start(&r), length(&r), writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ));
    check_range(&r);
}
/* Advice about children; the children check it. */
static void op_advise_fork(void) {
    struct range r;
    if (!pick(&r, 40)) return;
    for (unsigned i = 0; i < r.n; i++)
        if (page(&r, i)->kind != PRIVATE) r.n = i;
    if (!r.n) return;
    static const int advice[] = {MADV_DONTFORK, MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_DOFORK};
    int which = advice[below(4)];
    long result = madvise(start(&r), length(&r), which);
    say(" advice %d %u", which, r.n);
    say_outcome("", result);
    if (result) return;
    r.slab->whole = 0;
    for (unsigned i = 0; i < r.n; i++) {
        struct page *p = page(&r, i);
        if (which == MADV_DONTFORK || which == MADV_DOFORK) p->not_in_child = which == MADV_DONTFORK;
        if (which == MADV_WIPEONFORK || which == MADV_KEEPONFORK) p->wiped_in_child = which == MADV_WIPEONFORK;
    }
    check_range(&r);
}
/* Advice that a kernel may not know: EINVAL is allowed, but after success the advice must hold. */
static void op_advise_new(void) {
    struct range r;
    if (!pick(&r, 60)) return;
    for (unsigned i = 0; i < r.n; i++)
        if (page(&r, i)->kind != PRIVATE) r.n = i;
    if (!r.n || locked_pages) return;
    static const int advice[] = {
        MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_HUGEPAGE, 25 /* MADV_COLLAPSE */, MADV_GUARD_INSTALL};
    int which = advice[below(5)];
    say(" advice %d", which);
    long result = madvise(start(&r), length(&r), which);
    r.slab->whole = 0;
    if (which == MADV_GUARD_INSTALL && result == 0) {
        must(probe_read(start(&r)) != 0, "a guard page is not read");
        must(madvise(start(&r), length(&r), MADV_GUARD_REMOVE) == 0, "guards can be removed");
        zero_or_original(&r);
    }
    check_range(&r);
    write_range(&r);
}

static void op_lock(void) {
    struct range r;
    if (!pick_with(&r, 6, PROT_READ)) return;
    if (locked_pages + r.n > 12) {
        say(" enough");
        return;
    }
    unsigned char *at = start(&r);
    size_t odd = one_in(2) ? below(PAGE) : 0;
    int two = one_in(2);
    long result =
        two ? mlock2(at + odd, length(&r) - odd, one_in(2) ? MLOCK_ONFAULT : 0) : mlock(at + odd, length(&r) - odd);
    say(" %u", r.n);
    say_outcome(two ? "mlock2" : "mlock", result);
    r.slab->whole = 0;
    write_range(&r);
    churn(400);
    check_range(&r);
    if (one_in(2)) say_outcome("twice", mlock(at, length(&r)));
    say_outcome("unlock", munlock(at + odd, length(&r) - odd));
    check_range(&r);
}
static void op_lock_refused(void) {
    struct range r;
    if (!pick(&r, 10)) return;
    say_outcome("mlock2 flag", mlock2(start(&r), PAGE, 64));
    say_outcome("unlock what is not locked", munlock(start(&r), length(&r)));
    unsigned char resident[16];
    say_outcome("mincore", mincore(start(&r), length(&r), resident));
    say_outcome("mincore odd", mincore(start(&r) + 1, length(&r), resident));
    say_outcome("sync", msync(start(&r), length(&r), MS_ASYNC));
}

/* A large reservation, of which parts are opened, as language runtimes do. */
static void op_reserve(void) {
    size_t len = (size_t)1 << between(24, 37);
    unsigned char *at = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    say(" 2^%d", __builtin_ctzl(len));
    say_outcome("", (long)at);
    if (at == MAP_FAILED) return;
    uint32_t number = next_version();
    unsigned opened = between(1, 6);
    size_t places[6];
    for (unsigned i = 0; i < opened; i++) {
        size_t part = len / 8 * i + (size_t)below(64) * PAGE, n = between(1, 40) * PAGE;
        places[i] = part;
        say(" closed %s", probed(probe_read(at + part)));
        if (one_in(2)) {
            must(mprotect(at + part, n, RW) == 0, "a part is opened");
        } else {
            must(mmap(at + part, n, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + part,
                "a part is mapped");
        }
        must(same(at + part, n, 0, 0), "a part that is opened is empty");
        fill(at + part, PAGE, number + i, 0);
    }
    churn(300);
    for (unsigned i = 0; i < opened; i++) must(same(at + places[i], PAGE, number + i, 0), "a reservation's bytes stay");
    if (one_in(2)) { /* released and opened again: empty */
        must(madvise(at + places[0], PAGE, MADV_DONTNEED) == 0 && mprotect(at + places[0], PAGE, PROT_NONE) == 0,
            "a part is closed");
        say(" shut %s", probed(probe_read(at + places[0])));
        must(mprotect(at + places[0], PAGE, RW) == 0 && same(at + places[0], PAGE, 0, 0),
            "it is empty when it is opened again");
    }
    /* Trimmed to an alignment; then the rest is unmapped, including parts that are already unmapped. */
    must(munmap(at, len / 8) == 0, "the front is cut off");
    say(" front %s", probed_free(probe_read(at)));
    say_outcome("unmap", munmap(at, len));
}

const struct op map_ops[] = {
    {"map", "map", 14, op_map},
    {"touch", "touch", 14, op_touch},
    {"look", "touch", 1, op_look},
    {"fixed", "fixed", 6, op_fixed},
    {"refused", "refused", 2, op_refused},
    {"unmap", "unmap", 8, op_unmap},
    {"remap", "remap", 6, op_remap},
    {"remap-fixed", "remap-fixed", 3, op_remap_fixed},
    {"protect", "protect", 8, op_protect},
    {"advise", "advise", 5, op_advise},
    {"discard", "discard", 6, op_discard},
    {"populate", "populate", 2, op_populate},
    {"advise-fork", "advise-fork", 2, op_advise_fork},
    {"advise-new", "advise-new", 2, op_advise_new},
    {"lock", "lock", 4, op_lock},
    {"lock-refused", "lock", 1, op_lock_refused},
    {"reserve", "reserve", 3, op_reserve},
    {0},
};
