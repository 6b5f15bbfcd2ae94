//! Messages to the user on file descriptor 2, without buffers or locks.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use coldframe_live::say;

use crate::sys;

/// Failures that are reported only once.
#[derive(Clone, Copy)]
pub enum Once {
    Full,
    Reservation,
    Low,
    Insists,
    OnFault,
    Userfaultfd,
    FixedMove,
    Advice,
    Direct,
    OwnDescriptor,
    Rings,
    Words,
    Break,
    Limit,
    Filter,
    Pinning,
    Served,
}

static PRINTED: AtomicU32 = AtomicU32::new(0);

/// Prints one line, the first time only.
pub fn once(what: Once, text: impl std::fmt::Display) {
    if PRINTED.fetch_or(1 << what as u32, Relaxed) & 1 << what as u32 == 0 {
        say(text);
    }
}

/// Prints one line and ends the process.
pub fn fail(code: u8, text: impl std::fmt::Display) -> ! {
    say(text);
    sys::exit_group(code.into())
}
