/* oracle SEED STEPS [WITHOUT]: runs STEPS random steps. Classes of operations in WITHOUT (`fork,signal`) are left out;
 * the other steps keep their random numbers. */
#include "oracle.h"

int depth;
const char *myself, *without = "";
static unsigned char plain[SCRATCH];
unsigned char *scratch(void) { return plain; }

static const struct op *const groups[] = {map_ops, heap_ops, io_ops, ring_ops, process_ops, thread_ops, signal_ops,
    stack_ops, limit_ops, storm_ops, narrow_ops, bare_ops, child_ops, kernel_ops, NULL};

static int left_out(const char *class) {
    size_t len = strlen(class);
    for (const char *at = without; (at = strstr(at, class)); at++)
        if ((at == without || at[-1] == ',') && (at[len] == 0 || at[len] == ',')) return 1;
    return 0;
}
static const struct op *some_op(void) {
    unsigned all = 0;
    for (int g = 0; groups[g]; g++)
        for (const struct op *op = groups[g]; op->name; op++) all += op->weight;
    unsigned at = below(all);
    for (int g = 0; groups[g]; g++)
        for (const struct op *op = groups[g]; op->name; op++) {
            if (at < op->weight) return op;
            at -= op->weight;
        }
    abort();
}
void steps(uint64_t number, unsigned n) {
    for (unsigned i = 1; i <= n; i++) {
        seed(mix(number, i));
        const struct op *op = some_op();
        if (left_out(op->class)) continue;
        say("%.*s%u %s", depth, "................", i, op->name);
        op->run();
        check_some(2);
        end_line();
    }
    check_all();
}
void become_child(void) {
    depth++;
    children = 0;
    fresh_line();
    workers_forget();
    model_in_child();
}
static void classes(void) {
    for (int g = 0; groups[g]; g++)
        for (const struct op *op = groups[g]; op->name; op++) say("%s\n", op->class);
    end_line();
}
int main(int count, char **words) {
    myself = "/proc/self/exe";
    if (count == 2 && strcmp(words[1], "classes") == 0) {
        classes();
        return 0;
    }
    if (count > 1 && words[1][0] == '-') return special(count, words);
    if (count < 3) {
        fprintf(stderr, "oracle SEED STEPS [WITHOUT [DEPTH]]\n");
        return 2;
    }
    if (count > 3) without = words[3];
    if (count > 4) depth = atoi(words[4]);
    catch_faults();
    steps(strtoull(words[1], NULL, 0), atoi(words[2]));
    workers_end();
    say("%.*send", depth, "................");
    say_self();
    end_line();
    return 0;
}
