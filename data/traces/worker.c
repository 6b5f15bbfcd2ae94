// A virtual memory worker as in SAP's stress test: it allocates memory and touches it page by page, sweep after sweep, writing a byte to
// each page as stress(1) does, then checks all of them. ROUNDS of arithmetic go with each page, so that a sweep takes time of its own.
//
//   worker MEGABYTES SWEEPS ROUNDS
#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096 };

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: worker MEGABYTES SWEEPS ROUNDS\n");
        return 2;
    }
    size_t bytes = (size_t)atol(argv[1]) << 20;
    int sweeps = atoi(argv[2]), rounds = atoi(argv[3]);
    unsigned char *memory = aligned_alloc(PAGE, bytes);
    unsigned state = 1, wrong = 0;
    if (!memory) return 1;
    for (int sweep = 1; sweep <= sweeps; sweep++) {
        for (size_t at = 0; at < bytes; at += PAGE) {
            for (int round = 0; round < rounds; round++) state = state * 1664525u + 1013904223u;
            memory[at] = (unsigned char)sweep;
        }
        for (size_t at = 0; at < bytes; at += PAGE) {
            for (int round = 0; round < rounds; round++) state = state * 1664525u + 1013904223u;
            wrong += memory[at] != (unsigned char)sweep;
        }
    }
    printf("%u %u\n", state, wrong);
    return wrong != 0;
}
