//! The life of a pager: its start from options, forks, its end, and its own memory. Only the door
//! ([`crate::Pager`]) and the C library's fork handlers call this room, and it may call all others.

pub mod fork;
pub mod locked;
mod process;
pub mod start;

use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::region::ManagedMemory;
use crate::stats::Stats;
use crate::swap::secret::lock;
use crate::sys::{fatal, own_descriptors, High, Own, Signals, Source};
use crate::threads::Threads;
use crate::{Options, PAGE};
use fork::Forks;

/// A pager: one engine, one RAM budget, its threads.
///
/// ```text
///   Inner ── threads, forks
///     └ ManagedMemory ── opening, closing, pins
///         └ Faults ── the engine behind its gate
///             └ Work ── tasks, log, message reader, recording
///                 └ Memory ── userfaultfd, address space, pages
/// ```
pub struct Inner {
    pub options: Options,
    pub managed: ManagedMemory,
    threads: Threads,
    forks: Forks,
    source: Own<Source>,
    pub stats: &'static Stats,
    /// Open as long as the pager lives: by it, another process finds the statistics, and later programs have them.
    statistics: Own<Option<High>>,
    /// The program has no descriptor of them.
    left_statistics: AtomicBool,
}

impl Inner {
    /// Runs `work` where the pager's descriptors are.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.threads.calls.run(work)
    }

    /// A process that this one has made has its memory, too.
    pub fn shares_memory_with(&self, process: usize) {
        self.threads.add_other(process);
    }

    /// From now on only the pager process has the descriptor of the statistics, if there is one: a program that is
    /// executed gets it by [`Inner::inherit_statistics`].
    pub fn leave_statistics(&self) {
        let _signals = Signals::block();
        if self.threads.have_process() {
            own_descriptors::leave(|number| self.options.stats_fd != Some(number));
            self.left_statistics.store(true, Ordering::Relaxed);
        }
    }

    /// The program's descriptor of the statistics, if it has one.
    fn own_statistics(&self) -> Option<RawFd> {
        self.options.stats_fd.filter(|_| !self.left_statistics.load(Ordering::Relaxed))
    }

    pub fn flush_journal(&self) {
        let _signals = Signals::block();
        if let Some(journal) = self.managed.gate.lock().journal() {
            journal.flush();
        }
    }

    pub fn end(&self) {
        self.run(|| self.end_here());
    }

    fn end_here(&self) {
        // In a process without paging the log is the parent's, and its lock may be held permanently; and it has no
        // share in the counts.
        if self.managed.memory().is_plain() {
            return;
        }
        self.flush_journal();
        if let Some(recording) = self.managed.work.recording() {
            recording.end(self.managed.memory().resident());
        }
        self.share().into_iter().for_each(|(counter, n)| Stats::sub(counter, n as u64));
        self.managed.memory().count(false);
    }

    /// This process's share of the statistics of the present.
    fn share(&self) -> [(&AtomicU64, usize); 4] {
        let (stats, memory, _signals) = (self.stats, self.managed.memory(), Signals::block());
        let managed = memory.space.managed_within(memory.space.span());
        let decider = self.managed.gate.lock();
        [
            (&stats.processes, 1),
            (&stats.frames, if memory.share.is_on() { 0 } else { self.options.ram as usize / PAGE }),
            (&stats.managed, managed.iter().map(|(range, _)| range.len() / PAGE).sum()),
            (&stats.pinned, decider.engine().frames().pinned()),
        ]
    }

    fn count_in(&self) {
        self.share().into_iter().for_each(|(counter, n)| Stats::add(counter, n as u64));
        self.managed.memory().count(true);
    }

    /// With encryption: excludes memory that holds pages in plain text from core dumps, and locks it in RAM. Returns
    /// false if the limit on locked memory is too low for all of it; the most used memory is locked first. Called
    /// once for each process.
    pub fn keep_plaintext(&self) -> bool {
        let refused = |range: &Range<usize>| lock(range.clone()).is_err();
        !self.options.encrypt || self.managed.work.plaintext().filter(refused).count() == 0
    }

    /// Reports limits of this process that restrict the pager. Only the first program reports them, not the programs
    /// that it starts.
    fn say_limits(&self, own_process: bool) {
        if !own_process {
            fatal::say(
                "not all of the memory in which pages are before they are encrypted can be locked (ulimit -l): the \
                 kernel may write it to its own swap",
            );
        }
        let device = self.managed.work.log().device();
        if device.len.is_none() && device.limit().is_some() {
            let most = self.managed.work.log().bytes_max() >> 20;
            fatal::say(format_args!("the swap file may take {most} MiB: the limit on file sizes (ulimit -f)"));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        process::unregister(self);
        // If nothing is paged, the threads belong to another process.
        if !self.managed.memory().is_plain() {
            self.threads.stop(&self.managed);
        }
        self.end();
    }
}
