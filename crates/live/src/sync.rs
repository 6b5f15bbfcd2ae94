//! What the life of a page, the locks and the pool of tasks are synchronised with. The models (`crates/model`) replace this file by one of a scheduler
//! that tries interleavings, so the modules that use it take nothing else of this kind.

pub use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

pub use crate::sys::{futex_wait, futex_wake};

/// Looks that a thread takes before it sleeps: about as long as a copy of a page lasts.
pub const LOOKS: u32 = 200;

/// The same for a lock: about as long as it is held.
pub const SPINS: u32 = 2000;

/// A pause between two looks.
pub fn pause() {
    std::hint::spin_loop();
}
