//! First touches in blocks: when a page that never had content faults, its untouched neighbours come in beside it, as
//! zeros, without a load. No task waits for them, and they take free frames only.
//!
//! ```text
//!   block      |  .  .  .  F  .  .  .  .  |     aligned; F is the page that faulted
//!   fault      Load F ... Map F
//!   neighbours Zero, Zero, ...                  into free frames, behind all others on a list of their own
//!   search     Machine::filled?  yes: the policy gets the frame.  no: Evict, without a write
//! ```
//! A search for a frame looks at these pages before it asks the policy, each page once. So a neighbour that nobody
//! writes to costs a frame for a while, and no write. The size of the block follows the touches (`block_size.rs`).
//! Linux has the idea in its larger folios of anonymous memory. When not to use it: a machine that does not see which
//! page was written to ([`Machine::filled`](crate::Machine::filled)) never sends `Event::FirstTouchNeighbour`.

use crate::command::Command;
use crate::fault::turn::Turn;
use crate::ids::{FrameId, PageId};
use crate::page_state::PageState;

/// Neighbours that one search looks at, as long as the policy has a victim.
pub(super) const LOOKS: usize = 64;

/// Brings an untouched page in as zeros, if a frame is free.
pub(crate) fn first_touch_neighbour(turn: &mut Turn<'_>, page: PageId) {
    let Some(frame) = turn.ram.frames.reserve() else { return };
    turn.counts.first_touch_neighbours += 1;
    turn.issue(Command::Zero { page, frame });
    turn.pages.set(page, PageState::Resident(frame));
    turn.ram.frames.settle_neighbour(frame, page, !turn.config.caps.dirty_bit);
}

/// Looks at first-touch neighbours, the oldest first, and gives those that were written to to the policy.
/// The frame of the first one that was not is free then. `looks`: how many more this search may look at. The newest
/// block is left alone.
pub(super) fn unfilled(turn: &mut Turn<'_>, looks: &mut usize) -> Option<FrameId> {
    loop {
        let has_victim = turn.ram.choices() > 0;
        if has_victim && (*looks == 0 || turn.ram.frames.first_touch_neighbours() <= turn.blocks.size as usize) {
            return None;
        }
        let frame = turn.ram.frames.take_neighbour()?;
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
