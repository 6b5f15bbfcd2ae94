/* The heap: blocks of every size, resized, aligned, and blocks that the C library allocates for the program. */
#include "oracle.h"
#include <malloc.h>

enum { BLOCKS = 400, HEAP_MAX = 8 << 20 };
static struct block {
    unsigned char *at;
    size_t len;
    uint64_t number;
} blocks[BLOCKS];
static size_t heap_all;

static size_t some_size(void) {
    switch (below(6)) {
    case 0: return between(1, 64);
    case 1: return between(1, 1000);
    case 2: return between(1, 20000);
    case 3: return between(1, 300000);
    case 4: return (size_t)1 << between(3, 18);
    default: return between(1, 4000);
    }
}
static struct block *block_like(int wanted) {
    for (int tries = 0; tries < 40; tries++) {
        struct block *b = &blocks[below(BLOCKS)];
        if ((b->at != NULL) == wanted) return b;
    }
    return NULL;
}
static void check_block(const struct block *b) {
    if (!same(b->at, b->len, b->number, 0)) wrong("a block of %zu bytes changed", b->len);
}
static void keep(struct block *b, void *at, size_t len) {
    must(at != NULL, "the heap has memory");
    must((uintptr_t)at % (len >= 16 ? 16 : 8) == 0, "a block is aligned");
    must(malloc_usable_size(at) >= len, "a block is as long as it was asked for");
    b->at = at, b->len = len, b->number = next_version();
    heap_all += len;
    fill(at, len, b->number, 0);
}
static void drop(struct block *b) {
    check_block(b);
    free(b->at);
    heap_all -= b->len;
    b->at = NULL;
}
static void allocate(void) {
    struct block *b = block_like(0);
    size_t len = some_size();
    if (!b || heap_all + len > HEAP_MAX) return;
    size_t align = (size_t)1 << between(3, 16);
    void *at = NULL;
    switch (below(7)) {
    case 0:
        at = calloc(1, len);
        must(at && same(at, len, 0, 0), "calloc gives zeros");
        break;
    case 1:
        must(posix_memalign(&at, align, len) == 0 && (uintptr_t)at % align == 0, "posix_memalign aligns");
        break;
    case 2:
        at = memalign(align, len);
        must((uintptr_t)at % align == 0, "memalign aligns");
        break;
    case 3:
        at = aligned_alloc(align, len = (len + align - 1) / align * align);
        must((uintptr_t)at % align == 0, "aligned_alloc aligns");
        break;
    default: at = malloc(len);
    }
    keep(b, at, len);
}
static void resize(void) {
    struct block *b = block_like(1);
    if (!b) return;
    size_t len = some_size(), both = len < b->len ? len : b->len;
    if (heap_all + len > HEAP_MAX) return;
    unsigned char *at = one_in(4) ? reallocarray(b->at, 1, len) : realloc(b->at, len);
    must(at && same(at, both, b->number, 0), "realloc keeps the bytes");
    heap_all -= b->len;
    keep(b, at, len);
}
static void op_heap(void) {
    unsigned n = between(1, 60);
    for (unsigned i = 0; i < n; i++) {
        struct block *b;
        switch (below(5)) {
        case 0:
            if ((b = block_like(1))) drop(b);
            break;
        case 1: resize(); break;
        case 2:
            if ((b = block_like(1))) check_block(b);
            break;
        default: allocate();
        }
    }
    say(" %u", n);
}
static void op_heap_refused(void) {
    void *none = NULL;
    errno = 0;
    say(" huge %s", malloc(PTRDIFF_MAX) ? "given" : name_of(errno));
    errno = 0;
    say(" overflow %s", calloc(SIZE_MAX / 2, 4) ? "given" : name_of(errno));
    errno = 0;
    say(" array %s", reallocarray(NULL, SIZE_MAX / 2, 4) ? "given" : name_of(errno));
    say(" memalign %s", name_of(posix_memalign(&none, 3, 8)));
    void *empty = malloc(0);
    must(empty != NULL, "malloc(0) gives an address");
    free(empty);
    free(NULL);
    errno = EDOM;
    free(malloc(100));
    say(" errno %s", name_of(errno));
    malloc_trim(0);
}
/* The program frees blocks that the C library has allocated. */
static void op_heap_library(void) {
    char *copy = strdup("a string"), *printed = NULL, *text = NULL;
    size_t len = 0;
    must(copy && asprintf(&printed, "%s and %d", copy, 42) == 15, "asprintf");
    FILE *stream = open_memstream(&text, &len);
    must(stream != NULL, "open_memstream");
    for (int i = 0; i < 5000; i++) fprintf(stream, "%d,", i);
    fclose(stream);
    say(" %s %zu %016llx", printed, len, (unsigned long long)checksum(text, len));
    text = realloc(text, len * 2);
    must(text != NULL, "realloc of what the library made");
    char *line = NULL;
    size_t space = 0;
    stream = fmemopen(text, len, "r");
    must(stream && getdelim(&line, &space, '9', stream) > 0, "getdelim");
    say(" %s", line);
    fclose(stream);
    free(line);
    free(text);
    free(printed);
    free(copy);
    char *folder = getcwd(NULL, 0), *real = realpath(".", NULL);
    must(folder && real && strcmp(folder, real) == 0, "getcwd");
    free(folder);
    free(real);
}
static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
static void op_sort(void) {
    size_t n = between(1000, 60000);
    uint64_t *all = malloc(n * 8), sum = 0;
    must(all != NULL, "an array");
    fill(all, n * 8, chance(), 0);
    for (size_t i = 0; i < n; i++) sum += all[i];
    qsort(all, n, 8, by_value);
    for (size_t i = 0; i < n; i++) {
        sum -= all[i];
        must(i == 0 || all[i - 1] <= all[i], "qsort sorts");
    }
    must(sum == 0, "qsort keeps what it sorts");
    uint64_t *half = malloc(n * 8);
    must(half != NULL, "an array");
    memcpy(half, all, n * 8);
    memmove(all + 1, all, (n - 1) * 8);
    must(memcmp(all + 1, half, (n - 1) * 8) == 0, "memmove moves");
    say(" %zu %016llx", n, (unsigned long long)checksum(half, n * 8));
    free(half);
    free(all);
}

const struct op heap_ops[] = {
    {"heap", "heap", 14, op_heap},
    {"heap-refused", "heap", 1, op_heap_refused},
    {"heap-library", "heap-library", 2, op_heap_library},
    {"sort", "sort", 2, op_sort},
    {0},
};
