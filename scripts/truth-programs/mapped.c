/* Weights in a mapped file, all read in each round, and a small state that is written: FILE ROUNDS. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
enum { STATE = 1 << 19 };
int main(int words, char **all) {
    struct stat stat;
    int file = words == 3 ? open(all[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &stat)) { perror("mapped"); return 2; }
    size_t count = stat.st_size / 4;
    const uint32_t *weights = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    uint32_t *state = calloc(STATE, 4);
    if (weights == MAP_FAILED || !state) return 3;
    for (int round = atoi(all[2]); round--;)
        for (size_t i = 0; i < count; i++) state[i % STATE] = state[i % STATE] * 31 + weights[i];
    printf("%x\n", state[99]);
    return 0;
}
