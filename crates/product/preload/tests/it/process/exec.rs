//! Programs that cannot be paged, started by a program that is.

use std::os::unix::fs::PermissionsExt;

use crate::common::{check, compile, good, program, ROOMY};

/// A program with the name of a sanitizer's function says what it has of the pager, and of its variables.
const SANITIZED: &str = r#"
void __asan_init(void) {}
int main(int argc, char **argv) {
    char *list = getenv("LD_PRELOAD"), *options = getenv("COLDFRAME_OPTIONS"), *other = getenv("OTHER");
    CHECK((list == NULL || !strcmp(list, "libm.so.6")) && options && other && !strcmp(other, "set"));
    CHECK(!MANAGED(malloc(5000)) && argc == 2 && !strcmp(argv[1], "word"));
    return 7;
}"#;

const STARTS: &str = r#"
static int ended(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}
int main(void) {
    char *all[] = {"./sanitized", "word", NULL}; pid_t child; int file = open(all[0], O_RDONLY);
    CHECK(MANAGED(malloc(5000)));
    if ((child = fork()) == 0) { execv(all[0], all); _exit(1); }
    CHECK(ended(child) == 7);
    if ((child = vfork()) == 0) { execve(all[0], all, environ); _exit(1); }
    CHECK(ended(child) == 7);
    if ((child = fork()) == 0) { fexecve(file, all, environ); _exit(1); }
    CHECK(ended(child) == 7);
    if ((child = fork()) == 0) { syscall(SYS_execve, all[0], all, environ); _exit(1); }
    CHECK(ended(child) == 7);
    if ((child = fork()) == 0) { syscall(SYS_execveat, file, "", all, environ, AT_EMPTY_PATH); _exit(1); }
    CHECK(ended(child) == 7);
    CHECK(posix_spawn(&child, all[0], NULL, NULL, all, environ) == 0 && ended(child) == 7);
    CHECK(WEXITSTATUS(system("exec ./sanitized word")) == 7);
    all[0] = "./script"; CHECK(posix_spawn(&child, all[0], NULL, NULL, all, environ) == 0 && ended(child) == 7);
    setenv("LD_PRELOAD", strcat(strcpy(malloc(5000), getenv("LD_PRELOAD")), ":libm.so.6"), 1);
    CHECK(WEXITSTATUS(system("exec ./sanitized word")) == 7);
    CHECK(execve("./none", all, environ) == -1 && errno == ENOENT);
    CHECK(execve((char *)8, all, environ) == -1 && errno == EFAULT);
    CHECK(execve("./sanitized", (char **)8, NULL) == -1 && errno == EFAULT);
}"#;

#[test]
fn a_program_with_a_sanitizer_runs_unpaged_however_it_is_started() {
    let Some(starts) = program("starts", STARTS) else { return };
    compile(starts.dir.path(), "sanitized", SANITIZED, &["-rdynamic"]);
    let (script, inner) = (starts.dir.path().join("script"), SANITIZED.replace("argc == 2", "argc == 3"));
    compile(starts.dir.path(), "inner", &inner.replace("argv[1]", "argv[2]"), &["-rdynamic"]);
    std::fs::write(&script, "#! ./inner\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let Some(mut command) = starts.paged(ROOMY) else { return };
    let words = String::from_utf8(good(command.env("OTHER", "set")).stderr).unwrap();
    let said = |program: &str| {
        words.matches(&format!("coldframe: {program} was built with AddressSanitizer: it runs unpaged\n")).count()
    };
    assert_eq!((said("./sanitized"), said("a program"), said("./script")), (6, 2, 1), "{words}");
}

programs! {
    a_program_that_only_mentions_a_sanitizer_is_paged = check r#"
const char *known[] = {"", "__asan_init", "__tsan_init"};
int main(int argc, char **argv) {
    CHECK(MANAGED(malloc(5000)) && strlen(known[argc]) == 11);
    char *again[] = {argv[0], "x", NULL}; if (argc == 1) execv(argv[0], again);
    CHECK(argc == 2);
}"#;
}
