//! What tests of the program share: how it is started, and what a test needs that makes swap or groups.
#![allow(dead_code)] // no test needs all of it

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;

use coldframe_kernel::{Place, Tree};
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

/// A program that has been started and has said that it is ready.
pub fn ready(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    child
}
