//! The memory of several processes at one time, and memory that our pager does not serve.

use std::path::Path;
use std::process::Command;

use crate::common::{coldframe, folder_with};
use coldframe_proc::{Process, Tree};
use coldframe_toolbox::programs::{can_page, compiled, finish, message, stdout};
use coldframe_toolbox::{have, GCC};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Sweeps over 8 MiB: of its heap, or many times; the same and a forked child reads all of it, or writes half of it;
/// the same and a nap; of a static array; of memory below 4 GiB.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { BYTES = 8 << 20 };
static char statics[BYTES];
int main(int count, char **words) {
    char kind = count > 1 ? words[1][0] : 'h';
    char *all = kind == 's' ? statics : kind == 'l' ? mmap(0, BYTES, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
        0) : malloc(BYTES);
    for (int round = 0; round < (kind == 's' || kind == 'l' || kind == 'm' ? 2000 : 3); round++)
        for (int i = 0; i < BYTES; i += 512) ((volatile char *)all)[i] += (i >> 12) + round;
    if (kind == 'n') sleep(2);
    if (kind != 'r' && kind != 'w') return 0;
    pid_t child = fork();
    if (child == 0) {
        long sum = 0;
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < BYTES; i += 512) {
                sum += ((volatile char *)all)[i];
                if (kind == 'w' && i < BYTES / 2) all[i] = sum;
            }
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}
"#;

fn folder() -> Option<tempfile::TempDir> {
    folder_with("p", PROGRAM, &[])
}

fn answer(folder: &Path, program: &[&str]) -> Value {
    let output = coldframe(&[]).current_dir(folder).args(["--format", "json", "--"]).args(program).output().unwrap();
    let json = serde_json::from_slice(&output.stdout);
    json.unwrap_or_else(|error| panic!("{program:?}: {error}: {output:?}"))
}

/// Whether the peak of the program's group is so many MiB and what shells and the C library have.
fn takes(answer: &Value, mib: f64) -> bool {
    let peak = answer["limit"]["peak_bytes"].as_u64().unwrap() as f64 / MIB as f64;
    (mib..mib + 3.5).contains(&peak)
}

#[test]
fn what_lives_at_one_time_is_added_up_and_what_is_shared_is_there_once() {
    let Some(folder) = folder() else { return };
    for (program, together) in [
        (&["./p", "heap"][..], 8.0),
        (&["./p", "reads"], 8.0),
        (&["./p", "writes"], 12.0),
        (&["sh", "-c", "./p naps & ./p naps & wait"], 16.0),
        (&["sh", "-c", "./p heap; ./p heap"], 8.0),
    ] {
        let answer = answer(folder.path(), program);
        assert!(takes(&answer, together), "{program:?}: {answer}");
    }
}

#[test]
fn a_limit_is_compared_with_what_all_processes_need_together() {
    let Some(folder) = folder() else { return };
    let within = |slowdown: &str, limit: &str, script: &str| {
        let mut command = coldframe(&[]);
        command.current_dir(folder.path());
        let words = ["check", "--max-slowdown", slowdown, "--max-ram", limit, "--", "sh", "-c", script];
        let output = command.args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
        output.status.code()
    };
    // These programs take milliseconds.
    let check = |script: &str| within("400%", "12MiB", script);
    // Two at a time, of which each has 8 MiB, are killed in 12 and live in 20.
    assert_eq!(within("3000%", "12MiB", "./p naps & ./p naps & wait"), Some(1));
    assert_eq!(within("3000%", "20MiB", "./p naps & ./p naps & wait"), Some(0));
    assert_eq!(within("10%", "12MiB", "./p many & ./p many & wait"), Some(1));
    // The runs that took too long have left no process behind.
    let left = |id: &u32| Process::of(*id).file("cwd").read_link().is_ok_and(|cwd| cwd.starts_with(folder.path()));
    assert!(!Tree::machine().processes().iter().any(left), "a process is left");
    let good = ["./p many", "./p heap; ./p heap", "./p reads"];
    assert_eq!(good.map(check), [Some(0); 3]);
}

#[test]
fn memory_that_our_pager_does_not_serve_counts() {
    let Some(folder) = folder() else { return };
    for kind in ["low", "statics"] {
        let answer = answer(folder.path(), &["./p", kind]);
        assert!(takes(&answer, 8.0), "{kind}: {answer}");
    }
    let check = coldframe(&[])
        .current_dir(folder.path())
        .args(["check", "--max-ram", "4MiB", "--", "./p", "low"])
        .output()
        .unwrap();
    assert_eq!(check.status.code(), Some(1), "{check:?}");
}

#[test]
fn a_limit_on_addresses_leaves_a_recorder_as_many_as_there_are() {
    let Some(folder) = folder() else { return };
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 4000000; exec \"$0\" record -o t.parquet -- ./p heap"]);
    limited.arg(env!("CARGO_BIN_EXE_coldframe")).current_dir(folder.path());
    let output = limited.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A lookup (`dlsym`) frees the message of the last one that failed. In a child whose pager does not work yet nothing
/// would bring that message's page.
#[test]
fn a_child_starts_while_the_message_of_a_failed_lookup_is_out() {
    if !have(&[GCC]) || !can_page() {
        return;
    }
    let source = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { P = 4096, N = 16 << 20 };
static volatile pid_t child;
static void late(int signal) { if (child > 0) kill(child, SIGKILL); _exit(98); }
int main(void) {
    signal(SIGALRM, late);
    alarm(30);
    char *kept[40];
    for (int i = 0; i < 20; i++) kept[i] = malloc(4000);
    if (dlsym(RTLD_DEFAULT, "no_such_function")) return 1;
    for (int i = 20; i < 40; i++) kept[i] = malloc(4000);
    char *big = malloc(N);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i += P) big[i] = i / P + round;
        child = fork();
        int status;
        if (child == 0) {
            for (int i = 0; i < N; i += P) if (big[i] != (char)(i / P + round)) _exit(3);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status) return 2;
    }
    printf("%d %s", kept[0] == kept[39], dlerror());
    return 0;
}
"#;
    let folder = tempfile::tempdir().unwrap();
    compiled(folder.path(), "lookup", source, &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.args(["record", "-o", "lookup.parquet", "--", "./lookup"]).current_dir(folder.path());
    let output = finish(command);
    assert!(output.status.success() && stdout(&output).contains("no_such_function"), "{}", message(&output));
}
