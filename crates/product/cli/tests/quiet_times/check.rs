//! `check -- PROGRAM`: exit codes, baselines, exports, and the GitHub Action's steps.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{folder_with, place};
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

/// The exit code, and all that the program and the answer print.
fn printed_by(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let (code, program, answer) = run(folder, words);
    (code, program + &answer)
}

/// What a check says, in one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_limit_is_that_of_a_container() {
    let (Some(folder), Some(_)) = (folder(), place()) else { return };
    // It takes 40 MiB and what the C library has, and as much again is only allocated.
    let check = |words: &[&str]| {
        let own = ["check", "--export", "check.json"];
        let (code, printed) = printed_by(folder.path(), &[&own, words, &["--", "./touch", "40"]].concat());
        // Its output is that of one run, however often it ran.
        assert_eq!(printed.matches("0x").count(), 1, "{printed}");
        assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
        let verdict = std::fs::read_to_string(folder.path().join("check.json")).unwrap();
        (code, joined(&printed), serde_json::from_str::<Value>(&verdict).unwrap())
    };
    let (code, printed, verdict) = check(&["--max-ram", "64MiB"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("yes: touch in 64 MiB without swap: it takes "), "{printed}");
    let peak = verdict["peak_bytes"].as_u64().unwrap();
    assert!((40 << 20..46 << 20).contains(&peak), "{verdict}");
    assert_eq!((&verdict["certain"], &verdict["estimated"]), (&true.into(), &false.into()), "{verdict}");
    // In less than its peak it is killed at once, and a killed run has no percentage.
    let (code, printed, verdict) = check(&["--max-ram", "24MiB"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("no: touch in 24 MiB without swap: the kernel killed it"), "{printed}");
    assert!(!printed.contains('%') && printed.contains("in it one run, killed."), "{printed}");
    assert_eq!((&verdict["times"], &verdict["within"]), (&Value::Null, &false.into()), "{verdict}");
    let own = ["check", "--max-ram", "64MiB", "--export", "check.html", "--", "./touch", "4"];
    assert_eq!(run(folder.path(), &own).0, Some(0));
    let page = std::fs::read_to_string(folder.path().join("check.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("yes: touch in 64 MiB"));
}

#[test]
fn a_baseline_names_what_grew_by_more_than_two_percent_and_a_mebibyte() {
    let (Some(folder), Some(_)) = (folder(), place()) else { return };
    let at = |name: &str| folder.path().join(name);
    let (code, printed) =
        printed_by(folder.path(), &["check", "--write-baseline", "need.json", "--", "./touch", "100"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("touch takes "), "{printed}");
    let (peak, heap) = (number(&at("need.json"), "peak_bytes"), number(&at("need.json"), "heap_bytes"));
    assert!((100 << 20..106 << 20).contains(&peak) && (100 << 20..101 << 20).contains(&heap), "{peak} {heap}");
    // What a group is charged comes in steps: by 1 MiB it grows within the 2 MiB that are allowed.
    for (mib, right) in [("100", 0), ("101", 0), ("110", 1), ("20", 0)] {
        let words = ["check", "--baseline", "need.json", "--", "./touch", mib];
        let (code, printed) = printed_by(folder.path(), &words);
        assert_eq!(code, Some(right), "{mib}: {printed}");
    }
    // Three times as much: the growth has its number.
    let files = ["--export", "check.md", "--export", "check.xml", "--export", "check.json", "--export", "check.html"];
    let words = [&["check", "--baseline", "need.json"], &files[..], &["--", "./touch", "300"]].concat();
    let (code, printed) = printed_by(folder.path(), &words);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("no: touch takes ") && printed.contains("Grew since need.json:\n  "), "{printed}");
    let verdict: Value = serde_json::from_str(&std::fs::read_to_string(at("check.json")).unwrap()).unwrap();
    let grown: Vec<_> = verdict["grown"].as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(grown[..2], ["peak of its group", "heap at its peak"], "{verdict}");
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert!(read("check.md").starts_with("### **no**: memory of `touch`"), "{}", read("check.md"));
    assert!(read("check.xml").contains("failures=\"1\""), "{}", read("check.xml"));
    assert!(read("check.html").contains("<!doctype html>") && read("check.html").contains("Grew since"));
}

#[test]
fn what_cannot_be_answered_has_its_own_exit_code_and_one_sentence() {
    let Some(folder) = folder() else { return };
    // As an earlier version wrote it.
    std::fs::write(folder.path().join("bad.json"), "{\"kind\": \"need\", \"need_bytes\": 5}").unwrap();
    for (words, code, says) in [
        (&["check", "--", "./touch", "1"][..], 2, "needs a limit"),
        (&["check", "--max-ram", "64", "--", "./touch", "1"], 2, "give a size with its unit"),
        (&["check", "--max-ram", "64B", "--", "./touch", "1"], 2, "too little"),
        (&["check", "--swap", "zram", "--baseline", "bad.json", "--", "./touch", "1"], 2, "--max-ram"),
        (&["check", "--max-ram", "1MiB", "--export", "a.xls", "--", "./touch", "1"], 2, ".csv"),
        (&["check", "--max-ram", "64MiB", "--", "./touch", "1", "7"], 3, "exit code 7"),
        (
            &["check", "--baseline", "bad.json", "--", "./touch", "1"],
            3,
            "bad.json: is no baseline of this version; write it anew with --write-baseline bad.json",
        ),
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
    let (Some(folder), Some(_)) = (folder(), place()) else { return };
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
            bash.env("GITHUB_OUTPUT", folder.path().join("output"));
            bash.env("COMMAND", command).env("MAX_RAM", max_ram).env("MAX_SLOWDOWN", "400%").env("BASELINE", "");
            let output = bash.output().unwrap();
            codes.push(output.status.code());
        }
        codes
    };
    assert_eq!(done("64MiB", "./touch 4"), [Some(0), Some(0)]);
    assert_eq!(done("16MiB", "./touch 64"), [Some(0), Some(1)]);
    assert_eq!(done("16MiB", "exit 9"), [Some(0), Some(3)]);
    let outputs = std::fs::read_to_string(folder.path().join("output")).unwrap();
    let outputs: Vec<_> = outputs.lines().map(|line| line.split_once('=').unwrap()).collect();
    let of = |name: &str| outputs.iter().filter(|(n, _)| *n == name).map(|(_, value)| *value).collect::<Vec<_>>();
    assert_eq!((of("verdict"), of("limit")[0]), (vec!["yes", "no", "cannot tell"], "67108864"));
    assert!(of("need")[0].parse::<u64>().is_ok_and(|need| (4 << 20..16 << 20).contains(&need)), "{outputs:?}");
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(summary.contains("### yes: memory of `") && summary.contains("### **no**: memory of `"), "{summary}");
    // The case is named after the command, not after the shell that runs it.
    let junit = std::fs::read_to_string(folder.path().join("report/check.xml")).unwrap();
    assert!(junit.contains("name=\"exit 9\"") || junit.contains("name=\"./touch 64\""), "{junit}");
}

#[test]
fn an_action_that_is_pinned_by_a_commit_downloads_the_release_of_its_tag() {
    let folder = tempfile::tempdir().unwrap();
    if !have(&[("bash", "bash")]) {
        return;
    }
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../action.yml");
    std::fs::write(folder.path().join("step.sh"), &steps(&std::fs::read_to_string(action).unwrap())[0]).unwrap();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    // The annotated tag has its commit in a line of its own.
    let tags = format!("printf '%s\\t%s\\n' {} refs/tags/v9.9.9 {commit} 'refs/tags/v9.9.9^{{}}'", "f".repeat(40));
    for (name, body) in [("git", tags.as_str()), ("curl", "echo \"$*\" >> asked; exit 22")] {
        std::fs::write(folder.path().join(name), format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(folder.path().join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "step.sh"]).current_dir(folder.path());
    bash.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display())).env("RUNNER_TEMP", folder.path());
    bash.env("GITHUB_PATH", folder.path().join("path")).env("GITHUB_ENV", folder.path().join("env"));
    let output = bash.env("REPOSITORY", "a/b").env("TAG", commit).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap_or_default();
    assert!(asked.contains("releases/download/v9.9.9/coldframe-9.9.9-"), "{asked}");
}
