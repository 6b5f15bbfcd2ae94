//! The compressed tier: evicted pages are compressed and kept in RAM that is taken from the frames.
//!
//! With a tier below the frames ([`crate::Below::Tier`]), the machine compresses each page that leaves its
//! frame. Only the machine has the bytes, so it reports the compressed size (`Event::Compressed`). A page that is
//! small enough is kept in the pool (`PoolOp::Store`); any other page goes to its slot, as every page does without a
//! tier. When the pool is full, the pages that have been in it longest go to their slots.
//!
//! ```text
//!              Compress                Store                    Decompress
//!   frame ──────────────► the machine ───────► pool ─────────────────────► buffer ─► frame     no device
//!                          │ too large          │ oldest, pool full
//!                        Write               TakeOut, several to a slot    slot ──Load──► ..., the others: Keep
//! ```
//! A page that leaves the pool stays compressed, and shares a slot with others that leave with it ([`packs`]). If one
//! of them is loaded, the others come along, and go to the pool if such pages were needed lately.
//!
//! A page is in one place: a page that is decompressed leaves the pool, and is dirty in its frame if its slot has older
//! bytes. So the order in which pages entered the pool is the order of their last use, as closely as the policy keeps
//! it.
//!
//! Frames and pool share one RAM: frames are lent to the pool and come back, a few at a time. [`split`] decides how
//! many the pool may have, [`pool`] where pages lie.
//!
//! When not to use it: if pages do not compress (the tier then gets no frame, and the attempts cost time), or if the
//! machine reads its device as fast as it decompresses.

use alloc::boxed::Box;
use alloc::vec;

use crate::command::Command;
use crate::ids::{FrameId, PageId, PoolId};
use crate::machine::Machine;

pub(crate) mod packs;
mod pool;
mod split;

use pool::{Object, Pool};
pub use pool::{BIN_FRAMES, GRAIN};
use split::{Origin, PoolNow, Split};

/// The bounds of a tier, known at the start, and the prices that decide its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierConfig {
    /// The most frames that the pool may have; rounded down to whole bins.
    pub frames_max: usize,
    /// Frames that the pool may have at first.
    pub frames_first: usize,
    /// Bytes of a page, 256 to 16384.
    pub page_bytes: u32,
    /// The largest compressed page that is kept, in bytes.
    pub size_max: u32,
    /// The cost of a load from the device, in any unit.
    pub load_price: u32,
    /// The cost of a page that comes from the pool and goes back, in the same unit.
    pub pool_price: u32,
    /// Bytes of tables for each page that has ever left its frame. They take frames, too. 0: tables take none.
    pub table_bytes: u32,
}

/// Bytes of the tier's tables for a page: when it left 4, flags 1, place 4, size 2, links 16; in a packed slot: the slot
/// 4, the next page 4, size 2, and a free slot 4.
pub const TABLE_BYTES: u32 = 41;

/// What has happened in a tier so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierCounts {
    /// Pages that were compressed.
    pub compressed: u64,
    /// Of those, pages that were too large for the pool, or that came when the pool had no room.
    pub refused: u64,
    /// Pages stored in the pool.
    pub stored: u64,
    /// The sum of their compressed sizes.
    pub stored_bytes: u64,
    /// Pages that came back from the pool.
    pub decompressed: u64,
    /// Pages written from the pool to slots.
    pub written_back: u64,
    /// Slots that these pages were packed into.
    pub packed: u64,
    /// Pages that came along with the load of another page, and were kept in the pool.
    pub beside: u64,
    /// Of those, pages that a task then needed.
    pub beside_used: u64,
    /// Pages dropped from the pool, because their slots have the same bytes.
    pub dropped: u64,
    /// Pages moved within the pool.
    pub shifted: u64,
    /// Bins lent to the pool.
    pub lent: u64,
    /// Bins returned from the pool.
    pub returned: u64,
}

/// The page's slot has older bytes than the pool or the frame.
const STALE: u8 = 1;
/// The page did not compress when it last left its frame.
const REFUSED: u8 = 2;
/// The page is in the pool since it came along with another one.
const BESIDE: u8 = 4;
/// Of pages that did not compress, one of so many is attempted again. A guess: an attempt takes 5 us (`make
/// bench-zram`), so such a page costs 0.6 us in the mean.
const UNTRIED: u32 = 8;
/// The most pages that leave the pool for one that enters it. A guess that bounds the work of one event: eight pages of
/// the mean size, 1/3.5 of a frame (`make bench-zram`), make room for the largest page, 3/4 of a frame, three times.
const LEAVE_MAX: usize = 8;
/// Bytes of a packed slot that are not a page's: for the slot, and for each page.
pub const PACK_HEAD: u32 = 8;
/// See [`PACK_HEAD`].
pub const PACK_EACH: u32 = 8;
/// The most pages of a packed slot. A guess: in a slot of 4096 bytes there could be more if they had fewer than
/// 120 bytes each.
pub const PACK_MAX: usize = 32;
/// For each page that came along with another one and was needed, so many may have been kept in vain. Otherwise no
/// more are kept, except with one load of [`BESIDE_TRIED`]. A guess, as are the next two.
const BESIDE_PART: u32 = 4;
/// See [`BESIDE_PART`]. As many may be kept in vain before the first is needed.
const BESIDE_TRIED: u32 = 16;
/// After so many outcomes, the counts are halved.
const BESIDE_WINDOW: u32 = 256;
/// Frames that are never lent to the pool. A guess.
pub(crate) const STAY: usize = 4;
/// The least number of frames besides the pool's: those, and a bin that is about to be lent.
const FRAMES_LEFT: usize = STAY + BIN_FRAMES;

/// The tables.
pub(crate) struct Tier {
    config: TierConfig,
    pool: Pool,
    split: Split,
    /// By page.
    flags: Box<[u8]>,
    /// Pages that have ever left, and the frames that their tables have.
    left: u64,
    tables: usize,
    /// Of pages that came along: those that were needed, and those that left the pool again.
    used: u32,
    unused: u32,
    /// Loads of packed slots.
    loads: u32,
    /// A page has found no place since the pool last got a bin: there is no room, or only pieces that are too small.
    crowded: bool,
    pub(crate) counts: TierCounts,
}

/// A page that leaves the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaver {
    pub(crate) page: PageId,
    pub(crate) at: PoolId,
    pub(crate) size: u32,
    /// The page's slot has older bytes.
    pub(crate) stale: bool,
}

impl TierConfig {
    /// Why this tier is not possible with this many frames; `None` if it is.
    pub(crate) fn refused(&self, frames: usize) -> Option<&'static str> {
        let grain = GRAIN as u32;
        if self.frames_max + FRAMES_LEFT > frames {
            return Some("the tier leaves fewer than 8 frames");
        }
        if !(256..=16384).contains(&self.page_bytes) || !self.page_bytes.is_multiple_of(grain) {
            return Some("a page of the tier has 256 to 16384 bytes, a multiple of 16");
        }
        if self.size_max > self.page_bytes || self.size_max < grain {
            return Some("the largest page of the tier has 16 bytes to those of a page");
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
            left: 0,
            tables: 0,
            used: 0,
            unused: 0,
            loads: 0,
            crowded: false,
            counts: TierCounts::default(),
            config,
        }
    }

    /// Frames that the pool has now.
    pub(crate) fn frames(&self) -> usize {
        self.pool.bins() * BIN_FRAMES
    }

    /// Frames that the pool may have.
    pub(crate) fn target(&self) -> usize {
        self.split.target()
    }

    pub(crate) fn pages(&self) -> usize {
        self.pool.pages()
    }

    pub(crate) fn has(&self, page: PageId) -> bool {
        self.pool.find(page).is_some()
    }

    fn mark(&mut self, page: PageId, flag: u8, on: bool) {
        let flags = &mut self.flags[page.index()];
        let new = if on { *flags | flag } else { *flags & !flag };
        // A table that is only read costs no RAM, so equal flags are not written.
        if new != *flags {
            *flags = new;
        }
    }

    /// The page's place in the pool, and its compressed size in bytes.
    pub(crate) fn place(&self, page: PageId) -> Option<(PoolId, u32)> {
        self.pool.find(page).map(|Object { at, size }| (at, size))
    }

    /// The slot has older bytes than the page.
    pub(crate) fn is_stale(&self, page: PageId) -> bool {
        self.flags[page.index()] & STALE != 0
    }

    /// The page leaves its frame. Returns whether to compress it: it did compress when it last left, or it is
    /// attempted again.
    pub(crate) fn leaves(&mut self, page: PageId) -> bool {
        self.left += u64::from(self.split.leaves(page));
        self.flags[page.index()] & REFUSED == 0 || self.split.now().is_multiple_of(UNTRIED)
    }

    /// The page leaves its frame and is compressed; `dirty` if its slot has older bytes.
    pub(crate) fn compresses(&mut self, page: PageId, dirty: bool) {
        self.counts.compressed += 1;
        self.mark(page, STALE, dirty);
    }

    /// The page's slot has the same bytes now.
    pub(crate) fn written(&mut self, page: PageId) {
        self.mark(page, STALE, false);
    }

    /// The page's bytes are no longer needed.
    pub(crate) fn release(&mut self, page: PageId) {
        self.pool.remove(page);
        self.mark(page, STALE | REFUSED | BESIDE, false);
        self.split.forget(page);
    }

    /// Whether a page of this size could be kept if there were room.
    pub(crate) fn takes(&mut self, page: PageId, size: u32) -> bool {
        let takes = size <= self.config.size_max;
        self.mark(page, REFUSED, !takes);
        takes
    }

    /// The page was not stored: there is no room, or it is too large.
    pub(crate) fn refuse(&mut self) {
        self.counts.refused += 1;
    }

    /// Gives the page a place; `None`: there is no room now.
    pub(crate) fn store(&mut self, page: PageId, size: u32, machine: &mut dyn Machine) -> Option<PoolId> {
        let emit = &mut |op| machine.issue(Command::Pool(op));
        let at = self.pool.place(page, size, emit, &mut self.counts.shifted);
        self.crowded |= at.is_none();
        let at = at?;
        self.counts.stored += 1;
        self.counts.stored_bytes += u64::from(size);
        Some(at)
    }

    /// Takes out the page that has been in the pool longest, to make room.
    pub(crate) fn oldest_out(&mut self) -> Option<Leaver> {
        let page = self.pool.oldest()?;
        Some(self.out(page))
    }

    /// Takes out an old page that fills a packed slot: of the [`LEAVE_MAX`] oldest, the first whose slot has older
    /// bytes and whose size is one that `fits`. Not from a pool of few pages.
    pub(crate) fn old_one_out(&mut self, fits: impl Fn(u32) -> bool) -> Option<Leaver> {
        if self.pool.pages() < 2 * LEAVE_MAX {
            return None;
        }
        let filler = |page: &PageId| self.is_stale(*page) && self.place(*page).is_some_and(|(_, size)| fits(size));
        let page = self.pool.by_age().take(LEAVE_MAX).find(filler)?;
        Some(self.out(page))
    }

    /// A packed slot is being loaded. Returns whether to keep the other pages of the slot.
    pub(crate) fn wants_beside(&mut self) -> bool {
        self.loads = self.loads.wrapping_add(1);
        self.used * BESIDE_PART + BESIDE_TRIED >= self.unused || self.loads.is_multiple_of(BESIDE_TRIED)
    }

    /// Gives a page that came along a place, if there is room or if pages whose slots have the same bytes can make
    /// room.
    pub(crate) fn keep(&mut self, page: PageId, size: u32, machine: &mut dyn Machine) -> Option<PoolId> {
        loop {
            let emit = &mut |op| machine.issue(Command::Pool(op));
            if let Some(at) = self.pool.place(page, size, emit, &mut self.counts.shifted) {
                self.mark(page, BESIDE, true);
                self.counts.beside += 1;
                return Some(at);
            }
            let oldest = self.pool.oldest().filter(|oldest| !self.is_stale(*oldest))?;
            self.out(oldest);
        }
    }

    /// The page leaves the pool. If it had come along with another one, its outcome counts.
    fn judge(&mut self, page: PageId, needed: bool) {
        if self.flags[page.index()] & BESIDE == 0 {
            return;
        }
        self.mark(page, BESIDE, false);
        *if needed { &mut self.used } else { &mut self.unused } += 1;
        self.counts.beside_used += u64::from(needed);
        if self.used + self.unused >= BESIDE_WINDOW {
            (self.used, self.unused) = (self.used / 2, self.unused / 2);
        }
    }

    fn out(&mut self, page: PageId) -> Leaver {
        let Object { at, size } = self.pool.remove(page).expect("it is there");
        if self.flags[page.index()] & BESIDE == 0 {
            self.split.exits(page);
        }
        self.judge(page, false);
        let stale = self.is_stale(page);
        *if stale { &mut self.counts.written_back } else { &mut self.counts.dropped } += 1;
        Leaver { page, at, size, stale }
    }

    /// The most pages that may leave for one that enters.
    pub(crate) const LEAVE_MAX: usize = LEAVE_MAX;

    /// The page is needed in a frame: takes it out of the pool and returns its place there.
    pub(crate) fn decompress(&mut self, page: PageId) -> Option<(PoolId, u32)> {
        let Object { at, size } = self.pool.remove(page)?;
        self.judge(page, true);
        self.counts.decompressed += 1;
        Some((at, size))
    }

    /// A task waits for a page, which is in the pool or on the device. Moves the border from time to time.
    pub(crate) fn fault(&mut self, page: PageId) {
        let flags = self.flags[page.index()];
        let from = match self.pool.find(page) {
            Some(_) if flags & BESIDE != 0 => Origin::Beside,
            Some(_) => Origin::Pool,
            None if flags & REFUSED != 0 => Origin::Refused,
            None => Origin::Device,
        };
        let oldest = self.pool.oldest().filter(|page| self.flags[page.index()] & BESIDE == 0);
        let pool = PoolNow { oldest, frames: self.frames(), filled: self.pool.frames_filled() };
        self.split.fault(page, from, pool);
    }

    /// Whether the pool needs a bin: a page has found no place, or this many pages are about to leave their frames, and
    /// there is no room for them.
    pub(crate) fn is_short(&self, leaving: usize) -> bool {
        let full = self.crowded || self.pool.is_tight(leaving);
        full && self.frames() + BIN_FRAMES <= self.split.target() && self.pool.has_vacant()
    }

    /// Whether the pool has a bin too many: more frames than it may have, or a bin that is nearly empty.
    pub(crate) fn is_long(&self, leaving: usize) -> bool {
        self.frames() > self.split.target() || self.pool.is_slack(leaving)
    }

    /// Whether the tables need one more frame. They and the pool never have more than the pool could have alone.
    pub(crate) fn wants_table(&self) -> bool {
        let bytes = self.left * u64::from(self.config.table_bytes);
        let wanted = bytes.div_ceil(self.config.page_bytes.into()).min(self.config.frames_max as u64);
        (self.tables as u64) < wanted
    }

    /// Whether there is a frame for the tables. Otherwise the pool must return a bin first.
    pub(crate) fn has_table_room(&self) -> bool {
        self.frames() + self.tables < self.config.frames_max
    }

    /// The tables get a frame, for ever.
    pub(crate) fn take_table(&mut self) {
        self.tables += 1;
        self.split.limit(self.config.frames_max - self.tables);
    }

    /// Frames of the tables.
    pub(crate) fn tables(&self) -> usize {
        self.tables
    }

    /// Lends these frames to the pool. Returns the number of the bin that they form.
    pub(crate) fn lend(&mut self, frames: [FrameId; BIN_FRAMES]) -> usize {
        self.counts.lent += 1;
        self.crowded = false;
        self.pool.lend(frames)
    }

    /// Closes the bin that can be emptied with the least work: no page enters it any more.
    pub(crate) fn close_bin(&mut self) -> Option<usize> {
        self.pool.close()
    }

    /// Takes one page of a closed bin: the page is moved into another bin (then `None`), or leaves the pool.
    pub(crate) fn clear_bin(&mut self, bin: usize, machine: &mut dyn Machine) -> Option<Option<Leaver>> {
        let page = self.pool.first_of(bin)?;
        let moved = self.pool.relocate(page, &mut |op| machine.issue(Command::Pool(op)), &mut self.counts.shifted);
        Some(if moved { None } else { Some(self.out(page)) })
    }

    /// Returns the frames of an empty, closed bin.
    pub(crate) fn return_bin(&mut self, bin: usize) -> [FrameId; BIN_FRAMES] {
        self.counts.returned += 1;
        self.pool.take_back(bin)
    }

    /// Checks every invariant: no two pages overlap, all lie within lent bins, and all counts are right.
    pub(crate) fn check(&self) {
        self.pool.check();
        assert!(
            self.frames() + self.tables <= self.config.frames_max,
            "pool and tables have more frames than they may"
        );
    }

    /// The frames that are lent to the pool.
    pub(crate) fn lent(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.pool.lent()
    }
}
