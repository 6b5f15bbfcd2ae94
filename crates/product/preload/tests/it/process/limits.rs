//! Limits on the resources of the process.

use crate::common::{check_paged, in_shell, program, run, PAGING};
use std::os::unix::process::ExitStatusExt;

const RAM: u64 = 1 << 20;

#[test]
fn a_limit_that_would_stop_the_pager_is_refused_at_the_call_and_the_others_do_not_matter() {
    let main = r#"
static int limits(int what, rlim_t soft) {
    struct rlimit now; CHECK(getrlimit(what, &now) == 0); now.rlim_cur = soft;
    return setrlimit(what, &now);
}
int main(void) {
    page();
    // The pager writes in a process of its own; a child's pager gets there, too, if root may lift the limit.
    CHECK(limits(RLIMIT_FSIZE, 0) == 0); page(); fork_and_page();
    CHECK(limits(RLIMIT_FSIZE, RLIM_INFINITY) == 0);
    // The program's limits are beside what the pager has, and read back as they are.
    struct rlimit four = {4ul << 30, 8ul << 30}, now; const int memory[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 2; i++) {
        CHECK(setrlimit(memory[i], &four) == 0 && getrlimit(memory[i], &now) == 0);
        CHECK(now.rlim_cur == four.rlim_cur && now.rlim_max == four.rlim_max);
    }
    CHECK(mmap(NULL, 64ul << 30, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0) == MAP_FAILED && errno == ENOMEM);
    page(); fork_and_page();
    // A child that will be another program may have what it likes: here it only stays as it is.
    CHECK(limits(RLIMIT_NOFILE, 16) == 0 && limits(RLIMIT_MEMLOCK, 0) == 0 && limits(RLIMIT_NPROC, 1000) == 0
        && limits(RLIMIT_STACK, 1 << 20) == 0);
    CHECK(limits(RLIMIT_CORE, 0) == 0 && limits(RLIMIT_CPU, 1000) == 0);
    page(); fork_and_page();
}"#;
    let Some(output) = check_paged("limits", &format!("{PAGING}{main}"), RAM, &[]) else { return };
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words.matches("does not get its limit").count(), 0, "{words}");
}

#[test]
fn a_page_here_and_there_costs_tables_for_itself_only() {
    // One page in 4 MiB, and one in 2 MiB and a bit: each page table entry, and each page of a plain table, is another
    // one.
    let main = r#"
static long anonymous(void) {
    char line[256]; long kib = 0; FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status)) if (sscanf(line, "RssAnon: %ld", &kib) == 1) break;
    fclose(status); return kib;
}
static void touch(size_t pages, size_t apart) {
    long before = anonymous(), bad = 0;
    char *all = mmap(NULL, pages * apart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (size_t i = 0; i < pages; i++) all[i * apart] = i;
    for (size_t i = 0; i < pages; i++) bad += all[i * apart] != (char)i;
    long more = anonymous() - before;
    fprintf(stderr, "%zu pages: %ld KiB\n", pages, more);
    CHECK(bad == 0 && more <= 13 * (long)pages * 4 / 10);
    munmap(all, pages * apart);
}
int main(void) { touch(6000, (size_t)4 << 20); touch(3000, ((size_t)2 << 20) + 4096); return 0; }"#;
    check_paged("sparse", &format!("{PAGING}{main}"), RAM, &[]);
}

#[test]
fn a_small_file_size_limit_at_the_start_bounds_the_swap_file_and_ends_nobody_by_a_signal() {
    let source = format!("{PAGING}int main(void) {{ page(); fork_and_page(); return 0; }}");
    let Some(program) = program("small", &source) else { return };
    // 128 MiB are enough for the program. With 16 KiB nothing can be paged, and a message at the start says so.
    for (blocks, works) in [(131_072, true), (16, false)] {
        let Some(ready) = program.paged(RAM) else { return };
        let output = run(&mut in_shell(&ready, &format!("ulimit -f {blocks}")));
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), works, "{}: {words}", output.status);
        assert_eq!(output.status.signal(), None, "{words}");
        assert!(works || words.contains("ulimit -f"), "{words}");
    }
}
