//! Sequential: the search finds a frame first, then the device starts. A disk that needs the destination with the
//! request works this way.

use super::{get_freeframe, load_stopover, post_process, pre_process, trans_host_mem, update_mmu, Handler};
use crate::ids::Ticket;
use crate::turn::Turn;

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "sequential",
    summary: "find a frame, then load the page",
    source: "SWL (LCTES 2007) figure 4 and equation 1",
    needs_xip: false,
    fault,
    loaded,
};

fn fault(turn: &mut Turn<'_>, ticket: Ticket) {
    pre_process(turn);
    get_freeframe(turn, ticket);
    load_stopover(turn, ticket);
}

fn loaded(turn: &mut Turn<'_>, ticket: Ticket) {
    trans_host_mem(turn, ticket);
    update_mmu(turn, ticket);
    post_process(turn, ticket);
}
