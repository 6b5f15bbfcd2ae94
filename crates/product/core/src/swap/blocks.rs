//! The tables: the state of each slot, the history of each erase block, and the place of each page.

use alloc::boxed::Box;
use alloc::vec;

use crate::ids::{BlockId, PageId, SlotId};
use crate::lists::Links;

/// Numbers are stored plus 1, so that new tables are zeros, which cost no RAM until they are used.
const NONE: u32 = 0;

/// What has been done so far, in slots and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwapCounts {
    /// Pages programmed from RAM.
    pub programs: u64,
    /// Valid pages copied out of victims: the slides' "erase copy count". Copies for wear levelling are included.
    pub copies: u64,
    /// Of the copies, those for static wear levelling.
    pub levelling_copies: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Collections.
    pub collections: u64,
    /// Copies that became invalid: released, or replaced by a newer one.
    pub invalidations: u64,
    /// How often an area was passed over because it was full.
    pub areas_full: u64,
    /// Blocks given up after a failed program or erase.
    pub bad_blocks: u64,
}

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockUse {
    /// Erased or being filled.
    Open,
    /// Every slot programmed: may be a victim.
    Closed,
    /// Takes no more pages; the pages in it can be read.
    Bad,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) used: BlockUse,
    /// Slots programmed since the last erase: the next one to program.
    pub(super) programmed: u32,
    /// Slots that hold a page.
    pub(super) valid: u32,
    pub(super) erases: u32,
    /// Tick of the last program or invalidation.
    pub(super) touched: u64,
    /// Sum of the ticks at which the valid slots' pages were swapped out.
    pub(super) born_sum: u64,
}

fn stored(number: u32) -> Option<u32> {
    number.checked_sub(1)
}

pub(super) struct EraseBlocks {
    pub(super) slots_per_block: u32,
    blocks: Box<[Block]>,
    /// The page in each slot, plus 1.
    page: Box<[u32]>,
    /// Tick at which the page in each slot left RAM; a copy keeps it.
    born: Box<[u64]>,
    /// The slot of each page, plus 1.
    place: Box<[u32]>,
    pub(super) links: Links,
    /// Ticks so far.
    pub(super) now: u64,
    pub(super) counts: SwapCounts,
}

impl EraseBlocks {
    pub(super) fn new(pages: usize, blocks: usize, slots_per_block: u32) -> EraseBlocks {
        let slots = blocks * slots_per_block as usize;
        let erased = Block { used: BlockUse::Open, programmed: 0, valid: 0, erases: 0, touched: 0, born_sum: 0 };
        EraseBlocks {
            slots_per_block,
            blocks: vec![erased; blocks].into_boxed_slice(),
            page: vec![NONE; slots].into_boxed_slice(),
            born: vec![0; slots].into_boxed_slice(),
            place: vec![NONE; pages].into_boxed_slice(),
            links: Links::new(blocks),
            now: 0,
            counts: SwapCounts::default(),
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.place.len()
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn get(&self, block: BlockId) -> &Block {
        &self.blocks[block.index()]
    }

    pub(super) fn get_mut(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[block.index()]
    }

    pub(super) fn block_of(&self, slot: SlotId) -> BlockId {
        BlockId(slot.0 / self.slots_per_block)
    }

    pub(super) fn slot_of(&self, page: PageId) -> Option<SlotId> {
        stored(self.place[page.index()]).map(SlotId)
    }

    pub(super) fn page_in(&self, slot: SlotId) -> Option<PageId> {
        stored(self.page[slot.index()]).map(PageId)
    }

    pub(super) fn born(&self, slot: SlotId) -> u64 {
        self.born[slot.index()]
    }

    pub(super) fn erases(&self) -> impl Iterator<Item = u32> + '_ {
        self.blocks.iter().map(|b| b.erases)
    }

    pub(super) fn valid_slots(&self) -> u64 {
        self.blocks.iter().map(|b| u64::from(b.valid)).sum()
    }

    /// Slots of a block that hold a page.
    pub(super) fn survivors(&self, block: BlockId) -> impl Iterator<Item = SlotId> + '_ {
        let first = block.0 * self.slots_per_block;
        (first..first + self.slots_per_block).map(SlotId).filter(|slot| self.page[slot.index()] != NONE)
    }

    /// The block has changed last. Its tick is its own, so no two closed blocks have the same one.
    pub(super) fn touch(&mut self, block: BlockId) {
        self.now += 1;
        self.blocks[block.index()].touched = self.now;
    }

    /// The next slot of a block is used up, whether its program succeeds or not.
    pub(super) fn take(&mut self, block: BlockId) -> SlotId {
        let n = self.slots_per_block;
        let b = self.get_mut(block);
        assert!(b.used == BlockUse::Open && b.programmed < n, "block {} takes no more", block.0);
        b.programmed += 1;
        SlotId(block.0 * n + b.programmed - 1)
    }

    /// A page has been programmed into a slot that was taken. Its block holds one page more; the page's recorded
    /// place is still the old one.
    pub(super) fn fill(&mut self, slot: SlotId, page: PageId, born: u64) {
        debug_assert_eq!(self.page[slot.index()], NONE, "programmed twice");
        self.page[slot.index()] = page.0 + 1;
        self.born[slot.index()] = born;
        let (block, now) = (self.block_of(slot), self.now);
        let b = self.get_mut(block);
        b.valid += 1;
        b.born_sum += born;
        b.touched = now;
    }

    /// Sets the page's place to this slot. Returns the old place.
    pub(super) fn settle(&mut self, page: PageId, slot: SlotId) -> Option<SlotId> {
        let old = core::mem::replace(&mut self.place[page.index()], slot.0 + 1);
        stored(old).map(SlotId)
    }

    /// The page has no place any more. Returns the old place.
    pub(super) fn forget(&mut self, page: PageId) -> Option<SlotId> {
        let old = core::mem::replace(&mut self.place[page.index()], NONE);
        stored(old).map(SlotId)
    }

    /// The slot holds no page any more.
    pub(super) fn clear(&mut self, slot: SlotId) {
        self.page[slot.index()] = NONE;
        let (block, born, now) = (self.block_of(slot), self.born[slot.index()], self.now);
        let b = self.get_mut(block);
        b.valid -= 1;
        b.born_sum -= born;
        b.touched = now;
    }

    pub(super) fn check(&self) {
        for i in 0..self.blocks.len() {
            let block = BlockId::from(i);
            let b = self.get(block);
            let valid = self.survivors(block).count();
            assert_eq!(b.valid as usize, valid, "block {i} has lost count of its pages");
            let sum: u64 = self.survivors(block).map(|slot| self.born(slot)).sum();
            assert_eq!(b.born_sum, sum, "block {i} has lost count of its ages");
            let past = self.survivors(block).filter(|s| s.0 % self.slots_per_block >= b.programmed).count();
            assert_eq!(past, 0, "block {i} holds a page in a slot that was not programmed");
        }
        let placed = (0..self.pages()).filter_map(|page| Some((PageId::from(page), self.slot_of(PageId::from(page))?)));
        let placed = placed.inspect(|(page, slot)| {
            assert_eq!(self.page_in(*slot), Some(*page), "page and slot disagree");
        });
        assert_eq!(placed.count() as u64, self.valid_slots(), "a slot holds a page that lies elsewhere");
    }
}
