//! First touches in blocks: when a page that never had content faults, its untouched neighbours come in beside it, as
//! zeros, without a load. No task waits for them, and they take free frames only.
//!
//! ```text
//!   block      |  .  .  .  F  .  .  .  .  |     aligned; F is the page that faulted
//!   fault      Load F ... Map F
//!   neighbours Zero, Zero, ...                  into free frames, behind all others on the list `beside`
//!   search     Machine::filled?  yes: the policy gets the frame.  no: Evict, without a write
//! ```
//! A search for a frame looks at these pages before it asks the policy, each page once. So a neighbour that nobody
//! writes to costs a frame for a while, and no write. The size of the block follows the touches: it grows while blocks
//! next to each other are touched, and shrinks when touches are far from each other, or when most neighbours leave as
//! they came. Linux has the idea in its larger
//! folios of anonymous memory. When not to use it: a machine that does not see which page was written to
//! ([`Machine::filled`](crate::Machine::filled)) never sends `Event::Beside`.

use core::ops::Range;

use crate::command::Command;
use crate::ids::{FrameId, PageId};
use crate::page_state::{PageState, PageStates};
use crate::turn::Turn;

/// The first size of a block, and the largest, in pages.
const FIRST: u32 = 16;
const MOST: u32 = 64;
/// A block takes at most this part of RAM.
const PART: usize = 16;
/// Faults in a row with blocks next to memory in use, after which the size doubles; and faults in a row with blocks in the
/// open, after which it is halved.
const STREAK: i32 = 4;
const SCATTERED: i32 = 16;
/// Neighbours after which the size is judged.
const JUDGED: u32 = 64;
/// Neighbours that one search looks at, as long as the policy has a victim.
pub(super) const LOOKS: usize = 64;

/// The size of the next block, and what it follows from.
#[derive(Debug)]
pub(crate) struct Blocks {
    size: u32,
    most: u32,
    /// Faults in a row next to memory in use; negative: in the open.
    streak: i32,
    /// Neighbours that were looked at since the size was judged last, and those of them that had been written to.
    looked: u32,
    filled: u32,
}

impl Blocks {
    pub(crate) fn new(frames: usize) -> Blocks {
        let most = (frames / PART).clamp(1, MOST as usize) as u32;
        let most = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
        Blocks { size: most.min(FIRST), most, streak: 0, looked: 0, filled: 0 }
    }

    /// The block of a page.
    pub(crate) fn around(&self, page: PageId) -> Range<u32> {
        let first = page.0 / self.size * self.size;
        first..first.saturating_add(self.size)
    }

    /// A page is touched for the first time.
    pub(crate) fn fault(&mut self, page: PageId, pages: &PageStates) {
        let block = self.around(page);
        let in_use = |page: u32| pages.find(PageId(page)).is_some_and(|state| state != PageState::Untouched);
        let next_to = block.start.checked_sub(1).is_some_and(in_use) || in_use(block.end);
        self.streak = if next_to { self.streak.max(0) + 1 } else { self.streak.min(0) - 1 };
        match self.streak {
            STREAK => self.resize(2 * self.size),
            streak if streak == -SCATTERED => self.resize(self.size / 2),
            _ => {}
        }
    }

    fn resize(&mut self, size: u32) {
        (self.size, self.streak) = (size.clamp(1, self.most), 0);
    }

    fn look(&mut self, filled: bool) {
        self.looked += 1;
        self.filled += u32::from(filled);
        if self.looked == JUDGED {
            if 2 * self.filled < JUDGED {
                self.resize(self.size / 2);
            }
            (self.looked, self.filled) = (0, 0);
        }
    }
}

impl Turn<'_> {
    /// Brings an untouched page in as zeros, if a frame is free.
    pub(crate) fn beside(&mut self, page: PageId) {
        let Some(frame) = self.ram.frames.reserve() else { return };
        self.counts.beside += 1;
        self.issue(Command::Zero { page, frame });
        self.pages.set(page, PageState::Resident(frame));
        self.ram.frames.settle_beside(frame, page, !self.config.caps.dirty_bit);
    }
}

/// Looks at pages that came in beside others, the oldest first, and gives those that were written to to the policy.
/// The frame of the first one that was not is free then. `looks`: how many more this search may look at. The newest block
/// is left alone.
pub(super) fn unfilled(turn: &mut Turn<'_>, looks: &mut usize) -> Option<FrameId> {
    loop {
        let has_victim = turn.ram.choices() > 0;
        if has_victim && (*looks == 0 || turn.ram.frames.beside() <= turn.blocks.size as usize) {
            return None;
        }
        let frame = turn.ram.frames.take_beside()?;
        *looks = looks.saturating_sub(1);
        let page = turn.ram.frames.page(frame);
        let filled = turn.machine.filled(page);
        turn.blocks.look(filled);
        if !filled {
            turn.counts.unfilled += 1;
            turn.counts.evictions += 1;
            turn.issue(Command::Evict { page, from: frame });
            turn.pages.set(page, PageState::Untouched);
            return Some(frame);
        }
        let (policy, mut residents) = turn.policy_and_residents();
        residents.frames.get_mut(frame).referenced = true;
        policy.insert(frame, &mut residents);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::FrameId;

    #[test]
    fn a_block_grows_beside_memory_in_use_and_shrinks_when_most_of_it_stays_empty() {
        let (mut blocks, mut pages) = (Blocks::new(4096), PageStates::new(4096));
        assert_eq!(blocks.around(PageId(21)), 16..32);
        for page in 0..1000 {
            if pages.get(PageId(page)) == PageState::Untouched {
                let block = blocks.around(PageId(page));
                blocks.fault(PageId(page), &pages);
                block.for_each(|page| pages.set(PageId(page), PageState::Resident(FrameId(0))));
            }
        }
        assert_eq!(blocks.around(PageId(100)), 64..128);
        (0..JUDGED * 2).for_each(|look| blocks.look(look % 3 == 0));
        assert_eq!(blocks.around(PageId(100)), 96..112);
        (0..SCATTERED as u32 * 4).for_each(|i| blocks.fault(PageId(2000 + 32 * i), &pages));
        assert_eq!(blocks.around(PageId(100)), 100..101);
    }

    #[test]
    fn a_block_is_a_small_part_of_ram() {
        let sizes = [1, 16, 50, 300, 1024, 1 << 20].map(|frames| Blocks::new(frames).most);
        assert_eq!(sizes, [1, 1, 2, 16, 64, 64]);
    }
}
