//! The journal of an engine: every event, every bit that was read and every command, in order; and the replay that
//! checks it.
//!
//! An engine's decisions depend only on events and bits. So a new engine of the same configuration that gets the
//! events and bits of a journal must issue the same commands. [`replay`] checks this, for a journal of any machine.
//!
//! ```text
//! "coldframe journal 10\n"   key=value\n ...   "\n"   entries
//! entry: tag byte, then its numbers as LEB128; an event carries the time since the event before it
//! ```

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod area;
mod entries;
mod entry;
mod error;
mod head;
mod journal;
mod journaled;
mod replay;
mod replayer;

pub use area::Noted;
pub use entries::Entries;
pub use entry::Entry;
pub use error::JournalError;
pub use head::{open, Head};
pub use journal::Journal;
pub use journaled::{handle, Journaled};
pub use replay::replay;
pub use replayer::Replayed;
