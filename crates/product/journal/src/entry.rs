//! An entry of a journal.

use coldframe_core::{After, Command, Event, PageId};

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

/// The tag of a page that goes out.
pub(crate) const OUT: u8 = 27;
