//! Limits on the resources of the process.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use coldframe_toolbox::{have, GCC};
use common::{check_paged, compile, paged, run};

const RAM: u64 = 1 << 20;

const PAGES: &str = r#"
#include <sys/resource.h>
enum { P = 4096, N = 6 << 20 };
static void page(void) {
    static char *p; if (!p) p = malloc(N);
    CHECK(MANAGED(p));
    for (int i = 0; i < N; i += P) { memset(p + i, i / P % 251, P); p[i + 7] = i >> 12; }
    for (int i = 0; i < N; i += P) CHECK(p[i] == (char)(i / P % 251) && p[i + 7] == (char)(i >> 12));
}
static void fork_and_page(void) {
    pid_t child = fork(); int status;
    if (child == 0) { page(); _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}
"#;

#[test]
fn a_limit_that_would_stop_the_pager_is_refused_at_the_call_and_the_others_do_not_matter() {
    let main = r#"
static int limits(int what, rlim_t soft) {
    struct rlimit now; CHECK(getrlimit(what, &now) == 0); now.rlim_cur = soft;
    return setrlimit(what, &now);
}
int main(void) {
    page();
    CHECK(limits(RLIMIT_FSIZE, 100 << 10) == -1 && errno == EPERM);
    struct rlimit small = {4096, 4096}, was;
    CHECK(prlimit(0, RLIMIT_FSIZE, &small, NULL) == -1 && errno == EPERM && prlimit(getpid(), RLIMIT_FSIZE, &small, NULL) == -1);
    CHECK(syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &small, NULL) == -1 && errno == EPERM);
    CHECK(prlimit(0, RLIMIT_FSIZE, NULL, &was) == 0 && setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK(limits(RLIMIT_AS, 100 << 20) == -1 && errno == EPERM && limits(RLIMIT_DATA, 1 << 20) == -1 && errno == EPERM);
    page(); fork_and_page();
    // A child that will be another program may have what it likes: here it only stays as it is.
    CHECK(limits(RLIMIT_NOFILE, 16) == 0 && limits(RLIMIT_MEMLOCK, 0) == 0 && limits(RLIMIT_NPROC, 1000) == 0 && limits(RLIMIT_STACK, 1 << 20) == 0);
    CHECK(limits(RLIMIT_CORE, 0) == 0 && limits(RLIMIT_CPU, 1000) == 0);
    page(); fork_and_page();
    return 0;
}"#;
    let Some(output) = check_paged("limits", &format!("{PAGES}{main}"), RAM, &[]) else { return };
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(words.matches("does not get its limit").count(), 1, "{words}");
}

#[test]
fn a_small_file_size_limit_at_the_start_bounds_the_swap_file_and_ends_nobody_by_a_signal() {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program =
        compile(dir.path(), "small", &format!("{PAGES}int main(void) {{ page(); fork_and_page(); return 0; }}"), &[]);
    // 64 MiB are enough for the program. With 8 KiB nothing can be paged, and a message at the start says so.
    for (blocks, works) in [(131_072, true), (16, false)] {
        let Some(ready) = paged(&program, RAM) else { return };
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -f {blocks}; LD_PRELOAD=$LIBRARY exec {}", program.display()));
        for (name, value) in ready.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            shell.env(if name == "LD_PRELOAD" { "LIBRARY".as_ref() } else { name }, value);
        }
        let output = run(&mut shell);
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), works, "{}: {words}", output.status);
        assert_eq!(output.status.signal(), None, "{words}");
        assert!(works || words.contains("ulimit -f"), "{words}");
    }
}
