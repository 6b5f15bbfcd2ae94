/* Processes that all read one shared memory: MIB PROCESSES ROUNDS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static uint64_t work(const uint64_t *shared, size_t count, int rounds) {
    uint64_t sum = 0;
    while (rounds--) for (size_t i = 0; i < count; i += 8) sum = sum * 31 + shared[i];
    return sum;
}
int main(int words, char **all) {
    if (words != 4) return 2;
    size_t count = ((size_t)atoi(all[1]) << 20) / 8;
    int rounds = atoi(all[3]), bad = 0, status;
    uint64_t *shared = mmap(NULL, count * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 3;
    for (size_t i = 0; i < count; i++) shared[i] = i * 2654435761u;
    for (int p = 1; p < atoi(all[2]); p++) if (!fork()) return work(shared, count, rounds) == 1;
    printf("%lx\n", (unsigned long)work(shared, count, rounds));
    while (wait(&status) > 0) bad |= status;
    return bad != 0;
}
