//! Delayed dual buffering: the task runs as soon as its page is in a buffer, and reads the page there. The page moves
//! to main memory only at the next fault, while the device loads that fault's page into another buffer.
//!
//! ```text
//! sequential   | load A | move A | A in its frame ...    | load B | move B | B in its frame ...
//! delayed      | load A | A in its buffer ...    | load B         | B in its buffer ...
//!                                                | move A |         A in its frame ...
//! ```
//!
//! So a held page has no frame until it moves, and the buffers add to the RAM. The rules:
//! - A held page is mapped read-only. A page to be written must be in a frame. If the task faults with a write, the
//!   page goes to a frame at once. If a held page is written later, it moves then, and no load hides that move.
//! - One buffer is kept free, so that a load can start with the fault. With more than two buffers, all others hold
//!   pages, and the oldest held page moves. With one buffer no page can be held, and this is the plain handler.
//! - Loads of several tasks can take every buffer. The next fault then moves the oldest held page before its load can
//!   start.
//!
//! When not to use it: if a page is read so often before the next fault that the slower buffer costs more than the
//! move.

use super::{get_freeframe, into_frame, load_stopover, post_process, pre_process, Handler};
use crate::fault::flights::Flight;
use crate::fault::get_freeframe::find_frame;
use crate::fault::held::{hold, move_held, move_into};
use crate::fault::turn::Turn;
use crate::ids::Ticket;

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "delayed-dual-buffering",
    summary: "run from the buffer, move the page beside the next load",
    source: "DDB (2007) section II.3 and figure 4; search while load as in SWL (LCTES 2007)",
    needs_xip: true,
    fault,
    loaded,
};

/// The same without search while load: the frame for the page that moves is found before the load starts.
pub const SEARCH_FIRST: Handler = Handler {
    name: "delayed-dual-buffering-search-first",
    summary: "the same, but find the frame of the page that moves before the load",
    source: "DDB (2007) section II.3 with the order of SWL's sequential handler (equation 1)",
    needs_xip: true,
    fault: fault_search_first,
    loaded,
};

fn fault(turn: &mut Turn<'_>, ticket: Ticket) {
    pre_process(turn);
    free_a_buffer(turn);
    load_stopover(turn, ticket);
    if holds(turn, ticket) {
        free_a_buffer(turn);
    } else {
        get_freeframe(turn, ticket);
    }
}

fn fault_search_first(turn: &mut Turn<'_>, ticket: Ticket) {
    pre_process(turn);
    free_a_buffer(turn);
    if !holds(turn, ticket) {
        get_freeframe(turn, ticket);
        return load_stopover(turn, ticket);
    }
    // This load takes the last free buffer, and another one can be freed.
    let oldest = turn.buffers.oldest().filter(|_| turn.buffers.free() == 1);
    let moves = oldest.map(|oldest| (oldest, find_frame(turn)));
    load_stopover(turn, ticket);
    if let Some((oldest, frame)) = moves {
        move_into(turn, oldest, frame, false);
    }
}

fn loaded(turn: &mut Turn<'_>, ticket: Ticket) {
    if !holds(turn, ticket) {
        return into_frame(turn, ticket);
    }
    hold(turn, ticket);
    post_process(turn, ticket);
}

/// Whether the page stays in its buffer. Another buffer must be left for the next load, the task must not be about to
/// write, and the page must not have a frame yet. (A page prefetched behind the slice has a frame, and no task reads
/// it now.)
fn holds(turn: &Turn<'_>, ticket: Ticket) -> bool {
    let Flight { writing, frame, .. } = turn.flights.get(ticket);
    turn.buffers.can_hold() && !writing && frame.is_none()
}

/// Moves the oldest held page if no buffer is free. Pages loaded for several tasks may hold every buffer that no load
/// is using.
fn free_a_buffer(turn: &mut Turn<'_>) {
    if let Some(oldest) = turn.buffers.oldest().filter(|_| turn.buffers.free() == 0) {
        move_held(turn, oldest, false);
    }
}
