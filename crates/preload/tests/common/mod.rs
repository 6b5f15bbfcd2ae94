//! Helpers for the tests: the library, tools that may be missing, small C programs.
#![allow(dead_code)] // each test binary uses its part

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use coldframe_costs::doctor::Health;
use coldframe_live::{Options, Wait};
use coldframe_toolbox::{have, shared_library, skip, Tool, GCC};

pub const CXX: Tool = ("g++", "g++");

/// The library, built here once.
pub fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| shared_library("coldframe-preload", "libcoldframe_preload.so")).clone()
}

/// The start of every C program of the tests.
const PRELUDE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define MANAGED(p) ((uintptr_t)(p) >= 0x80000000 && (uintptr_t)(p) < 0x20000000000)
#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #what, errno); _exit(99); } } while (0)
extern char **environ;
"#;

/// Compiles C to `dir/name`. Messages name lines of `source`.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, format!("{PRELUDE}#line 1 \"{name}.c\"\n{source}")).unwrap();
    // The compiler must not optimize: it may remove a malloc and its free as a pair.
    let status = Command::new("gcc")
        .args(["-O1", "-fno-builtin", "-pthread", "-w"])
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .args(flags)
        .status();
    assert!(status.unwrap().success(), "gcc failed on {name}");
    program
}

/// The program under the library with a pager, in this many bytes of RAM. Its swap file is where files on a disk
/// usually are. `None`: this machine does not allow programs to page.
pub fn paged(program: impl AsRef<Path>, ram: u64) -> Option<Command> {
    let backing = if Path::new("/var/tmp").is_dir() { PathBuf::from("/var/tmp") } else { std::env::temp_dir() };
    let missing = coldframe_costs::doctor::examine(&backing).into_iter().find(|found| found.health == Health::Missing);
    if let Some(missing) = missing {
        skip(&format!("{}: {}", missing.name, missing.found));
        return None;
    }
    let mut options = Options::new(ram);
    // As on the command line: asynchronous waiting, with rings.
    options.max_memory = Options::MAX_MEMORY;
    (options.wait, options.backing) = (Wait::Brief, backing);
    let mut command = Command::new(program.as_ref());
    command.env("LD_PRELOAD", library()).env("COLDFRAME_OPTIONS", options.encode());
    command.stdin(Stdio::null());
    Some(command)
}

/// Changes the options that [`paged`] gave.
pub fn with(command: &mut Command, change: impl FnOnce(&mut Options)) -> &mut Command {
    let usual = command.get_envs().find(|(key, _)| *key == "COLDFRAME_OPTIONS").and_then(|(_, value)| value);
    let mut options = Options::decode(usual.unwrap().to_str().unwrap()).unwrap();
    change(&mut options);
    command.env("COLDFRAME_OPTIONS", options.encode())
}

/// Compiles a C program and runs it alone, and with a pager and little RAM. It must succeed each time.
pub fn everywhere(name: &str, source: &str) {
    if !have(&[GCC]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), name, source, &[]);
    good(Command::new(&program).current_dir(dir.path()));
    if let Some(mut paged) = paged(&program, 4 << 20) {
        good(paged.current_dir(dir.path()));
    }
}

/// Runs the command; fails if it hangs or fails. Returns its output.
pub fn good(command: &mut Command) -> Output {
    let output = run(command);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{words}", output.status);
    output
}

/// A program that takes longer hangs. This is far more than the slowest takes on two processors with four busy loops.
const HUNG: Duration = Duration::from_secs(300);

/// Runs the command; fails if it hangs. Returns its output.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, start) = (child.id(), Instant::now());
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if ended.recv_timeout(HUNG).is_err() {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    done.send(()).ok();
    assert!(start.elapsed() < HUNG, "{command:?} hung\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Compiles a C program and runs it with a pager in this many bytes of RAM. The exit code says whether all checks
/// passed.
pub fn check_paged(name: &str, source: &str, ram: u64, flags: &[&str]) -> Option<Output> {
    if !have(&[GCC]) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), name, source, flags);
    Some(good(paged(program, ram)?.current_dir(dir.path())))
}

/// RAM for all memory of a test's program.
pub const ROOMY: u64 = 1 << 30;

/// Compiles a C program and runs it with a pager that has RAM for everything.
pub fn check(name: &str, source: &str) -> Option<Output> {
    check_paged(name, source, ROOMY, &[])
}
