//! Parallel (search while load): the device starts first, and the search for a frame runs while the device works.
//! This order of two lines is the paper's idea.

use super::{get_freeframe, into_frame, load_stopover, pre_process, Handler};
use crate::fault::turn::Turn;
use crate::ids::Ticket;

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "parallel",
    summary: "load the page, find a frame while the device works",
    source: "SWL (LCTES 2007) figure 5 and equation 2",
    needs_xip: false,
    fault,
    loaded: into_frame,
};

fn fault(turn: &mut Turn<'_>, ticket: Ticket) {
    pre_process(turn);
    load_stopover(turn, ticket);
    get_freeframe(turn, ticket);
}
