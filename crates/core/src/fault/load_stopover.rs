//! LoadStopover: a page in the tier is decompressed into a buffer. For any other page, the device loads the page into
//! a buffer by itself. The frame need not be known yet; the parallel handler depends on this.

use crate::command::{Command, Stage};
use crate::ids::Ticket;
use crate::pool_op::PoolOp;
use crate::turn::Turn;

pub(super) fn load_stopover(turn: &mut Turn<'_>, ticket: Ticket) {
    let into = turn.buffers.take();
    let flight = turn.flights.get_mut(ticket);
    flight.buffer = Some(into);
    let page = flight.page;
    if let Some((at, size)) = turn.tier.as_mut().and_then(|tier| tier.decompress(page)) {
        turn.issue(Command::Pool(PoolOp::Decompress { ticket, page, at, size, into }));
        return turn.mark(Stage::LoadStopover);
    }
    turn.counts.page_loads += 1;
    turn.flights.get_mut(ticket).packed = turn.backing.is_packed(page);
    turn.issue(Command::Load { ticket, page, from: turn.backing.slot_of(page), into });
    turn.mark(Stage::LoadStopover);
}
