//! A group of cgroup v2 is held, on a made tree: what is written, what is read, who else writes; and a pod's group.

use std::fs;
use std::process::Command;

use coldframe_kernel::{group_of, Guard, Hold, PageTimes, Squeeze};

use crate::squeezed::{machine, pressure, set, stat, write, GROUP, MIB};

/// A guard that does nothing: what it restores, its own tests say.
fn yes_man() -> Guard {
    let mut command = Command::new("sh");
    command.args(["-c", "while read -r line; do printf 'ok\\t\\n'; done"]);
    Guard::start(command, None).unwrap()
}

#[test]
fn what_is_above_a_limit_leaves_before_it_is_written_and_a_foreign_one_is_seen() {
    let (_folder, tree) = machine();
    let text = |file: &str| fs::read_to_string(tree.path(format!("{GROUP}/{file}"))).unwrap();
    let squeeze = Squeeze::new(&tree, group_of(&tree, "77").unwrap(), 0).unwrap();
    let mut guard = yes_man();
    let mut hold = Hold::begin(squeeze, &mut guard, PageTimes::default()).unwrap();
    // Without memory.reclaim the limit itself pushes out.
    assert_eq!((hold.lower(60 * MIB), text("memory.high")), (Some(60 * MIB), (60 * MIB).to_string()));
    // What cannot leave is not below a limit.
    set(&tree, "memory.reclaim", "");
    assert_eq!(hold.lower(32 * MIB), Some(64 * MIB));
    assert_eq!((text("memory.reclaim"), text("memory.high")), ((33 * MIB).to_string(), (64 * MIB).to_string()));
    set(&tree, "memory.pressure", &pressure(250_000));
    set(&tree, "memory.stat", &(stat(40, 0) + "workingset_activate_anon 30\n"));
    let reading = hold.look().unwrap();
    assert_eq!((reading.waited, reading.back, reading.near, reading.foreign), (0.25, 40, 30, None));
    assert_eq!((reading.usage, reading.least), (64 * MIB, 2 * MIB));
    assert_eq!(hold.look().unwrap().waited, 0.0, "since the look before");
    set(&tree, "memory.high", "max\n");
    assert_eq!(hold.look().unwrap().foreign.as_deref(), Some("max"));
    assert!(hold.raise() && hold.restored() && hold.look().unwrap().foreign.is_none());
    set(&tree, "memory.events", "oom_kill 1\n");
    assert!(hold.look().unwrap().starved);
    set(&tree, "cgroup.procs", "");
    assert!(hold.look().is_err());
    guard.end();
}

#[test]
fn where_the_kernel_counts_no_waits_of_a_group_its_own_pages_count_and_never_the_machines_waits() {
    let (_folder, tree) = machine();
    set(&tree, "memory.pressure", "");
    let begin = |guard: &mut Guard| {
        let squeeze = Squeeze::new(&tree, group_of(&tree, "77").unwrap(), 0).unwrap();
        assert!(!Hold::counts_waits(&squeeze));
        Hold::begin(squeeze, guard, PageTimes { fault: 1e-3, ahead: 1e-4 })
    };
    let mut guard = yes_man();
    set(&tree, "memory.stat", "anon 60000000\n");
    let refused = begin(&mut guard).unwrap_err().to_string();
    assert!(refused.contains("neither the waits nor the refaults") && refused.contains("psi=1"), "{refused}");
    set(&tree, "memory.stat", &stat(0, 0));
    let mut hold = begin(&mut guard).unwrap();
    write(&tree, "/proc/pressure/memory", &pressure(9_000_000));
    assert_eq!(hold.look().unwrap().waited, 0.0, "others have waited");
    set(&tree, "memory.stat", &(stat(30, 0) + "pgmajfault 10\n"));
    assert!((hold.look().unwrap().waited - 0.012).abs() < 1e-9, "10 that it waited for, 20 that were read ahead");
    set(&tree, "memory.swap.current", &(40 * 4096).to_string());
    hold.lower(60 * MIB).unwrap();
    assert_eq!(hold.look().unwrap().waited, 0.0, "what was pushed out for it");
    set(&tree, "memory.swap.current", &(50 * 4096).to_string());
    assert!((hold.look().unwrap().waited - 0.001).abs() < 1e-9, "what it has pushed out itself");
    guard.end();
}

#[test]
fn a_pod_is_named_by_its_name() {
    let (_folder, tree) = machine();
    let uid = "0a1b2c3d-0000-4000-8000-000000000001";
    let log = |space: &str, pod: &str, uid: &str| write(&tree, &format!("/var/log/pods/{space}_{pod}_{uid}/0.log"), "");
    let refusal = |name: &str| group_of(&tree, name).unwrap_err().to_string();
    log("shop", "web-5d", uid);
    assert!(refusal("web-5d").contains("the pod web-5d is gone"), "{}", refusal("web-5d"));
    let folder = format!(
        "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice",
        uid.replace('-', "_")
    );
    write(&tree, &format!("{folder}/memory.high"), "max\n");
    for name in ["web-5d", "shop/web-5d"] {
        assert_eq!(group_of(&tree, name).unwrap().folder(), tree.path(&folder), "{name}");
    }
    // Without systemd the group has the UID as it is.
    let other = "0a1b2c3d-0000-4000-8000-000000000002";
    log("test", "web-5d", other);
    let folder = format!("/sys/fs/cgroup/kubepods/besteffort/pod{other}");
    write(&tree, &format!("{folder}/memory.high"), "max\n");
    assert_eq!(group_of(&tree, "test/web-5d").unwrap().folder(), tree.path(&folder));
    let both = refusal("web-5d");
    assert!(both.contains("shop/web-5d") && both.contains("test/web-5d") && both.contains("name one"), "{both}");
}
