//! What `/proc` says about the processes of a group.

use crate::tree::{text, Tree};

/// Bytes of private data of a process that are neither heap nor anonymous mappings: stacks, and what it has changed in
/// mappings of files, as libraries' data. In RAM or in swap. Zero if the process is gone or another user's.
pub fn beside_heap(tree: &Tree, process: u32) -> u64 {
    smaps(&tree.text(format!("/proc/{process}/smaps")))
}

/// A mapping's first line has its range and, if it is of a file or has a name, that name as the sixth word.
fn smaps(text: &str) -> u64 {
    let (mut counts, mut bytes) = (false, 0);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            let name = words.nth(4).unwrap_or_default();
            counts = name.starts_with('/') || name == "[stack]";
        } else if counts && matches!(first, "Anonymous:" | "Swap:") {
            bytes += words.next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024;
        }
    }
    bytes
}

/// Ticks (of a hundredth of a second) that a process has waited for block devices so far, swap among them: field 42 of
/// its `stat` (proc_pid_stat(5)). The kernel counts them if `kernel.task_delayacct` is on.
pub(crate) fn delay_ticks(tree: &Tree, process: u32) -> u64 {
    let stat = tree.text(format!("/proc/{process}/stat"));
    // The second field is a name in brackets and may hold spaces.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    rest.split_whitespace().nth(42 - 3).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Whether a thread of these processes waits for a device.
pub(crate) fn waiting(tree: &Tree, processes: &[u32]) -> bool {
    processes.iter().any(|process| states(tree, *process).contains(&'D'))
}

/// Whether all threads of a process are stopped, by a signal or a tracer; `None`: it has ended.
pub(crate) fn still(tree: &Tree, process: u32) -> Option<bool> {
    let mut states = states(tree, process);
    states.retain(|state| !matches!(state, 'Z' | 'X'));
    (!states.is_empty()).then(|| states.iter().all(|state| matches!(state, 'T' | 't')))
}

/// The states of a process's threads: field 3 of their `stat`.
fn states(tree: &Tree, process: u32) -> Vec<char> {
    let threads = std::fs::read_dir(tree.path(format!("/proc/{process}/task"))).into_iter().flatten().flatten();
    let stats = threads.map(|thread| text(&thread.path().join("stat")));
    stats.filter_map(|stat| stat.rsplit_once(')')?.1.trim_start().chars().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_and_anonymous_mappings_are_not_beside_the_heap() {
        let text = "\
55d0-55d1 rw-p 00001000 fe:00 12  /usr/bin/sort
Rss: 8 kB
Anonymous: 4 kB
Swap: 8 kB
55d2-55d3 rw-p 00000000 00:00 0  [heap]
Anonymous: 4000 kB
Swap: 100 kB
7f00-7f01 rw-p 00000000 00:00 0
Anonymous: 5000 kB
VmFlags: rd wr mr
7ffc-7ffd rw-p 00000000 00:00 0  [stack]
Anonymous: 16 kB
";
        assert_eq!(smaps(text), 28 << 10);
    }
}
