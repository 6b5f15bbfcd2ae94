/* Random numbers, the printed line, and the bytes of a number. */
#include "oracle.h"

static uint64_t state;

uint64_t mix(uint64_t a, uint64_t b) { /* splitmix64's finisher */
    uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
void seed(uint64_t value) { state = value; }
uint64_t chance(void) { return mix(state += 0x9e3779b97f4a7c15u, 0); }
unsigned below(unsigned limit) { return chance() % limit; }
unsigned between(unsigned least, unsigned most) { return least + below(most - least + 1); }
int one_in(unsigned n) { return below(n) == 0; }

static char line[16384];
static size_t used;

static void say_list(const char *format, va_list list) {
    int n = vsnprintf(line + used, sizeof line - used, format, list);
    used += (size_t)n < sizeof line - used ? (size_t)n : sizeof line - used - 1;
}
void say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say_list(format, list);
    va_end(list);
}
void end_line(void) {
    if (used == sizeof line - 1) used--;
    line[used++] = '\n';
    for (size_t done = 0; done < used;) {
        ssize_t n = write(1, line + done, used - done);
        if (n < 0 && errno != EINTR) _exit(98);
        if (n > 0) done += n;
    }
    used = 0;
}
void fresh_line(void) { used = 0; }
const char *name_of(int error) {
    const char *name = strerrorname_np(error);
    return name ? name : "no errno";
}
const char *outcome(long result) { return result == -1 ? name_of(errno) : "ok"; }
void say_outcome(const char *what, long result) { say(" %s %s", what, outcome(result)); }
void wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(" WRONG: ");
    say_list(format, list);
    va_end(list);
    end_line();
    _exit(99);
}
void must(int good, const char *what) {
    if (!good) wrong("%s (%s)", what, name_of(errno));
}

static uint64_t word(uint64_t number, size_t i) { return number ? mix(number * 0xd6e8feb86659fd93u, i) : 0; }

void fill(void *to, size_t len, uint64_t number, size_t from) {
    unsigned char *at = to;
    for (; len && from % 8; at++, from++, len--) *at = word(number, from / 8) >> from % 8 * 8;
    for (; len >= 8; at += 8, from += 8, len -= 8) {
        uint64_t w = word(number, from / 8);
        memcpy(at, &w, 8);
    }
    for (; len; at++, from++, len--) *at = word(number, from / 8) >> from % 8 * 8;
}
int same(const void *what, size_t len, uint64_t number, size_t from) {
    const unsigned char *at = what;
    unsigned char piece[256];
    while (len) {
        size_t n = len < sizeof piece ? len : sizeof piece;
        fill(piece, n, number, from);
        if (memcmp(at, piece, n)) return 0;
        at += n, from += n, len -= n;
    }
    return 1;
}
uint64_t checksum(const void *what, size_t len) {
    const unsigned char *at = what;
    uint64_t sum = len;
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t w;
        memcpy(&w, at, 8);
        sum = (sum ^ w) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    for (; len; at++, len--) sum = (sum ^ *at) * 0x9e3779b97f4a7c15u;
    return sum;
}
