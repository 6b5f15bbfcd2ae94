//! A thread whose faults come fast stays on one processor. Neither the thread nor its children see that.

mod common;

use common::check_paged;

/// Thrashes, and asks repeatedly on which processors the process, a thread and its children may run.
const ASKS: &str = r#"
#include <sched.h>
#include <sys/sysinfo.h>
static size_t pages = 4096;
static char *memory;
static void thrash(size_t touches) {
    static unsigned x = 7;
    for (size_t i = 0; i < touches; i++) {
        x = x * 1103515245 + 12345;
        memory[(x >> 4) % pages * 4096]++;
    }
}
static int allowed(void) {
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    return CPU_COUNT(&set);
}
static void *thread(void *number) { *(int *)number = allowed(); return NULL; }
int main(int argc, char **argv) {
    if (argc > 1) return allowed() == atoi(argv[1]) ? 0 : 1;
    int all = allowed(), online = sysconf(_SC_NPROCESSORS_ONLN);
    char text[16];
    snprintf(text, sizeof text, "%d", all);
    memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && MANAGED(memory));
    thrash(4 * pages);
    for (int round = 0; round < 8; round++) {
        // Longer than nothing is drawn after the last question.
        usleep(60000);
        thrash(3000);
        cpu_set_t set;
        switch (round) {
        case 0: CHECK(allowed() == all); break;
        case 1: CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0 && CPU_COUNT(&set) == all); break;
        case 2: CHECK(sysconf(_SC_NPROCESSORS_ONLN) == online && get_nprocs() == online); break;
        case 3: CHECK(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0 && CPU_COUNT(&set) == all); break;
        case 4: {
            pthread_t other;
            int seen = 0;
            CHECK(pthread_create(&other, NULL, thread, &seen) == 0 && pthread_join(other, NULL) == 0);
            CHECK(seen == all);
            break;
        }
        case 5: {
            int status;
            pid_t child = fork();
            if (child == 0) _exit(allowed() == all ? 0 : 1);
            CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
            break;
        }
        case 6: {
            int status;
            pid_t child;
            char *arguments[] = {argv[0], text, NULL};
            CHECK(posix_spawn(&child, argv[0], NULL, NULL, arguments, environ) == 0);
            CHECK(waitpid(child, &status, 0) == child && status == 0);
            break;
        }
        case 7: {
            // What the program itself says holds.
            CPU_ZERO(&set);
            CPU_SET(sched_getcpu(), &set);
            CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
            thrash(3000);
            CHECK(allowed() == 1);
        }
        }
    }
    puts("whole");
    return 0;
}
"#;

#[test]
fn a_program_that_thrashes_sees_all_its_processors_and_so_does_what_it_starts() {
    let Some(output) = check_paged("asks", ASKS, 4 << 20, &[]) else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
}
