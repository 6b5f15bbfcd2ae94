//! Handlers: the order of the stages, and nothing else.
//!
//! To add one: copy `handler/parallel.rs` and add its `HANDLER` to [`ALL`].

use core::fmt;

use super::get_freeframe::get_freeframe;
use super::load_stopover::load_stopover;
use super::post_process::post_process;
use super::pre_process::pre_process;
use super::trans_host_mem::trans_host_mem;
use super::update_mmu::update_mmu;
use crate::fault::flights::Flight;
use crate::fault::turn::Turn;
use crate::ids::Ticket;
use crate::page_state::PageState;

pub mod delayed_dual_buffering;
pub mod parallel;
pub mod reserve;
pub mod sequential;

/// Every handler, in the order in which help shows them.
pub const ALL: &[&Handler] = &[
    &sequential::HANDLER,
    &parallel::HANDLER,
    &reserve::HANDLER,
    &delayed_dual_buffering::HANDLER,
    &delayed_dual_buffering::SEARCH_FIRST,
];

/// An order of the stages.
pub struct Handler {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// Whether it maps pages in the device's buffers (`Place::Buffer`). The processor must then be able to read and
    /// execute there.
    pub needs_xip: bool,
    /// Called when the task has faulted and waits.
    pub fault: fn(&mut Turn<'_>, Ticket),
    /// Called when the device has loaded the page.
    pub loaded: fn(&mut Turn<'_>, Ticket),
}

impl Handler {
    /// Begins to bring a page to RAM.
    pub(crate) fn begin(&self, turn: &mut Turn<'_>, ticket: Ticket, flight: Flight) {
        turn.pages.set(flight.page, PageState::Loading(ticket));
        turn.flights.begin(ticket, flight);
        (self.fault)(turn, ticket);
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The loaded page goes to its frame, and the task that waits for it goes on.
fn into_frame(turn: &mut Turn<'_>, ticket: Ticket) {
    trans_host_mem(turn, ticket);
    update_mmu(turn, ticket);
    post_process(turn, ticket);
}

/// The handler of this name.
pub fn find(name: &str) -> Option<&'static Handler> {
    ALL.iter().copied().find(|handler| handler.name == name)
}
