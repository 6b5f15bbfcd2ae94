//! PostProcess: registers are restored and the task repeats its access.

use crate::command::{Command, Stage};
use crate::fault::turn::Turn;
use crate::ids::Ticket;

pub(super) fn post_process(turn: &mut Turn<'_>, ticket: Ticket) {
    let task = turn.flights.get(ticket).task;
    turn.mark(Stage::PostProcess);
    turn.flights.end(ticket);
    if let Some(task) = task {
        turn.issue(Command::Resume { task });
    }
}
