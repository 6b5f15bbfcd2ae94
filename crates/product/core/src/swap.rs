//! The swap area on flash: where a page goes, and which erase block is collected and when.
//!
//! [`Swap`] decides and keeps the tables. A [`Flash`] carries programs, copies and erases out, and returns at once
//! whether each succeeded. Call [`Swap::swap_out`] when a page leaves RAM, [`Swap::slot_of`] when it is needed again,
//! and [`Swap::release`] when its copy is no longer needed. A collection runs within `swap_out`, when the erased
//! slots fall below the area's threshold.
//!
//! ```text
//!  area      ┌ block ────────────────────┐┌ block ─── ...     a slot is  erased -> valid -> invalid -> erased
//!  (1..32)   │ slot slot slot ...        ││ slot ...                       swap_out  release   collect
//!            └───────────────────────────┘└────
//! ```
//!
//! Rules of NAND that always hold and that [`Swap::check`] verifies: a slot is programmed once between two erases of
//! its block; slots of a block are programmed in ascending order; an erased block holds no valid page.
//!
//! Time is a count: one tick for each slot programmed, each copy that becomes invalid and each block that is full. An
//! age is a difference of ticks. So pages do not age while a device sleeps, and no clock is needed.
//!
//! After Ryu's slides *LOBI: A swap scheme for flash memory storages* (NVRAMOS 2008). Do not use the log where
//! erasing costs nothing (NVM, RAM): it copies pages that could stay in place.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::ids::{BlockId, PageId, SlotId};

mod area;
pub(crate) mod backing;
mod blocks;
pub mod collect;
pub mod linux;
pub mod log;
pub mod slots;

pub use blocks::SwapCounts;

use area::Area;
use blocks::EraseBlocks;
use collect::{Candidates, Collector};

/// Most areas, as in Linux (slides, "main features").
pub const AREAS_MAX: usize = 32;

/// Most victims of one collection (slides: "victim blocks 1~4").
pub const VICTIMS_MAX: u32 = 4;

/// Erased slots that are kept for collections, in blocks, so that the survivors of any one block have a place.
pub const RESERVE: u32 = 1;

/// A program or an erase of the flash failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// No area has room, and none can make room. The page stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// An order of a swap area to its flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Programs an erased slot with a page's bytes: from RAM, or copied from another slot. If it fails, the block takes
    /// no more pages; pages already in it stay readable.
    Program {
        /// The page.
        page: PageId,
        /// The slot with its bytes; `None`: they are in RAM.
        from: Option<SlotId>,
        /// The erased slot.
        to: SlotId,
    },
    /// Erases a block. If it fails, the block is not used again.
    Erase(BlockId),
}

/// Carries the orders of a swap area out.
pub trait Flash {
    /// Carries an order out at once.
    ///
    /// # Errors
    /// A program or an erase has failed.
    fn carry_out(&mut self, order: Order) -> Result<(), Refused>;
}

/// A flash that always succeeds and stores nothing: for counting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Perfect;

impl Flash for Perfect {
    fn carry_out(&mut self, _: Order) -> Result<(), Refused> {
        Ok(())
    }
}

/// Where the next page goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Always the next slot of the open erase block (LOBI).
    Log,
    /// The first erased slot after the last one; after `cluster` allocations, from the start of the area (Linux as in
    /// the slides; 256).
    Linux {
        /// SWAPFILE_CLUSTER.
        cluster: u32,
    },
}

/// The swap areas of an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwapAreas {
    /// Slots of an erase block.
    pub slots_per_block: u32,
    /// The areas.
    pub areas: Vec<AreaConfig>,
}

/// One swap area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AreaConfig {
    /// Erase blocks, at least `start` + 1.
    pub blocks: u32,
    /// Areas of higher priority are filled first, equal ones in turn, as in Linux.
    pub priority: i16,
    /// Where the next page goes.
    pub layout: Layout,
    /// The rule that chooses victims.
    pub collector: &'static Collector,
    /// Most victims of one collection, 1 to [`VICTIMS_MAX`].
    pub victims: u32,
    /// A collection starts when fewer slots than these blocks have are erased. At least [`RESERVE`] + 1.
    pub start: u32,
    /// It ends when the slots of this many blocks are erased; at least `start`.
    pub stop: u32,
    /// Static wear levelling: if the erase counts differ by more than this, the pages of the least erased block are
    /// moved; `None`: never.
    pub spread_max: Option<u32>,
    /// Logs, each with an open block, to which pages are distributed by the numbers of their processes; at least 1.
    /// Only [`Layout::Log`] has logs.
    pub logs: u32,
}

impl AreaConfig {
    /// A log of this many blocks with the classic collection: greedy, one victim at a time.
    pub const fn log(blocks: u32) -> AreaConfig {
        AreaConfig {
            blocks,
            priority: 0,
            layout: Layout::Log,
            collector: &collect::greedy::COLLECTOR,
            victims: 1,
            start: RESERVE + 1,
            stop: RESERVE + 1,
            spread_max: None,
            logs: 1,
        }
    }
}

/// Why a swap area cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum SwapError {
    /// Not 1 to 32 areas.
    Areas(usize),
    /// A number out of its bounds.
    Bounds { field: &'static str, value: u64, min: u64, max: u64 },
}

impl fmt::Display for SwapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwapError::Areas(n) => write!(f, "{n} swap areas; give 1 to {AREAS_MAX}"),
            SwapError::Bounds { field, value, min, max } => write!(f, "`{field}` is {value}; give {min} to {max}"),
        }
    }
}

impl core::error::Error for SwapError {}

/// Most slots of an erase block, and most slots in all: scores of collectors are products that must fit into 128 bits.
const SLOTS_PER_BLOCK_MAX: u64 = 1 << 10;
const SLOTS_MAX: u64 = 1 << 31;

/// Most logs of an area.
const LOGS_MAX: u64 = 1 << 10;

/// Swap areas and the pages in them.
pub struct Swap {
    blocks: EraseBlocks,
    areas: Box<[Area]>,
    /// Areas by falling priority; those of equal priority take turns.
    order: Vec<u8>,
}

impl Swap {
    /// Empty, erased areas for pages 0 to `pages` - 1. All memory it will ever use is allocated here.
    ///
    /// # Errors
    /// No or too many areas, or a number out of its bounds; the error says which.
    pub fn new(pages: usize, slots_per_block: u32, areas: &[AreaConfig]) -> Result<Swap, SwapError> {
        if areas.is_empty() || areas.len() > AREAS_MAX {
            return Err(SwapError::Areas(areas.len()));
        }
        check_bounds(pages, slots_per_block, areas)?;
        let total = areas.iter().map(|a| a.blocks).sum::<u32>() as usize;
        let blocks = EraseBlocks::new(pages, total, slots_per_block);
        let mut first = 0;
        let make = |config: &AreaConfig| {
            let mut area = Area::new(*config, first, slots_per_block);
            area.start_erased(&blocks);
            first += config.blocks;
            area
        };
        let areas: Box<[Area]> = areas.iter().map(make).collect();
        let mut order: Vec<u8> = (0..areas.len() as u8).collect();
        order.sort_by_key(|i| core::cmp::Reverse(areas[usize::from(*i)].config.priority));
        Ok(Swap { blocks, areas, order })
    }

    /// Writes the page's bytes from RAM to a slot, which is returned. An older copy of the page becomes invalid. A
    /// full area is passed over and counted.
    ///
    /// # Errors
    /// Every area is full; an older copy stays as it was.
    #[inline]
    pub fn swap_out(&mut self, page: PageId, flash: &mut impl Flash) -> Result<SlotId, Full> {
        for turn in 0..self.order.len() {
            let area = usize::from(self.order[turn]);
            if let Some(slot) = self.areas[area].swap_out(page, &mut self.blocks, flash) {
                if let Some(old) = self.blocks.settle(page, slot) {
                    self.invalidate(old);
                }
                self.take_turns(turn);
                return Ok(slot);
            }
            self.blocks.counts.areas_full += 1;
        }
        Err(Full)
    }

    /// Whether an area has several logs.
    pub(crate) fn has_logs(&self) -> bool {
        self.areas.iter().any(|area| area.config.logs > 1)
    }

    /// Pages that leave RAM now go to the log of this process: process number modulo logs.
    #[inline]
    pub fn log_of(&mut self, process: u32) {
        self.areas.iter_mut().for_each(|area| area.log = process);
    }

    /// Moves the area at `turn` behind the others of its priority.
    fn take_turns(&mut self, turn: usize) {
        if self.order.len() == 1 {
            return;
        }
        let priority = |i: u8| self.areas[usize::from(i)].config.priority;
        let mine = priority(self.order[turn]);
        let end = self.order.iter().rposition(|i| priority(*i) == mine).expect("it is one of them");
        self.order[turn..=end].rotate_left(1);
    }

    /// The page's copy is no longer needed. Returns false if there was none.
    #[inline]
    pub fn release(&mut self, page: PageId) -> bool {
        let Some(slot) = self.blocks.forget(page) else { return false };
        self.invalidate(slot);
        true
    }

    /// The program of the page's copy in the slot had failed; for a flash that reports later. The block takes no more
    /// pages. Returns true if it was the page's newest copy, so that no valid copy is left.
    pub fn program_failed(&mut self, page: PageId, slot: SlotId) -> bool {
        let newest = self.slot_of(page) == Some(slot);
        if newest {
            self.release(page);
        }
        let block = self.blocks.block_of(slot);
        let (area, blocks) = self.area_with(block);
        area.retire(block, blocks);
        newest
    }

    /// The erase of the block had failed; for a flash that reports later. The block is not used again.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn erase_failed(&mut self, block: BlockId) {
        let (area, blocks) = self.area_with(block);
        area.not_erased(block, blocks);
    }

    fn invalidate(&mut self, slot: SlotId) {
        let (area, blocks) = self.area_with(self.blocks.block_of(slot));
        area.invalidate(slot, blocks);
    }

    fn area_with(&mut self, block: BlockId) -> (&mut Area, &mut EraseBlocks) {
        let area = self.areas.iter_mut().rfind(|area| area.first <= block.0);
        (area.expect("blocks belong to areas"), &mut self.blocks)
    }

    /// The slot of the page's copy.
    #[inline]
    pub fn slot_of(&self, page: PageId) -> Option<SlotId> {
        self.blocks.slot_of(page)
    }

    /// The page whose copy is in the slot.
    #[inline]
    pub fn page_in(&self, slot: SlotId) -> Option<PageId> {
        self.blocks.page_in(slot)
    }

    /// The slots of the area in which this slot is, as a range of their numbers.
    pub fn area_of(&self, slot: SlotId) -> core::ops::Range<u32> {
        let block = self.blocks.block_of(slot);
        let area = self.areas.iter().rfind(|area| area.first <= block.0).expect("blocks belong to areas");
        let n = self.blocks.slots_per_block;
        area.first * n..(area.first + area.config.blocks) * n
    }

    /// Slots of an erase block.
    pub fn slots_per_block(&self) -> u32 {
        self.blocks.slots_per_block
    }

    /// The number of pages that it can hold copies of. They are numbered from 0.
    pub fn pages(&self) -> usize {
        self.blocks.pages()
    }

    /// Erase blocks of all areas.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Erase count of each block, in order.
    pub fn erases(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.erases()
    }

    /// Fewest and most erases of a block that is still good.
    pub fn wear(&self) -> (u32, u32) {
        let wear = || self.areas.iter().map(Area::wear);
        (wear().map(|(min, _)| min).min().unwrap_or(0), wear().map(|(_, max)| max).max().unwrap_or(0))
    }

    /// What has been done so far.
    pub fn counts(&self) -> &SwapCounts {
        &self.blocks.counts
    }

    /// Slots that hold a page.
    pub fn valid(&self) -> u64 {
        self.blocks.valid_slots()
    }

    /// The blocks that a collector of area `area` would choose from now. For tests and tools.
    pub fn candidates(&self, area: usize) -> Candidates<'_> {
        self.areas[area].candidates(&self.blocks)
    }

    /// Checks every invariant. It looks at everything, so use it only in tests and fuzzing.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        self.blocks.check();
        self.areas.iter().for_each(|area| area.check(&self.blocks));
    }
}

fn check_bounds(pages: usize, slots_per_block: u32, areas: &[AreaConfig]) -> Result<(), SwapError> {
    let within = |field, value: u64, min, max| match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(SwapError::Bounds { field, value, min, max }),
    };
    within("pages", pages as u64, 1, SLOTS_MAX)?;
    within("slots_per_block", slots_per_block.into(), 1, SLOTS_PER_BLOCK_MAX)?;
    for area in areas {
        within("logs", area.logs.into(), 1, LOGS_MAX)?;
        within("victims", area.victims.into(), 1, VICTIMS_MAX.into())?;
        within("start", area.start.into(), u64::from(RESERVE) + 1, SLOTS_MAX)?;
        within("stop", area.stop.into(), area.start.into(), SLOTS_MAX)?;
        within("blocks", area.blocks.into(), u64::from(area.stop) + 1, SLOTS_MAX)?;
        if let Layout::Linux { cluster } = area.layout {
            within("cluster", cluster.into(), 1, SLOTS_MAX)?;
        }
    }
    let slots = areas.iter().map(|a| u64::from(a.blocks) * u64::from(slots_per_block)).sum();
    within("blocks * slots_per_block", slots, 1, SLOTS_MAX)
}
