//! UpdateMMU: the page is mapped and the policy learns of it.

use crate::command::Stage;
use crate::fault::turn::Turn;
use crate::ids::{FrameId, PageId, Ticket};
use crate::page_state::PageState;
use crate::prefetch::Arrival;

pub(super) fn update_mmu(turn: &mut Turn<'_>, ticket: Ticket) {
    let flight = turn.flights.get(ticket);
    let frame = flight.frame.expect("a frame has been found");
    if flight.task.is_none() && turn.arrival.is_behind_slice() {
        settle_behind_slice(turn, flight.page, frame);
    } else {
        settle(turn, flight.page, frame, flight.writing);
    }
    turn.mark(Stage::UpdateMMU);
}

/// The page's bytes are in the frame: from now on it lives there.
pub(super) fn settle(turn: &mut Turn<'_>, page: PageId, frame: FrameId, writing: bool) {
    enters(turn, page, frame);
    let bit = turn.ram.insert_bit;
    let (policy, mut residents) = turn.policy_and_residents();
    residents.map(frame, bit, writing);
    policy.insert(frame, &mut residents);
}

fn enters(turn: &mut Turn<'_>, page: PageId, frame: FrameId) {
    turn.ram.frames.settle(frame, page);
    turn.pages.set(page, PageState::Resident(frame));
    turn.counts.swap_ins += u64::from(turn.backing.in_area(page).is_some());
    if turn.backing.came(page) {
        turn.ram.soil(frame);
    }
}

/// The page's bytes are in the frame, and no task has touched the page yet. It is mapped only if the machine has
/// reference bits, which show the first touch.
fn settle_behind_slice(turn: &mut Turn<'_>, page: PageId, frame: FrameId) {
    enters(turn, page, frame);
    let mapped = turn.arrival == Arrival::MappedBehindSlice && turn.config.caps.reference_bit;
    let (policy, mut residents) = turn.policy_and_residents();
    if mapped {
        residents.map(frame, false, false);
    }
    policy.insert_behind_slice(frame, &mut residents);
}
