//! Sequential: the search finds a frame first, then the device starts. A disk that needs the destination with the
//! request works this way.

use super::{get_freeframe, into_frame, load_stopover, pre_process, Handler};
use crate::fault::turn::Turn;
use crate::ids::Ticket;

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "sequential",
    summary: "find a frame, then load the page",
    source: "SWL (LCTES 2007) figure 4 and equation 1",
    needs_xip: false,
    fault,
    loaded: into_frame,
};

fn fault(turn: &mut Turn<'_>, ticket: Ticket) {
    pre_process(turn);
    get_freeframe(turn, ticket);
    load_stopover(turn, ticket);
}
