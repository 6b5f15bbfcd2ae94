//! Delayed dual buffering: the task runs as soon as its page is in a buffer, and reads it there. The page moves to main memory only when
//! the next fault comes, beside that fault's load into another buffer.
//!
//! ```text
//! sequential   | load A | move A | A in its frame ...    | load B | move B | B in its frame ...
//! delayed      | load A | A in its buffer ...    | load B         | B in its buffer ...
//!                                                | move A |         A in its frame ...
//! ```
//!
//! So a page has no frame while it is held, and none is sought for it until it moves: the buffers add to the RAM. What decides:
//! - A held page is mapped read-only. A task that wants to write gets it in a frame: at once if it faults with the write, by a move that
//!   nothing hides if the page is held.
//! - One buffer is kept free, so that a load can start with the fault. With more than two buffers, all others hold pages and the oldest
//!   moves; with one buffer nothing can be held, and this is the plain handler.
//! - Loads of several tasks can take every buffer. The next fault then moves the oldest held page before its load can start.
//!
//! When not to use it: where a page is read so often before the next fault that the slower buffer costs more than the move.

use super::Handler;
use crate::fault::held::{hold, move_held, move_into};
use crate::fault::{
    get_freeframe, load_stopover, post_process, pre_process, trans_host_mem, update_mmu, Fault, InFlight,
};

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "delayed-dual-buffering",
    summary: "run from the buffer, move the page beside the next load",
    source: "DDB (2007) section II.3 and figure 4; search while load as in SWL (LCTES 2007)",
    needs_xip: true,
    fault,
    loaded,
};

/// The same without search while load: the frame for the page that moves is found before the device is asked.
pub const SEARCH_FIRST: Handler = Handler {
    name: "delayed-dual-buffering-search-first",
    summary: "the same, but find the frame of the page that moves before the load",
    source: "DDB (2007) section II.3 with the order of SWL's sequential handler (equation 1)",
    needs_xip: true,
    fault: fault_search_first,
    loaded,
};

fn fault(fault: &mut Fault<'_>) {
    pre_process(fault);
    free_a_buffer(fault);
    load_stopover(fault);
    if !holds(fault) {
        get_freeframe(fault);
    } else if fault.engine.buffers.is_empty() {
        move_oldest(fault);
    }
}

fn fault_search_first(fault: &mut Fault<'_>) {
    pre_process(fault);
    free_a_buffer(fault);
    if !holds(fault) {
        get_freeframe(fault);
        return load_stopover(fault);
    }
    let frame = takes_last_buffer(fault).then(|| fault.find_frame());
    load_stopover(fault);
    if let Some(frame) = frame {
        let oldest = fault.engine.held[0];
        move_into(fault.engine, fault.machine, oldest, frame, false);
    }
}

fn loaded(fault: &mut Fault<'_>) {
    if holds(fault) {
        hold(fault);
    } else {
        trans_host_mem(fault);
        update_mmu(fault);
    }
    post_process(fault);
}

/// Whether the page stays in its buffer: there must be another one for the next load, nobody is about to write, and it has no frame yet (a
/// page that comes behind the slice has one, and nobody reads it now).
fn holds(fault: &mut Fault<'_>) -> bool {
    let InFlight { writing, frame, .. } = *fault.in_flight();
    fault.engine.config.caps.buffers > 1 && !writing && frame.is_none()
}

/// Whether this load leaves no buffer free although one can be freed.
fn takes_last_buffer(fault: &Fault<'_>) -> bool {
    fault.engine.buffers.len() == 1 && !fault.engine.held.is_empty()
}

/// Pages loaded for several tasks may hold every buffer that no load is using.
fn free_a_buffer(fault: &mut Fault<'_>) {
    if fault.engine.buffers.is_empty() {
        move_oldest(fault);
    }
}

fn move_oldest(fault: &mut Fault<'_>) {
    if let Some(oldest) = fault.engine.held.first().copied() {
        move_held(fault.engine, fault.machine, oldest, false);
    }
}
