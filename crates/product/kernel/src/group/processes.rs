//! What the processes of a group wait for.

use coldframe_proc::Tree;

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
