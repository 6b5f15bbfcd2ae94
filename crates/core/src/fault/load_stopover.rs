//! LoadStopover: the device is told to bring the page into a buffer, and does it by itself. The frame need not be known: that is
//! what the parallel handler lives on.

use super::Fault;
use crate::command::{Command, Stage};

pub(super) fn load_stopover(fault: &mut Fault<'_>) {
    let ticket = fault.ticket;
    let into = fault.engine.buffers.pop().expect("the engine lets no more faults in than there are buffers");
    let page = fault.in_flight().page;
    fault.in_flight().buffer = Some(into);
    fault.engine.counts.page_loads += 1;
    let from = fault.engine.backing.slot_of(page);
    fault.machine.issue(Command::Load { ticket, page, from, into });
    fault.mark(Stage::LoadStopover);
}
