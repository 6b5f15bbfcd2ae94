//! The scheduler's words in the place of `live/src/sync.rs`.

pub use shuttle::hint::spin_loop as pause;
pub use shuttle::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8, Ordering};

pub use crate::sys::{futex_wait, futex_wake};

/// A look is a step of the scheduler here: more would only make each try longer.
pub const LOOKS: u32 = 1;
/// As above.
pub const SPINS: u32 = 1;
