//! Synchronisation for the states of pages, the locks and the pool of tasks. The models (`crates/tools/model`) replace
//! this file by one with a scheduler that tries interleavings. So the modules that use it take their synchronisation
//! from here only.

pub use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

pub use crate::sys::{futex_wait, futex_wake};

/// How often a thread checks before it sleeps: about as long as a copy of a page takes.
pub const LOOKS: u32 = 200;

/// The same for a lock: about as long as it is held.
pub const SPINS: u32 = 2000;

pub fn pause() {
    std::hint::spin_loop();
}
