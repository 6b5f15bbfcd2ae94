#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { N = 4 << 20 };
static uint64_t array[ARRAY ? N : 1];
/* Each argument doubles the number of processes. */
int main(int words, char **all) {
    uint64_t *heap = ARRAY ? array : malloc(N * 8), x = 88172645463325252u, sum = 0;
    for (int i = 0; i < N; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; heap[i] = x; }
    while (--words) fork();
    for (int round = 0; round < 80; round++) for (int i = 0; i < N >> round % 4; i++) sum = sum * 31 + heap[i];
    printf("%lx\n", (unsigned long)sum);
    while (wait(NULL) > 0);
}
