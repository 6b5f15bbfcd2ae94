/* A radix-2 fast Fourier transform of a sum of sines, there and back: the program of fft.parquet. Ours, in the manner of MiBench's fft. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void transform(int n, int direction, float *re, float *im)
{
    for (int i = 0, j = 0; i < n; i++) { /* bit-reversed order */
        if (i < j) {
            float r = re[i], m = im[i];
            re[i] = re[j], im[i] = im[j];
            re[j] = r, im[j] = m;
        }
        int bit = n >> 1;
        for (; bit && (j & bit); bit >>= 1)
            j ^= bit;
        j |= bit;
    }
    for (int size = 2; size <= n; size *= 2)
        for (int start = 0; start < n; start += size)
            for (int k = 0; k < size / 2; k++) {
                double angle = direction * 2.0 * M_PI * k / size;
                float c = (float)cos(angle), s = (float)sin(angle);
                int a = start + k, b = a + size / 2;
                float r = re[b] * c - im[b] * s, m = re[b] * s + im[b] * c;
                re[b] = re[a] - r, im[b] = im[a] - m;
                re[a] += r, im[a] += m;
            }
}

int main(int argc, char **argv)
{
    int waves = argc > 1 ? atoi(argv[1]) : 4, n = argc > 2 ? atoi(argv[2]) : 256;
    float *re = calloc(n, sizeof *re), *im = calloc(n, sizeof *im);
    srand(1);
    for (int w = 0; w < waves; w++) {
        float amplitude = (float)(rand() % 1000), frequency = (float)(rand() % (n / 2));
        for (int i = 0; i < n; i++)
            re[i] += amplitude * (float)sin(2.0 * M_PI * frequency * i / n);
    }
    transform(n, -1, re, im);
    for (int i = 0; i < n; i += 8)
        printf("%d %.3f %.3f\n", i, re[i], im[i]);
    transform(n, 1, re, im);
    printf("%.3f\n", re[1] / n);
    return 0;
}
