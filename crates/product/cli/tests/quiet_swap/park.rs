//! `coldframe park` and `resume` on programs that run: pages leave and come back, and whatever ends, nothing stays
//! frozen.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{alone, coldframe, ready, reverted_as_named};
use crate::zram;
use coldframe_kernel::Tree;
use coldframe_proc::{advise, scan, Advice, Place, Process};
use coldframe_toolbox::programs::{self, compiled, copy_for_all, open_to_all, until};
use coldframe_toolbox::skip;

/// Writes 32 MiB, then reads the first 4 MiB again and again, 1,024 pages; a child of it sleeps.
const HOT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main() {
    volatile char *heap = malloc((size_t)32 << 20);
    if (!fork()) for (;;) pause();
    for (size_t i = 0; i < (size_t)32 << 20; i += 64) heap[i] = i >> 12;
    puts("ready"); fflush(stdout);
    for (;;) { for (size_t i = 0; i < (size_t)4 << 20; i += 4096) (void)heap[i]; struct timespec nap = {0, 1000000};
        nanosleep(&nap, 0); }
}
"#;

struct Hot(Child);

impl Hot {
    fn start(user: u32) -> Hot {
        let folder = tempfile::tempdir().unwrap();
        Hot::start_in(folder.path(), user)
    }

    fn start_in(folder: &Path, user: u32) -> Hot {
        let program = compiled(folder, "hot", HOT, &[]);
        open_to_all(folder);
        Hot(ready(Command::new(program).uid(user).gid(user).process_group(0)))
    }

    /// With that name.
    fn named(folder: &Path, name: &str) -> Hot {
        Hot(ready(Command::new(compiled(folder, name, HOT, &[])).process_group(0)))
    }

    fn process(&self) -> String {
        self.0.id().to_string()
    }

    /// Its state and its child's.
    fn states(&self) -> String {
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        let child = std::fs::read_to_string(children).unwrap();
        [&self.process(), child.trim()].map(|process| status(process, "State")[..1].to_string()).concat()
    }

    /// MiB in swap.
    fn swapped(&self) -> u64 {
        status(&self.process(), "VmSwap").trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }

    fn runs(&self) {
        until("both run", || !self.states().contains('T'));
    }
}

impl Drop for Hot {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

fn status(process: &str, field: &str) -> String {
    let all = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = all.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or("X").trim().to_string()
}

fn message(words: &[&str]) -> String {
    let output = coldframe(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", programs::stderr(&output));
    programs::stdout(&output).replace("\n  ", " ")
}

/// The one sentence that a command fails with.
fn refused(mut command: impl std::borrow::BorrowMut<Command>, says: &[&str]) {
    programs::refused(command.borrow_mut(), 4, says);
}

/// `coldframe turns` under way with its options and programs.
fn turns(options: &[&str], programs: &[&str]) -> Child {
    let words = [&["-q", "turns", "--format", "json"], options, programs].concat();
    coldframe(&words).stdout(Stdio::piped()).spawn().unwrap()
}

/// What it prints at its end.
fn printed(turns: Child) -> serde_json::Value {
    let output = turns.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The processes of coldframe that hold a program: its parking process, and that process's guard.
fn parking_process(name: &str) -> (String, String) {
    let pgrep = |words: &[&str]| {
        let found = Command::new("pgrep").args(words).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().to_string()
    };
    let parked_by = pgrep(&["-f", &format!("kernel-park -- {name}$")]);
    let guard = pgrep(&["-P", &parked_by]);
    (parked_by, guard)
}

fn kill(process: &str) {
    let done = Command::new("kill").args(["-KILL", process]).output().unwrap();
    assert!(done.status.success(), "{process:?}: {}", String::from_utf8_lossy(&done.stderr));
    let process = Process::of(process.parse().unwrap());
    until("the killed process has ended", || process.stat().is_none_or(|stat| stat.ended()));
}

#[test]
fn a_parked_program_leaves_ram_and_what_it_used_is_fetched_before_it_runs() {
    let Some(_alone) = alone() else { return };
    let swap = zram();
    let hot = Hot::start(0);
    let name = hot.process();
    assert!(message(&["park", &name]).contains("still in RAM. What it uses"));
    assert_eq!((hot.states().as_str(), hot.swapped() >= 30), ("TT", true));
    assert!(message(&["resume", "--soon", &name]).contains("no list yet"));
    assert!(message(&["resume", &name]).contains("runs"));
    hot.runs();
    until("it has read its 4 MiB", || hot.swapped() <= 28);
    for _ in 0..2 {
        let parked = message(&["park", &name]);
        let used = parked.split("has used ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        // The kernel does not push out the few that are on their way to its lists.
        assert!(used.is_some_and(|mib| (3.6..5.0).contains(&mib)), "{parked}");
        assert!(message(&["park", "--list"])
            .lines()
            .any(|line| line.contains(&name) && line.contains("parked") && line.contains("hot")));
        let all: serde_json::Value = serde_json::from_str(&message(&["park", "--list", "--format", "json"])).unwrap();
        let own = all["programs"].as_array().unwrap().iter().find(|one| one["name"] == name.as_str()).unwrap();
        assert!(own["parked"] == true && own["bytes"]["swapped"].as_u64() >= Some(30 << 20), "{own}");
        let read =
            || Tree::machine().text("/proc/vmstat").lines().find_map(|line| line.strip_prefix("pswpin ")?.parse().ok());
        let before: u64 = read().unwrap();
        assert!(message(&["resume", "--soon", &name]).contains("fetched"));
        assert!(read().unwrap() - before >= 900, "its pages are read");
        assert_eq!((hot.states().as_str(), hot.swapped() >= 30), ("TT", true), "and are in the swap cache");
        message(&["resume", &name]);
        hot.runs();
        until("it has read its 4 MiB", || hot.swapped() <= 28);
    }
    refused(coldframe(&["resume", &name]), &["runs already"]);
    drop(hot);
    until("its parking process ends", || !message(&["park", "--list"]).contains(&name));
    refused(coldframe(&["resume", &name]), &["is not parked", "has ended"]);
    assert!(swap.end());
}

#[test]
fn whoever_is_killed_the_program_runs_on() {
    let Some(_alone) = alone() else { return };
    let swap = zram();
    let hot = Hot::start(0);
    let name = hot.process();
    message(&["park", &name]);
    // Others let it run: it can be parked again.
    assert!(Command::new("kill").args(["-CONT", "--", &format!("-{name}")]).status().unwrap().success());
    hot.runs();
    for which in ["guard", "parking process"] {
        message(&["park", &name]);
        assert_eq!(hot.states(), "TT");
        let (parked_by, guard) = parking_process(&name);
        kill(if which == "guard" { &guard } else { &parked_by });
        hot.runs();
    }
    message(&["park", &name]);
    let (parked_by, guard) = parking_process(&name);
    assert!(Command::new("kill").args(["-STOP", &guard]).status().unwrap().success());
    kill(&parked_by);
    kill(&guard);
    assert_eq!(hot.states(), "TT");
    reverted_as_named();
    hot.runs();
    // The killed process's socket is still there.
    refused(coldframe(&["resume", &name]), &["is not parked"]);
    message(&["park", &name]);
    refused(coldframe(&["park", &name]), &["parked already"]);
    let socket = std::fs::read_dir("/run/coldframe").unwrap().flatten().find_map(|entry| {
        let mut stream = UnixStream::connect(entry.path()).ok()?;
        stream.write_all(b"resume\tanother\t1\n").ok()?;
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).ok()?;
        reply.contains(&format!("{name} is kept by another build")).then_some(reply)
    });
    assert!(socket.is_some_and(|reply| reply.contains(&format!("kill {}", parking_process(&name).0))));
    assert_eq!(hot.states(), "TT");
    kill(&name);
    until("it has ended", || status(&name, "State").starts_with('Z'));
    refused(coldframe(&["resume", &name]), &["ended"]);
    assert!(swap.end());
}

#[test]
fn programs_take_turns_with_their_pages_fetched_and_run_on_after_ctrl_c() {
    let Some(_alone) = alone() else { return };
    let (swap, a, b) = (zram(), Hot::start(0), Hot::start(0));
    let running = turns(&["--slice", "400ms"], &[&a.process(), &b.process()]);
    for _ in 0..3 {
        until("the first one's turn", || b.states() == "TT" && !a.states().contains('T'));
        until("the second one's turn", || a.states() == "TT" && !b.states().contains('T'));
    }
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let done = printed(running);
    a.runs();
    b.runs();
    assert_eq!((&done["end"], done["programs"].as_array().map(Vec::len)), (&"signal".into(), Some(2)), "{done}");
    for (one, hot) in done["programs"].as_array().unwrap().iter().zip([&a, &b]) {
        assert!(one["name"] == hot.process() && one["turns"].as_u64() >= Some(3) && one["ended"] == false, "{done}");
        // The list of its second turn, of 4 MiB, is fetched before the third one.
        assert!(one["fetched_bytes"].as_u64() >= Some(3 << 20), "{done}");
    }
    assert!(swap.end());
}

/// Devices and files of swap.
fn swaps() -> usize {
    Tree::machine().text("/proc/swaps").lines().count() - 1
}

#[test]
fn programs_are_named_and_have_swap_of_their_own_while_they_take_turns_and_while_they_are_parked() {
    let Some(_alone) = alone() else { return };
    let (folder, before) = (tempfile::tempdir().unwrap(), swaps());
    let (a, b) = (Hot::named(folder.path(), "turn-taker-a"), Hot::named(folder.path(), "turn-taker-b"));
    let words = ["-q", "turns", "--swap", "zram", "--slice", "400ms", "turn-taker-a", "turn-taker-b"];
    let running = coldframe(&words).stdout(Stdio::piped()).spawn().unwrap();
    until("the first one's turn", || b.states() == "TT" && b.swapped() >= 30);
    until("the second one's turn", || a.states() == "TT" && a.swapped() >= 20);
    assert_eq!(swaps(), before + 1);
    assert!(Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap().success());
    let printed = programs::stdout(&running.wait_with_output().unwrap());
    assert!(printed.contains("turn-taker-a") && !printed.contains(&a.process()), "{printed}");
    a.runs();
    b.runs();
    until("its swap is gone", || swaps() == before && a.swapped() + b.swapped() == 0);
    // A number has its program's name beside it.
    let parked = message(&["park", "--swap", "zram", &a.process()]);
    assert!(parked.starts_with(&format!("turn-taker-a ({}) is parked", a.process())), "{parked}");
    assert!(message(&["park", "--swap", "zram", "turn-taker-b"]).starts_with("turn-taker-b is parked"));
    assert_eq!((a.swapped() >= 30, b.swapped() >= 30, swaps()), (true, true, before + 2));
    assert_eq!(message(&["resume", "turn-taker-b"]).trim(), "turn-taker-b runs.");
    drop((a, b));
    until("their swap is gone", || swaps() == before);
    let usage = |words: &[&str], says: &str| programs::refused(&mut coldframe(words), 2, &[says]);
    usage(&["turns", "--swap", "none", "1", "2"], "--swap none: nothing could leave");
    usage(&["park", "--swap", "/etc/passwd", "1"], "is there already");
}

#[test]
fn turns_end_early_when_a_program_is_idle_and_for_good_when_one_is_left() {
    let Some(_alone) = alone() else { return };
    let (swap, hot) = (zram(), Hot::start(0));
    let mut idle = Command::new("sleep").arg("1000").spawn().unwrap();
    let running = turns(&["--slice", "20s", "--until-idle"], &[&idle.id().to_string(), &hot.process()]);
    until("sleep's turn", || hot.states() == "TT");
    until("the other one's turn, since sleep sleeps", || status(&idle.id().to_string(), "State").starts_with('T'));
    hot.runs();
    idle.kill().unwrap();
    idle.wait().unwrap();
    let done = printed(running);
    assert_eq!((&done["end"], &done["programs"][0]["idle_turns"]), (&"one_left".into(), &1.into()), "{done}");
    assert!(done["programs"][0]["ended"] == true && done["programs"][1]["ended"] == false, "{done}");
    hot.runs();
    assert!(swap.end());
}

#[test]
fn killed_turns_and_refused_turns_leave_all_programs_running() {
    let Some(_alone) = alone() else { return };
    let (swap, a, b) = (zram(), Hot::start(0), Hot::start(0));
    let (name, other) = (a.process(), b.process());
    for turn_of_a in [true, false] {
        let mut running = turns(&["--slice", "500ms"], &[&name, &other]);
        until("a turn", || [&a, &b].map(|hot| hot.states() == "TT") == [!turn_of_a, turn_of_a]);
        running.kill().unwrap();
        running.wait().unwrap();
        a.runs();
        b.runs();
    }
    let child = std::fs::read_to_string(format!("/proc/{name}/task/{name}/children")).unwrap();
    let usage = |words: &[&str], says: &[&str]| programs::refused(&mut coldframe(words), 2, says);
    usage(&["turns", &name, &other, &name], &["both have process", "name each program once"]);
    usage(&["turns", &name, child.trim()], &["both have process"]);
    usage(&["turns", "--slice", "1ms", &name, &other], &["--slice at least 100ms"]);
    refused(coldframe(&["turns", &name, "4194304"]), &["4194304 is not there"]);
    a.runs();
    b.runs();
    assert!(swap.end());
}

#[test]
fn the_next_start_of_a_program_has_the_list_of_the_last_one() {
    let Some(_alone) = alone() else { return };
    let (swap, folder) = (zram(), tempfile::tempdir().unwrap());
    let first = Hot::start_in(folder.path(), 0);
    let name = first.process();
    message(&["park", &name]);
    message(&["resume", &name]);
    first.runs();
    until("it has read its 4 MiB", || first.swapped() <= 28);
    message(&["park", &name]);
    drop(first);
    let second = Hot::start_in(folder.path(), 0);
    message(&["park", &second.process()]);
    let fetched = message(&["resume", "--soon", &second.process()]);
    let mib = fetched.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    assert!(mib.is_some_and(|mib| (3.6..5.0).contains(&mib)), "{fetched}");
    message(&["resume", &second.process()]);
    second.runs();
    assert!(swap.end());
}

#[test]
fn what_cannot_be_parked_is_one_sentence_and_goes_on() {
    let Some(_alone) = alone() else { return };
    let hot = Hot::start(0);
    let name = hot.process();
    refused(coldframe(&["park", "4194304"]), &["4194304 is not there"]);
    refused(coldframe(&["park", &std::process::id().to_string()]), &["this command", "itself"]);
    if Tree::machine().text("/proc/swaps").lines().count() < 2 {
        refused(coldframe(&["park", &name]), &["no free swap", "--swap zram"]);
        until("no parking process is left", || !message(&["park", "--list"]).contains(&name));
    }
    let swap = zram();
    assert!(Command::new("kill").args(["-STOP", &name]).status().unwrap().success());
    until("it is stopped", || hot.states().starts_with('T'));
    refused(coldframe(&["park", &name]), &["stopped already", "kill -CONT"]);
    assert!(Command::new("kill").args(["-CONT", &name]).status().unwrap().success());
    hot.runs();
    if let Some(folder) = Frozen::around(&name) {
        refused(coldframe(&["park", &name]), &["stands still", "frozen", "echo 0"]);
        folder.freeze("0");
        message(&["park", &name]);
        folder.freeze("1");
        refused(coldframe(&["resume", &name]), &["may run, but stands still", "echo 0"]);
        folder.freeze("0");
        hot.runs();
    }
    assert!(swap.end());
}

/// A group of cgroup v2 with a process and its children, frozen.
struct Frozen(std::path::PathBuf);

impl Frozen {
    fn around(process: &str) -> Option<Frozen> {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" cgroup2 "))?.split(' ').nth(1)?.to_string();
        let folder = Path::new(&mount).join(format!("parked-{process}"));
        std::fs::create_dir(&folder).ok()?;
        std::fs::write(folder.join("cgroup.procs"), process).unwrap();
        let frozen = Frozen(folder);
        frozen.freeze("1");
        Some(frozen)
    }

    fn freeze(&self, value: &str) {
        std::fs::write(self.0.join("cgroup.freeze"), value).unwrap();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let root = self.0.parent().unwrap().join("cgroup.procs");
        for process in std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap().lines() {
            let _ = std::fs::write(&root, process);
        }
        until("the group is empty", || std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn with_cgroup_v2_a_group_is_frozen_and_whoever_is_killed_it_runs_on() {
    let Some(_alone) = alone() else { return };
    let (swap, hot) = (zram(), Hot::start(0));
    let Some(group) = Frozen::around(&hot.process()) else { return skip("no group of cgroup v2 can be made here") };
    let (folder, freezer) =
        (group.0.to_str().unwrap(), || std::fs::read_to_string(group.0.join("cgroup.freeze")).unwrap());
    // Where v1 has the memory controller, it is hidden.
    let done = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", "umount /sys/fs/cgroup/memory 2> /dev/null; exec \"$0\" \"$@\""]);
        let output = command.arg(env!("CARGO_BIN_EXE_coldframe")).args(words).output().unwrap();
        assert!(output.status.success(), "{}", programs::stderr(&output));
    };
    group.freeze("0");
    for which in ["guard", "parking process"] {
        done(&["park", folder]);
        assert_eq!((freezer().as_str(), hot.swapped() >= 30), ("1\n", true));
        done(&["resume", folder]);
        assert_eq!(freezer(), "0\n");
        done(&["park", folder]);
        let (parked_by, guard) = parking_process(folder);
        kill(if which == "guard" { &guard } else { &parked_by });
        until("it runs", || freezer() == "0\n");
    }
    drop(hot);
    assert!(swap.end());
}

#[test]
fn without_rights_a_users_program_stands_still_and_its_pages_are_read() {
    let Some(_alone) = alone() else { return };
    let (swap, folder) = (zram(), tempfile::tempdir().unwrap());
    let copy = copy_for_all(folder.path());
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
    let user = |words: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(words).env("XDG_RUNTIME_DIR", &own).uid(65534).gid(65534);
        command
    };
    let root = Hot::start(0);
    refused(user(&["park", &root.process()]), &["belongs to root", "sudo"]);
    root.runs();
    refused(user(&["park", "1"]).env_remove("XDG_RUNTIME_DIR"), &["XDG_RUNTIME_DIR is not set"]);
    let hot = Hot::start(65534);
    let done = |words: &[&str]| assert!(user(words).output().unwrap().status.success(), "{words:?}");
    let name = hot.process();
    // Others' need of RAM presses it out.
    let press = || {
        let pid = rustix::process::Pid::from_raw(hot.0.id() as i32).unwrap();
        let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let pages = scan(hot.0.id(), Place::Ram).unwrap();
        advise(handle, &pages, Advice::PageOut, &|| false).unwrap();
    };
    done(&["park", &name]);
    assert_eq!((hot.states().as_str(), hot.swapped()), ("TT", 0), "it may not push");
    press();
    done(&["resume", &name]);
    hot.runs();
    until("it has read its 4 MiB", || hot.swapped() <= 28);
    done(&["park", &name]);
    press();
    assert!(hot.swapped() >= 30);
    done(&["resume", "--soon", &name]);
    assert_eq!((hot.states().as_str(), hot.swapped() <= 28), ("TT", true), "seven eighths of its list are read");
    done(&["resume", &name]);
    hot.runs();
    assert!(swap.end());
}
