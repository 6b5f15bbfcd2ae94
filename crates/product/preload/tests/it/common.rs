//! Helpers for the tests: the library, tools that may be missing, small C programs.

pub mod fuse;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use coldframe_answer::run::rights::Health;
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
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #what, errno); \
            _exit(99); \
        } \
    } while (0)
extern char **environ;
"#;

/// C code that fills six MiB and reads them back, in this process and in a child.
pub const PAGING: &str = r#"
#include <sys/resource.h>
enum { P = 4096, N = 6 << 20 };
static void page(void) {
    static char *p; if (!p) p = malloc(N);
    CHECK(MANAGED(p));
    for (int i = 0; i < N; i += P) { memset(p + i, i / P % 251, P); p[i + 7] = i >> 12; }
    for (int i = 0; i < N; i += P)
        CHECK(p[i] == (char)(i / P % 251) && p[i + 7] == (char)(i >> 12) && p[i + P - 1] == p[i]);
}
static void fork_and_page(void) {
    pid_t child = fork(); int status;
    if (child == 0) { page(); _exit(0); }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}
"#;

/// Compiles C to `dir/name`. Messages name lines of `source`.
pub fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let file = dir.join(format!("{name}.c"));
    std::fs::write(&file, format!("{PRELUDE}#line 1 \"{name}.c\"\n{source}")).unwrap();
    // The compiler must not optimize: it may remove a malloc and its free as a pair.
    built("gcc", &["-O1", "-fno-builtin", "-pthread", "-w"], &file, flags)
}

/// Compiles C++ to `dir/name`.
pub fn compile_cxx(dir: &Path, name: &str, source: &str) -> PathBuf {
    let file = dir.join(format!("{name}.cpp"));
    std::fs::write(&file, source).unwrap();
    built("g++", &["-std=c++17", "-O1", "-pthread"], &file, &[])
}

fn built(compiler: &str, flags: &[&str], file: &Path, last: &[&str]) -> PathBuf {
    let program = file.with_extension("");
    let status = Command::new(compiler).args(flags).arg(file).arg("-o").arg(&program).args(last).status();
    assert!(status.unwrap().success(), "{compiler} failed on {}", file.display());
    program
}

/// A compiled C program, in a folder of its own.
pub struct Program {
    pub dir: tempfile::TempDir,
    pub path: PathBuf,
}

/// Compiles a C program; `None`: there is no compiler.
pub fn program(name: &str, source: &str) -> Option<Program> {
    program_with(name, source, &[])
}

pub fn program_with(name: &str, source: &str, flags: &[&str]) -> Option<Program> {
    have(&[GCC]).then(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = compile(dir.path(), name, source, flags);
        Program { dir, path }
    })
}

impl Program {
    /// Alone, in its folder.
    pub fn plain(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(self.dir.path());
        command
    }

    /// As [`paged`], in its folder.
    pub fn paged(&self, ram: u64) -> Option<Command> {
        let mut command = paged(&self.path, ram)?;
        command.current_dir(self.dir.path());
        Some(command)
    }
}

/// The program under the library with a pager, in this many bytes of RAM. Its swap file is where files on a disk
/// usually are. `None`: this machine does not allow programs to page.
pub fn paged(program: impl AsRef<Path>, ram: u64) -> Option<Command> {
    let backing = if Path::new("/var/tmp").is_dir() { PathBuf::from("/var/tmp") } else { std::env::temp_dir() };
    let missing =
        coldframe_answer::run::rights::examine(&backing).into_iter().find(|found| found.health == Health::Missing);
    if let Some(missing) = missing {
        skip(&format!("{}: {}", missing.name, missing.state));
        return None;
    }
    let mut options = Options::new(ram);
    // As on the command line: asynchronous waiting, with rings, and one budget.
    (options.max_memory, options.one_budget) = (Options::MAX_MEMORY, true);
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

/// The command, started by a shell after it has done `first`. The shell itself runs without a pager.
pub fn in_shell(ready: &Command, first: &str) -> Command {
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &format!("{first}; LD_PRELOAD=$LIBRARY exec \"$0\" \"$@\"")])
        .arg(ready.get_program())
        .args(ready.get_args());
    for (name, value) in ready.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        shell.env(if name == "LD_PRELOAD" { "LIBRARY".as_ref() } else { name }, value);
    }
    shell
}

/// Compiles a C program and runs it alone, and with a pager and little RAM. It must succeed each time.
pub fn everywhere(name: &str, source: &str) {
    let Some(program) = program(name, source) else { return };
    good(&mut program.plain());
    program.paged(4 << 20).iter_mut().for_each(|command| _ = good(command));
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
    Some(good(&mut program_with(name, source, flags)?.paged(ram)?))
}

/// Tests of C programs that check themselves, each by [`check`], [`everywhere`] or a function of the test's file.
macro_rules! programs {
    ($($(#[$doc:meta])* $name:ident = $how:ident $source:expr;)*) => { $(
        $(#[$doc])*
        #[test]
        fn $name() {
            let _ = $how(stringify!($name), $source);
        }
    )* };
}

/// RAM for all memory of a test's program.
pub const ROOMY: u64 = 1 << 30;

/// Compiles a C program and runs it with a pager that has RAM for everything.
pub fn check(name: &str, source: &str) -> Option<Output> {
    check_paged(name, source, ROOMY, &[])
}
