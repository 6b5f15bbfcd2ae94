/* The mappings, and the expected value of every byte. */
#include "oracle.h"

struct slab slabs[SLABS];
unsigned pages_all, locked_pages;
int children;
static uint32_t versions;

uint32_t next_version(void) { return ++versions + 1000000u * (depth + 1); }

struct slab *free_slab(void) {
    for (int i = 0; i < SLABS; i++)
        if (!slabs[i].n) return &slabs[i];
    return NULL;
}
struct slab *new_slab(void *at, unsigned n, int prot, int kind) {
    struct slab *s = free_slab();
    must(s != NULL && n <= SLAB_PAGES, "the oracle has a slab");
    s->at = at, s->n = n, s->whole = 1;
    for (unsigned i = 0; i < n; i++) s->page[i] = (struct page){.prot = prot, .kind = kind};
    pages_all += n;
    return s;
}
static struct slab *copy_part(struct slab *s, unsigned first, unsigned n) {
    struct slab *t = new_slab(s->at + (size_t)first * PAGE, n, 0, 0);
    memcpy(t->page, s->page + first, n * sizeof *s->page);
    t->whole = 0;
    return t;
}
void forget(struct slab *s, unsigned first, unsigned n) {
    unsigned after = s->n - first - n;
    if (after && first) copy_part(s, first + n, after);
    pages_all -= first ? n + after : n;
    if (first) {
        s->n = first;
    } else {
        memmove(s->page, s->page + n, after * sizeof *s->page);
        s->at += (size_t)n * PAGE;
        s->n = after;
    }
    s->whole = 0;
}
int pick(struct range *r, unsigned most) {
    for (int tries = 0; tries < 20; tries++) {
        struct slab *s = &slabs[below(SLABS)];
        if (!s->n) continue;
        r->slab = s;
        r->first = below(s->n);
        unsigned left = s->n - r->first;
        r->n = between(1, left < most ? left : most);
        if (one_in(6) && s->n <= most) r->first = 0, r->n = s->n;
        return 1;
    }
    return 0;
}
int pick_with(struct range *r, unsigned most, int prot) {
    for (int tries = 0; tries < 12; tries++) {
        if (!pick(r, most)) return 0;
        unsigned i = 0;
        while (i < r->n && (page(r, i)->prot & prot) == prot) i++;
        if (i == 0) continue;
        r->n = i;
        return 1;
    }
    return 0;
}
unsigned char *start(const struct range *r) { return r->slab->at + (size_t)r->first * PAGE; }
size_t length(const struct range *r) { return (size_t)r->n * PAGE; }
struct page *page(const struct range *r, unsigned i) { return &r->slab->page[r->first + i]; }
int is_rw(const struct page *p) { return (p->prot & RW) == RW; }

void write_page(struct slab *s, unsigned i) {
    if (s->page[i].kind == SHARED && children) return;
    s->page[i].version = next_version();
    if (s->page[i].kind == SHARED) s->page[i].original = s->page[i].version;
    fill(s->at + (size_t)i * PAGE, PAGE, s->page[i].version, 0);
}
void write_range(const struct range *r) {
    for (unsigned i = 0; i < r->n; i++)
        if (is_rw(page(r, i))) write_page(r->slab, r->first + i);
}
void check_page(struct slab *s, unsigned i) {
    unsigned char *at = s->at + (size_t)i * PAGE;
    struct page *p = &s->page[i];
    if (!(p->prot & PROT_READ) || same(at, PAGE, p->version, 0)) return;
    unsigned first = 0;
    while (same(at + first, 1, p->version, first)) first++;
    uint64_t found, wanted;
    memcpy(&found, at + first / 8 * 8, 8);
    fill(&wanted, 8, p->version, first / 8 * 8);
    wrong("slab %d page %u of %u, kind %d, rights %d, from byte %u: %016llx, not %016llx (version %u)%s",
        (int)(s - slabs), i, s->n, p->kind, p->prot, first, (unsigned long long)found, (unsigned long long)wanted,
        p->version, same(at, PAGE, 0, 0) ? ", the page is zeros" : "");
}
void check_range(const struct range *r) {
    for (unsigned i = 0; i < r->n; i++) check_page(r->slab, r->first + i);
}
void check_some(unsigned n) {
    for (struct range r; n; n--)
        if (pick(&r, 8)) check_range(&r);
}
void check_all(void) {
    for (int s = 0; s < SLABS; s++)
        for (unsigned i = 0; i < slabs[s].n; i++) check_page(&slabs[s], i);
}
void expect(const struct range *r, unsigned char *to) {
    for (unsigned i = 0; i < r->n; i++) fill(to + (size_t)i * PAGE, PAGE, page(r, i)->version, 0);
}
void churn(unsigned n) {
    volatile unsigned char sink;
    struct range r;
    while (n && pick(&r, 64)) {
        for (unsigned i = 0; i < r.n && n; i++, n--) {
            if (page(&r, i)->prot & PROT_READ) sink = start(&r)[(size_t)i * PAGE];
        }
        if (one_in(8)) break;
    }
    (void)sink;
}
/* After a fork: a slab with shared pages, or with pages that the child does not have, is left to the parent. Its first
 * shared page is checked before. */
void model_in_child(void) {
    locked_pages = 0;
    for (struct slab *s = slabs; s < slabs + SLABS; s++) {
        int leave = 0;
        for (unsigned i = 0; i < s->n; i++) {
            struct page *p = &s->page[i];
            if (p->wiped_in_child) p->version = p->original = 0; /* the advice stays, for the child's own children */
            if (p->kind == SHARED && !p->not_in_child && !leave) check_page(s, i);
            if (p->not_in_child || p->kind == SHARED) leave = 1;
        }
        if (leave) pages_all -= s->n, s->n = 0;
    }
}
