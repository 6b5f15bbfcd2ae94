//! Tests that need a process of their own: its user, its signals, its threads, its words.
#![allow(dead_code)] // each test binary uses its part

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Says which part this process is.
const PART: &str = "COLDFRAME_TEST_PART";

/// Runs `body` in a process of its own, by running the test `name` again; what that process said and how it ended.
pub fn apart(name: &str, body: impl FnOnce()) -> Output {
    if std::env::var_os(PART).is_some_and(|part| part == name) {
        // A hang is a failure.
        // SAFETY: no pointers.
        unsafe { libc::alarm(60) };
        body();
        std::process::exit(0);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(PART, name);
    command.output().unwrap()
}

/// As `apart`, and it must have ended well. What it said.
pub fn well(name: &str, body: impl FnOnce()) -> String {
    let output = apart(name, body);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let (code, signal) = (output.status.code(), output.status.signal());
    assert!(output.status.success(), "{name}: code {code:?}, signal {signal:?}\n{words}");
    words
}
