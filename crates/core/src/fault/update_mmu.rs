//! UpdateMMU: the page is mapped and the policy learns of it.

use super::Fault;
use crate::command::Stage;
use crate::page_state::PageState;

pub(super) fn update_mmu(fault: &mut Fault<'_>) {
    let in_flight = *fault.in_flight();
    let frame = in_flight.frame.expect("a frame has been found");
    fault.engine.frames.settle(frame, in_flight.page);
    fault.engine.pages.set(in_flight.page, PageState::Resident(frame));
    let bit = fault.engine.policy.insert_bit() || !fault.engine.config.caps.reference_bit;
    let Fault { engine, machine, work, .. } = fault;
    let (policy, mut residents) = engine.policy_and_residents(*machine, work);
    residents.map(frame, bit, in_flight.writing);
    policy.insert(frame, &mut residents);
    fault.mark(Stage::UpdateMMU);
}
