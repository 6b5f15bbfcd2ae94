//! Replaces `live/src/sys/sync.rs`: the model scheduler's atomics and hints.

pub use shuttle::hint::spin_loop as pause;
pub use shuttle::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

pub use crate::sys::{futex_wait, futex_wake};

/// Each look is a step of the scheduler; more looks would only make each try longer.
pub const LOOKS: u32 = 1;
/// As above.
pub const SPINS: u32 = 1;
