//! GetFreeframe: a free frame, or the policy's victim, evicted; several at once if the machine wants that.
//!
//! A search for a fault always finds a frame: the engine accepts no more faults than there are frames, so a frame is
//! free or the policy holds one. A prefetch that must not evict pages of the running slice may find none, so it looks
//! for its frame first.

use super::evict::{evict, evict_one};
use super::first_touch::{unfilled, LOOKS};
use super::low_memory::relieve;
use crate::command::Stage;
use crate::fault::turn::Turn;
use crate::ids::{FrameId, Ticket};

pub(super) fn get_freeframe(turn: &mut Turn<'_>, ticket: Ticket) {
    if turn.flights.get(ticket).frame.is_none() {
        let frame = find_frame(turn);
        turn.flights.get_mut(ticket).frame = Some(frame);
    }
}

/// A frame that is reserved for the caller.
pub(super) fn find_frame(turn: &mut Turn<'_>) -> FrameId {
    let (policy, mut residents) = turn.policy_and_residents();
    policy.true_fault(&mut residents);
    relieve(turn);
    let frame = turn.ram.frames.reserve().unwrap_or_else(|| evict_batch(turn));
    end_search(turn);
    frame
}

fn end_search(turn: &mut Turn<'_>) {
    let (counts, walk) = (&mut turn.counts, turn.work.walk);
    counts.walk_sum += walk;
    counts.walk_max = counts.walk_max.max(walk);
    turn.mark(Stage::GetFreeframe);
}

/// Evicts a batch, until the search's budget is spent. The first victim's frame goes to the fault; the other frames are
/// free.
fn evict_batch(turn: &mut Turn<'_>) -> FrameId {
    let mut looks = LOOKS;
    let frame = free_one(turn, &mut looks, false).expect("a frame is free, or a page can leave");
    turn.ram.frames.hand_over(frame);
    for _ in 1..turn.evict_batch() {
        let Some(other) = free_one(turn, &mut looks, true) else { break };
        turn.ram.frames.release(other);
    }
    frame
}

/// Evicts until so many frames are free, once half of them are not; none, if there is none to keep.
pub(super) fn keep_free(turn: &mut Turn<'_>, frames: usize) {
    if frames == 0 || turn.ram.frames.free() > frames / 2 {
        return;
    }
    let mut looks = LOOKS;
    while turn.ram.frames.free() < frames {
        let Some(frame) = free_one(turn, &mut looks, true) else { break };
        turn.ram.frames.release(frame);
    }
    end_search(turn);
}

/// Gives frames away: free ones, then those of victims, each found by a search of its own.
pub(crate) fn lend(turn: &mut Turn<'_>, frames: usize) {
    let mut looks = LOOKS;
    while turn.ram.frames.free() < frames {
        let frame = free_one(turn, &mut looks, false).expect("pins and loads have left enough");
        turn.ram.frames.release(frame);
        end_search(turn);
    }
    turn.has_frames(|lent| lent + frames);
}

/// The frame of a page that nobody has written to, or of the policy's victim, or of `another` one.
fn free_one(turn: &mut Turn<'_>, looks: &mut usize, another: bool) -> Option<FrameId> {
    unfilled(turn, looks).or_else(|| evict_one(turn, another))
}

/// A free frame, or the frame of a page that the running slice has not touched; `None` if there is neither.
pub(crate) fn frame_behind_slice(turn: &mut Turn<'_>) -> Option<FrameId> {
    if let Some(frame) = turn.ram.frames.reserve() {
        return Some(frame);
    }
    let (policy, mut residents) = turn.policy_and_residents();
    let victim = policy.victim_behind_slice(&mut residents)?;
    evict(turn, victim);
    turn.ram.frames.hand_over(victim.frame);
    end_search(turn);
    Some(victim.frame)
}
