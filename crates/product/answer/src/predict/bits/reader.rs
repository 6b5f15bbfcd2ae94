//! What a watcher reads of processes, and what it may do to them.

use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

/// The files of some processes, and the clock: the kernel's, or a table of a test.
pub(crate) trait Reader {
    /// The time since the start in which the processes were not stopped.
    fn clock(&self) -> Duration;

    /// Seconds that watching has cost so far.
    fn spent_seconds(&self) -> f64;

    /// Waits.
    fn sleep(&mut self, time: Duration);

    /// The processes to watch now.
    fn processes(&mut self) -> Vec<u32>;

    /// The text of `smaps`; `None`: it cannot be read, or the process has ended.
    fn smaps(&self, process: u32) -> Option<String>;

    /// Clears its referenced bits; whether that was possible.
    fn clear(&mut self, process: u32) -> bool;

    /// Nanoseconds of its processor time.
    fn processor_ns(&self, process: u32) -> u64;

    /// Stops the processes, if that is allowed.
    fn stop(&mut self) {}

    /// Lets them go on.
    fn resume(&mut self) {}
}

/// Processor time of this process.
pub(crate) fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
