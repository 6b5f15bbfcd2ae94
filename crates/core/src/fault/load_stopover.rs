//! LoadStopover: the page is decompressed into a buffer, if it is in the tier. Else the device is told to bring the page into a buffer, and does it by itself. The frame need not be known: that is
//! what the parallel handler lives on.

use crate::command::{Command, Stage};
use crate::ids::Ticket;
use crate::turn::Turn;

pub(super) fn load_stopover(turn: &mut Turn<'_>, ticket: Ticket) {
    let into = turn.buffers.take();
    let flight = turn.flights.get_mut(ticket);
    flight.buffer = Some(into);
    let page = flight.page;
    if let Some((at, size)) = turn.tier.as_mut().and_then(|tier| tier.unpack(page)) {
        turn.issue(Command::Unpack { ticket, page, at, size, into });
        return turn.mark(Stage::LoadStopover);
    }
    turn.counts.page_loads += 1;
    turn.issue(Command::Load { ticket, page, from: turn.backing.slot_of(page), into });
    turn.mark(Stage::LoadStopover);
}
