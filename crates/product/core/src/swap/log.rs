//! The log: always the next slot of the open erase block (LOBI, "log-structured swap-out").
//!
//! Two blocks can be open: one for pages from RAM, and one for pages that a collection moves. So collectors with age
//! can keep cold pages apart from hot ones. Pages from RAM can go to several logs, each with an open block. If no block
//! is free, all kinds share one.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::ids::BlockId;

/// Where a page comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WriteStream {
    /// Into this log.
    SwapOuts(u32),
    Survivors,
}

pub(super) struct Log {
    /// Fewest erases first, then the lowest number: dynamic wear levelling.
    free: BinaryHeap<Reverse<(u32, BlockId)>>,
    /// For survivors, then for each log.
    open: Vec<Option<BlockId>>,
}

impl Log {
    pub(super) fn new(blocks: usize, logs: u32) -> Log {
        Log { free: BinaryHeap::with_capacity(blocks), open: vec![None; 1 + logs as usize] }
    }

    pub(super) fn add_free(&mut self, block: BlockId, erases: u32) {
        self.free.push(Reverse((erases, block)));
    }

    /// The block was taken for erased and is not.
    pub(super) fn not_free(&mut self, block: BlockId) {
        self.free.retain(|Reverse((_, other))| *other != block);
    }

    /// The block whose next slot is taken; `None`: no erased slot is left.
    #[inline]
    pub(super) fn next_block(&mut self, stream: WriteStream) -> Option<BlockId> {
        let mine = match stream {
            WriteStream::Survivors => 0,
            WriteStream::SwapOuts(log) => 1 + log as usize % (self.open.len() - 1),
        };
        if self.open[mine].is_none() {
            self.open[mine] = self.free.pop().map(|Reverse((_, block))| block);
        }
        self.open[mine].or_else(|| self.open.iter().find_map(|open| *open))
    }

    /// The block takes no more pages.
    pub(super) fn closed(&mut self, block: BlockId) {
        self.open.iter_mut().filter(|open| **open == Some(block)).for_each(|open| *open = None);
    }
}
