//! What other users have made, and what a machine lacks: nothing of it hangs coldframe, ends it without a sentence, or
//! reaches a terminal as it is.

use std::fs::{create_dir, remove_dir, write};
use std::path::Path;
use std::process::Command;

use coldframe_toolbox::programs::{finish, stderr, stdout, until};
use coldframe_toolbox::{have, skip};

use crate::common::{coldframe, folder_with, ready};

const NAP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    volatile char *all = malloc(4 << 20);
    for (int i = 0; i < 4 << 20; i += 512) all[i] = 1;
    puts("ready"); fflush(stdout);
    getchar();
}
"#;

/// Its descriptors are a pipe, a file and a memory file with the name of statistics.
const DECOY: &str = r#"
import os, sys
os.mkfifo("coldframe-stats")
pipe = os.open("coldframe-stats", os.O_RDONLY | os.O_NONBLOCK)
for fd in (os.memfd_create("coldframe-stats"), os.memfd_create("coldframe-stats-too")):
    os.ftruncate(fd, 4096)
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn a_run_is_shown_beside_what_only_looks_like_one_and_its_name_cannot_command_a_terminal() {
    let Some(folder) = folder_with("p", NAP, &[]) else { return };
    if !have(&[("python3", "python3")]) {
        return;
    }
    let named = folder.path().join("ev\x1b]0;x\x07\nil");
    std::fs::copy(folder.path().join("p"), &named).unwrap();
    let input = || std::process::Stdio::piped();
    let mut decoy = ready(Command::new("python3").args(["-c", DECOY]).current_dir(folder.path()).stdin(input()));
    let mut run = coldframe(&["run", "-q", "--by", "pager", "--ram", "2MiB", "--"]);
    let mut run = ready(run.arg(&named).stdin(input()));
    for words in [&["top", "--once"][..], &["top", "--once", "--format", "json"]] {
        let output = finish(coldframe(words));
        let text = stdout(&output);
        assert!(output.status.success(), "{}", stderr(&output));
        // A table cuts a name where another run's row takes the room.
        assert!(text.contains("ev?]0;x?"), "{text}");
        assert!(!text.contains(['\x1b', '\x07']), "{text}");
    }
    // The run's process is the program, and not its pager, which has the statistics.
    let words = ["top", "--once", "--format", "json"];
    let lines = |words: &[&str]| stdout(&finish(coldframe(words))).lines().map(String::from).collect::<Vec<_>>();
    let shown = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["process"].as_u64().unwrap();
    let all: Vec<_> = lines(&words).iter().filter(|line| line.contains("ev?]0;x??il")).map(shown).collect();
    let [pid] = all[..] else { panic!("one line: {all:?}") };
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/exe")).unwrap(), named);
    assert_eq!(lines(&[&words[..], &[&pid.to_string()]].concat()).iter().map(shown).collect::<Vec<_>>(), [pid]);
    assert_eq!(lines(&[&words[..], &[&run.id().to_string()]].concat()).len(), 1);
    let output = finish(coldframe(&["top", "--once", &decoy.id().to_string()]));
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("is no statistics of this version"), "{}", stderr(&output));
    drop((decoy.stdin.take(), run.stdin.take()));
    assert!(decoy.wait().unwrap().success() && run.wait().unwrap().success());
}

#[test]
fn where_few_processes_are_allowed_one_sentence_says_so_and_nothing_panics() {
    let Some(folder) = folder_with("p", "int main(void) { return 0; }", &[]) else { return };
    let group = Path::new("/sys/fs/cgroup/pids").join(format!("coldframe-test-{}", std::process::id()));
    if create_dir(&group).is_err() {
        return skip("no group of version 1 for the number of processes can be made");
    }
    for processes in 3..=6 {
        write(group.join("pids.max"), processes.to_string()).unwrap();
        for words in [
            "run -q --by pager --ram 8MiB -- ./p",
            "run -q --by kernel --swap none --ram 64MiB -- ./p",
            "-q --once -- ./p",
            "-q -- ./p",
            "check --max-ram 64MiB -- ./p",
            "record -o p.parquet -- ./p",
        ] {
            let mut command = Command::new("sh");
            command.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&group);
            command.arg(env!("CARGO_BIN_EXE_coldframe")).args(words.split(' ')).current_dir(folder.path());
            command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
            let output = finish(command);
            let errors = stderr(&output);
            assert!(!errors.contains("panicked"), "{processes}, {words}: {errors}");
            let said = errors.contains("Resource temporarily unavailable");
            assert!(said || matches!(output.status.code(), Some(0 | 1 | 6)), "{processes}, {words}: {errors}");
            // The program's own pager may be the first that gets none.
            let is_ours = |line: &str| line.starts_with("error: ") && line.contains("Resource temporarily unavailable");
            let ours = errors.lines().any(is_ours);
            assert!(!ours || errors.contains("allow more processes and threads"), "{processes}, {words}: {errors}");
            assert!(ours || processes > 3 || words.contains("pager"), "{processes}, {words}: {errors}");
        }
    }
    until("the group is empty", || remove_dir(&group).is_ok());
}

#[test]
fn a_machine_without_proc_and_an_empty_folder_for_temporary_files_are_no_riddle() {
    let mut command = coldframe(&["run", "-q", "--ram", "8MiB", "--", "true"]);
    let output = finish({
        command.env("TMPDIR", "");
        command
    });
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "umount -l /proc && exec \"$0\" run --ram 8MiB -- true"]);
    command.arg(env!("CARGO_BIN_EXE_coldframe"));
    if !rustix::process::geteuid().is_root() {
        return skip("not root, so /proc stays");
    }
    let output = finish(command);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("error: /proc is not there"), "{}", stderr(&output));
}

#[test]
fn a_program_that_coldframe_has_ended_has_not_ended_by_itself() {
    // It needs no memory.
    let Some(folder) = folder_with("p", "#include <unistd.h>\nint main(void) { for (;;) pause(); }", &[]) else {
        return;
    };
    let mut command = coldframe(&["--for", "1s", "--", "./p"]);
    let output = finish({
        command.current_dir(folder.path());
        command
    });
    assert!(stderr(&output).contains("coldframe ended the program after 1s"), "{}", stderr(&output));
    let output = finish(coldframe(&["--for", "1s", "--", "sleep", "100"]));
    assert!(stderr(&output).contains("coldframe ended it"), "{}", stderr(&output));
}

/// `sudo -E`: root with a folder of another user.
#[test]
fn root_writes_nothing_into_the_home_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return skip("not root");
    }
    let folder = tempfile::tempdir().unwrap();
    let (home, precious) = (folder.path().join("home"), folder.path().join("precious"));
    let cache = home.join(".cache/coldframe");
    std::fs::create_dir_all(&cache).unwrap();
    write(&precious, "precious").unwrap();
    for path in [&home, &home.join(".cache"), &cache] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    std::os::unix::fs::symlink(&precious, cache.join("here.toml")).unwrap();
    // Where root keeps it then is not this machine's.
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs none /var/cache && exec \"$0\" doctor --calibrate --short"]);
    let output = finish({
        command.arg(env!("CARGO_BIN_EXE_coldframe")).env("HOME", &home).env_remove("XDG_CACHE_HOME");
        command
    });
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("kept in /var/cache/coldframe/here.toml"), "{}", stdout(&output));
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
}
