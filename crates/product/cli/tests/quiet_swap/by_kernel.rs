//! `coldframe run --by kernel`: programs that no pager of ours can reach, in less RAM than they use. Nothing stays
//! behind, whatever ends coldframe.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::common::{alone, coldframe, kill_guard, place, ready, reverted_as_named};
use coldframe_answer::run::rights::is_ram;
use coldframe_kernel::{Group, Place, Tree, PRIORITY_RUN};
use coldframe_proc::Process;
use coldframe_toolbox::programs::{can_page, compiled, copy_for_all, open_to_all, refused, stderr, stdout, until};
use serde_json::Value;

/// Writes 48 MiB and adds them up so many times; then prints the sum and ends with exit code 7.
const SUMS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    size_t words_of_heap = (size_t)48 << 17; uint64_t *heap = malloc(words_of_heap * 8), x = 88172645463325252u,
        sum = 0;
    for (size_t i = 0; i < words_of_heap; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; heap[i] = x % 1000; }
    for (int round = 0; round < atoi(words[1]); round++) for (size_t i = 0; i < words_of_heap;
        i++) sum = sum * 31 + heap[i];
    printf("%016lx\n", (unsigned long)sum);
    return 7;
}
"#;

fn run(words: &[&str]) -> Command {
    coldframe(&[&["run"], words].concat())
}

fn started(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The groups that a coldframe with this process number has made.
fn groups(process: u32) -> Vec<PathBuf> {
    let place = Place::find(&Tree::machine()).unwrap();
    let folders = [Some(place.parent), place.pressure];
    let paths = folders.into_iter().flatten().map(|folder| folder.join(format!("coldframe-{process}")));
    paths.filter(|path| path.exists()).collect()
}

/// The zram devices that runs swap to now. A guard may still be removing the device of a run that has ended.
fn zrams() -> Vec<String> {
    let areas = Tree::machine().swap_areas().into_iter();
    areas.filter(|area| area.is_zram() && area.priority == PRIORITY_RUN).map(|area| area.name()).collect()
}

#[test]
fn a_static_program_in_half_its_memory_says_the_same_and_leaves_nothing() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "sums", SUMS, &["-static"]);
    let plain = Command::new(&program).arg("2").output().unwrap();
    let stats = folder.path().join("stats.json");
    let words = ["--ram", "24MiB", "--swap", "zram", "--stats", stats.to_str().unwrap(), "--"];
    let mut command = run(&words);
    command.arg(&program).arg("2");
    let child = started(command);
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(7), stdout(&plain)), "{}", stderr(&output));
    let stats: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    let of = |pointer: &str| stats.pointer(pointer).unwrap().as_u64().unwrap();
    assert_eq!((of("/counts/killed"), of("/program/status")), (0, 7), "{stats}");
    // At least half of the heap has left, and the group never had more than the RAM.
    assert!(of("/counts/swap_out_bytes") >= 24 << 20, "{stats}");
    assert!(of("/memory/peak_bytes") <= 24 << 20, "{stats}");
    assert!(of("/memory/compressed_bytes") > 0 && of("/counts/refaults") > 0, "{stats}");
    assert!(stderr(&output).contains("by the kernel:"), "{}", stderr(&output));
    let device = stats["config"]["swap"].as_str().unwrap().to_string();
    assert!(device.starts_with("/dev/zram") && !zrams().contains(&device), "{device}");
    assert_eq!(groups(process), Vec::<PathBuf>::new());
}

#[test]
fn without_swap_a_program_lives_in_its_peak_and_is_killed_in_half_of_it() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "sums", SUMS, &["-static"]);
    // The swap of another run is on, which this one does not use.
    let other = started(run(&["--ram", "16MiB", "--swap", "zram", "-q", "--", "sleep", "2"]));
    until("the machine has swap", || !zrams().is_empty());
    for (ram, code, killed) in [("56MiB", 7, 0), ("24MiB", 137, 1)] {
        let stats = folder.path().join("stats.json");
        let mut command = run(&["--ram", ram, "--swap", "none", "--stats", stats.to_str().unwrap(), "--"]);
        let output = command.arg(&program).arg("1").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        let stats: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
        assert_eq!(stats["counts"]["killed"], killed, "{stats}");
        assert_eq!((&stats["config"]["swap"], &stats["counts"]["refaults"]), (&"none".into(), &0.into()), "{stats}");
    }
    assert!(other.wait_with_output().unwrap().status.success());
}

/// Maps a file and adds up its first half so many times, with a heap of 8 MiB.
const MODEL: &str = r#"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(int count, char **words) {
    uint64_t *model = mmap(0, 64 << 20, PROT_READ, MAP_PRIVATE, open(words[1], O_RDONLY), 0), sum = 0;
    uint64_t *heap = memset(malloc(8 << 20), 1, 8 << 20);
    for (int round = 0; round < atoi(words[2]); round++) for (long i = 0; i < 4 << 20;
        i++) sum = sum * 31 + model[i] + heap[i & 0xfffff];
    printf("%016lx\n", (unsigned long)sum);
}
"#;

#[test]
fn a_mapped_file_counts_in_a_limit_and_where_no_group_can_be_made_what_is_referenced_of_it_is_named() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (copy, model) = (copy_for_all(folder.path()), folder.path().join("model"));
    let program = compiled(folder.path(), "maps", MODEL, &["-static"]);
    std::fs::write(&model, vec![7; 64 << 20]).unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for root in [true, false] {
        if root && (place().is_none() || is_ram(folder.path())) {
            continue;
        }
        let (mut command, id) = (Command::new(&copy), if root { 0 } else { 65534 });
        command.uid(id).gid(id).args(["--format", "json", "--"]).arg(&program).arg(&model).arg("100");
        command.current_dir(folder.path()).env("XDG_CACHE_HOME", "/none").stdin(Stdio::null());
        let output = command.output().unwrap();
        let printed = stdout(&output);
        let answer: Value = serde_json::from_str(&printed[printed.find('{').unwrap()..]).unwrap();
        let mib = |value: &Value| value.as_u64().unwrap() >> 20;
        if root {
            // Half of the file, and a heap of 8 MiB, without which it is killed. Whoever reads more ahead has more.
            let limit = &answer["limit"];
            assert!(mib(&limit["parts"]["files_bytes"]) >= 31 && mib(&limit["peak_bytes"]) >= 40, "{limit}");
            assert!((36..=mib(&limit["peak_bytes"]) + 1).contains(&mib(&limit["fast_bytes"])), "{limit}");
            let runs = answer["runs"].as_array().unwrap();
            let none = |run: &&Value| run["swap"] == "none" && run["cold"] == true;
            let small = runs.iter().filter(none).filter(|run| mib(&run["ram_bytes"]) < 8);
            assert!(small.clone().all(|run| run["failed"].is_string()), "{answer}");
            let slow = |run: &Value| run["seconds"].as_f64() > answer["program_seconds"].as_f64().map(|own| 1.1 * own);
            let less = runs.iter().filter(none).filter(|run| run["ram_bytes"].as_u64() < limit["fast_bytes"].as_u64());
            let less: Vec<_> = less.filter(|run| mib(&run["ram_bytes"]) >= 8).collect();
            assert!(less.iter().any(|run| run["failed"].is_string() || slow(run)), "{less:?}");
        } else {
            let (all, file) = (&answer["not_paged"], &answer["not_paged"]["files"][0]);
            assert_eq!((file["path"].as_str(), mib(&file["mapped_bytes"])), (model.to_str(), 64), "{all}");
            assert!((28..=33).contains(&mib(&file["referenced_bytes"])), "{all}");
        }
        std::fs::remove_dir_all(folder.path().join("maps.coldframe")).unwrap();
    }
}

#[test]
fn data_that_does_not_compress_goes_to_a_disk_at_once_and_two_runs_count_their_own_pages() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Any bits instead of small numbers.
    let program = compiled(folder.path(), "sums", &SUMS.replace("x % 1000", "x"), &["-static"]);
    let stats = |name: &str| folder.path().join(name);
    let start = |name: &str, ram: &str| {
        let mut command = run(&["--by", "kernel", "--ram", ram, "--swap", "zram", "--stats"]);
        command.arg(stats(name)).arg("--").arg(&program).arg("6").env("TMPDIR", folder.path());
        started(command)
    };
    let (less, enough) = (start("less", "16MiB"), start("enough", "64MiB"));
    let of = |child: Child, name: &str| -> (String, Value) {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        (stderr(&output), serde_json::from_slice(&std::fs::read(stats(name)).unwrap()).unwrap())
    };
    let ((words, less), (_, enough)) = (of(less, "less"), of(enough, "enough"));
    let bytes = |stats: &Value, pointer: &str| stats.pointer(pointer).unwrap().as_u64().unwrap();
    // Six times 48 MiB, of which 12 or so stay.
    assert!(bytes(&less, "/counts/swap_in_bytes") > 100 << 20, "{less}");
    // None, but for what a machine that reclaims idle pages by itself (DAMON) took meanwhile: 93 pages, once.
    for moved in ["/counts/swap_out_bytes", "/counts/swap_in_bytes"] {
        assert!(bytes(&enough, moved) < 4 << 20, "{enough}");
    }
    if is_ram(folder.path()) {
        return assert!(words.contains("there is no disk"), "{words}");
    }
    let expected = format!("of this data; the rest goes to {}", folder.path().display());
    assert!(words.contains("note: zram takes ") && words.contains(&expected), "{words}");
    // Without the disk, 32 MiB or more would be compressed: at most half of that is. On a machine that is late once, a
    // second run shows it.
    let few = |stats: &Value| bytes(stats, "/memory/compressed_bytes") <= 16 << 20;
    assert!(few(&less) || few(&of(start("again", "16MiB"), "again").1), "{less}");
    assert_eq!(bytes(&less, "/counts/killed"), 0, "{less}");
    assert_eq!(
        std::fs::read_dir(folder.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "swap") })
            .count(),
        0,
        "the file is taken away"
    );
}

#[test]
fn whoever_is_killed_the_program_ends_and_nothing_stays_or_what_stays_is_named() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "sums", SUMS, &["-static"]);
    until("no other run has swap", || zrams().is_empty());
    let plain = Command::new(&program).arg("6").output().unwrap();
    for (guard, coldframe) in [(false, true), (true, false), (true, true)] {
        let mut command = run(&["--by", "kernel", "--ram", "24MiB", "--swap", "zram", "-q", "--"]);
        command.arg(&program).arg("6").process_group(0);
        let mut child = started(command);
        let process = child.id();
        // The group that counts memory comes first.
        let group = || groups(process).into_iter().next();
        let version = Place::find(&Tree::machine()).unwrap().version;
        let swaps = || group().is_some_and(|g| Group::new(version, g, None).counters().swapped > 1 << 20);
        until("the program swaps", swaps);
        assert!(!zrams().is_empty());
        if guard {
            kill_guard(process);
        }
        if coldframe {
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!((stdout(&output), stderr(&output)), (stdout(&plain), String::new()));
        if guard && coldframe {
            assert!(!groups(process).is_empty() && !zrams().is_empty());
            reverted_as_named();
        }
        until("the group is taken away", || groups(process).is_empty());
        until("the device is taken away", || zrams().is_empty());
    }
}

/// Moves the new swap file away and puts a link to another file in its place.
const BENDS: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    puts("ready"); fflush(stdout);
    for (;;) if (!rename(words[1], words[2])) return symlink(words[3], words[1]);
}
"#;

#[test]
fn a_link_that_another_user_puts_in_place_of_the_swap_file_is_not_swapped_to() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (theirs, victim) = (folder.path().join("theirs"), folder.path().join("victim"));
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
    std::fs::write(&victim, vec![7; 4 << 20]).unwrap();
    let bends = compiled(folder.path(), "bends", BENDS, &[]);
    open_to_all(folder.path());
    for i in 0..5 {
        let (swap, away) = (theirs.join(format!("swap-{i}")), theirs.join(format!("away-{i}")));
        let mut attack = ready(Command::new(&bends).arg(&swap).arg(&away).arg(&victim).uid(65534));
        let mut command = run(&["--by", "kernel", "--ram", "16MiB", "--swap"]);
        let output = command.arg(&swap).args(["--", "cat", "/proc/swaps"]).output().unwrap();
        let _ = attack.kill();
        attack.wait().unwrap();
        assert!(!stdout(&output).contains("victim") && !Tree::machine().text("/proc/swaps").contains("theirs"));
        assert!(std::fs::read(&victim).unwrap().iter().all(|byte| *byte == 7));
        assert!(!away.exists(), "the swap file is removed where it is by then");
    }
}

#[test]
fn signals_reach_the_program_and_its_end_is_reported() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let script = "trap 'echo heard; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = started(run(&["--by", "kernel", "--ram", "16MiB", "--swap", "zram", "--", "sh", "-c", script]));
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(9), "heard\n"));
    for (words, code) in [(&["sh", "-c", "kill -KILL $$"][..], 137), (&["/etc/passwd"][..], 126)] {
        let mut command = run(&["--by", "kernel", "--ram", "16MiB", "--swap", "zram", "--"]);
        assert_eq!(command.args(words).output().unwrap().status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn ways_of_paging_are_compared_with_equal_memory_and_the_fastest_can_be_pasted() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "sums", SUMS, &["-static"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    command.args(["compare", "-q", "--ram", "60%", "--runs", "1", "--format", "json", "--backing"]).arg(folder.path());
    let output = command.arg("--").arg(&program).arg("1").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let peak = found["peak_bytes"].as_u64().unwrap();
    // The heap has 48 MiB, and the program nothing else of size; 60 % of that is a limit in whole MiB.
    assert!((48 << 20..52 << 20).contains(&peak) && found["in_group"] == true, "{found}");
    let ram = found["sizes"][0]["ram_bytes"].as_u64().unwrap();
    assert!(ram == (peak * 6 / 10).next_multiple_of(1 << 20), "{found}");
    let ways = found["sizes"][0]["ways"].as_array().unwrap();
    let named = |name: &str| ways.iter().find(|way| way["name"] == name);
    let zram = &named("zram").expect("zram is there")["runs"][0];
    assert_eq!((&zram["alike"], &zram["status"]), (&Value::from(true), &Value::from(7)), "{found}");
    let none = named("none").expect("a limit without swap is there");
    assert_eq!(none["runs"][0]["killed"], true, "{found}");
    assert!(named("our pager").is_none(), "no pager of ours can page a static program");
    assert!(found["left_out"].to_string().contains("linked statically"), "{found}");
    let fastest = named(found["fastest"]["name"].as_str().unwrap()).unwrap();
    let line = fastest["command"].as_str().unwrap();
    assert!(line.starts_with("coldframe run --ram ") && line.contains(" --swap "), "{line}");
}

/// 10 MiB for each of so many.
const JOBS: &str = r#"
#include <stdlib.h>
#include <time.h>
int main(int count, char **words) {
    size_t size = (size_t)atoi(words[1]) * 10 << 20; volatile char *heap = malloc(size);
    for (size_t i = 0; i < size; i += 4096) heap[i] = 1;
    struct timespec nap = {0, 30000000}; nanosleep(&nap, 0);
    return count > 2;
}
"#;

#[test]
fn how_many_fit_is_found_in_a_group_of_that_ram() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), "jobs", JOBS, &["-static"]);
    let fit = |options: &[&str], words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
        command.args(["-q", "fit", "--format", "json"]).args(options).arg("--").arg(&program).args(words);
        command.current_dir(folder.path()).stdin(Stdio::null());
        command
    };
    let found = |mut command: Command, code| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for (words, copies) in [(&["{n}"][..], false), (&["1"], true)] {
        let counted = found(fit(&["--ram", "36MiB"], words), 0);
        assert_eq!((&counted["largest"], &counted["copies"]), (&3.into(), &copies.into()), "{counted}");
        assert_eq!(counted["sizes"][3]["end"], "killed", "{counted}");
        let each = counted["each_more_bytes"].as_u64().unwrap() >> 20;
        assert!((9..=11).contains(&each), "{counted}");
    }
    let counted = found(fit(&["--ram", "8MiB"], &["{n}"]), 1);
    assert_eq!((&counted["largest"], &counted["sizes"][0]["end"]), (&Value::Null, &"killed".into()));
    refused(&mut fit(&["--ram", "36MiB", "--for", "1s"], &["{n}"]), 3, &["without --for its end counts"]);
    refused(&mut fit(&["--ram", "36MiB"], &["1", "2"]), 3, &["ended with exit code 1", "mend it"]);
    refused(&mut fit(&["--ram", "36MiB", "--prepare", "exit 7"], &["{n}"]), 3, &["--prepare 'exit 7' failed"]);
    refused(&mut fit(&["--ram", "9999GiB"], &["{n}"]), 2, &["is more than the", "of this machine"]);
    refused(&mut fit(&["--ram", "36MiB"], &["-j{N}"]), 2, &["-j{N}: write {n}"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
    refused(command.args(["fit", "--ram", "36MiB", "--", "there-is-none"]), 127, &["there-is-none"]);
}

#[test]
fn every_way_of_paging_sorts_the_same_and_the_table_fits() {
    let (Some(_alone), Some(_), true) = (alone(), place(), can_page()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let numbers: String = (0..200_000u64).map(|i| format!("{}\n", i * 7919 % 200_003)).collect();
    std::fs::write(folder.path().join("n.txt"), numbers).unwrap();
    let other_word = "date +%N | tr 0-9 a-j; exec sort -S 40M n.txt";
    for (columns, program) in [("80", &["sort", "-S", "40M", "n.txt"][..]), ("44", &["sh", "-c", other_word])] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coldframe"));
        command.args(["compare", "-q", "--ram", "60%", "--runs", "2", "--backing", "."]);
        if columns == "44" {
            command.args(["--ways", "none,pager"]);
        }
        command.arg("--").args(program);
        command.current_dir(folder.path()).env("NO_COLOR", "1").env("COLUMNS", columns).stdin(Stdio::null());
        let output = command.output().unwrap();
        let message = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let wide = |line: &&str| line.chars().count() > columns.parse().unwrap() && line.trim().contains(' ');
        assert_eq!(message.lines().find(wide), None, "{message}");
        for (way, asked) in
            [("our pager", true), (" none ", true), (" file ", columns == "80"), (" zram ", columns == "80")]
        {
            assert_eq!(message.lines().any(|line| line.contains(way)), asked, "{way}: {message}");
        }
        // The shell prints another word each time; another number would be forgiven.
        let says = if columns == "80" { "same" } else { "another one each" };
        assert!(message.contains(says), "{message}");
        let lines: Vec<_> = message.lines().collect();
        let command =
            lines.iter().rposition(|line| line.starts_with("  coldframe run --ram ")).expect("a command to paste");
        assert!(lines[..command].iter().any(|line| line.starts_with("Fastest with equal memory: ")), "{message}");
    }
}

#[test]
fn what_the_kernel_cannot_do_here_is_one_sentence_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("there");
    std::fs::write(&file, "mine").unwrap();
    let by_kernel = ["--by", "kernel", "--ram", "16MiB"];
    let with = |more: &[&str]| run(&[&by_kernel[..], more, &["--", "true"]].concat());
    refused(&mut with(&["--backing", "/tmp"]), 2, &["--backing", "--by pager"]);
    refused(
        &mut run(&["--by", "pager", "--ram", "16MiB", "--swap", "zram", "--", "true"]),
        2,
        &["--swap", "--by kernel"],
    );
    let chroot = ["--by", "pager", "--ram", "16MiB", "--", "chroot", "/", "true"];
    if can_page() {
        refused(&mut run(&chroot), 4, &["chroot cannot be paged", "in the new root"]);
    }
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    refused(&mut with(&["--swap-size", "64MiB"]), 2, &["--swap-size is for our own pager", "--swap"]);
    refused(&mut with(&["--swap", file.to_str().unwrap()]), 2, &["there already", "new file"]);
    refused(&mut with(&["--swap", "/proc/swapfile"]), 4, &["/proc/swapfile", "new file"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    if Tree::machine().text("/proc/swaps").lines().count() < 2 {
        refused(&mut with(&[]), 4, &["no swap", "--swap zram"]);
        // Nobody can page a static program here, and the sentence has both reasons.
        let program = compiled(folder.path(), "sums", SUMS, &["-static"]);
        let mut command = run(&["--ram", "16MiB", "--"]);
        refused(command.arg(program).arg("1"), 4, &["linked statically", "no swap"]);
    }
    // As a user without rights, with a program that this user can read.
    let mut other = Command::new(copy_for_all(folder.path()));
    other.args(["run", "--by", "kernel", "--ram", "16MiB", "--swap", "zram", "--", "true"]).uid(65534).gid(65534);
    refused(&mut other, 4, &["only root may", "run it as root"]);
}

/// A tab, a newline, a quote, a backslash, and what `printf` would obey.
#[test]
fn swap_on_a_file_of_any_name_goes_with_its_run_and_the_line_that_names_it_works() {
    let (Some(_alone), Some(_)) = (alone(), place()) else { return };
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = compiled(folder.path(), "sums", SUMS, &["-static"]);
    let file = folder.path().join("a\tb 'c\nd\\%s");
    let is_on = || Tree::machine().swap_areas().iter().any(|area| area.path == file);
    for killed in [false, true] {
        let mut command = run(&["--by", "kernel", "--ram", "24MiB", "--swap-size", "64MiB", "-q", "--swap"]);
        command.arg(&file).arg("--").arg(&program).arg("6").process_group(0);
        let mut child = started(command);
        until("swap is on", is_on);
        if killed {
            // Until then coldframe waits for the guard, and has another one revert all.
            until("the program runs", || Process::of(child.id()).children().len() > 1);
            kill_guard(child.id());
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&output), "");
        if killed {
            reverted_as_named();
        }
        assert!(!is_on() && !file.exists());
    }
}
