//! Where compressed pages lie: in bins of four frames, each page at a multiple of 16 bytes.
//!
//! ```text
//!   a bin   | page 7 | page 3 |▒▒▒| page 12 |          |      in the order of their places; ▒ left by a page, found again when the rest
//!           0                               end     room       moves together (`PoolOp::Shift`), which is done when the place is needed
//! ```
//! A page goes to the bin with the least sufficient room (best fit, bins in classes by their room). With pages of 1/2
//! to 1/10 of a frame, a few hundredths of a bin stay unused. Frames with slots of one size each would waste a sixth
//! (sizes just above a half). Compaction is bounded by one bin. A bin comes back when its pages have moved to others,
//! or have left.

use alloc::boxed::Box;
use alloc::vec;

use crate::ids::{FrameId, PageId, PoolId};
use crate::lists::{Links, List};
use crate::pool_op::PoolOp;

/// Places of pages are multiples of this many bytes. A page loses 8 of them in the mean: 0.7 % of a page of 1170 bytes
/// (4 KiB / 3.5, `make bench-zram`). A place of 32 bits reaches over 64 GiB.
pub const GRAIN: usize = 16;
/// Frames of a bin. A guess: in fewer frames more room is left over at the end, and more frames take longer to clear.
pub const BIN_FRAMES: usize = 4;
/// Classes of bins by their room: the bits of the mask that says which classes have any.
const CLASSES: usize = u64::BITS as usize;
/// As long as nothing is known, a page in the pool is taken to need this part of a frame: 1/3.5 is measured for lz4
/// (`make bench-zram`).
pub(super) const UNKNOWN_RATIO: usize = 3;

/// The place of a page, and its size in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) at: PoolId,
    pub(super) size: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Vacant,
    Lent,
    Closed,
}

#[derive(Clone, Debug)]
struct Bin {
    /// In the order of their places.
    pages: List,
    /// Grains of its pages.
    filled: u32,
    /// Behind the last page.
    end: u32,
    used: Use,
    frames: [FrameId; BIN_FRAMES],
}

type Emit<'a> = &'a mut dyn FnMut(PoolOp);

pub(super) struct Pool {
    /// Grains of a bin; a grain is 16 bytes.
    grains: u32,
    grains_of_page: u32,
    bins: Box<[Bin]>,
    vacant: List,
    /// By class of room: the bins that are lent. A bit mask says which classes have any.
    classes: [List; CLASSES],
    some: u64,
    bin_links: Links,
    lent: usize,
    /// Grains of all pages.
    filled: u64,
    /// By page: its place in grains plus 1; 0: not in the pool.
    at: Box<[u32]>,
    size: Box<[u16]>,
    place_links: Links,
    /// Pages, the one that has been in the pool longest first.
    ages: List,
    age_links: Links,
}

fn grains(size: u32) -> u32 {
    size.div_ceil(GRAIN as u32).max(1)
}

impl Pool {
    /// An empty pool without a bin.
    pub(super) fn new(pages: usize, bins: usize, page_bytes: u32) -> Pool {
        let bin = Bin { pages: List::new(), filled: 0, end: 0, used: Use::Vacant, frames: [FrameId(0); BIN_FRAMES] };
        let (mut vacant, mut bin_links) = (List::new(), Links::new(bins));
        (0..bins).for_each(|bin| vacant.push_tail(&mut bin_links, bin));
        let grains_of_page = page_bytes / GRAIN as u32;
        Pool {
            grains: grains_of_page * BIN_FRAMES as u32,
            grains_of_page,
            bins: vec![bin; bins].into_boxed_slice(),
            vacant,
            classes: [const { List::new() }; CLASSES],
            some: 0,
            bin_links,
            lent: 0,
            filled: 0,
            at: vec![0; pages].into_boxed_slice(),
            size: vec![0; pages].into_boxed_slice(),
            place_links: Links::new(pages),
            ages: List::new(),
            age_links: Links::new(pages),
        }
    }

    /// Bins that are lent to the pool.
    pub(super) fn bins(&self) -> usize {
        self.lent
    }

    pub(super) fn pages(&self) -> usize {
        self.ages.len()
    }

    pub(super) fn has_vacant(&self) -> bool {
        !self.vacant.is_empty()
    }

    pub(super) fn find(&self, page: PageId) -> Option<Object> {
        let at = self.at[page.index()].checked_sub(1)?;
        Some(Object { at: PoolId(at), size: self.bytes(page.index()) })
    }

    /// The pages, the one that has been in the pool longest first.
    pub(super) fn by_age(&self) -> impl Iterator<Item = PageId> + '_ {
        core::iter::successors(self.ages.head(), |page| self.age_links.next(*page)).map(PageId::from)
    }

    pub(super) fn oldest(&self) -> Option<PageId> {
        self.ages.head().map(PageId::from)
    }

    /// The page's size.
    fn bytes(&self, i: usize) -> u32 {
        self.size[i].into()
    }

    /// As many frames as the pages fill.
    pub(super) fn frames_filled(&self) -> usize {
        self.filled.div_ceil(self.grains_of_page.into()) as usize
    }

    fn bin_of(&self, at: u32) -> usize {
        (at / self.grains) as usize
    }

    /// The class of bins with this much room. Bins of the class have at least this much, and less than the next
    /// class.
    fn class(&self, room: u32) -> usize {
        (room as usize * (CLASSES - 1)) / self.grains as usize
    }

    fn file(&mut self, bin: usize) {
        let class = self.class(self.grains - self.bins[bin].filled);
        self.classes[class].push_tail(&mut self.bin_links, bin);
        self.some |= 1 << class;
    }

    fn unfile(&mut self, bin: usize) {
        let class = self.class(self.grains - self.bins[bin].filled);
        self.classes[class].unlink(&mut self.bin_links, bin);
        if self.classes[class].is_empty() {
            self.some &= !(1 << class);
        }
    }

    /// The bin with the least sufficient room. It is in the first class in which every bin has enough, or it is the
    /// first bin of the class below, if that has enough.
    fn fitting(&self, need: u32) -> Option<usize> {
        let class = self.class(need);
        let below = self.classes[class].head().filter(|bin| self.grains - self.bins[*bin].filled >= need);
        below.or_else(|| {
            let above = self.some & (u64::MAX << class) & !(1 << class);
            (above != 0).then(|| self.classes[above.trailing_zeros() as usize].head().expect("it has some"))
        })
    }

    /// Gives the page a place. `None`: no bin has room. Pages in the way are moved first.
    pub(super) fn place(&mut self, page: PageId, size: u32, emit: Emit<'_>, shifted: &mut u64) -> Option<PoolId> {
        debug_assert!(self.find(page).is_none(), "page {} is placed twice", page.0);
        let at = self.fit(page, size, emit, shifted)?;
        self.ages.push_tail(&mut self.age_links, page.index());
        Some(at)
    }

    fn fit(&mut self, page: PageId, size: u32, emit: Emit<'_>, shifted: &mut u64) -> Option<PoolId> {
        let need = grains(size);
        let bin = self.fitting(need)?;
        self.unfile(bin);
        if self.bins[bin].end + need > self.grains {
            self.close_up(bin, emit, shifted);
        }
        let at = bin as u32 * self.grains + self.bins[bin].end;
        let Bin { pages, filled, end, .. } = &mut self.bins[bin];
        (*filled, *end) = (*filled + need, *end + need);
        pages.push_tail(&mut self.place_links, page.index());
        self.filled += u64::from(need);
        (self.at[page.index()], self.size[page.index()]) = (at + 1, size as u16);
        self.file(bin);
        Some(PoolId(at))
    }

    /// Moves the pages of a bin together, so that its free room is at the end.
    fn close_up(&mut self, bin: usize, emit: Emit<'_>, shifted: &mut u64) {
        let start = bin as u32 * self.grains;
        let (mut end, mut next) = (0, self.bins[bin].pages.head());
        while let Some(i) = next {
            let (from, to) = (self.at[i] - 1, start + end);
            if from != to {
                *shifted += 1;
                let size = self.bytes(i);
                emit(PoolOp::Shift { page: PageId::from(i), from: PoolId(from), to: PoolId(to), size });
                self.at[i] = to + 1;
            }
            end += grains(self.bytes(i));
            next = self.place_links.next(i);
        }
        self.bins[bin].end = end;
    }

    /// Removes the page. Returns its place.
    pub(super) fn remove(&mut self, page: PageId) -> Option<Object> {
        let found = self.find(page)?;
        self.ages.unlink(&mut self.age_links, page.index());
        self.unplace(page, found);
        Some(found)
    }

    fn unplace(&mut self, page: PageId, Object { at, size }: Object) {
        let (bin, need) = (self.bin_of(at.0), grains(size));
        let lent = self.bins[bin].used == Use::Lent;
        if lent {
            self.unfile(bin);
        }
        let last = self.bins[bin].pages.tail() == Some(page.index());
        let before = self.place_links.prev(page.index());
        self.bins[bin].pages.unlink(&mut self.place_links, page.index());
        self.bins[bin].filled -= need;
        if last {
            let end = |i: usize| self.at[i] - 1 - bin as u32 * self.grains + grains(self.bytes(i));
            self.bins[bin].end = before.map_or(0, end);
        }
        self.filled -= u64::from(need);
        (self.at[page.index()], self.size[page.index()]) = (0, 0);
        if lent {
            self.file(bin);
        }
    }

    fn room(&self) -> u64 {
        self.lent as u64 * u64::from(self.grains) - self.filled
    }

    /// Grains for this many pages of the mean size in the pool.
    fn wanted(&self, pages: usize) -> u64 {
        let mean = self
            .filled
            .checked_div(self.pages() as u64)
            .unwrap_or(u64::from(self.grains_of_page) / UNKNOWN_RATIO as u64);
        (pages as u64 + 2) * (mean + 1)
    }

    /// Whether there is too little room for this many pages. Some of the room is in pieces that are too small; that it
    /// is 1/64 of what is filled is a guess.
    pub(super) fn is_tight(&self, pages: usize) -> bool {
        self.room() < self.wanted(pages) + self.filled / 64
    }

    /// Whether a bin is nearly empty and is not needed for this many pages. The room that must be left is a guess: well
    /// above that of [`is_tight`](Self::is_tight), so that no bin comes and goes in turn.
    pub(super) fn is_slack(&self, pages: usize) -> bool {
        let emptiest = (self.some != 0).then(|| CLASSES - 1 - self.some.leading_zeros() as usize);
        let spare = self.room() > 2 * self.wanted(pages) + self.filled / 16 + 2 * u64::from(self.grains);
        spare && emptiest.is_some_and(|class| class >= CLASSES * 3 / 4)
    }

    /// Lends these frames to the pool. Returns the number of their bin.
    pub(super) fn lend(&mut self, frames: [FrameId; BIN_FRAMES]) -> usize {
        let bin = self.vacant.pop_head(&mut self.bin_links).expect("a vacant bin");
        self.bins[bin] = Bin { pages: List::new(), filled: 0, end: 0, used: Use::Lent, frames };
        self.lent += 1;
        self.file(bin);
        bin
    }

    /// Closes the bin with the most room.
    pub(super) fn close(&mut self) -> Option<usize> {
        let class = (self.some != 0).then(|| CLASSES - 1 - self.some.leading_zeros() as usize)?;
        let bin = self.classes[class].head().expect("it has some");
        self.unfile(bin);
        self.bins[bin].used = Use::Closed;
        Some(bin)
    }

    /// The first page of a bin.
    pub(super) fn first_of(&self, bin: usize) -> Option<PageId> {
        self.bins[bin].pages.head().map(PageId::from)
    }

    /// Moves a page of a closed bin to another bin. Returns false if none has room.
    pub(super) fn relocate(&mut self, page: PageId, emit: Emit<'_>, shifted: &mut u64) -> bool {
        let found = self.find(page).expect("it is here");
        let Object { at, size } = found;
        if self.fitting(grains(size)).is_none() {
            return false;
        }
        self.unplace(page, found);
        let to = self.fit(page, size, emit, shifted).expect("a bin has room");
        *shifted += 1;
        emit(PoolOp::Shift { page, from: at, to, size });
        true
    }

    /// Returns the frames of a closed, empty bin.
    pub(super) fn take_back(&mut self, bin: usize) -> [FrameId; BIN_FRAMES] {
        debug_assert!(self.bins[bin].pages.is_empty() && self.bins[bin].used == Use::Closed);
        self.bins[bin].used = Use::Vacant;
        self.vacant.push_tail(&mut self.bin_links, bin);
        self.lent -= 1;
        self.bins[bin].frames
    }

    pub(super) fn lent(&self) -> impl Iterator<Item = FrameId> + '_ {
        self.bins.iter().filter(|bin| bin.used != Use::Vacant).flat_map(|bin| bin.frames)
    }

    pub(super) fn check(&self) {
        let (mut pages, mut filled) = (0, 0);
        for (number, bin) in self.bins.iter().enumerate() {
            assert!(bin.used != Use::Closed, "bin {number} has stayed closed");
            assert!(bin.used == Use::Lent || bin.pages.is_empty(), "bin {number} is nobody's and has pages");
            let start = number as u32 * self.grains;
            let (mut end, mut sum, mut next) = (0, 0, bin.pages.head());
            while let Some(i) = next {
                let (at, need) = (self.at[i] - 1 - start, grains(self.bytes(i)));
                assert!(at >= end && at + need <= self.grains, "page {i} overlaps another or its bin's end");
                (end, sum, pages) = (at + need, sum + need, pages + 1);
                filled += u64::from(need);
                next = self.place_links.next(i);
            }
            assert_eq!((bin.end, bin.filled), (end, sum), "bin {number} has lost count");
        }
        assert_eq!((pages, filled), (self.pages(), self.filled), "the pool has lost count of its pages");
        let here = self.at.iter().filter(|at| **at > 0).count();
        assert_eq!(here, pages, "a page is in the pool and in no bin");
        let lent = self.bins.iter().filter(|bin| bin.used == Use::Lent).count();
        let listed: usize = self.classes.iter().map(List::len).sum();
        assert_eq!((lent, listed, self.vacant.len()), (self.lent, lent, self.bins.len() - lent), "bins are lost");
    }
}
