//! Reserve: the fault takes a free frame of a reserve that stands ready, and the search fills the reserve again once
//! the task goes on. SWL's paper names this scheme as the rival: it shortens GetFreeframe, and takes frames from pages.

use super::{get_freeframe, into_frame, load_stopover, pre_process, Handler};
use crate::fault::get_freeframe::keep_free;
use crate::fault::turn::Turn;
use crate::frames::Frame;
use crate::ids::{FrameId, Ticket};

/// Frames that stand ready; at most an eighth of all.
const FRAMES: usize = 16;

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "reserve",
    summary: "take a free frame of a reserve, load the page, fill the reserve when the task goes on",
    source: "Babaoglu and Joy (SOSP 1981), as SWL (LCTES 2007) section 3.2 tells it; 16 frames are ours",
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
    let flight = turn.flights.get(ticket);
    let waited = flight.task.and(flight.frame);
    into_frame(turn, ticket);
    // A task that waited for its page has not used it yet: the search does not see the page.
    let seen = |frame: &FrameId| {
        let Frame { pins, first_touch_neighbour, .. } = *turn.ram.frames.get(*frame);
        pins == 0 && !first_touch_neighbour
    };
    let hidden = waited.filter(seen);
    hidden.iter().for_each(|frame| turn.ram.pin(*frame));
    keep_free(turn, FRAMES.min(turn.ram.frames.len() / 8));
    if let Some(frame) = hidden {
        turn.ram.frames.unpin(frame);
        let (policy, mut residents) = turn.policy_and_residents();
        policy.insert(frame, &mut residents);
    }
}
