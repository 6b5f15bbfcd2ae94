//! Which erase block is collected. A collector is a function from the closed blocks to one of them. Of equal blocks,
//! the one unchanged for the longest time is chosen.
//!
//! Symbols: a block has n slots, v of them valid, u = v / n; e is how often it was erased. Scores are ratios of
//! integers and compared by cross-multiplication in 128 bits: there is no floating point here.
//!
//! To add one: copy `collect/greedy.rs`, add it to [`ALL`]; the tests compare it with a scan of all blocks.

use core::cell::Cell;
use core::cmp::Ordering;

use super::blocks::EraseBlocks;
use crate::ids::BlockId;
use crate::lists::List;

pub mod cost_age_times;
pub mod cost_benefit;
pub mod cost_benefit_age;
pub mod greedy;

/// Every collector, in the order of the slides.
pub const ALL: &[&Collector] =
    &[&greedy::COLLECTOR, &cost_benefit::COLLECTOR, &cost_age_times::COLLECTOR, &cost_benefit_age::COLLECTOR];

/// A rule for choosing victims.
pub struct Collector {
    /// On the command line.
    pub name: &'static str,
    /// What it prefers, and its source.
    pub summary: &'static str,
    /// Survivors are sorted by age and kept apart from pages that come from RAM. The slides give several victims to
    /// these collectors only.
    pub with_age: bool,
    /// A block's score; the least is best.
    pub score: fn(&Facts) -> Ratio,
}

impl PartialEq for Collector {
    fn eq(&self, other: &Collector) -> bool {
        self.name == other.name
    }
}

impl Eq for Collector {}

impl core::fmt::Debug for Collector {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

/// The collector of this name.
pub fn find(name: &str) -> Option<&'static Collector> {
    ALL.iter().copied().find(|c| c.name == name)
}

/// What a score is made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Slots of a block.
    pub slots: u32,
    /// Valid slots.
    pub valid: u32,
    /// Times erased.
    pub erases: u32,
    /// Ticks since the block last changed, at least 1.
    pub idle: u64,
    /// Sum of the ages of the valid slots' pages, each at least 1.
    pub age_sum: u64,
}

/// A fraction; one with denominator 0 is larger than any other.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// Numerator.
    pub num: u128,
    /// Denominator.
    pub den: u128,
}

impl Ratio {
    /// By value.
    #[inline]
    pub fn compare(&self, other: &Ratio) -> Ordering {
        match (self.den, other.den) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            _ => (self.num * other.den).cmp(&(other.num * self.den)),
        }
    }
}

/// A lower bound for all blocks in a bucket: of the sum of birth ticks, and of the erases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Floor {
    pub(super) born_sum: u64,
    pub(super) erases: u32,
}

impl Floor {
    pub(super) fn least(self, other: Floor) -> Floor {
        Floor { born_sum: self.born_sum.min(other.born_sum), erases: self.erases.min(other.erases) }
    }
}

/// The closed blocks of an area.
pub struct Candidates<'a> {
    pub(super) blocks: &'a EraseBlocks,
    pub(super) buckets: &'a [List],
    pub(super) floors: &'a [Cell<Floor>],
}

impl Candidates<'_> {
    /// Slots of a block.
    pub fn slots(&self) -> u32 {
        self.blocks.slots_per_block
    }

    /// Blocks with this many valid slots; blocks unchanged for the longest time come first.
    pub fn with_valid(&self, valid: u32) -> impl Iterator<Item = BlockId> + '_ {
        self.buckets[valid as usize].iter(&self.blocks.links).map(BlockId::from)
    }

    /// The facts of a block.
    #[inline]
    pub fn facts(&self, block: BlockId) -> Facts {
        let b = self.blocks.get(block);
        let now = self.blocks.now + 1;
        Facts {
            slots: self.slots(),
            valid: b.valid,
            erases: b.erases,
            idle: now - b.touched,
            age_sum: u64::from(b.valid) * now - b.born_sum,
        }
    }

    /// The same, added up slot by slot. For tests.
    pub fn facts_slowly(&self, block: BlockId) -> Facts {
        let (mut valid, mut age_sum) = (0, 0);
        for slot in self.blocks.survivors(block) {
            valid += 1;
            age_sum += self.blocks.now + 1 - self.blocks.born(slot);
        }
        Facts { valid, age_sum, ..self.facts(block) }
    }

    /// Every closed block, in order of their numbers; for tests.
    pub fn all(&self) -> impl Iterator<Item = BlockId> + '_ {
        let closed = |block: &BlockId| self.blocks.get(*block).used == super::blocks::BlockUse::Closed;
        (0..self.blocks.len()).map(BlockId::from).filter(closed)
    }

    /// The block with the best score; `None`: no block is closed.
    pub fn victim(&self, collector: &Collector) -> Option<BlockId> {
        match collector.with_age {
            true => self.best_within(collector.score),
            false => self.best_of_heads(collector.score),
        }
    }

    /// The best block among the longest unchanged ones of each number of valid slots. This is enough for scores without
    /// the pages' ages: at equal validity, a block that is idle longer is never worse.
    fn best_of_heads(&self, score: fn(&Facts) -> Ratio) -> Option<BlockId> {
        let mut best = None;
        (0..=self.slots()).filter_map(|v| self.with_valid(v).next()).for_each(|b| self.better(&mut best, b, score));
        best.map(|(_, _, block)| block)
    }

    /// The best block of all. Blocks are visited by rising number of valid slots, and only as far as `bound` allows:
    /// the best score that a block with this many valid slots could have.
    fn best_within(&self, score: fn(&Facts) -> Ratio) -> Option<BlockId> {
        let mut best: Option<(Ratio, u64, BlockId)> = None;
        for valid in 0..=self.slots() {
            if self.buckets[valid as usize].is_empty() {
                continue;
            }
            if best.is_some_and(|(least, ..)| self.bound(valid, score).compare(&least) == Ordering::Greater) {
                continue;
            }
            let mut floor = Floor { born_sum: u64::MAX, erases: u32::MAX };
            for block in self.with_valid(valid) {
                let b = self.blocks.get(block);
                floor = floor.least(Floor { born_sum: b.born_sum, erases: b.erases });
                self.better(&mut best, block, score);
            }
            self.floors[valid as usize].set(floor);
        }
        best.map(|(_, _, block)| block)
    }

    /// The best score that any block of the bucket could have: as if one block had its oldest pages and its fewest
    /// erases. Both come from the last scan of the bucket and from blocks that entered it since. Blocks that have
    /// left can only have raised them.
    fn bound(&self, valid: u32, score: fn(&Facts) -> Ratio) -> Ratio {
        let (age, floor) = (self.blocks.now + 1, self.floors[valid as usize].get());
        let age_sum = u64::from(valid) * age - floor.born_sum;
        score(&Facts { slots: self.slots(), valid, erases: floor.erases, idle: age, age_sum })
    }

    #[inline]
    fn better(&self, best: &mut Option<(Ratio, u64, BlockId)>, block: BlockId, score: fn(&Facts) -> Ratio) {
        let (mine, touched) = (score(&self.facts(block)), self.blocks.get(block).touched);
        let better = best.is_none_or(|(least, since, _)| match mine.compare(&least) {
            Ordering::Less => true,
            Ordering::Equal => touched < since,
            Ordering::Greater => false,
        });
        if better {
            *best = Some((mine, touched, block));
        }
    }
}
