/* A language model's layers with mapped weights of 8 bits: FILE TOKENS, or FILE make MIB. Each token passes all layers. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
enum { WIDTH = 1024, LAYER = WIDTH * WIDTH };
int main(int words, char **all) {
    if (words == 4 && !strcmp(all[2], "make")) {
        FILE *file = fopen(all[1], "wb");
        uint64_t x = 88172645463325252u;
        for (long i = atol(all[3]) << 17; file && i--;) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            fwrite(&x, 8, 1, file);
        }
        return !file || fclose(file);
    }
    struct stat stat;
    int file = words == 3 ? open(all[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &stat)) { perror("model"); return 2; }
    const int8_t *weights = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (weights == MAP_FAILED) return 3;
    long layers = stat.st_size / LAYER, tokens = atol(all[2]);
    int16_t *cache = calloc(tokens * layers, WIDTH * 2);
    int32_t state[WIDTH], next[WIDTH];
    for (int i = 0; i < WIDTH; i++) state[i] = i % 127 - 63;
    for (long token = 0; token < tokens; token++)
        for (long layer = 0; layer < layers; layer++) {
            for (int row = 0; row < WIDTH; row++) {
                const int8_t *line = weights + layer * LAYER + (long)row * WIDTH;
                int32_t sum = 0;
                for (int i = 0; i < WIDTH; i++) sum += line[i] * state[i];
                next[row] = sum;
            }
            for (int i = 0; i < WIDTH; i++) {
                state[i] = (next[i] >> 9) % 127 + state[i] / 2;
                cache[(token * layers + layer) * WIDTH + i] = state[i];
            }
        }
    printf("%d %d\n", state[7], cache[tokens * layers * WIDTH - 1]);
    return 0;
}
