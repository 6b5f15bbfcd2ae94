//! The first process of a PID namespace, as in a container: it becomes the parent of all pagers there.

use std::process::Command;

use crate::common::{good, in_shell, program};

/// Children and grandchildren that page and end, waited for in all ways, until there are none.
const INIT: &str = r#"
#include <sys/resource.h>
enum { P = 4096, N = 6 << 20 };
static char *p;
static int page(int code) { for (int i = 0; i < N; i += P) p[i]++; return code; }
static volatile int handled;
static void handle(int signal) {
    int error = errno, status;
    while (waitpid(-1, &status, WNOHANG) > 0) handled++;
    errno = error;
}
int main(void) {
    CHECK(getpid() == 1);
    p = malloc(N); memset(p, 7, N);
    int status, n = 0, codes = 0; struct rusage usage; siginfo_t news;
    for (int i = 0; i < 2; i++)
        if (fork() == 0) { for (int k = 0; k < 2; k++) if (fork() == 0) _exit(page(k)); _exit(page(5)); }
    while (wait(&status) > 0) { n++; CHECK(WIFEXITED(status)); codes += WEXITSTATUS(status); }
    CHECK(errno == ECHILD && n == 6 && codes == 12);
    for (int i = 0; i < 2; i++) if (fork() == 0) { if (fork() == 0) _exit(page(1)); _exit(page(2)); }
    for (n = codes = 0; waitid(P_ALL, 0, &news, WEXITED) == 0; n++) codes += news.si_status;
    CHECK(errno == ECHILD && n == 4 && codes == 6);
    if (fork() == 0) _exit(page(1));
    CHECK(wait4(-1, &status, 0, &usage) > 0 && wait3(&status, 0, &usage) == -1 && errno == ECHILD);
    if (fork() == 0) _exit(page(1));
    CHECK(syscall(SYS_wait4, -1, &status, 0, NULL) > 0 && syscall(SYS_wait4, -1, &status, 0, NULL) == -1);
    CHECK(syscall(SYS_waitid, P_ALL, 0, &news, WEXITED, NULL) == -1 && errno == ECHILD);
    pid_t child = fork();
    if (child == 0) { page(0); pause(); }
    memset(&news, 1, sizeof news);
    CHECK(waitpid(-1, &status, WNOHANG) == 0 && waitid(P_ALL, 0, &news, WEXITED | WNOHANG) == 0 && news.si_pid == 0);
    CHECK(kill(child, SIGSTOP) == 0 && waitpid(-1, &status, WUNTRACED) == child && WIFSTOPPED(status));
    CHECK(waitid(P_ALL, 0, NULL, WEXITED | WNOHANG) == 0 && waitid(P_ALL, 0, &news, 0) == -1 && errno == EINVAL);
    CHECK(kill(child, SIGKILL) == 0 && waitid(P_ALL, 0, &news, WEXITED | WNOWAIT) == 0 && news.si_pid == child);
    CHECK(wait(NULL) == child && waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    signal(SIGCHLD, handle);
    for (int i = 0; i < 3; i++) if (fork() == 0) _exit(page(0));
    while (handled < 3) usleep(1000);
    CHECK(system("exit 3") == 3 << 8);
    for (int i = 0; i < N; i += P) CHECK(p[i] == 7);
    return 0;
}"#;

#[test]
fn init_waits_for_its_children_and_never_for_a_pager() {
    let Some(program) = program("init", INIT) else { return };
    let trial = Command::new("unshare").args(["-pf", "true"]).status();
    if !trial.is_ok_and(|status| status.success()) {
        return coldframe_toolbox::skip("unshare -pf: no rights for a PID namespace");
    }
    for more in ["", "--mount-proc"] {
        let Some(ready) = program.paged(1 << 20) else { return };
        // The shell becomes `unshare`, which does not page.
        let unshare = format!("exec unshare -pf {more} sh -c 'LD_PRELOAD=$LIBRARY exec \"$0\"' \"$0\"");
        good(&mut in_shell(&ready, &unshare));
    }
}
