//! What tests of the program share: how it is started, and what a test needs that makes swap or groups.
#![allow(dead_code)] // no test needs all of it

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;

use coldframe_kernel::{Place, Tree};
use coldframe_proc::Process;
use coldframe_toolbox::programs::{self, can_page, compiled};
use coldframe_toolbox::{have, skip, GCC};

/// `coldframe` with these words, without colours and input. What it measures of this machine is there for later tests.
pub fn coldframe(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.args(words).env("NO_COLOR", "1").env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).stdin(Stdio::null());
    command
}

/// A folder with a program that is to be paged; `None`: that cannot be done here.
pub fn folder_with(name: &str, text: &str, options: &[&str]) -> Option<tempfile::TempDir> {
    let folder = can_page().then(|| tempfile::tempdir().unwrap())?;
    compiled(folder.path(), name, text, options);
    Some(folder)
}

/// For a test that makes swap: it is the only one at that time. `None`: none can be made here.
pub fn alone() -> Option<MutexGuard<'static, ()>> {
    let alone = programs::alone();
    let why = match rustix::process::geteuid().is_root() {
        false => "not root, so no swap is made",
        true if !Path::new("/sys/class/zram-control").is_dir() => "no zram (modprobe zram)",
        true => return have(&[GCC]).then_some(alone),
    };
    skip(why);
    None
}

/// Where groups can be made; `None`: not here.
pub fn place() -> Option<Place> {
    Place::find(&Tree::machine()).inspect_err(|error| skip(&error.to_string())).ok()
}

/// Kills the guard of a process of coldframe.
pub fn kill_guard(process: u32) {
    let is_guard = |child: &u32| Process::of(*child).command_line().iter().any(|word| word == "kernel-guard");
    let guard = Process::of(process).children().into_iter().find(is_guard).expect("it has a guard");
    assert!(Command::new("kill").args(["-KILL", &guard.to_string()]).status().unwrap().success());
    programs::until("the guard has ended", || Process::of(guard).stat().is_none_or(|stat| stat.ended()));
}

/// The line that reverts what killed guards have left; it is run. Both commands name it.
pub fn reverted_as_named() {
    let named = programs::stderr(&coldframe(&["park", "--list"]).output().unwrap());
    let line = named.lines().skip_while(|line| !line.contains("a guard was killed")).nth(1).unwrap_or_default().trim();
    let doctor = || programs::stdout(&coldframe(&["doctor", "--format", "json"]).output().unwrap());
    assert!(!line.is_empty() && doctor().contains("one was killed"), "{named}");
    assert!(Command::new("sh").args(["-c", line]).status().unwrap().success(), "{line}");
    assert!(!doctor().contains("one was killed"), "{}", doctor());
    assert_eq!(programs::stderr(&coldframe(&["park", "--list"]).output().unwrap()), "");
}

/// A program that has been started and has said that it is ready.
pub fn ready(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    child
}
