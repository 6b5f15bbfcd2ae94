//! `coldframe -- PROGRAM` and `coldframe record -- PROGRAM`, with difficult programs: each gets an answer, or one
//! sentence with the remedy.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{coldframe, folder_with, place};
use coldframe_toolbox::command;
use coldframe_toolbox::programs::{message, stderr, stdout};
use serde_json::Value;

/// Takes 4 MiB, and then does what its first word says.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>
int main(int count, char **words) {
    char *all = malloc(4 << 20);
    for (int i = 0; i < 4 << 20; i += 4096) all[i] = i >> 12;
    unsigned sum = 0;
    for (int i = 0; i < 4 << 20; i += 4096) sum += (unsigned char)all[i];
    const char *then = count > 1 ? words[1] : "";
    if (!strcmp(then, "dies")) raise(SIGKILL);
    if (!strcmp(then, "fails")) return 3;
    if (!strcmp(then, "stays")) for (;;) sleep(1);
    if (!strcmp(then, "stubborn")) { signal(SIGTERM, SIG_IGN); for (;;) sleep(1); }
    if (!strcmp(then, "leaves")) {
        // The child is there and recorded before its parent ends.
        int told[2];
        char word = 0;
        if (pipe(told)) return 4;
        if (fork()) return read(told[0], &word, 1) != 1;
        if (write(told[1], &word, 1) != 1) return 4;
        setsid();
        fclose(stdout), fclose(stderr), fclose(stdin);
        sleep(20);
    }
    if (!strcmp(then, "asks")) printf("terminal %d, read %d\n", isatty(0), getchar());
    if (!strcmp(then, "twice")) {
        if (!access("been", F_OK)) return 3;
        fclose(fopen("been", "w"));
    }
    printf("%u\n", sum);
}"#;

/// The compiled program, in the test's own folder; `None`: programs cannot be compiled or paged here.
fn folder(options: &[&str]) -> Option<tempfile::TempDir> {
    folder_with("program", PROGRAM, options)
}

/// Records the program with these options; returns the output and the statistics.
fn recorded(folder: &Path, options: &[&str], program: &[&str]) -> (Output, Value) {
    let stats = folder.join("stats.json");
    let mut command = coldframe(&[]);
    command.current_dir(folder).arg("record").args(options).args(["-o", "t.parquet", "--stats", "stats.json", "--"]);
    let output = command.args(program).output().unwrap();
    nothing_is_left(folder);
    let stats = std::fs::read_to_string(stats).ok().and_then(|text| serde_json::from_str(&text).ok());
    (output, stats.unwrap_or_default())
}

fn nothing_is_left(folder: &Path) {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names.filter(|name| name.starts_with(".coldframe") || name.ends_with(".partial")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn the_pager_records_where_nobody_says_otherwise() {
    let Some(folder) = folder(&[]) else { return };
    let (output, stats) = recorded(folder.path(), &[], &["./program"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((stdout(&output).as_str(), stats["via"].as_str()), ("130560\n", Some("faults")));
    assert!(stats["rows"].as_u64() >= Some(1024), "{stats}");
    assert!(!stderr(&output).contains("emulator"), "{}", stderr(&output));
}

#[test]
fn a_recording_ends_with_its_program_however_that_ends() {
    let Some(folder) = folder(&[]) else { return };
    for (options, word, message) in [
        (&[][..], "dies", "ended by SIGKILL (signal 9): this is about what it did until then"),
        (&[], "fails", "the program ended with exit code 3"),
        (&["--for", "1s"], "stays", "ended by --for"),
        (&["--for", "1s"], "stubborn", "ended by --for"),
    ] {
        let (output, stats) = recorded(folder.path(), options, &["./program", word]);
        assert_eq!(output.status.code(), Some(0), "{word}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{word}: {}", stderr(&output));
        assert!(stats["rows"].as_u64() >= Some(1024), "{word}: {stats}");
        let info = command::command("trace info t.parquet").current_dir(folder.path()).output().unwrap();
        assert!(info.status.success(), "{}", stderr(&info));
    }
}

#[test]
fn a_program_that_goes_to_the_background_is_said_and_its_number() {
    let Some(folder) = folder(&[]) else { return };
    let (output, stats) = recorded(folder.path(), &[], &["./program", "leaves"]);
    let left = stats["processes_left"][0].as_u64().expect("it sleeps").to_string();
    let _ = Command::new("kill").args(["-KILL", &left]).status();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("gone to the background") && stderr(&output).contains(&left),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_signal_to_coldframe_ends_the_recording_and_the_trace_is_whole() {
    let Some(folder) = folder(&[]) else { return };
    for signal in ["-TERM", "-INT"] {
        let mut command = coldframe(&[]);
        command.current_dir(folder.path()).args(["record", "-o", "t.parquet", "--", "./program", "stays"]);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("ended by a signal"), "{}", stderr(&output));
        nothing_is_left(folder.path());
        let info = command::command("trace info t.parquet").current_dir(folder.path()).output().unwrap();
        assert!(info.status.success(), "{}", stderr(&info));
    }
}

#[test]
fn the_standard_input_stays_the_programs_own() {
    let Some(folder) = folder(&[]) else { return };
    let mut command = coldframe(&[]);
    command.current_dir(folder.path()).args(["record", "-o", "t.parquet", "--", "./program", "asks"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"A").unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "terminal 0, read 65\n130560\n");
}

/// The answer about `./program WORD`, which reads this text, and what it printed.
fn answered(folder: &Path, options: &[&str], word: &str, text: &str) -> (Value, String) {
    let mut command = coldframe(&[]);
    command.current_dir(folder).args(options).args(["--", "./program", word]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let printed = message(&child.wait_with_output().unwrap());
    let answer = std::fs::read_to_string(folder.join("program.coldframe/advice.json"));
    let answer = serde_json::from_str(&answer.unwrap_or_else(|error| panic!("{error}: {printed}"))).unwrap();
    (answer, printed.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn an_answer_measures_the_program_alone_and_in_limits_with_the_same_input() {
    let (Some(folder), Some(_)) = (folder(&[]), place()) else { return };
    let (answer, printed) = answered(folder.path(), &["--max-slowdown", "5000%"], "asks", "A");
    // Only the first run is seen, and each run has read the same byte: otherwise its output were another one.
    assert_eq!(printed.matches("read 65").count(), 1, "{printed}");
    assert_eq!(answer["kind"], "limit", "{answer}");
    let runs = answer["runs"].as_array().unwrap();
    let of = |by: &str| runs.iter().filter(|run| run["by"] == by).collect::<Vec<_>>();
    assert!(of("plain").len() == 1 && runs[0]["by"] == "plain", "{answer}");
    let alone = runs[0]["runs"].as_array().unwrap().len();
    assert!((3..=9).contains(&alone), "a short program runs three times and between the sizes: {answer}");
    assert_eq!(runs[0]["seconds"], answer["program_seconds"]);
    let peak = answer["limit"]["peak_bytes"].as_u64().unwrap();
    assert!((4 << 20..16 << 20).contains(&peak), "{answer}");
    // Its heap has 4 MiB, without which it is killed; in the recommended limit it did the same as without one.
    let ram = answer["limit"]["recommended_bytes"].as_u64().expect("a limit is recommended");
    assert!((4 << 20..=peak + (1 << 20)).contains(&ram), "{answer}");
    let limits = || of("kernel").into_iter().filter(|run| run["swap"] == "none");
    assert!(limits().any(|run| run["ram_bytes"] == ram && run["failed"].is_null()), "{answer}");
    assert!(limits().any(|run| run["failed"].is_string() && run["ram_bytes"].as_u64() <= Some(4 << 20)), "{answer}");
    // With our pager it does the same, unless code and stacks alone take more than that.
    let served = |run: &&Value| run["failed"].is_null() || run["failed"] == "it took more RAM than its limit";
    assert!(!of("pager").is_empty() && of("pager").iter().all(served), "{answer}");
    // The recording comes last, and makes the page's map.
    let page = std::fs::read_to_string(folder.path().join("program.coldframe/report.html")).unwrap();
    assert!(page.contains("Why: which memory, and when"), "the page has no map");
    assert!(printed.contains(" without a limit ") && printed.contains(" recommended "), "{printed}");
}

#[test]
fn an_output_in_a_file_is_compared_and_messages_beside_it_are_not() {
    let (Some(folder), Some(_)) = (folder(&[]), place()) else { return };
    for (errors, words) in [("2> answer.txt", "./program"), ("2>&1", "sh -c './program; date +%a%N >&2'")] {
        let script = format!("{} -- {words} > out.txt {errors}", env!("CARGO_BIN_EXE_coldframe"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(folder.path()).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        let done = shell.status().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let text = if errors == "2>&1" { read("out.txt") } else { read("answer.txt") };
        assert!(matches!(done.code(), Some(0 | 6)) && !text.contains("another one"), "{text}");
        // It ran again, and in limits.
        assert!(text.contains("without a limit\n") && text.contains(" none "), "{text}");
        assert!(errors == "2>&1" || read("out.txt") == "130560\n", "{}", read("out.txt"));
    }
}

#[test]
fn a_program_that_ends_otherwise_the_second_time_has_its_peak_and_no_limit() {
    let (Some(folder), Some(_)) = (folder(&[]), place()) else { return };
    let (answer, printed) = answered(folder.path(), &[], "twice", "");
    let (runs, limit) = (answer["runs"].as_array().unwrap(), &answer["limit"]);
    assert!(runs.len() == 1 && runs[0]["runs"].as_array().unwrap().len() == 1, "{answer}");
    assert!(limit["recommended_bytes"].is_null() && limit["peak_bytes"].as_u64() > Some(4 << 20), "{answer}");
    assert!(printed.contains("Note: when it ran again, it ended with exit code 3 instead of 0"), "{printed}");
    assert!(printed.contains("A limit cannot be told: ") && !printed.contains("docker"), "{printed}");
}

#[test]
fn a_program_that_may_run_once_has_predictions_only() {
    let Some(folder) = folder(&[]) else { return };
    let (answer, printed) = answered(folder.path(), &["--once"], "", "");
    assert_eq!(answer["runs"].as_array().unwrap().len(), 0, "{answer}");
    let note = "is estimated, not measured in a memory group: it ran once.";
    assert!(printed.contains("takes about") && printed.contains(" predicted ") && printed.contains(note), "{printed}");
}

/// A program that the pager cannot record is refused in one sentence.
#[test]
fn a_static_program_is_refused_in_one_sentence() {
    let Some(folder) = folder(&["-static"]) else { return };
    let mut command = coldframe(&[]);
    command.current_dir(folder.path()).env("PATH", "/nonexistent").args(["record", "--", "./program"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let message = stderr(&output);
    assert!(message.contains("linked statically"), "{message}");
    nothing_is_left(folder.path());
}

#[test]
fn what_cannot_be_started_leaves_no_folder_behind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plain"), "no program").unwrap();
    std::fs::set_permissions(folder.path().join("plain"), PermissionsExt::from_mode(0o644)).unwrap();
    for (program, code) in [("no-such-program-here", 127), ("./plain", 126)] {
        for verb in [&["--"][..], &["record", "--"]] {
            let output = coldframe(&[]).current_dir(folder.path()).args(verb).arg(program).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{verb:?} {program}: {}", stderr(&output));
            assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn a_folder_that_takes_no_trace_is_said_before_the_program_runs() {
    let Some(folder) = folder(&[]) else { return };
    let program = folder.path().join("program");
    for out in ["/nonexistent/t.parquet", "/proc/t.parquet", "."] {
        let output =
            coldframe(&[]).current_dir(folder.path()).args(["record", "-o", out, "--"]).arg(&program).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{out}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{out}: the program has run");
    }
    let output = coldframe(&[]).current_dir("/proc").arg("--").arg(&program).output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(5), String::new()), "{}", stderr(&output));
    assert!(stderr(&output).contains("go to a folder that you may write to"), "{}", stderr(&output));
}

#[test]
fn who_faults_is_a_mapping_with_the_name_of_the_program_that_made_it() {
    let Some(folder) = folder(&[]) else { return };
    let arguments = ["--once", "--for", "1s", "--format", "json", "--", "./program", "stays"];
    let output = coldframe(&arguments).current_dir(folder.path()).output().unwrap();
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap_or_default();
    let who = &answer["memory_use"]["who"][0];
    assert!(who["by"] == "program" && who["bytes"].as_u64() >= Some(4 << 20), "{who} {}", stderr(&output));
}
