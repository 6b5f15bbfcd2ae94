//! What the tests share: the library, tools that may be missing, small C programs.
#![allow(dead_code)] // each test binary uses its part

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use coldframe_toolbox::{have, shared_library, Tool, GCC};

pub const CXX: Tool = ("g++", "g++");

/// The library, built here once.
pub fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| shared_library("coldframe-preload", "libcoldframe_preload.so")).clone()
}

/// What every C program of the tests begins with.
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
#define MANAGED(p) ((uintptr_t)(p) >= 0x200000000000 && (uintptr_t)(p) < 0x300000000000)
#define CHECK(what) do { if (!(what)) { fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #what, errno); _exit(99); } } while (0)
extern char **environ;
"#;

/// Compiles C to `dir/name`. Messages name lines of `source`.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&file, format!("{PRELUDE}#line 1 \"{name}.c\"\n{source}")).unwrap();
    // Nothing is optimized away: to a compiler, malloc and free are a pair that it may strike out.
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

/// The program under the library, at managed addresses without a pager.
pub fn layout_only(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env("LD_PRELOAD", library()).env("COLDFRAME_LAYOUT_ONLY", "1").env_remove("COLDFRAME_OPTIONS");
    command.stdin(Stdio::null());
    command
}

/// Its output; fails if it does not end within a minute or ends badly.
pub fn good(command: &mut Command) -> Output {
    let output = run(command);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{words}", output.status);
    output
}

/// Its output; fails if it does not end within a minute.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, start) = (child.id(), Instant::now());
    let (done, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if told.recv_timeout(Duration::from_secs(60)).is_err() {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    done.send(()).ok();
    assert!(start.elapsed() < Duration::from_secs(60), "{command:?} hung\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Compiles and runs a C program, which says with its exit code whether all is well.
pub fn check(name: &str, source: &str) -> Option<Output> {
    if !have(&[GCC]) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = compile(dir.path(), name, source, &[]);
    Some(good(layout_only(program).current_dir(dir.path())))
}
