//! `coldframe squeeze` on groups that run: it finds what they need, and whatever ends it, the old limit is back.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;

use crate::common::{alone, coldframe, kill_guard, ready, reverted_as_named};
use coldframe_kernel::{Place, Tree, Version};
use coldframe_toolbox::programs::{compiled, copy_for_all, refused, stderr, stdout, until};
use coldframe_toolbox::skip;
use serde_json::Value;

/// Writes 48 MiB and reads the first 12 MiB again and again. With an argument, locks all of it.
const HOT: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
int main(int count, char **words) {
    size_t all = (size_t)48 << 20, hot = (size_t)12 << 20; volatile uint8_t *heap = malloc(all); uint64_t x = 1;
    for (size_t i = 0; i < all; i += 8) { x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        *(volatile uint64_t *)(heap + i) = x % 1000; }
    if (count > 1 && mlockall(MCL_CURRENT)) return 1;
    puts("ready"); fflush(stdout);
    for (;;) { for (size_t i = 0; i < hot; i += 4096) (void)heap[i]; struct timespec nap = {0, 1000000};
        nanosleep(&nap, 0); }
}
"#;

/// Where groups to squeeze can be made while no other test makes swap; `None`: not here.
fn place() -> Option<(MutexGuard<'static, ()>, Place)> {
    let (alone, place) = (alone()?, crate::common::place()?);
    if place.enable {
        skip(&format!("{} has no memory groups", place.parent.display()));
        return None;
    }
    Some((alone, place))
}

/// A program in a group of its own. Both are gone at the end.
struct Running {
    folders: Vec<PathBuf>,
    version: Version,
    child: Child,
}

impl Running {
    fn start(place: Place, name: &str, words: &[&str]) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path(), "hot", HOT, &[]);
        let parents = [Some(place.parent), place.pressure];
        let name = format!("squeezed-{name}-{}", std::process::id());
        let folders: Vec<_> = parents.into_iter().flatten().map(|parent| parent.join(&name)).collect();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "for group in \"$0\"/cgroup.procs \"$1\"/cgroup.procs; do echo $$ > $group; done; shift; exec \"$@\"",
        ]);
        for folder in &folders {
            std::fs::create_dir(folder).unwrap();
        }
        command.arg(&folders[0]).arg(folders.last().unwrap()).arg(&program).args(words);
        Running { folders, version: place.version, child: ready(&mut command) }
    }

    fn process(&self) -> String {
        self.child.id().to_string()
    }

    /// What the limit's file says, and that of the killer.
    fn limits(&self) -> (String, String) {
        let text = |name: &str| std::fs::read_to_string(self.folders[0].join(name)).unwrap_or_default();
        (text(self.version.squeeze_file()), text("memory.oom_control"))
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        for folder in &self.folders {
            until("the group is empty", || std::fs::remove_dir(folder).is_ok());
        }
    }
}

fn squeeze(words: &[&str]) -> Command {
    let mut command = coldframe(&[&["squeeze"], words].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn zram_is_swap() -> bool {
    Tree::machine().text("/proc/swaps").contains("/zram")
}

#[test]
fn it_finds_what_a_program_needs_and_puts_the_limit_back() {
    let Some((_alone, place)) = place() else { return };
    let running = Running::start(place, "need", &[]);
    let (before, folder) = (running.limits(), tempfile::tempdir().unwrap());
    let (table, csv) = (folder.path().join("s.md"), folder.path().join("s.csv"));
    let mut command = squeeze(&["--yes", "--swap", "zram", "--for", "300ms", "--max-stall", "20%", "--format", "json"]);
    command.arg("--export").arg(&table).arg("--export").arg(&csv).arg(running.process());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let advised = found["advised_bytes"].as_u64().unwrap() >> 20;
    // 12 MiB are in use all the time; a step is a sixteenth, and the C library and the kernel take some.
    assert!((12..20).contains(&advised), "{found}");
    assert!(found["in_use_bytes"].as_u64().unwrap() >= 48 << 20 && found["restored"] == true, "{found}");
    assert_eq!((running.limits(), zram_is_swap()), (before, false));
    let (table, csv) = (std::fs::read_to_string(table).unwrap(), std::fs::read_to_string(csv).unwrap());
    let rows = found["steps"].as_array().unwrap().len();
    assert!(table.contains("MemoryHigh=") && csv.lines().count() == rows + 1, "{table}\n{csv}");
}

#[test]
fn whoever_is_killed_the_old_limit_is_back_or_the_line_for_it_is_named() {
    let Some((_alone, place)) = place() else { return };
    let running = Running::start(place, "killed", &[]);
    let before = running.limits();
    let words = ["--yes", "--swap", "zram", "--for", "500ms", "--max-stall", "90%", &running.process()];
    for (guard, coldframe) in [(false, true), (true, false), (true, true)] {
        let mut child = squeeze(&words).process_group(0).spawn().unwrap();
        until("the limit is lower", || running.limits().0 != before.0);
        if guard && coldframe {
            // Otherwise it would notice.
            assert!(Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap().success());
        }
        if guard {
            kill_guard(child.id());
        }
        if coldframe {
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        if !coldframe {
            // Exit code 1 is for a first step that was not watched to its end.
            let restored = matches!(output.status.code(), Some(0 | 1));
            assert!(restored && stderr(&output).contains("the guard was killed"), "{}", stderr(&output));
        } else if guard {
            assert!(running.limits() != before && zram_is_swap());
            reverted_as_named();
        }
        until("the old limit is back", || running.limits() == before);
        until("the swap is gone", || !zram_is_swap());
    }
}

#[test]
fn a_program_that_ends_meanwhile_ends_the_squeeze() {
    let Some((_alone, place)) = place() else { return };
    let mut running = Running::start(place, "ends", &[]);
    let before = running.limits();
    let words = ["--yes", "--swap", "zram", "--for", "300ms", "--max-stall", "90%", &running.process()];
    let coldframe = squeeze(&words).spawn().unwrap();
    until("the limit is lower", || running.limits().0 != before.0);
    let first = running.limits().0;
    until("a step is measured", || running.limits().0 != first);
    running.kill();
    let output = coldframe.wait_with_output().unwrap();
    let text = stdout(&output).replace('\n', " ");
    assert!(text.contains("its last process has ended") && text.contains("The old limit is back"), "{output:?}");
    assert!(!zram_is_swap());
}

#[test]
fn what_cannot_be_squeezed_is_one_sentence_with_a_remedy() {
    for words in [&["--max-stall", "0%", "1"][..], &["--for", "1ms", "1"], &["--export", "a.html", "1"]] {
        refused(&mut squeeze(words), 2, &[words[0].trim_start_matches("--")]);
    }
    let Some((_alone, place)) = place() else { return };
    refused(&mut squeeze(&["4194304"]), 4, &["no process 4194304", "ps"]);
    refused(&mut squeeze(&["no-such-container"]), 4, &["no running container, unit or process", "docker ps"]);
    refused(&mut squeeze(&["no-such.service"]), 4, &["no running unit", "systemctl"]);
    refused(&mut squeeze(&["/no/such/group"]), 4, &["no group /no/such/group"]);
    refused(&mut squeeze(&["--swap", "zram", &std::process::id().to_string()]), 4, &["group"]);
    let locked = Running::start(place.clone(), "locked", &["lock"]);
    refused(&mut squeeze(&["--swap", "zram", &locked.process()]), 4, &["locked", "LimitMEMLOCK"]);
    drop(locked);
    let running = Running::start(place, "refused", &[]);
    if Tree::machine().text("/proc/swaps").lines().count() < 2 {
        refused(&mut squeeze(&[&running.process()]), 4, &["no swap", "--swap zram"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = Command::new(copy_for_all(folder.path()));
    other.args(["squeeze", "--yes"]).arg(running.process()).uid(65534).gid(65534);
    refused(&mut other, 4, &["cannot be written by you", "run it as root"]);
}

#[test]
fn without_yes_a_container_is_named_and_nothing_is_changed() {
    let Some((_alone, place)) = place() else { return };
    let running = Running::start(place, "named", &[]);
    let (before, tools) = (running.limits(), tempfile::tempdir().unwrap());
    docker(tools.path(), &running.process());
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap());
    for words in [&["--swap", "zram", "web-1"][..], &["--dry-run", "--swap", "zram", "web-1"]] {
        let output = squeeze(words).env("PATH", &path).output().unwrap();
        let message = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let folder = running.folders[0].file_name().unwrap().to_string_lossy();
        assert!(message.replace('\n', "").contains(&*folder) && message.contains("--yes"), "{message}");
        assert_eq!((running.limits(), zram_is_swap()), (before.clone(), false));
    }
}

/// A docker that knows one container: the real one is not on every machine.
fn docker(folder: &Path, process: &str) {
    let script = format!("#!/bin/sh\ntest \"$1\" = inspect && test \"$5\" = web-1 && echo {process}\n");
    let path = folder.join("docker");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// A hold of a group, with its state and metrics in a folder.
fn hold(folder: &Path, words: &[&str]) -> Command {
    let (state, metrics) = (folder.join("state.json"), folder.join("hold.prom"));
    let mut command = squeeze(&["--hold", "--yes", "--swap", "zram", "--for", "400ms", "--max-stall", "20%"]);
    command.arg("--state").arg(state).arg("--export").arg(metrics).args(words);
    command
}

fn end(child: &Child) {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_hold_lowers_the_limit_tells_each_change_and_remembers_it() {
    let Some((_alone, place)) = place() else { return };
    let running = Running::start(place, "held", &[]);
    let (before, folder, process) = (running.limits(), tempfile::tempdir().unwrap(), running.process());
    let held = hold(folder.path(), &["--format", "json", &process]).spawn().unwrap();
    until("the limit is lower", || running.limits().0 != before.0);
    refused(&mut hold(tempfile::tempdir().unwrap().path(), &[&process]), 4, &["another coldframe", "end that one"]);
    let metrics = folder.path().join("hold.prom");
    until("metrics of a limit", || {
        std::fs::read_to_string(&metrics)
            .is_ok_and(|text| text.contains("hold_limit_bytes") && !text.contains(" NaN\n"))
    });
    end(&held);
    let output = held.wait_with_output().unwrap();
    assert_eq!((output.status.code(), running.limits()), (Some(0), before), "{}", stderr(&output));
    let lines = stdout(&output);
    let changes: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(changes[0]["limit_bytes"].as_u64().unwrap() < 60 << 20, "{lines}");
    assert_eq!(changes.last().unwrap()["why"], "stopped", "{lines}");
    let mut suggest = squeeze(&["--suggest", &process, "--state"]);
    let words = stdout(&suggest.arg(folder.path().join("state.json")).output().unwrap());
    assert!(words.contains("p99") && words.contains("containerRecommendations"), "{words}");
}

#[test]
fn a_held_limit_is_back_whoever_is_killed_and_somebody_elses_stays() {
    let Some((_alone, place)) = place() else { return };
    let running = Running::start(place, "kept", &[]);
    let (before, folder) = (running.limits(), tempfile::tempdir().unwrap());
    let start = || {
        let held = hold(folder.path(), &[&running.process()]).spawn().unwrap();
        until("the limit is lower", || running.limits().0 != before.0);
        held
    };
    let mut held = start();
    held.kill().unwrap();
    held.wait().unwrap();
    until("the old limit is back", || running.limits() == before);
    until("the swap is gone", || !zram_is_swap());
    let held = start();
    kill_guard(held.id());
    let output = held.wait_with_output().unwrap();
    assert!(stderr(&output).contains("the guard was killed") && running.limits() == before, "{output:?}");
    let held = start();
    let file = running.folders[0].join(running.version.squeeze_file());
    std::fs::write(file, (300u64 << 20).to_string()).unwrap();
    let output = held.wait_with_output().unwrap();
    assert_eq!((output.status.code(), running.limits().0.trim()), (Some(0), "314572800"), "{output:?}");
    assert!(stdout(&output).contains("limit 300 MiB: somebody else has set the limit, which stays"), "{output:?}");
    assert_eq!(running.limits().1, before.1, "the killer is on again");
}

#[test]
fn what_cannot_be_held_is_one_sentence() {
    refused(&mut squeeze(&["--hold", "--yes", "--export", "a.csv", "1"]), 2, &["--export", ".prom"]);
    refused(&mut squeeze(&["--suggest", "no-such", "--state", "/no/such"]), 3, &["no history", "--hold --yes"]);
    let Some((_alone, place)) = place() else { return };
    let running = Running::start(place, "unheld", &[]);
    let (before, folder, process) = (running.limits(), tempfile::tempdir().unwrap(), running.process());
    refused(&mut hold(folder.path(), &["--check", "exit 7", &process]), 3, &["`exit 7` fails at the start"]);
    let missing = ["--latency-file", "/no/such/file", &process];
    refused(&mut hold(folder.path(), &missing), 3, &["/no/such/file", "start what writes it"]);
    assert_eq!(running.limits(), before);
}
