//! Counts how often a lane has read pages in place, without looking at single hits.
//!
//! The page table counts the reads of each page, for all lanes together. A lane notes the count when a page is mapped
//! in a buffer, and again when the page leaves the buffer; the difference is the number of reads there.

use coldframe_core::{PageId, Ps};

use crate::page_table::PageTable;

/// The meter of one lane.
#[derive(Debug)]
pub struct XipMeter {
    /// The extra time of a read in place over a read from main memory.
    surplus: Ps,
    /// Pages in buffers and the counts at which they came.
    open: Vec<(PageId, u64)>,
    closed: u64,
}

impl XipMeter {
    /// A meter for this many buffers; reads in place have no extra price.
    pub fn new(buffers: u32) -> XipMeter {
        XipMeter { surplus: Ps::ZERO, open: Vec::with_capacity(buffers as usize), closed: 0 }
    }

    /// Sets the extra time of a read in place from now on.
    pub fn price(&mut self, surplus: Ps) {
        self.surplus = surplus;
    }

    /// The page is in a buffer from now on.
    pub fn enters(&mut self, page: PageId, table: &PageTable) {
        self.open.push((page, table.reads(page)));
    }

    /// The page is in a frame or nowhere from now on, if it was in a buffer.
    pub fn leaves(&mut self, page: PageId, table: &PageTable) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == page) {
            let (_, since) = self.open.remove(at);
            self.closed += table.reads(page) - since;
        }
    }

    /// Reads in place so far.
    pub fn reads(&self, table: &PageTable) -> u64 {
        self.closed + self.open.iter().map(|(page, since)| table.reads(*page) - since).sum::<u64>()
    }

    /// The extra time of all reads in place.
    pub fn time(&self, table: &PageTable) -> Ps {
        self.surplus * self.reads(table)
    }
}
