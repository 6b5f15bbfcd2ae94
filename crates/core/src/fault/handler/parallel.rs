//! Parallel (search while load): the device starts first, and the search for a frame runs while the device works.
//! This order of two lines is the paper's idea.

use super::{get_freeframe, load_stopover, post_process, pre_process, trans_host_mem, update_mmu, Handler};
use crate::ids::Ticket;
use crate::turn::Turn;

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "parallel",
    summary: "load the page, find a frame while the device works",
    source: "SWL (LCTES 2007) figure 5 and equation 2",
    needs_xip: false,
    fault,
    loaded,
};

fn fault(turn: &mut Turn<'_>, ticket: Ticket) {
    pre_process(turn);
    load_stopover(turn, ticket);
    get_freeframe(turn, ticket);
}

fn loaded(turn: &mut Turn<'_>, ticket: Ticket) {
    trans_host_mem(turn, ticket);
    update_mmu(turn, ticket);
    post_process(turn, ticket);
}
