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

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use coldframe_core::{After, Command, Engine, Event, Machine, PageId};

mod area;
mod coding;
mod head;
mod replay;
mod replayer;

pub use area::Noted;
pub use head::{open, Head};
pub use replay::replay;

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// An event was delivered.
    Event {
        /// The machine's time, in picoseconds.
        now: u64,
        /// The event.
        event: Event,
    },
    /// A command was issued.
    Command(Command),
    /// A reference bit was read.
    Referenced {
        /// Of this page.
        page: PageId,
        /// Whether the bit was kept or cleared.
        after: After,
        /// Its value.
        value: bool,
    },
    /// A page was given to a swap area without an engine. An engine's journal has none.
    Out {
        /// The driver's time, in picoseconds.
        now: u64,
        /// The page.
        page: PageId,
    },
    /// The thread of the next event. The engine does not get it.
    Thread {
        /// The system's number of the thread; 0: not known.
        thread: u32,
    },
    /// A dirty bit was read.
    Dirty {
        /// Of this page.
        page: PageId,
        /// Its value.
        value: bool,
    },
    /// A page that came in beside another one was looked at.
    Filled {
        /// The page.
        page: PageId,
        /// Whether it was written to.
        value: bool,
    },
}

/// The result of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Events delivered.
    pub events: u64,
    /// Bits answered.
    pub bits: u64,
    /// Commands that were the same.
    pub commands: u64,
}

/// A journal in memory that is being written. A machine that cannot hold all of it calls [`Journal::drain`] from time
/// to time.
#[derive(Clone, Debug)]
pub struct Journal {
    bytes: Vec<u8>,
    now: u64,
}

impl Journal {
    /// What has been written since the last call.
    pub fn drain(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// Bytes written since the last call of [`Journal::drain`] or [`Journal::drain_with`].
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that it can hold between two such calls without allocating more memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for that many bytes between two calls of [`Journal::drain_with`], so that nothing is allocated later.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    /// Passes on the bytes written since the last call, and keeps the memory for later bytes.
    pub fn drain_with(&mut self, write: impl FnOnce(&[u8])) {
        write(&self.bytes);
        self.bytes.clear();
    }
}

/// Why a journal cannot be replayed, or why the replay failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalError {
    /// The head is not valid.
    Head {
        /// Line of the head, from 1.
        line: usize,
        /// The field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An entry cannot be read.
    Entry {
        /// Where in the file.
        byte: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// The fresh engine issued something else.
    Differs {
        /// Where in the file.
        byte: usize,
        /// Entries that agreed before.
        entries: u64,
        /// What the journal has.
        journal: String,
        /// What the engine did.
        engine: String,
    },
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Head { line, field, reason } => write!(f, "line {line}, field `{field}`: {reason}"),
            JournalError::Entry { byte, reason } => write!(f, "byte {byte}: {reason}; the file is cut off or damaged"),
            JournalError::Differs { byte, entries, journal, engine } => {
                write!(
                    f,
                    "byte {byte}, after {entries} entries that agree: the journal has {journal}, the engine {engine}"
                )
            }
        }
    }
}

impl core::error::Error for JournalError {}

/// A journal being read.
#[derive(Clone)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    now: u64,
}

impl<'a> Entries<'a> {
    /// The entries of a part of a journal after its head, if the event before that part was at `now`.
    pub fn resume(bytes: &'a [u8], now: u64) -> Entries<'a> {
        Entries { bytes, at: 0, now }
    }

    /// The time of the last event, in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }
}

/// A machine with a journal: every command and every bit is noted.
pub struct Journaled<'a> {
    /// The machine.
    pub machine: &'a mut dyn Machine,
    /// Its journal.
    pub journal: &'a mut Journal,
}

impl Machine for Journaled<'_> {
    fn issue(&mut self, command: Command) {
        self.journal.write(&Entry::Command(command));
        self.machine.issue(command);
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let value = self.machine.referenced(page, after);
        self.journal.write(&Entry::Referenced { page, after, value });
        value
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.machine.dirty(page);
        self.journal.write(&Entry::Dirty { page, value });
        value
    }

    fn filled(&mut self, page: PageId) -> bool {
        let value = self.machine.filled(page);
        self.journal.write(&Entry::Filled { page, value });
        value
    }
}

/// Gives the event to the engine. If a journal is kept, notes the event and everything that follows from it. `now` is
/// in picoseconds.
pub fn handle(engine: &mut Engine, event: Event, now: u64, machine: &mut dyn Machine, journal: Option<&mut Journal>) {
    match journal {
        None => engine.handle(event, machine),
        Some(journal) => {
            journal.write(&Entry::Event { now, event });
            engine.handle(event, &mut Journaled { machine, journal });
        }
    }
}
