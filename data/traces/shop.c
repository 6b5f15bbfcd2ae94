// A small shop in memory: orders of customers, a tenth of whom come all the time and the others hardly ever, and at the end a sum over
// all of them. The demo's program.
//
//   shop ORDERS CUSTOMERS
#include <stdio.h>
#include <stdlib.h>

struct customer {
    unsigned orders, total, history[30];
};

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: shop ORDERS CUSTOMERS\n");
        return 2;
    }
    unsigned long orders = strtoul(argv[1], NULL, 10), customers = strtoul(argv[2], NULL, 10);
    struct customer *all = calloc(customers, sizeof *all);
    if (!all || !customers) return 1;
    unsigned seed = 1, check = 0;
    for (unsigned long i = 0; i < orders; i++) {
        // One order in 300 comes from anybody, the others from a tenth of the customers.
        seed = seed * 1664525u + 1013904223u;
        unsigned long known = i % 300 ? (customers + 9) / 10 : customers;
        struct customer *one = &all[(seed >> 8) % known];
        // The price of an order takes some reckoning.
        unsigned price = seed;
        for (int step = 0; step < 400; step++) price = (price >> 1) ^ (-(price & 1u) & 0xedb88320u);
        one->history[one->orders++ % 30] = price;
        one->total += price;
        check ^= one->total;
    }
    for (unsigned long i = 0; i < customers; i++) check += all[i].orders ? all[i].total : 0;
    printf("%lu orders of %lu customers, %08x\n", orders, customers, check);
    return 0;
}
