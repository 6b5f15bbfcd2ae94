//! The kernel's map of this process's pages (`/proc/self/pagemap`), opened before the program begins.

use std::os::fd::AsRawFd;

use super::{read_at, High, Sys};
use crate::PAGE;

/// `Documentation/admin-guide/mm/pagemap.rst`: the page is in RAM, is swapped out, is a guard, has a frame that is mapped
/// nowhere else. The kernel's own page of zeros has no such frame.
const IN_RAM: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const GUARD: u64 = 1 << 58;
const EXCLUSIVE: u64 = 1 << 56;

/// Twice as many descriptors as the pager needs at least.
const FEW: u64 = 80;

#[derive(Debug)]
pub struct PageMap {
    /// `None`: the process may not open it, or has few descriptors.
    file: Option<High>,
    /// A child has its parent's file until it opens its own.
    process: usize,
}

/// What the map says of a page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapEntry(u64);

impl MapEntry {
    pub fn has_content(self) -> bool {
        self.0 & (IN_RAM | SWAPPED) != 0 && self.0 & GUARD == 0
    }

    /// Whether the page has a frame that is mapped nowhere else.
    pub fn is_exclusive(self) -> bool {
        self.0 & (IN_RAM | EXCLUSIVE) == IN_RAM | EXCLUSIVE
    }

    /// Whether the page may be the kernel's page of zeros, which a first write replaces.
    pub fn may_be_zeros(self) -> bool {
        self.0 & (IN_RAM | SWAPPED | EXCLUSIVE) == IN_RAM
    }
}

impl PageMap {
    pub fn open() -> PageMap {
        let few = super::with_room(|soft| soft < FEW);
        let file = if few { None } else { super::open_file(c"/proc/self/pagemap").ok().map(super::move_high) };
        PageMap { file, process: super::pids::program() }
    }

    pub fn is_open(&self) -> bool {
        self.file.is_some() && self.process == super::pids::program()
    }

    /// The entries of the pages from `address` on.
    pub fn look(&self, address: usize, entries: &mut [MapEntry]) -> Sys<()> {
        let (file, len) = (self.file.as_ref().map_or(-1, |file| file.as_raw_fd()), size_of_val(entries));
        let mut done = 0;
        while done < len {
            let (into, offset) = (entries.as_mut_ptr() as usize + done, (address / PAGE * 8 + done) as u64);
            // SAFETY: the rest of `entries`, which are numbers.
            match unsafe { read_at(file, into, len - done, offset) }? {
                0 => return Err(super::Errno::IO),
                read => done += read,
            }
        }
        Ok(())
    }
}
