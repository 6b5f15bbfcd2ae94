//! `check -- PROGRAM`: exit codes, baselines, exports, and the GitHub Action's steps.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::folder_with;
use coldframe_toolbox::have;
use serde_json::Value;

/// Touches as many MiB as its argument says, several times over, and has allocated as much again.
const TOUCH: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    size_t bytes = (size_t)atol(words[1]) << 20;
    volatile char *block = malloc(bytes), *slack = malloc(bytes);
    for (int round = 0; round < 12; round++)
        for (size_t at = 0; at < bytes; at += 512) block[at] += round;
    printf("%p\n", (void *)slack);
    return count > 2 ? atoi(words[2]) : 0;
}
"#;

/// The folder with the program `touch`; `None`: this machine cannot do it.
fn folder() -> Option<tempfile::TempDir> {
    folder_with("touch", TOUCH, &[])
}

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    let Output { status, stdout, stderr } = command.args(words).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn number(path: &Path, name: &str) -> u64 {
    let value: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn a_budget_counts_what_is_touched_and_names_what_grew() {
    let Some(folder) = folder() else { return };
    let at = |name: &str| folder.path().join(name);
    // It sweeps over 4 MiB again and again: with less, it comes back page by page. 4 MiB more are only allocated.
    let (code, _, message) = run(folder.path(), &["check", "--write-baseline", "need.json", "--", "./touch", "4"]);
    assert_eq!(code, Some(0), "{message}");
    let need = number(&at("need.json"), "need_bytes");
    assert!((3 << 20..=5 << 20).contains(&need), "{need}");
    let (code, _, message) =
        run(folder.path(), &["check", "--max-slowdown", "1000%", "--max-ram", "12MiB", "--", "./touch", "4"]);
    assert_eq!(code, Some(0), "{message}");
    assert!(message.contains("yes: touch in 12 MiB: it takes ") && message.contains("Measured: alone "), "{message}");
    assert!(message.lines().skip(1).all(|line| line.chars().count() <= 80), "{message}");
    // Twice as much: over the baseline, and the growth has its number.
    let files = ["--export", "check.md", "--export", "check.xml", "--export", "check.json", "--export", "check.html"];
    let words = [&["check", "--baseline", "need.json"], &files[..], &["--", "./touch", "8"]].concat();
    let (code, _, message) = run(folder.path(), &words);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("no: touch needs ") && message.contains("Grew since need.json:\n  "), "{message}");
    assert!(message.contains("over the limit"), "{message}");
    let verdict: Value = serde_json::from_str(&std::fs::read_to_string(at("check.json")).unwrap()).unwrap();
    assert_eq!(verdict["recordings"].as_array().unwrap().len(), 3, "a no is asked again: {verdict}");
    assert!(verdict["grown"].as_array().unwrap().iter().any(|one| one["what"] == "least RAM"), "{verdict}");
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert!(read("check.md").starts_with("### **no**: memory of `touch`"), "{}", read("check.md"));
    assert!(read("check.xml").contains("failures=\"1\""), "{}", read("check.xml"));
    assert!(read("check.html").contains("<!doctype html>"));
}

#[test]
fn what_cannot_be_answered_has_its_own_exit_code_and_one_sentence() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path().join("bad.json"), "{\"kind\": \"need\"}").unwrap();
    for (words, code, says) in [
        (&["check", "--", "./touch", "1"][..], 2, "needs a limit"),
        (&["check", "--max-ram", "1MiB", "--export", "a.xls", "--", "./touch", "1"], 2, ".csv"),
        (&["check", "--max-ram", "64MiB", "--", "./touch", "1", "7"], 3, "exit code 7"),
        (&["check", "--baseline", "bad.json", "--", "./touch", "1"], 3, "bad.json: is no baseline"),
        (&["check", "--baseline", "none.json", "--", "./touch", "1"], 5, "none.json: cannot be read"),
        (&["check", "--max-ram", "1MiB", "--", "./no-such-program"], 127, "no-such-program"),
    ] {
        let (given, _, message) = run(folder.path(), words);
        assert_eq!(given, Some(code), "{words:?}: {message}");
        assert!(message.contains(says), "{words:?}: {message}");
        assert_eq!(message.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{words:?}: {message}");
    }
}

/// The commands of a composite action's steps, as its text has them.
fn steps(action: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut within = false;
    for line in action.lines() {
        match line.strip_prefix("        ") {
            Some(command) if within => *all.last_mut().unwrap() += &(command.to_owned() + "\n"),
            _ => within = false,
        }
        if line == "      run: |" {
            all.push(String::new());
            within = true;
        }
    }
    all
}

#[test]
fn the_actions_steps_run_in_the_shell_that_the_service_uses() {
    let Some(folder) = folder() else { return };
    if !have(&[("bash", "bash")]) {
        return;
    }
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../action.yml");
    let steps = steps(&std::fs::read_to_string(action).unwrap());
    assert_eq!(steps.len(), 3);
    // Without a release to download the program is built; here it is on the PATH.
    let steps = [&steps[0], &steps[2]];
    let program = Path::new(env!("CARGO_BIN_EXE_coldframe")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let done = |max_ram: &str, command: &str| {
        let mut codes = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let file = folder.path().join(format!("step{i}.sh"));
            std::fs::write(&file, step).unwrap();
            // `shell: bash` is this command, by the documentation of workflow syntax.
            let mut bash = Command::new("bash");
            bash.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(file).current_dir(folder.path());
            bash.env("PATH", &path).env("RUNNER_TEMP", folder.path()).env("GITHUB_PATH", folder.path().join("path"));
            bash.env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md")).env("REPORT", "report");
            bash.env("COMMAND", command).env("MAX_RAM", max_ram).env("MAX_SLOWDOWN", "400%").env("BASELINE", "");
            let output = bash.output().unwrap();
            codes.push(output.status.code());
        }
        codes
    };
    assert_eq!(done("64MiB", "./touch 4"), [Some(0), Some(0)]);
    assert_eq!(done("2MiB", "./touch 64"), [Some(0), Some(1)]);
    assert_eq!(done("2MiB", "exit 9"), [Some(0), Some(3)]);
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(summary.contains("### yes: memory of `") && summary.contains("### **no**: memory of `"), "{summary}");
    // The case is named after the command, not after the shell that runs it.
    let junit = std::fs::read_to_string(folder.path().join("report/check.xml")).unwrap();
    assert!(junit.contains("name=\"exit 9\"") || junit.contains("name=\"./touch 64\""), "{junit}");
}
