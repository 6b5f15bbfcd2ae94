//! A group of cgroup v2 is squeezed, on a made tree: what is refused, what is written, what ends it.

use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use coldframe_kernel::{group_of, End, Squeeze, Tree, Version};

pub(crate) const GROUP: &str = "/sys/fs/cgroup/system.slice/web.service";
pub(crate) const MIB: u64 = 1 << 20;

/// A machine with one unit: process 77, 64 MiB in RAM of which 4 are cached files.
pub(crate) fn machine() -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new(folder.path());
    write(&tree, "/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    write(&tree, "/proc/self/cgroup", "0::/user.slice\n");
    write(&tree, "/proc/77/cgroup", "0::/system.slice/web.service\n");
    write(&tree, "/proc/1/cgroup", "0::/\n");
    write(&tree, "/proc/swaps", "Filename Type Size Used Priority\n/dev/vda2 partition 1000000 0 -2\n");
    for (file, text) in [
        ("cgroup.procs", "77\n".into()),
        ("memory.high", "max\n".into()),
        ("memory.max", "max\n".into()),
        ("memory.swap.max", "max\n".into()),
        ("memory.current", (64 * MIB).to_string()),
        ("memory.stat", stat(0, 0)),
        ("memory.events", "oom_kill 0\n".into()),
        ("memory.pressure", pressure(0)),
    ] {
        write(&tree, &format!("{GROUP}/{file}"), &text);
    }
    (folder, tree)
}

pub(crate) fn stat(back: u64, locked: u64) -> String {
    format!(
        "anon {}\nfile {}\nfile_mapped {MIB}\nkernel {MIB}\nunevictable {locked}\nworkingset_refault_anon {back}\n",
        58 * MIB,
        5 * MIB
    )
}

pub(crate) fn pressure(microseconds: u64) -> String {
    format!("some avg10=0.00 total={microseconds}\nfull avg10=0.00 total=0\n")
}

pub(crate) fn write(tree: &Tree, path: &str, text: &str) {
    let path = tree.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn set(tree: &Tree, file: &str, text: &str) {
    write(tree, &format!("{GROUP}/{file}"), text);
}

fn squeeze(tree: &Tree) -> Squeeze {
    Squeeze::new(tree, group_of(tree, "77").unwrap(), 0).unwrap()
}

#[test]
fn a_group_is_named_by_a_process_or_by_its_folder() {
    let (_folder, tree) = machine();
    for name in ["77", GROUP, "/system.slice/web.service"] {
        let group = group_of(&tree, name).unwrap();
        assert_eq!((group.folder(), group.version()), (tree.path(GROUP).as_path(), Version::Two), "{name}");
    }
    let refusal = |name: &str| group_of(&tree, name).unwrap_err().to_string();
    assert!(refusal("78").contains("no process 78"), "{}", refusal("78"));
    assert!(refusal("/system.slice/other").contains("no group"), "{}", refusal("/system.slice/other"));
    assert!(refusal("1").contains("root of all groups") && refusal("1").contains("systemd-run"), "{}", refusal("1"));
    assert!(refusal("no-such.service").contains("no running unit"), "{}", refusal("no-such.service"));
    write(&tree, "/proc/self/mounts", "proc /proc proc rw 0 0\n");
    assert!(refusal("77").contains("no memory cgroup"), "{}", refusal("77"));
}

#[test]
fn what_would_be_unsafe_is_refused_with_a_remedy() {
    let (_folder, tree) = machine();
    let refused = |swap: u64| Squeeze::new(&tree, group_of(&tree, "77").unwrap(), swap).unwrap_err().to_string();
    for (file, bad, good, says) in [
        ("memory.stat", stat(0, 62 * MIB), stat(0, 0), "locked"),
        ("memory.swap.max", "4096\n".into(), "max\n".into(), "memory.swap.max"),
        ("cgroup.procs", String::new(), "77\n".into(), "no process"),
        ("cgroup.procs", format!("77\n{}\n", std::process::id()), "77\n".into(), "this command is in"),
    ] {
        set(&tree, file, &bad);
        assert!(refused(0).contains(says), "{}", refused(0));
        set(&tree, file, &good);
    }
    write(&tree, "/proc/swaps", "Filename Type Size Used Priority\n");
    assert!(refused(0).contains("no swap"), "{}", refused(0));
    assert!(refused(57 * MIB).contains("57 MiB of swap are free") && refused(57 * MIB).contains("58 MiB of data"));
    assert!(Squeeze::new(&tree, group_of(&tree, "77").unwrap(), 58 * MIB).is_ok());
    fs::remove_file(tree.path(format!("{GROUP}/memory.high"))).unwrap();
    assert!(refused(58 * MIB).contains("no memory limit"), "{}", refused(58 * MIB));
}

#[test]
fn each_step_takes_a_sixteenth_until_only_what_cannot_leave_is_left() {
    let (_folder, tree) = machine();
    set(&tree, "memory.stat", &stat(0, 40 * MIB));
    let mut squeeze = squeeze(&tree);
    // 64 MiB, less 4 of files that are cached and not mapped.
    assert_eq!((squeeze.limit(), squeeze.unreclaimable()), (60 * MIB, 42 * MIB));
    let high = || fs::read_to_string(tree.path(format!("{GROUP}/memory.high"))).unwrap();
    let mut expected = 60 * MIB;
    while expected - expected / 16 >= 42 * MIB {
        expected = (expected - expected / 16) / 4096 * 4096;
        squeeze.lower().unwrap();
        assert_eq!(high(), expected.to_string());
    }
    assert_eq!((squeeze.lower(), high()), (Err(End::Least), expected.to_string()));
    assert!(!squeeze.restored());
    set(&tree, "memory.high", "max\n");
    assert!(squeeze.restored());
}

#[test]
fn a_step_has_what_came_back_and_how_long_some_process_waited() {
    let (_folder, tree) = machine();
    let squeeze = squeeze(&tree);
    let looks = Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        set(&tree, "memory.stat", &stat(100 * looks.get(), 0));
        // 10 ms of each look, of 50 ms or more.
        set(&tree, "memory.pressure", &pressure(10_000 * looks.get()));
        false
    };
    let step = squeeze.watch(Duration::from_millis(300), 0.9, stop).unwrap();
    assert!(looks.get() >= 2 && step.limit_bytes.is_none(), "{step:?}");
    let ratio = step.pages_back_per_second / step.stalled_percent;
    assert!((ratio - 100.0).abs() < 0.01, "100 pages for each 10 ms: {step:?}");
    assert!(step.stalled_percent > 0.0 && step.stalled_percent <= 20.0, "{step:?}");
}

#[test]
fn where_the_waits_of_the_whole_machine_count_a_group_waits_no_longer_than_for_its_own_pages() {
    let (_folder, tree) = machine();
    fs::remove_file(tree.path(format!("{GROUP}/memory.pressure"))).unwrap();
    write(&tree, "/proc/pressure/memory", &pressure(0));
    let stalled = |pages: u32| {
        // A page takes 10 us.
        let (squeeze, looks) = (squeeze(&tree).with_page_seconds(1e-5), Cell::new(0));
        assert!(squeeze.others().unwrap().contains("the group's own pages"));
        let stop = || {
            looks.set(looks.get() + 1);
            set(&tree, "memory.stat", &stat(u64::from(pages * looks.get()), 0));
            write(&tree, "/proc/pressure/memory", &pressure(40_000 * u64::from(looks.get())));
            false
        };
        let step = squeeze.watch(Duration::from_millis(300), 0.9, stop).unwrap();
        set(&tree, "memory.stat", &stat(0, 0));
        write(&tree, "/proc/pressure/memory", &pressure(0));
        (step.stalled_percent, step.pages_back_per_second / 1e3)
    };
    assert_eq!(stalled(0).0, 0.0, "others have waited");
    let (percent, expected) = stalled(100);
    assert!((percent / expected - 1.0).abs() < 0.01, "{percent} {expected}");
    assert!(stalled(1_000_000).0 > 10.0, "as the machine has waited");
}

#[test]
fn a_step_ends_when_it_has_stalled_too_long_or_the_group_is_gone() {
    let (_folder, tree) = machine();
    let squeeze = squeeze(&tree);
    let (long, began) = (Duration::from_secs(60), Instant::now());
    let stalls = || {
        set(&tree, "memory.pressure", &pressure(61_000_000));
        false
    };
    assert!(squeeze.watch(long, 0.9, stalls).unwrap().stalled_percent > 90.0);
    assert_eq!(squeeze.watch(long, 0.5, || true), Err(End::Stopped));
    set(&tree, "cgroup.procs", "");
    assert_eq!(squeeze.watch(long, 0.5, || false), Err(End::Gone));
    set(&tree, "cgroup.procs", "77\n");
    set(&tree, "memory.events", "oom_kill 1\n");
    assert_eq!(squeeze.watch(Duration::from_millis(1), 0.5, || false), Err(End::Killed));
    assert!(began.elapsed() < long);
}

#[test]
fn without_the_groups_pressure_the_machines_counts_and_else_threads_that_wait_for_a_device() {
    let (_folder, tree) = machine();
    assert_eq!(squeeze(&tree).others(), None);
    set(&tree, "memory.pressure", "");
    write(&tree, "/proc/pressure/memory", &pressure(5));
    assert!(squeeze(&tree).others().unwrap().contains("whole machine"));
    write(&tree, "/proc/pressure/memory", "");
    write(&tree, "/proc/77/task/77/stat", "77 (a) D b) S 1\n");
    let squeeze = squeeze(&tree);
    assert!(squeeze.others().unwrap().contains("device"));
    let waits = |state: &str| {
        write(&tree, "/proc/77/task/78/stat", &format!("78 (a) S b) {state} 1\n"));
        squeeze.watch(Duration::from_millis(1), 2.0, || false).unwrap().stalled_percent
    };
    assert_eq!((waits("R"), waits("D")), (0.0, 100.0));
}
