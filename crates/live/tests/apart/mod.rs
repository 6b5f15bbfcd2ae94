//! Runs tests that need their own process: its user, its signals, its threads, its output.
#![allow(dead_code)] // each test binary uses its part

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// The variable that names the part that this process runs.
const PART: &str = "COLDFRAME_TEST_PART";

/// Runs `body` in its own process, by running the test `name` again. Returns the output of the process and its status.
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

/// Like `apart`; the process must succeed. Returns its output.
pub fn well(name: &str, body: impl FnOnce()) -> String {
    let output = apart(name, body);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let (code, signal) = (output.status.code(), output.status.signal());
    assert!(output.status.success(), "{name}: code {code:?}, signal {signal:?}\n{words}");
    words
}
