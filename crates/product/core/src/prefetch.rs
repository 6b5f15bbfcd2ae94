//! Prefetching: which pages to load before a task waits for them. A machine asks here when a fault comes (read-ahead
//! of [`Streams`]) or when it knows the next task ([`PrefetchLists`]). It drops pages that do not exist or have no
//! content, and sends `Event::WillNeed` for the others.

mod faulted;
mod neighbours;
mod streams;
mod window;

pub use faulted::{PrefetchLists, LIST_MAX};
pub use neighbours::Neighbours;
pub use streams::Streams;
pub use window::Window;

/// How a prefetched page enters RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrival {
    /// Mapped and recent, like a page that was faulted on. For read-ahead, whose pages are needed at once.
    #[default]
    Mapped,
    /// Not mapped. Its first touch is a false fault (Linux: a minor fault on a page in the swap cache). In the recency
    /// order the page is behind the pages of the running task's slice, and it evicts none of them (SAP section 3.4).
    BehindSlice,
    /// Mapped with a clear reference bit, and at the same place of the recency order: its first touch is no fault
    /// (the `make_present` of SAP's algorithm 1). A machine without reference bits cannot tell an untouched page, so
    /// there the page stays unmapped.
    MappedBehindSlice,
}

impl Arrival {
    /// Whether the page goes behind those of the running slice, and takes none of their frames.
    pub const fn is_behind_slice(self) -> bool {
        !matches!(self, Arrival::Mapped)
    }
}
