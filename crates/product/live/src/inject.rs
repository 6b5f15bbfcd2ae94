//! Failures of the device that tests ask for, so that tests see how a program behaves when its device fails.

use serde::{Deserialize, Serialize};

/// The failures to inject, each once in this many operations (0: never). The seed decides when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Inject {
    /// Seed of the chance.
    pub seed: u64,
    /// Reads that fail with EIO.
    pub read_error: u32,
    /// Reads that return fewer bytes than asked for.
    pub read_short: u32,
    /// Reads with one flipped bit.
    pub read_flip: u32,
    /// Reads that take 20 ms longer.
    pub read_late: u32,
    /// Reads and writes that return EAGAIN.
    pub again: u32,
    /// Writes that fail with EIO.
    pub write_error: u32,
    /// Writes that fail with ENOSPC.
    pub write_full: u32,
    /// Writes that take fewer bytes than given.
    pub write_short: u32,
    /// Microseconds by which each operation is slower.
    pub slow_us: u32,
    /// Calls of the kernel that change the page table and are preceded by a pause, in all pagers of the process. This
    /// does not affect the device.
    pub pause: u32,
}

impl Inject {
    /// Whether any of these failures concerns the device.
    pub fn is_of_device(&self) -> bool {
        let Inject { seed, pause, .. } = *self;
        *self != Inject { seed, pause, ..Inject::default() }
    }
}
