//! TransHostMem: the page moves from the buffer to its frame, and the buffer is free again.

use super::Fault;
use crate::command::{Command, Stage};

pub(super) fn trans_host_mem(fault: &mut Fault<'_>) {
    let in_flight = *fault.in_flight();
    let from = in_flight.buffer.expect("the page has been loaded");
    let to = in_flight.frame.expect("a frame has been found");
    fault.machine.issue(Command::Move { page: in_flight.page, from, to });
    fault.in_flight().buffer = None;
    fault.engine.buffers.push(from);
    fault.engine.count_move();
    fault.mark(Stage::TransHostMem);
}
