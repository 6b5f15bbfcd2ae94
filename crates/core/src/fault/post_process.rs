//! PostProcess: registers are restored and the task repeats its access.

use super::Fault;
use crate::command::{Command, Stage};

pub(super) fn post_process(fault: &mut Fault<'_>) {
    let task = fault.in_flight().task;
    fault.mark(Stage::PostProcess);
    fault.engine.in_flight[fault.ticket.index()] = None;
    fault.engine.tickets.push(fault.ticket);
    if let Some(task) = task {
        fault.machine.issue(Command::Resume { task });
    }
}
