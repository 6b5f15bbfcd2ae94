//! Prefetching: which pages are worth loading before a task waits for them. A machine asks here when a fault comes
//! (read-ahead of [`Streams`]) or when it knows the next task ([`PrefetchLists`]). It keeps the pages that exist and
//! have content, and sends `Event::WillNeed` for them.

mod faulted;
mod streams;

pub use faulted::{PrefetchLists, LIST_MAX};
pub use streams::Streams;

/// How a page that nobody stands still for enters RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrival {
    /// Mapped, as a page that was faulted on, and as recent: for read-ahead, whose pages are wanted at once.
    #[default]
    Mapped,
    /// Not mapped (its first touch is a false fault, Linux's minor fault on a page in the swap cache), and in the recency order behind the
    /// pages of the running task's slice, of which it pushes out none (SAP section 3.4).
    BehindSlice,
    /// Mapped with a clear reference bit, and in the same place of the recency order: its first touch is no fault (the `make_present` of
    /// SAP's algorithm 1). A machine without reference bits cannot tell an untouched page, so there it waits unmapped.
    MappedBehindSlice,
}

impl Arrival {
    /// Whether the page stands behind those of the running slice, and takes no frame of theirs.
    pub const fn is_behind_slice(self) -> bool {
        !matches!(self, Arrival::Mapped)
    }
}
