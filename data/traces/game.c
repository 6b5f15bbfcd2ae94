// A frame loop in the way of a game, the foreground of SAP's interactivity test: the same tables and the same scene are gone through in
// each frame, some of them at random.
//
//   game FRAMES KILOBYTES
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: game FRAMES KILOBYTES\n");
        return 2;
    }
    int frames = atoi(argv[1]);
    size_t words = ((size_t)atol(argv[2]) << 10) / sizeof(unsigned);
    unsigned *scene = malloc(words * sizeof(unsigned)), seed = 1, sum = 0;
    if (!scene) return 1;
    for (size_t i = 0; i < words; i++) scene[i] = (unsigned)i;
    for (int frame = 0; frame < frames; frame++) {
        for (size_t i = 0; i < words; i += 64) {
            seed = seed * 1664525u + 1013904223u;
            sum += scene[i] ^ scene[seed % words];
            scene[i] = sum;
        }
    }
    printf("%u\n", sum);
    return 0;
}
