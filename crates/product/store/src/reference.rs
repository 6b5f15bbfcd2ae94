//! One reference of a program to its memory. No allocation and no standard library: the board uses this file too.

/// What an access did. The numbers are those of the `kind` column.
///
/// A read-modify-write (lackey's `M`) is **one** reference, a [`Kind::Write`]: the page is touched once and left dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// An instruction fetch.
    Fetch = 0,
    /// A data read.
    Read = 1,
    /// A data write, or a read-modify-write.
    Write = 2,
}

impl Kind {
    /// The kind stored as `number`, or `None` if it is not 0, 1 or 2.
    pub const fn from_number(number: u32) -> Option<Kind> {
        match number {
            0 => Some(Kind::Fetch),
            1 => Some(Kind::Read),
            2 => Some(Kind::Write),
            _ => None,
        }
    }
}

/// One access, as a row of a [trace](crate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The first byte touched, as the program names it (virtual unless the provenance says otherwise).
    pub address: u64,
    /// Bytes touched from `address` on, at least 1. It may cross a page; the simulator splits it.
    pub size: u32,
    /// Fetch, read or write.
    pub kind: Kind,
    /// The thread or task that made it; 0 if the source has none.
    pub task: u32,
    /// Nanoseconds since the recording's start, by the clock that the provenance names; 0 if the source has none.
    pub time: u64,
    /// The number of consecutive references of this (page, kind) in the row; 1 in exact traces.
    pub count: u32,
}

impl Reference {
    /// A single reference of task 0 at time 0.
    pub const fn new(address: u64, size: u32, kind: Kind) -> Reference {
        Reference { address, size, kind, task: 0, time: 0, count: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_from_its_number() {
        for kind in [Kind::Fetch, Kind::Read, Kind::Write] {
            assert_eq!(Kind::from_number(kind as u32), Some(kind));
        }
        assert_eq!(Kind::from_number(3), None);
    }
}
