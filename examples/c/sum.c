/* Fills, sums and sorts arrays that are larger than their RAM.
 *
 *   cc examples/c/sum.c -Iinclude -Ltarget/release -lcoldframe -Wl,-rpath,target/release -o sum && ./sum
 */
#include <stdio.h>
#include <stdlib.h>

#include "coldframe.h"

enum { MIB = 1 << 20 };

static void check(coldframe_status status) {
    if (status != COLDFRAME_STATUS_OK) {
        fprintf(stderr, "coldframe: %s\n", coldframe_last_error());
        exit(status);
    }
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int main(void) {
    coldframe_options options = coldframe_options_default(1 * MIB);
    options.encrypt = true;
    coldframe_pager *pager;
    check(coldframe_start(&options, &pager));

    coldframe_region *region;
    check(coldframe_region_anonymous(pager, 8 * MIB, &region));
    uint32_t *numbers = coldframe_region_base(region);
    size_t count = coldframe_region_len(region) / sizeof *numbers;

    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) numbers[i] = (uint32_t)i * 2654435761u;
    for (size_t i = 0; i < count; i++) sum += numbers[i];
    qsort(numbers, count, sizeof *numbers, ascending);
    for (size_t i = 1; i < count; i++) {
        if (numbers[i - 1] > numbers[i]) return 1;
    }
    printf("%zu numbers, sum %llu, smallest %u, largest %u\n", count, (unsigned long long)sum, numbers[0],
           numbers[count - 1]);

    char *stats = coldframe_stats(pager);
    fprintf(stderr, "%s\n", stats);
    coldframe_string_free(stats);
    check(coldframe_region_close(region));
    check(coldframe_close(pager));
    return 0;
}
