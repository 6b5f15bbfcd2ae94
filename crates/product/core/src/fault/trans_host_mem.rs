//! TransHostMem: the page moves from the buffer to its frame, and the buffer is free again.

use crate::command::{Command, Stage};
use crate::fault::turn::Turn;
use crate::ids::Ticket;

pub(super) fn trans_host_mem(turn: &mut Turn<'_>, ticket: Ticket) {
    let flight = turn.flights.get_mut(ticket);
    let from = flight.buffer.take().expect("the page has been loaded");
    let to = flight.frame.expect("a frame has been found");
    let page = flight.page;
    turn.issue(Command::Move { page, from, to });
    turn.buffers.give_back(from);
    turn.count_move();
    turn.mark(Stage::TransHostMem);
}
