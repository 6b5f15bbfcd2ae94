//! UpdateMMU: the page is mapped and the policy learns of it.

use super::Fault;
use crate::command::{Stage, Work};
use crate::engine::Engine;
use crate::ids::{FrameId, PageId};
use crate::machine::Machine;
use crate::page_state::PageState;
use crate::prefetch::Arrival;

pub(super) fn update_mmu(fault: &mut Fault<'_>) {
    let in_flight = *fault.in_flight();
    let frame = in_flight.frame.expect("a frame has been found");
    let Fault { engine, machine, work, .. } = fault;
    if engine.enters_behind_slice(&in_flight) {
        settle_behind_slice(engine, *machine, work, in_flight.page, frame);
    } else {
        settle(engine, *machine, work, in_flight.page, frame, in_flight.writing);
    }
    fault.mark(Stage::UpdateMMU);
}

/// The page's bytes are in the frame: from now on it lives there.
pub(super) fn settle(
    engine: &mut Engine,
    machine: &mut dyn Machine,
    work: &mut Work,
    page: PageId,
    frame: FrameId,
    writing: bool,
) {
    engine.frames.settle(frame, page);
    engine.pages.set(page, PageState::Resident(frame));
    engine.counts.swap_ins += u64::from(engine.backing.in_area(page).is_some());
    if engine.backing.came(page) {
        engine.frames.get_mut(frame).dirty = true;
    }
    let bit = engine.policy.insert_bit() || !engine.config.caps.reference_bit;
    let (policy, mut residents) = engine.policy_and_residents(machine, work);
    residents.map(frame, bit, writing);
    policy.insert(frame, &mut residents);
}

/// The page's bytes are in the frame, where they wait for the first touch, mapped if it can be told that nobody has touched them.
fn settle_behind_slice(engine: &mut Engine, machine: &mut dyn Machine, work: &mut Work, page: PageId, frame: FrameId) {
    engine.frames.settle(frame, page);
    engine.pages.set(page, PageState::Resident(frame));
    let mapped = engine.arrival == Arrival::MappedBehindSlice && engine.config.caps.reference_bit;
    let (policy, mut residents) = engine.policy_and_residents(machine, work);
    if mapped {
        residents.map(frame, false, false);
    }
    policy.insert_behind_slice(frame, &mut residents);
}
