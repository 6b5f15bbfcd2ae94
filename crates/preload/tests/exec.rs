//! Programs that a paged program starts and that cannot be paged themselves.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use coldframe_toolbox::{have, Tool};
use common::{everywhere, good, program};

/// A compiler for musl's C library.
const MUSL: Tool = ("musl-gcc", "musl-tools");

/// Starts ./child, ./script and `child` by name, in each way that the C library has; each must exit with 7.
const PARENT: &str = r#"
#include <spawn.h>
extern char **environ;
static void seven(pid_t child) { int status; CHECK(child > 0 && waitpid(child, &status, 0) == child); CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7); }
int main(void) {
    char *arguments[] = {"child", "two words", NULL};
    CHECK(setenv("PATH", "/nowhere::.:/usr/bin:/bin", 1) == 0 && setenv("KEPT", "yes", 1) == 0);
    for (int script = 0; script < 2; script++) {
        char *path = script ? "./script" : "./child", *name = path + 2;
        for (int way = 0; way < 5; way++) {
            pid_t child = way == 4 ? vfork() : fork();
            if (child == 0) {
                if (way == 0 || way == 4) execve(path, arguments, environ);
                if (way == 1) execv(path, arguments);
                if (way == 2) execvp(name, arguments);
                if (way == 3) execvpe(name, arguments, environ);
                _exit(99);
            }
            seven(child);
        }
        pid_t child;
        CHECK(posix_spawn(&child, path, NULL, NULL, arguments, environ) == 0); seven(child);
        CHECK(posix_spawnp(&child, name, NULL, NULL, arguments, environ) == 0); seven(child);
    }
    int status = system("./child child 'two words'");
    CHECK(WIFEXITED(status));
    // A program that can page still gets this library.
    CHECK(system("test -n \"$LD_PRELOAD\"") == 0);
    return 0;
}"#;

const CHILD: &str = r#"#include <stdlib.h>
#include <string.h>
int main(int n, char **arguments) {
    char *kept = getenv("KEPT");
    return kept && !strcmp(kept, "yes") && !getenv("LD_PRELOAD") && n > 1 && !strcmp(arguments[n - 1], "two words") ? 7 : 1;
}"#;

#[test]
fn a_program_for_musl_is_started_without_this_library() {
    // The kernel passes the script's name and then the arguments to the script's interpreter.
    let Some(program) = have(&[MUSL]).then(|| program("parent", PARENT)).flatten() else { return };
    let file = |name: &str| program.dir.path().join(name);
    fs::write(file("child.c"), CHILD).unwrap();
    let made = Command::new("musl-gcc").args(["-O1", "-o"]).arg(file("child")).arg(file("child.c")).status().unwrap();
    assert!(made.success());
    fs::write(file("script"), format!("#!{}\nnot read\n", file("child").display())).unwrap();
    fs::set_permissions(file("script"), fs::Permissions::from_mode(0o755)).unwrap();
    program.paged(1 << 20).iter_mut().for_each(|command| _ = good(command));
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_opened() {
    everywhere(
        "fifo",
        r#"
int main(void) {
    char *arguments[] = {"fifo.pipe", NULL};
    unlink("fifo.pipe");
    CHECK(mkfifo("fifo.pipe", 0777) == 0);
    CHECK(execv("./fifo.pipe", arguments) == -1 && errno == EACCES);
    CHECK(posix_spawn(&(pid_t){0}, "./fifo.pipe", NULL, NULL, arguments, environ) == EACCES);
    // No reader has come and gone.
    CHECK(open("fifo.pipe", O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
    CHECK(execv("/", arguments) == -1 && errno == EACCES);
    CHECK(execv("/dev/null", arguments) == -1 && errno == EACCES);
    return 0;
}"#,
    );
}
