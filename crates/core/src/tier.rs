//! The compressed tier: pages that have left their frames, compressed, in RAM that the frames lack.
//!
//! Say first what there is ([`crate::Engine::set_tier`]). From then on a page that leaves is compressed by the machine, which alone has its
//! bytes and says how small they became (`Event::Compressed`). What is small enough is kept in the pool (`Command::Store`); what is not goes
//! to its slot, as every page does without a tier. When the pool is full the pages that have been in it longest go to their slots.
//!
//! ```text
//!              Compress                Store                      Unpack
//!   frame ──────────────► the machine ───────► pool ─────────────────────► buffer ─► frame     no device
//!                          │ too large          │ oldest, pool full
//!                          └──────► Write ◄── TakeOut                      slot ──Load──► ...
//! ```
//! A page is in one place: what is unpacked leaves the pool, and is dirty in its frame if its slot has older bytes. So the order in which
//! pages came into the pool is the order of their last use, as near as the policy has it.
//!
//! The RAM is one: frames are lent to the pool and come back, a few at a time. [`split`] says how many it may have, [`pool`] where pages lie.
//!
//! When not to use it: for pages that do not compress (the tier then has no frame, and costs the tries), and on a machine that reads its
//! device as fast as it decompresses.

use alloc::boxed::Box;
use alloc::vec;

use crate::ids::{FrameId, PageId, PoolId};
use crate::machine::Machine;

mod pool;
mod split;

use pool::{Object, Pool};
pub use pool::{BIN_FRAMES, GRAIN};
use split::Split;

/// The bounds of a tier, known at the start, and what it saves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierConfig {
    /// The most frames that the pool may have; rounded down to whole bins.
    pub frames_max: usize,
    /// Frames that it may have at first.
    pub frames_first: usize,
    /// Bytes of a page, 256 to 16384.
    pub page_bytes: u32,
    /// The largest compressed page that is kept, in bytes.
    pub size_max: u32,
    /// What a load from the device takes, in any unit.
    pub load_price: u32,
    /// What a page takes that comes from the pool and goes back, in the same unit.
    pub pool_price: u32,
}

/// Why a tier cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierError(pub &'static str);

impl core::fmt::Display for TierError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for TierError {}

/// What has happened in a tier so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierCounts {
    /// Pages that were compressed.
    pub compressed: u64,
    /// Of those, pages that were too large for the pool, or came when it could take nothing.
    pub refused: u64,
    /// Pages that came into the pool.
    pub stored: u64,
    /// Their bytes.
    pub stored_bytes: u64,
    /// Pages that came back from it.
    pub unpacked: u64,
    /// Pages that went from it to their slots.
    pub written_back: u64,
    /// Pages that left it since their slots have the same bytes.
    pub dropped: u64,
    /// Pages that were moved within it.
    pub shifted: u64,
    /// Bins that were lent to it, and that came back.
    pub lent: u64,
    /// See `lent`.
    pub returned: u64,
}

/// Its slot has older bytes than the pool or its frame.
const STALE: u8 = 1;
/// It did not compress when it left last.
const REFUSED: u8 = 2;
/// Of pages that did not compress, so many go to the device untried before one is tried again; a power of two.
const UNTRIED: u32 = 8;
/// Most pages that leave the pool for one that comes.
const LEAVE_MAX: usize = 8;
/// Frames that there must be besides the pool's.
const FRAMES_LEFT: usize = 8;

/// The books.
pub(crate) struct Tier {
    config: TierConfig,
    pool: Pool,
    split: Split,
    /// By page.
    flags: Box<[u8]>,
    pub(crate) counts: TierCounts,
}

/// A page that leaves the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaver {
    pub(crate) page: PageId,
    pub(crate) at: PoolId,
    pub(crate) size: u32,
    /// Its slot has older bytes.
    pub(crate) stale: bool,
}

impl TierConfig {
    /// Says why it cannot be, beside so many frames.
    pub fn refused(&self, frames: usize) -> Option<TierError> {
        let grain = GRAIN as u32;
        if self.frames_max + FRAMES_LEFT > frames {
            return Some(TierError("the tier leaves fewer than 8 frames"));
        }
        if !(256..=16384).contains(&self.page_bytes) || !self.page_bytes.is_multiple_of(grain) {
            return Some(TierError("a page of the tier has 256 to 16384 bytes, a multiple of 16"));
        }
        if self.size_max > self.page_bytes || self.size_max < grain {
            return Some(TierError("the largest page of the tier has 16 bytes to those of a page"));
        }
        None
    }
}

impl Tier {
    pub(crate) fn new(config: TierConfig, pages: usize) -> Tier {
        let bins = config.frames_max / BIN_FRAMES;
        Tier {
            pool: Pool::new(pages, bins, config.page_bytes),
            split: Split::new(&config, pages),
            flags: vec![0; pages].into_boxed_slice(),
            counts: TierCounts::default(),
            config,
        }
    }

    /// Frames that the pool has.
    pub(crate) fn frames(&self) -> usize {
        self.pool.bins() * BIN_FRAMES
    }

    /// Frames that it may have.
    pub(crate) fn target(&self) -> usize {
        self.split.target()
    }

    pub(crate) fn pages(&self) -> usize {
        self.pool.pages()
    }

    pub(crate) fn holds(&self, page: PageId) -> bool {
        self.pool.find(page).is_some()
    }

    fn mark(&mut self, page: PageId, flag: u8, on: bool) {
        let flags = &mut self.flags[page.index()];
        let new = if on { *flags | flag } else { *flags & !flag };
        // A table that is only read costs no RAM.
        if new != *flags {
            *flags = new;
        }
    }

    /// Where the page lies, and its bytes there.
    pub(crate) fn place(&self, page: PageId) -> Option<(PoolId, u32)> {
        self.pool.find(page).map(|Object { at, size }| (at, size))
    }

    /// The slot has older bytes than the page.
    pub(crate) fn is_stale(&self, page: PageId) -> bool {
        self.flags[page.index()] & STALE != 0
    }

    /// The page leaves its frame. Whether it is worth a try to compress it: it did compress when it left last, or is tried again.
    pub(crate) fn leaves(&mut self, page: PageId) -> bool {
        self.split.leaves(page);
        self.flags[page.index()] & REFUSED == 0 || self.split.now().is_multiple_of(UNTRIED)
    }

    /// The page leaves its frame and is compressed; `dirty` if its slot has older bytes.
    pub(crate) fn compresses(&mut self, page: PageId, dirty: bool) {
        self.counts.compressed += 1;
        self.mark(page, STALE, dirty);
    }

    /// Its slot has the page's bytes.
    pub(crate) fn written(&mut self, page: PageId) {
        self.mark(page, STALE, false);
    }

    /// Nobody wants the page's bytes any more.
    pub(crate) fn release(&mut self, page: PageId) {
        self.pool.remove(page);
        self.mark(page, STALE | REFUSED, false);
        self.split.forget(page);
    }

    /// A page of this size could be kept if there were room.
    pub(crate) fn takes(&mut self, page: PageId, size: u32) -> bool {
        let takes = size <= self.config.size_max;
        self.mark(page, REFUSED, !takes);
        takes
    }

    /// There is no room, or it is too large.
    pub(crate) fn refuse(&mut self) {
        self.counts.refused += 1;
    }

    /// Places a page; `None`: there is no room now.
    pub(crate) fn store(&mut self, page: PageId, size: u32, machine: &mut dyn Machine) -> Option<PoolId> {
        let at = self.pool.place(page, size, &mut |command| machine.issue(command), &mut self.counts.shifted)?;
        self.counts.stored += 1;
        self.counts.stored_bytes += u64::from(size);
        Some(at)
    }

    /// Takes the page out that has been there longest, to make room.
    pub(crate) fn oldest_out(&mut self) -> Option<Leaver> {
        let page = self.pool.oldest()?;
        Some(self.out(page))
    }

    fn out(&mut self, page: PageId) -> Leaver {
        let Object { at, size } = self.pool.remove(page).expect("it is there");
        let stale = self.is_stale(page);
        *if stale { &mut self.counts.written_back } else { &mut self.counts.dropped } += 1;
        Leaver { page, at, size, stale }
    }

    /// Pages that may leave for one that comes.
    pub(crate) const LEAVE_MAX: usize = LEAVE_MAX;

    /// A page is wanted in a frame: where it is in the pool, which it leaves.
    pub(crate) fn unpack(&mut self, page: PageId) -> Option<(PoolId, u32)> {
        let Object { at, size } = self.pool.remove(page)?;
        self.counts.unpacked += 1;
        Some((at, size))
    }

    /// A task stands still for a page, which is in the pool or on the device. Moves the border now and then.
    pub(crate) fn fault(&mut self, page: PageId) {
        let from_pool = self.pool.find(page).is_some();
        let refused = self.flags[page.index()] & REFUSED != 0;
        let oldest = self.pool.oldest();
        self.split.fault(page, from_pool, refused, oldest, self.pool.per_frame());
    }

    /// Whether the pool wants a bin: so many pages are about to leave, and there is no room for them.
    pub(crate) fn is_short(&self, leaving: usize) -> bool {
        self.frames() + BIN_FRAMES <= self.split.target() && self.pool.is_tight(leaving) && self.pool.has_vacant()
    }

    /// Whether the pool has a bin too many: more than it may have, or one that is nearly empty.
    pub(crate) fn is_long(&self, leaving: usize) -> bool {
        self.frames() > self.split.target() || self.pool.is_slack(leaving)
    }

    /// The pool gets these frames; which part of it they are.
    pub(crate) fn lend(&mut self, frames: [FrameId; BIN_FRAMES]) -> usize {
        self.counts.lent += 1;
        self.pool.lend(frames)
    }

    /// The bin that is taken from the pool with the least work, and is not used any more.
    pub(crate) fn close_bin(&mut self) -> Option<usize> {
        self.pool.close()
    }

    /// A page that is still in a closed bin: it is moved into another one (`None` then), or leaves.
    pub(crate) fn clear_bin(&mut self, bin: usize, machine: &mut dyn Machine) -> Option<Option<Leaver>> {
        let page = self.pool.first_of(bin)?;
        let moved = self.pool.relocate(page, &mut |command| machine.issue(command), &mut self.counts.shifted);
        Some(if moved { None } else { Some(self.out(page)) })
    }

    /// The frames of an empty, closed bin come back.
    pub(crate) fn return_bin(&mut self, bin: usize) -> [FrameId; BIN_FRAMES] {
        self.counts.returned += 1;
        self.pool.take_back(bin)
    }

    /// Every invariant: no two pages overlap, all lie within bins that are lent, and nothing is lost count of.
    pub(crate) fn check(&self) {
        self.pool.check();
        assert!(self.frames() <= self.config.frames_max, "the pool has more frames than it may ever have");
    }

    /// The frames that are lent.
    pub(crate) fn lent(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.pool.lent()
    }
}
