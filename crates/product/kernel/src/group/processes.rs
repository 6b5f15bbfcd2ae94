//! What the processes of a group have in memory, and what they wait for.

use coldframe_proc::{mappings, Tree};

/// Bytes of private data of a process that are neither heap nor anonymous mappings: stacks, and what it has changed in
/// mappings of files, as libraries' data. In RAM or in swap. Zero if the process is gone or another user's.
pub(crate) fn outside_heap(tree: &Tree, process: u32) -> u64 {
    tree.process(process).smaps().map_or(0, |text| private(&text))
}

fn private(smaps: &str) -> u64 {
    let counts = |name: &str| name.starts_with('/') || name == "[stack]";
    let outside = mappings(smaps).into_iter().filter(|mapping| counts(mapping.name)).map(|mapping| mapping.counts);
    outside.map(|counts| (counts.anonymous + counts.swap) * 1024).sum()
}

/// Ticks that a process has waited for block devices so far.
pub(crate) fn delay_ticks(tree: &Tree, process: u32) -> u64 {
    tree.process(process).stat().map_or(0, |stat| stat.delay_ticks)
}

/// Whether a thread of these processes waits for a device.
pub(crate) fn waiting(tree: &Tree, processes: &[u32]) -> bool {
    processes.iter().any(|process| tree.process(*process).thread_stats().iter().any(|stat| stat.state == 'D'))
}

/// Whether all threads of a process are stopped, by a signal or a tracer; `None`: it has ended.
pub(crate) fn is_stopped(tree: &Tree, process: u32) -> Option<bool> {
    let mut threads = tree.process(process).thread_stats();
    threads.retain(|stat| !stat.ended());
    (!threads.is_empty()).then(|| threads.iter().all(|stat| stat.stopped()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heap_and_anonymous_mappings_are_not_outside_the_heap() {
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
        assert_eq!(private(text), 28 << 10);
    }
}
