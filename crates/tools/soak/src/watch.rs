//! The process of a setting, from outside: starts it, watches it, and prints its stacks if it hangs.
//!
//! A process hangs if no counter of its pager changes for some time, before or after its time is over. Then the state,
//! the system call and the kernel stack of each thread are printed, for the process and its children; with gdb also the
//! program's own stacks.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use coldframe_live::{Snapshot, StatsFile};
use coldframe_proc::{Process, Tree};

use crate::setting::Setting;

/// A process with no fault for this long hangs. The longest legal wait is for a full device: a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct End {
    pub stats: Snapshot,
    pub failure: Option<String>,
}

/// Runs a setting in its own process for this long. `program`: the soak's own path; `memory`, `disk`: folders for swap
/// files.
pub fn watch(program: &Path, setting: &Setting, millis: u64, memory: &Path, disk: &Path) -> End {
    let stats = StatsFile::create().expect("memory for statistics");
    let folder = tempfile::tempdir_in(memory).expect("a folder in memory");
    let log = folder.path().join("stderr");
    let stderr = fs::File::create(&log).expect("a file for messages");
    let mut child = Command::new(program)
        .arg("--child")
        .args([setting.seed.to_string(), millis.to_string(), stats.fd().to_string()])
        .args([folder.path(), disk])
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(stderr)
        .spawn()
        .expect("the soak starts itself");
    let (status, stacks) = wait(&mut child, &stats);
    let mut text = String::new();
    let _ = fs::File::open(&log).and_then(|mut file| file.read_to_string(&mut text));
    End { stats: stats.snapshot(), failure: failure(status, &text, stacks) }
}

/// Waits for the end. If the process hangs, kills it and returns its stacks.
fn wait(child: &mut Child, stats: &StatsFile) -> (ExitStatus, Option<String>) {
    let (mut counts, mut since) = (Vec::new(), Instant::now());
    let mut pause = Duration::from_millis(5);
    let mut stacks = None;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            kill_group(child.id());
            return (status, stacks);
        }
        let now = stats.snapshot().counters();
        if now != counts {
            (counts, since) = (now, Instant::now());
        }
        if since.elapsed() > PATIENCE && stacks.is_none() {
            stacks = Some(look_into(child.id()));
            kill_group(child.id());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

fn kill_group(group: u32) {
    // SAFETY: the group was made by this process; it includes the child's own children.
    unsafe { libc::kill(-(group as libc::pid_t), libc::SIGKILL) };
}

fn failure(status: ExitStatus, stderr: &str, stacks: Option<String>) -> Option<String> {
    let tail: Vec<&str> = stderr.lines().rev().take(12).collect();
    let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n    ");
    match (stacks, status.code(), status.signal()) {
        (Some(stacks), ..) => Some(format!("HANG for {} s\n{stacks}\n    {tail}", PATIENCE.as_secs())),
        (None, Some(0), _) => None,
        (None, Some(code), _) => Some(format!("exit {code}: {tail}")),
        (None, None, signal) => Some(format!("signal {}: {tail}", signal.unwrap_or(0))),
    }
}

/// Describes all threads of all processes in a group.
fn look_into(group: u32) -> String {
    let mut text = String::new();
    for process in Tree::machine().processes() {
        if Process::of(process).stat().is_some_and(|stat| stat.group == group) {
            text += &format!("    process {process}\n");
            text += &threads(&Process::of(process));
            text += &stacks(process);
        }
    }
    text
}

fn threads(process: &Process) -> String {
    let mut text = String::new();
    for (thread, stat) in process.threads().into_iter().zip(process.thread_stats()) {
        let read =
            |name: &str| coldframe_proc::text(&process.file(&format!("task/{thread}/{name}"))).replace('\n', " < ");
        let (name, at, call) = (read("comm"), read("wchan"), read("syscall"));
        let stack: Vec<String> = read("stack").split(" < ").take(3).map(String::from).collect();
        let stack = stack.join(" < ");
        text += &format!("      {thread} {name} {} {at} [{call}] {stack}\n", stat.state);
    }
    text
}

/// The program's own stacks; empty without gdb.
fn stacks(process: u32) -> String {
    let run = Command::new("timeout")
        .args(["20", "gdb", "-p", &process.to_string(), "-batch", "-ex", "thread apply all backtrace 14"])
        .stdin(Stdio::null())
        .output();
    let text = run.map(|run| String::from_utf8_lossy(&run.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(frame).map(|line| format!("        {line}\n")).collect()
}

/// A thread's headline, or a frame of our own code, without arguments. Frames of libraries are left out: there are
/// many, and they say little.
fn frame(line: &str) -> Option<String> {
    if line.starts_with("Thread") {
        return Some(line.to_string());
    }
    let (number, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let (function, place) = rest.rsplit_once(" at ")?;
    let function = function.rsplit(" in ").next()?.trim();
    place.starts_with("crates/").then(|| format!("  #{number} {function} at {place}"))
}
