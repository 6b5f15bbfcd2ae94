//! Programs that a test compiles, starts, waits for, and whose output it reads.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::{have, program, skip, GCC};

/// The C program with this name in the folder, built from its text by `compiler`.
///
/// # Panics
/// If it does not build.
pub fn compiled_by(compiler: &str, folder: &Path, name: &str, text: &str, options: &[&str]) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler);
    let built = command.args(["-O1", "-pthread", "-o"]).arg(&program).arg(&source).args(options).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    program
}

/// The same with GNU's compiler.
///
/// # Panics
/// If it does not build.
pub fn compiled(folder: &Path, name: &str, text: &str, options: &[&str]) -> PathBuf {
    compiled_by(GCC.0, folder, name, text, options)
}

/// Whether a C program can be compiled and paged here. If not, prints that the test is skipped.
///
/// # Panics
/// As [`skip`].
pub fn can_page() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    let examine = || Command::new(program("coldframe")).arg("doctor").output().unwrap().status.success();
    let can = *CAN.get_or_init(examine);
    if !can {
        skip("this machine cannot page a program; `coldframe doctor` says why");
    }
    can && have(&[GCC])
}

/// Holds the other tests of this program back that call it: one at a time changes what the whole machine has, such as
/// swap, or prints it.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until it is so.
///
/// # Panics
/// It is not so after a minute.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a command to its end, or fails after two minutes.
///
/// # Panics
/// It does not start.
pub fn finish(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id().to_string();
    let (done, watch) = channel::<()>();
    std::thread::spawn(move || {
        if watch.recv_timeout(Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("pkill").args(["-KILL", "-P", &pid]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    output
}

/// What a program wrote to its standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a program wrote to its standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Both, the results first.
pub fn message(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// Runs a command that is refused with this exit code, in one sentence with all of these words.
///
/// # Panics
/// It is not.
pub fn refused(command: &mut Command, code: i32, words: &[&str]) {
    let output = command.output().unwrap();
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
    assert!(words.iter().all(|word| errors.contains(word)) && errors.lines().count() == 1, "{words:?}: {errors}");
}

/// A copy of `coldframe` that every user may start.
///
/// # Panics
/// It cannot be made.
pub fn copy_for_all(folder: &Path) -> PathBuf {
    let copy = folder.join("coldframe");
    std::fs::copy(program("coldframe"), &copy).unwrap();
    open_to_all(folder);
    copy
}

/// Lets every user read a folder.
///
/// # Panics
/// It is not this user's.
pub fn open_to_all(folder: &Path) {
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}
