//! A program's own output and exit code, whichever verb runs it.

use std::process::Output;

use crate::common::{coldframe, folder_with};
use coldframe_toolbox::programs::{stderr, stdout};

/// Reads its input and sweeps over 8 MiB; then it writes bytes that are no text, and ends with the code that it is
/// given, or by a signal.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
enum { BYTES = 8 << 20 };
int main(int count, char **words) {
    char *all = malloc(BYTES);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < BYTES; i += 512) ((volatile char *)all)[i] += (i >> 12) + round;
    for (int i = 0; i < 1000; i++) putchar(i * 37);
    fputs("a line without an end", stdout);
    fflush(stdout);
    int code = count > 1 ? atoi(words[1]) : 0;
    if (code > 128) raise(code - 128);
    return code;
}
"#;

/// What it writes last.
const END: &str = "a line without an end";

#[test]
fn stdout_is_that_of_the_program_and_the_answer_is_on_stderr_if_stdout_is_no_terminal() {
    let Some(folder) = folder_with("p", PROGRAM, &[]) else { return };
    let alone = std::process::Command::new(folder.path().join("p")).output().unwrap().stdout;
    let ran = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        coldframe(&words).current_dir(folder.path()).output().unwrap()
    };
    for (words, answer) in [
        ("-- ./p", "p takes"),
        ("--once -- ./p", "p takes"),
        ("check --max-slowdown 9000% --max-ram 64MiB -- ./p", "yes"),
        ("check --write-baseline need.json -- ./p", "p"),
        ("run --ram 4MiB -- ./p", "RAM"),
        ("record -o p.parquet -- ./p", "rows"),
    ] {
        let output = ran(words);
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        assert!(output.stdout == alone, "{words}: {}", stdout(&output));
        assert!(stderr(&output).contains(answer), "{words}: {}", stderr(&output));
    }
    // JSON has stdout for itself.
    for words in ["--format json -- ./p", "check --max-ram 64MiB --format json -- ./p"] {
        let output = ran(words);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["schema_version"], 1);
        assert!(stderr(&output).contains(END), "{words}: {}", stderr(&output));
        assert_eq!(stderr(&output).matches(END).count(), 1, "{words}");
    }
}

#[test]
fn the_exit_code_is_that_of_a_program_that_failed() {
    let Some(folder) = folder_with("p", PROGRAM, &[]) else { return };
    let ran =
        |words: &[&str]| -> Output { coldframe(&["--"]).args(words).current_dir(folder.path()).output().unwrap() };
    for (words, code) in [
        (&["./p"][..], 0),
        (&["./p", "7"], 7),
        // SIGTERM, by itself.
        (&["./p", "143"], 143),
        (&["sh", "-c", "exit 9"], 9),
        (&["true"], 0),
        (&["false"], 1),
    ] {
        let output = ran(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
    }
    // coldframe has ended it, so it has not failed.
    let output = coldframe(&["--for", "300ms", "--", "sh", "-c", "./p; sleep 60"]).current_dir(folder.path()).output();
    assert!(matches!(output.unwrap().status.code(), Some(0 | 1)));
}

#[test]
fn a_size_without_a_unit_is_refused_before_anything_runs() {
    let remedy = "cannot be read; give a size with its unit, such as 64MiB";
    for words in [
        "check --max-ram 64 -- true",
        "--ram 64 -- true",
        "--ram 67108864 -- true",
        "--ram 64 --pid 1",
        "run --ram 64 -- true",
        "run --ram 1MiB --swap-size 64 -- true",
        "run --ram 1MiB --max-memory 64 -- true",
        "compare --ram 50%,64 -- true",
        "fit --ram 64 -- true",
    ] {
        let output = coldframe(&words.split(' ').collect::<Vec<_>>()).output().unwrap();
        let text = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.status.code() == Some(2) && text.contains(remedy), "{words}: {text}");
    }
}
