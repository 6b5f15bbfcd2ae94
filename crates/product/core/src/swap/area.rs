//! One area: it hands out slots, and collects when erased slots run short.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use super::blocks::{BlockUse, EraseBlocks};
use super::collect::{Candidates, Floor};
use super::linux::SlotMap;
use super::log::{Log, WriteStream};
use super::{AreaConfig, Flash, Layout, Order, RESERVE, VICTIMS_MAX};
use crate::ids::{BlockId, PageId, SlotId};
use crate::lists::List;

enum Allocator {
    Log(Log),
    Linux(SlotMap),
}

/// A valid page of a victim.
#[derive(Clone, Copy)]
struct Survivor {
    born: u64,
    slot: SlotId,
}

pub(super) struct Area {
    pub(super) config: AreaConfig,
    /// Its first block.
    pub(super) first: u32,
    slots_per_block: u32,
    allocator: Allocator,
    /// The log that takes pages from RAM now.
    pub(super) log: u32,
    /// Closed blocks by the number of their valid slots; blocks unchanged for the longest time come first.
    buckets: Box<[List]>,
    floors: Box<[Cell<Floor>]>,
    /// Erased slots that can still be taken.
    room: u32,
    /// Swap-outs since the last collection: the load that is expected until the next one.
    load: u32,
    wear: Wear,
    victims: Vec<BlockId>,
    survivors: Vec<Survivor>,
}

/// Least and largest erase count of the good blocks.
#[derive(Clone, Copy, Default)]
struct Wear {
    min: u32,
    max: u32,
    /// Good blocks at the least count.
    at_min: u32,
}

impl Area {
    pub(super) fn new(config: AreaConfig, first: u32, slots_per_block: u32) -> Area {
        let allocator = match config.layout {
            Layout::Log => Allocator::Log(Log::new(config.blocks as usize, config.logs)),
            Layout::Linux { cluster } => Allocator::Linux(SlotMap::new(config.blocks * slots_per_block, cluster)),
        };
        Area {
            config,
            first,
            slots_per_block,
            allocator,
            log: 0,
            buckets: vec![List::new(); slots_per_block as usize + 1].into_boxed_slice(),
            floors: vec![Cell::new(Floor::default()); slots_per_block as usize + 1].into_boxed_slice(),
            room: 0,
            load: 0,
            wear: Wear { min: 0, max: 0, at_min: config.blocks },
            victims: Vec::with_capacity(VICTIMS_MAX as usize),
            survivors: Vec::with_capacity((VICTIMS_MAX * slots_per_block) as usize),
        }
    }

    /// Fewest and most erases of the good blocks.
    pub(super) fn wear(&self) -> (u32, u32) {
        (self.wear.min, self.wear.max)
    }

    fn block_ids(&self) -> impl Iterator<Item = BlockId> {
        (self.first..self.first + self.config.blocks).map(BlockId)
    }

    /// Every block is erased.
    pub(super) fn start_erased(&mut self, blocks: &EraseBlocks) {
        self.block_ids().for_each(|block| self.add_erased(block, blocks));
    }

    fn add_erased(&mut self, block: BlockId, blocks: &EraseBlocks) {
        self.room += self.slots_per_block;
        if let Allocator::Log(log) = &mut self.allocator {
            log.add_free(block, blocks.get(block).erases);
        }
    }

    /// The number within the area of a block's first slot.
    fn local(&self, block: BlockId) -> u32 {
        (block.0 - self.first) * self.slots_per_block
    }

    /// Programs the page into a slot; `None`: the area is full.
    #[inline]
    pub(super) fn swap_out(
        &mut self,
        page: PageId,
        blocks: &mut EraseBlocks,
        flash: &mut impl Flash,
    ) -> Option<SlotId> {
        if self.room < self.config.start * self.slots_per_block {
            while self.room < self.config.stop * self.slots_per_block && self.collect(blocks, flash) {}
        }
        if self.room <= RESERVE * self.slots_per_block {
            return None;
        }
        self.load += 1;
        let born = blocks.now;
        let slot = self.append(WriteStream::SwapOuts(self.log), None, page, born, blocks, flash)?;
        blocks.counts.programs += 1;
        Some(slot)
    }

    /// Programs a page into the next slot that accepts it; `None`: there is no slot left. A block that fails is given
    /// up.
    #[inline]
    fn append(
        &mut self,
        stream: WriteStream,
        from: Option<SlotId>,
        page: PageId,
        born: u64,
        blocks: &mut EraseBlocks,
        flash: &mut impl Flash,
    ) -> Option<SlotId> {
        loop {
            let block = self.next_block(stream)?;
            let slot = blocks.take(block);
            self.room -= 1;
            blocks.now += 1;
            if flash.carry_out(Order::Program { page, from, to: slot }).is_err() {
                self.give_up(block, blocks);
                continue;
            }
            blocks.fill(slot, page, born);
            if blocks.get(block).programmed == self.slots_per_block {
                self.close(block, blocks);
            }
            return Some(slot);
        }
    }

    /// The block whose next slot is taken.
    fn next_block(&mut self, stream: WriteStream) -> Option<BlockId> {
        match &mut self.allocator {
            Allocator::Log(log) => log.next_block(stream),
            Allocator::Linux(map) => Some(BlockId(self.first + map.allocate()? / self.slots_per_block)),
        }
    }

    fn close(&mut self, block: BlockId, blocks: &mut EraseBlocks) {
        blocks.touch(block);
        let b = blocks.get_mut(block);
        b.used = BlockUse::Closed;
        self.enlist(block, blocks);
        if let Allocator::Log(log) = &mut self.allocator {
            log.closed(block);
        }
    }

    /// A program that was reported as done had failed. If the block was erased since, nothing is to be done.
    #[cold]
    pub(super) fn retire(&mut self, block: BlockId, blocks: &mut EraseBlocks) {
        let b = *blocks.get(block);
        match b.used {
            BlockUse::Closed => {
                self.buckets[b.valid as usize].unlink(&mut blocks.links, block.index());
                self.give_up(block, blocks);
            }
            BlockUse::Open if b.programmed > 0 => self.give_up(block, blocks),
            BlockUse::Open | BlockUse::Bad => {}
        }
    }

    /// An erase that was reported as done had failed.
    #[cold]
    pub(super) fn not_erased(&mut self, block: BlockId, blocks: &mut EraseBlocks) {
        let b = *blocks.get(block);
        if b.used != BlockUse::Open || b.programmed > 0 {
            return self.retire(block, blocks);
        }
        if let Allocator::Log(log) = &mut self.allocator {
            log.not_free(block);
        }
        self.give_up(block, blocks);
    }

    /// A program failed: the block takes no more pages. Its pages stay until they are released.
    #[cold]
    fn give_up(&mut self, block: BlockId, blocks: &mut EraseBlocks) {
        let b = blocks.get_mut(block);
        self.room -= self.slots_per_block - b.programmed;
        (b.used, b.programmed) = (BlockUse::Bad, self.slots_per_block);
        let first = self.local(block);
        match &mut self.allocator {
            Allocator::Log(log) => log.closed(block),
            Allocator::Linux(map) => (first..first + self.slots_per_block).for_each(|slot| map.set_used(slot)),
        }
        blocks.counts.bad_blocks += 1;
        self.survey(blocks);
    }

    /// The page in the slot is of no use any more.
    #[inline]
    pub(super) fn invalidate(&mut self, slot: SlotId, blocks: &mut EraseBlocks) {
        let block = blocks.block_of(slot);
        blocks.now += 1;
        blocks.counts.invalidations += 1;
        blocks.clear(slot);
        let (used, valid) = (blocks.get(block).used, blocks.get(block).valid as usize);
        if used == BlockUse::Closed {
            self.buckets[valid + 1].unlink(&mut blocks.links, block.index());
            self.enlist(block, blocks);
        }
    }

    #[inline]
    fn enlist(&mut self, block: BlockId, blocks: &mut EraseBlocks) {
        let b = blocks.get(block);
        let (bucket, floor) = (&mut self.buckets[b.valid as usize], &self.floors[b.valid as usize]);
        let mine = Floor { born_sum: b.born_sum, erases: b.erases };
        floor.set(if bucket.is_empty() { mine } else { floor.get().least(mine) });
        bucket.push_tail(&mut blocks.links, block.index());
    }

    pub(super) fn candidates<'a>(&'a self, blocks: &'a EraseBlocks) -> Candidates<'a> {
        Candidates { blocks, buckets: &self.buckets, floors: &self.floors }
    }

    /// Copies the valid pages of some victims away and erases the victims. Returns false if nothing was gained.
    fn collect(&mut self, blocks: &mut EraseBlocks, flash: &mut impl Flash) -> bool {
        let before = self.room;
        self.choose(blocks);
        if self.victims.is_empty() {
            return false;
        }
        blocks.counts.collections += 1;
        self.load = 0;
        self.clean(blocks, flash);
        let gained = self.room > before;
        self.level(blocks, flash);
        gained
    }

    /// Victims, best first, until the slots that they free cover the shortage and the expected load, and as long as
    /// there is room for the survivors. With one victim allowed this is the classic collection.
    fn choose(&mut self, blocks: &mut EraseBlocks) {
        let n = self.slots_per_block;
        let wanted = (self.config.stop * n).saturating_sub(self.room) + self.load;
        let (mut freed, mut survivors) = (0, 0);
        while self.victims.len() < self.config.victims as usize && freed < wanted {
            let Some(victim) = self.candidates(blocks).victim(self.config.collector) else { break };
            let valid = blocks.get(victim).valid;
            // A wholly valid block frees no slot, and by the collector's order neither does any block after it.
            if valid == n || survivors + valid > self.room {
                break;
            }
            self.buckets[valid as usize].unlink(&mut blocks.links, victim.index());
            self.victims.push(victim);
            freed += n - valid;
            survivors += valid;
        }
    }

    /// Empties the victims and erases those that could be emptied.
    fn clean(&mut self, blocks: &mut EraseBlocks, flash: &mut impl Flash) {
        for victim in &self.victims {
            let slots = blocks.survivors(*victim);
            self.survivors.extend(slots.map(|slot| Survivor { born: blocks.born(slot), slot }));
        }
        if self.config.collector.with_age {
            self.survivors.sort_unstable_by_key(|s| (s.born, s.slot));
        }
        for i in 0..self.survivors.len() {
            self.rescue(self.survivors[i], blocks, flash);
        }
        self.survivors.clear();
        while let Some(victim) = self.victims.pop() {
            match blocks.get(victim).valid {
                0 => self.erase(victim, blocks, flash),
                _ => self.close(victim, blocks),
            }
        }
    }

    /// Copies one page. If there is no room for it, the page stays where it is.
    fn rescue(&mut self, survivor: Survivor, blocks: &mut EraseBlocks, flash: &mut impl Flash) {
        let Survivor { born, slot } = survivor;
        let stream = if self.config.collector.with_age { WriteStream::Survivors } else { WriteStream::SwapOuts(0) };
        let page = blocks.page_in(slot).expect("a survivor is a page");
        if let Some(to) = self.append(stream, Some(slot), page, born, blocks, flash) {
            blocks.settle(page, to);
            blocks.clear(slot);
            blocks.counts.copies += 1;
        }
    }

    fn erase(&mut self, block: BlockId, blocks: &mut EraseBlocks, flash: &mut impl Flash) {
        let failed = flash.carry_out(Order::Erase(block)).is_err();
        let local = self.local(block);
        let b = blocks.get_mut(block);
        if failed {
            b.used = BlockUse::Bad;
            blocks.counts.bad_blocks += 1;
            return self.survey(blocks);
        }
        let before = b.erases;
        (b.used, b.programmed, b.erases) = (BlockUse::Open, 0, before + 1);
        blocks.counts.erases += 1;
        self.worn(before, blocks);
        self.add_erased(block, blocks);
        if let Allocator::Linux(map) = &mut self.allocator {
            map.erased(local..local + self.slots_per_block);
        }
    }

    /// Keeps the least and largest erase count; looks at all blocks only when the last one has left the least count.
    fn worn(&mut self, before: u32, blocks: &EraseBlocks) {
        self.wear.max = self.wear.max.max(before + 1);
        if before == self.wear.min {
            self.wear.at_min -= 1;
            if self.wear.at_min == 0 {
                self.survey(blocks);
            }
        }
    }

    fn survey(&mut self, blocks: &EraseBlocks) {
        let good = || self.block_ids().map(|b| blocks.get(b)).filter(|b| b.used != BlockUse::Bad).map(|b| b.erases);
        let (min, max) = (good().min().unwrap_or(0), good().max().unwrap_or(0));
        self.wear = Wear { min, max, at_min: good().filter(|e| *e == min).count() as u32 };
    }

    /// Static wear levelling: if the counts differ too much, the pages of the least erased closed block are moved.
    fn level(&mut self, blocks: &mut EraseBlocks, flash: &mut impl Flash) {
        let Some(spread_max) = self.config.spread_max else { return };
        if self.wear.max - self.wear.min <= spread_max {
            return;
        }
        let closed = self.block_ids().filter(|b| blocks.get(*b).used == BlockUse::Closed);
        let Some(coldest) = closed.min_by_key(|b| (blocks.get(*b).erases, *b)) else { return };
        let valid = blocks.get(coldest).valid;
        if valid > self.room || blocks.get(coldest).erases > self.wear.min {
            return;
        }
        self.buckets[valid as usize].unlink(&mut blocks.links, coldest.index());
        self.victims.push(coldest);
        let before = blocks.counts.copies;
        self.clean(blocks, flash);
        blocks.counts.levelling_copies += blocks.counts.copies - before;
    }

    pub(super) fn check(&self, blocks: &EraseBlocks) {
        let listed: usize = self.buckets.iter().map(|b| b.len()).sum();
        let closed = self.block_ids().filter(|b| blocks.get(*b).used == BlockUse::Closed).count();
        assert_eq!(listed, closed, "a closed block is on no list");
        for (valid, bucket) in self.buckets.iter().enumerate() {
            let mut before = 0;
            for i in bucket.iter(&blocks.links) {
                let b = blocks.get(BlockId::from(i));
                assert_eq!(b.valid as usize, valid, "block {i} is on the wrong list");
                assert!(b.touched >= before, "block {i} is out of order");
                assert!(self.floors[valid].get().born_sum <= b.born_sum, "block {i} is older than its bucket's floor");
                before = b.touched;
            }
        }
        let open = self.block_ids().filter(|b| blocks.get(*b).used == BlockUse::Open);
        let room: u32 = open.map(|b| self.slots_per_block - blocks.get(b).programmed).sum();
        assert_eq!(self.room, room, "erased slots have been lost");
        let mut anew = Wear { ..self.wear };
        let good = self.block_ids().map(|b| blocks.get(b)).filter(|b| b.used != BlockUse::Bad);
        anew.min = good.map(|b| b.erases).min().unwrap_or(0);
        assert_eq!(self.wear.min, anew.min, "the least erase count is wrong");
    }
}
