//! LoadStopover: the device loads the page into a buffer by itself. The frame need not be known yet; the parallel
//! handler depends on this.

use crate::command::{Command, Stage};
use crate::fault::turn::Turn;
use crate::ids::Ticket;

pub(super) fn load_stopover(turn: &mut Turn<'_>, ticket: Ticket) {
    let into = turn.buffers.take();
    let flight = turn.flights.get_mut(ticket);
    flight.buffer = Some(into);
    let page = flight.page;
    turn.counts.page_loads += 1;
    turn.issue(Command::Load { ticket, page, from: turn.backing.slot_of(page), into });
    turn.mark(Stage::LoadStopover);
}
