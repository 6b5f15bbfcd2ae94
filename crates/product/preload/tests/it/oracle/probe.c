/* The effect of a forbidden access: a handler leaves it by siglongjmp and returns the signal and its code. */
#include "oracle.h"
#include <setjmp.h>

static sigjmp_buf out;
static volatile int probing;
static volatile int seen;
static unsigned char alternate[64 << 10];

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    if (!probing) {
        say(" WRONG: signal %d, code %d, at no probe", signal, info->si_code);
        end_line();
        _exit(97);
    }
    seen = signal * 100 + info->si_code;
    siglongjmp(out, 1);
}
void catch_faults(void) {
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    must(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    must(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0, "sigaction");
}
static int probe(void *at, int writes) {
    volatile unsigned char *byte = at;
    seen = 0;
    if (sigsetjmp(out, 1) == 0) {
        probing = 1;
        if (writes) {
            *byte = *byte;
        } else {
            (void)*byte;
        }
    }
    probing = 0;
    return seen;
}
int probe_read(const void *at) { return probe((void *)at, 0); }
int probe_write(void *at) { return probe(at, 1); }
const char *probed(int result) {
    static char text[32];
    snprintf(text, sizeof text, "%s/%d", result ? sigabbrev_np(result / 100) : "none", result % 100);
    return text;
}
/* For unmapped memory. The pager reserves free managed addresses, so the code may be that of a forbidden page. */
const char *probed_free(int result) {
    return result == SIGSEGV * 100 + SEGV_MAPERR || result == SIGSEGV * 100 + SEGV_ACCERR ? "SEGV" : probed(result);
}
