//! Signals: who sends one to coldframe means its program, and what was ignored when coldframe started stays so.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};

use coldframe_proc::Process;
use coldframe_toolbox::have;
use coldframe_toolbox::programs::{finish, stderr, stdout, until};

use crate::common::{coldframe, folder_with, place, ready};

/// Counts its signals until the last one, 64, and prints them.
const COUNTER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t came[65];
static void count(int signal) { came[signal]++; }
int main(void) {
    struct sigaction action = { .sa_handler = count };
    for (int i = 1; i < 65; i++)
        if (i != SIGKILL && i != SIGSTOP && i != SIGCHLD && i != SIGSEGV && i != SIGTSTP) sigaction(i, &action, 0);
    volatile char *all = malloc(4 << 20); // worth a recording
    for (int i = 0; i < 4 << 20; i += 512) all[i] = 1;
    puts("ready"); fflush(stdout);
    while (!came[64]) usleep(1000);
    for (int i = 1; i < 65; i++) if (came[i]) printf("%d:%d ", i, came[i]);
    puts("");
}
"#;

/// The ways to run a program, as far as they are possible here.
fn ways() -> Vec<Vec<&'static str>> {
    let mut ways = vec![vec!["run", "-q", "--by", "pager", "--ram", "8MiB", "--"], vec!["-q", "--once", "--"]];
    if place().is_some() {
        ways.push(vec!["run", "-q", "--by", "kernel", "--swap", "none", "--ram", "64MiB", "--"]);
    }
    ways
}

fn kill(process: u32, signals: &str) {
    for signal in signals.split(' ') {
        assert!(Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status().unwrap().success());
    }
}

/// What is left of its output.
fn rest(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text.trim().to_string())
}

#[test]
fn a_signal_that_a_process_sends_to_coldframe_reaches_the_program_once() {
    let Some(folder) = folder_with("counter", COUNTER, &[]) else { return };
    for way in ways() {
        let child = ready(coldframe(&way).arg("./counter").current_dir(folder.path()));
        kill(child.id(), "3 6 10 12 13 14 18 23 26 27 28 29 30 34 50");
        // They end a measurement.
        let ends = way[0] == "run";
        if ends {
            kill(child.id(), "1 2 15");
        }
        kill(child.id(), "64");
        let others = "3:1 6:1 10:1 12:1 13:1 14:1";
        let (first, fifteen) = if ends { ("1:1 2:1 ", "15:1 ") } else { ("", "") };
        let all = format!("{first}{others} {fifteen}18:1 23:1 26:1 27:1 28:1 29:1 30:1 34:1 50:1 64:1");
        assert_eq!(rest(child), (Some(0), all), "{way:?}");
    }
}

/// The signals that this test ignores, and with it all that it starts: a bit for each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn a_signal_ends_a_measurement_and_a_program_that_ignores_it_is_killed() {
    let Some(folder) = folder_with("counter", COUNTER, &[]) else { return };
    for signal in ["1", "2", "15"] {
        // Under nohup, SIGHUP is ignored by all that a test starts.
        let bit = 1 << (signal.parse::<u32>().unwrap() - 1);
        if ignored() & bit != 0 {
            continue;
        }
        let mut child = ready(coldframe(&["-q", "--once", "--"]).arg("./counter").current_dir(folder.path()));
        kill(child.id(), signal);
        // It counts SIGTERM and goes on.
        assert!(child.wait().unwrap().code().is_some(), "{signal}");
    }
    until("no program is left", || {
        let here = |id: &u32| Process::of(*id).file("cwd").read_link().is_ok_and(|cwd| cwd == folder.path());
        !coldframe_proc::Tree::machine().processes().iter().any(here)
    });
}

/// A stop stops the program, and coldframe, too; then both go on.
#[test]
fn a_stop_that_a_process_sends_stops_the_program_and_coldframe() {
    let Some(folder) = folder_with("counter", COUNTER, &[]) else { return };
    let child = ready(
        coldframe(&["run", "-q", "--by", "pager", "--ram", "8MiB", "--", "./counter"]).current_dir(folder.path()),
    );
    let program = Process::of(child.id()).children()[0];
    let stopped = |id: u32| Process::of(id).stat().is_some_and(|stat| stat.stopped());
    kill(child.id(), "TSTP");
    until("both stand", || stopped(program) && stopped(child.id()));
    kill(child.id(), "CONT");
    until("both go on", || !stopped(program) && !stopped(child.id()));
    kill(child.id(), "64");
    assert_eq!(rest(child), (Some(0), "18:1 64:1".to_string()));
}

#[test]
fn what_a_program_sends_to_its_whole_group_does_not_come_back_to_it() {
    let script = "trap 'echo one' USR1; trap 'echo end' USR2; echo ready; read line; kill -USR1 0; read line; exit 0";
    for way in ways() {
        let mut command = Command::new("setsid");
        command.args(["-w", env!("CARGO_BIN_EXE_coldframe")]).args(&way).args(["sh", "-c", script]);
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).stdin(std::process::Stdio::piped());
        let folder = tempfile::tempdir().unwrap();
        let mut child = ready(command.current_dir(folder.path()));
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"\n").unwrap();
        // coldframe has looked for signals by the time that its next one is passed on.
        let leader = child.id();
        let below = || Process::of(leader).with_descendants();
        let coldframe = below().into_iter().find(|id| Process::of(*id).name() == "coldframe").unwrap();
        let mut said = || {
            let mut word = [0; 4];
            child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
            String::from_utf8_lossy(&word).into_owned()
        };
        assert_eq!(said(), "one\n", "{way:?}");
        kill(coldframe, "USR2");
        assert_eq!(said(), "end\n", "{way:?}");
        drop(input);
        assert_eq!(rest(child).1, "", "{way:?}");
    }
}

#[test]
fn signals_that_are_ignored_or_blocked_at_the_start_are_so_in_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let signals = |way: &[&str]| {
        let mut command = Command::new("env");
        command.args(["--ignore-signal=HUP,INT,QUIT,TERM,PIPE,CHLD,USR1", "--block-signal=ALRM,USR2,TERM"]);
        command.args(way).args(["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]).current_dir(folder.path());
        let output = finish({
            command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
            command
        });
        let (text, errors) = (stdout(&output), stderr(&output));
        assert_eq!(text.lines().count(), 2, "{way:?}: {text}{errors}");
        // 32 and 33 are the C library's own, for programs with threads.
        let set = |line: &str| u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap() & !(3 << 31);
        text.lines().map(set).collect::<Vec<_>>()
    };
    let plain = signals(&[]);
    assert!(plain[0] & 0x6800 == 0x6800 && plain[1] & 0x15207 == 0x15207, "{plain:x?}");
    for way in ways() {
        assert_eq!(signals(&[&[env!("CARGO_BIN_EXE_coldframe")], &way[..]].concat()), plain, "{way:?}");
    }
}

#[test]
fn a_hang_up_that_is_ignored_at_the_start_ends_neither_coldframe_nor_the_program() {
    let Some(folder) = folder_with("counter", COUNTER, &[]) else { return };
    for way in ways() {
        let mut command = Command::new("env");
        command.args(["--ignore-signal=HUP,INT", env!("CARGO_BIN_EXE_coldframe")]).args(&way).arg("./counter");
        let child = ready(command.current_dir(folder.path()).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")));
        // The program has a handler of its own, and so gets it.
        kill(child.id(), "HUP INT 64");
        assert_eq!(rest(child), (Some(0), "1:1 2:1 64:1".to_string()), "{way:?}");
    }
}

/// Types Ctrl-C and Ctrl-\ and changes the size of a terminal in which a program runs; then it is ended.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
def until(word):
    global seen
    while word not in seen:
        seen += os.read(terminal, 1000)
until(b"ready")
os.write(terminal, b"\x03")
os.write(terminal, b"\x1c")
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 7, 70, 0, 0))
os.kill(pid, 10)
os.kill(pid, 64)
until(b"64:1")
print(seen.decode().split("ready")[1].replace("^C", "").replace("^\\", "").strip())
os.waitpid(pid, 0)
"#;

#[test]
fn what_a_terminal_sends_reaches_the_program_once() {
    let Some(folder) = folder_with("counter", COUNTER, &[]) else { return };
    if !have(&[("python3", "python3")]) {
        return;
    }
    for way in ways().into_iter().filter(|way| way[0] == "run") {
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_coldframe")]).args(&way).arg("./counter");
        let output = finish({
            command.current_dir(folder.path());
            command
        });
        assert_eq!(stdout(&output).trim(), "2:1 3:1 10:1 28:1 64:1", "{way:?}: {}", stderr(&output));
    }
}

#[test]
fn a_kill_by_the_kernel_is_said_also_when_nothing_else_is() {
    const FILLS: &str = "#include <stdlib.h>\n#include <string.h>\n\
                         int main(void) { memset(malloc(90 << 20), 1, 90 << 20); return 0; }";
    let Some(folder) = folder_with("p", FILLS, &["-O0"]) else { return };
    if place().is_none() {
        return;
    }
    let by_kernel = ["run", "-q", "--by", "kernel", "--swap", "none", "--ram", "16MiB", "--", "./p"];
    let output = coldframe(&by_kernel).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(137));
    assert!(stderr(&output).starts_with("the kernel has killed 1 of its processes: no memory"), "{}", stderr(&output));
    // In a container that has less than the program is given.
    let group = Path::new("/sys/fs/cgroup/memory");
    if !group.join("memory.limit_in_bytes").exists() {
        return;
    }
    let group = group.join(format!("coldframe-test-{}", std::process::id()));
    std::fs::create_dir(&group).unwrap();
    std::fs::write(group.join("memory.limit_in_bytes"), "48M").unwrap();
    // Only the program is in it: the kernel may choose any process of a group.
    let mut command = coldframe(&["run", "-q", "--by", "pager", "--ram", "512MiB", "--", "sh", "-c"]);
    command.arg("echo $$ > \"$0/cgroup.procs\" && exec ./p").arg(&group);
    let output = command.current_dir(folder.path()).output().unwrap();
    until("the group is empty", || std::fs::remove_dir(&group).is_ok());
    assert_eq!(output.status.code(), Some(137), "{}", stderr(&output));
    assert!(stderr(&output).contains("the kernel has killed the program: no memory"), "{}", stderr(&output));
}
