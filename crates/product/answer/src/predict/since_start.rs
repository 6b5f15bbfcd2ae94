//! What a process that runs has had since its start. Its next start has the same peak, so a hard limit below that kills
//! it, however little it needs now.

use coldframe_kernel::{group_of, Group};
use coldframe_proc::{field, printable, text, Process, Tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of a container's number that tell it from others, as its tools print it.
const CONTAINER: usize = 12;

/// The most RAM of a process and its descendants since its start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SinceStart {
    /// What its processes have, and what each of them has had more at its own peak; all of it may not have been at one
    /// time.
    pub processes_bytes: u64,
    /// The most that its memory group was charged, if it has one for itself.
    pub group_bytes: Option<u64>,
    /// What `coldframe squeeze` takes for it: its unit, container or group, or its number.
    pub name: String,
    /// Whether that is a group, whose limit can be lowered: not the root of all groups.
    #[serde(default)]
    pub in_group: bool,
    /// Other processes in the group.
    #[serde(default)]
    pub others: u64,
}

impl SinceStart {
    /// Of a process, until now. `has_bytes`: what it and its descendants have.
    pub(crate) fn of(tree: &Tree, pid: u32, has_bytes: u64) -> SinceStart {
        let family = tree.process(pid).with_descendants();
        // Other programs in its group have a peak of their own.
        let group = group_of(tree, &pid.to_string()).ok();
        let processes = group.as_ref().map_or_else(Vec::new, Group::processes);
        let others = processes.iter().filter(|process| !family.contains(process)).count() as u64;
        let more: u64 = family.iter().map(|process| more_at_its_peak(&tree.process(*process))).sum();
        SinceStart {
            processes_bytes: has_bytes + more,
            group_bytes: group.as_ref().filter(|_| others == 0).and_then(Group::peak),
            name: group.as_ref().map_or(pid.to_string(), name),
            in_group: group.is_some(),
            others,
        }
    }

    /// What a hard limit has to hold. A file that another group has read first is not charged to this one; to the next
    /// start it may be.
    pub fn peak_bytes(&self) -> u64 {
        self.processes_bytes.max(self.group_bytes.unwrap_or(0))
    }

    /// The larger peak of both: a process that has ended shows none.
    pub(crate) fn or(self, later: SinceStart) -> SinceStart {
        if later.peak_bytes() > self.peak_bytes() {
            later
        } else {
            self
        }
    }
}

/// What a process had more than now when it had most (`VmHWM` of `proc_pid_status(5)`).
fn more_at_its_peak(process: &Process) -> u64 {
    let status = text(&process.file("status"));
    let [peak, now] = ["VmHWM", "VmRSS"].map(|name| field(&status, name).unwrap_or(0));
    peak.saturating_sub(now)
}

/// The unit or the container that has this group, or the group's folder.
fn name(group: &Group) -> String {
    let folder = group.folder();
    let last = folder.file_name().unwrap_or_default().to_string_lossy();
    let number = last.trim_end_matches(".scope").rsplit('-').next().unwrap_or_default();
    let container = number.len() >= 64 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    match () {
        () if container => number[..CONTAINER].into(),
        () if [".service", ".scope"].iter().any(|end| last.ends_with(end)) => printable(&last),
        () => printable(&folder.to_string_lossy()),
    }
}

#[cfg(test)]
mod tests {
    use coldframe_kernel::Version;

    use super::*;

    #[test]
    fn a_group_is_named_by_its_unit_or_container_or_by_its_folder() {
        let named = |folder: &str| name(&Group::new(Version::Two, folder, None));
        let number = "0123456789abcdef".repeat(4);
        assert_eq!(named("/sys/fs/cgroup/system.slice/nginx.service"), "nginx.service");
        assert_eq!(named(&format!("/sys/fs/cgroup/system.slice/docker-{number}.scope")), "0123456789ab");
        assert_eq!(named(&format!("/sys/fs/cgroup/memory/docker/{number}")), "0123456789ab");
        assert_eq!(named("/sys/fs/cgroup/a-group"), "/sys/fs/cgroup/a-group");
    }

    /// A machine with process 7 and its child 8, in a group with these processes. Each had 30000 kB more at its peak.
    fn machine(processes: &str) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", "0::/\n");
        write("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        write("sys/fs/cgroup/cgroup.controllers", "memory");
        for (process, children) in [("7", "8"), ("8", "")] {
            write(&format!("proc/{process}/cgroup"), "0::/a.service\n");
            write(&format!("proc/{process}/task/{process}/children"), children);
            write(&format!("proc/{process}/status"), "VmHWM:    100000 kB\nVmRSS:    70000 kB\n");
        }
        write("sys/fs/cgroup/a.service/cgroup.procs", processes);
        write("sys/fs/cgroup/a.service/memory.peak", &(300_000u64 << 10).to_string());
        let tree = Tree::new(folder.path());
        (folder, tree)
    }

    #[test]
    fn the_peak_is_what_its_processes_had_more_and_that_of_a_group_of_its_own() {
        let (_folder, tree) = machine("7\n8\n");
        let own = SinceStart::of(&tree, 7, 76_000 << 10);
        assert_eq!((own.processes_bytes, own.group_bytes), (136_000 << 10, Some(300_000 << 10)));
        assert_eq!((own.peak_bytes(), own.name.as_str()), (300_000 << 10, "a.service"));
        // Another program is in the group.
        let (_folder, tree) = machine("7\n8\n9\n");
        let processes = SinceStart::of(&tree, 7, 76_000 << 10);
        assert_eq!(
            (processes.peak_bytes(), processes.group_bytes, processes.name.as_str()),
            (136_000 << 10, None, "a.service")
        );
        assert_eq!((own.in_group, own.others, processes.others), (true, 0, 1));
        // Of processes that have ended, the peak from before counts.
        assert_eq!(processes.clone().or(SinceStart::default()), processes);
    }
}
