//! Transfers in flight: one load for each ticket, and the faults that wait for a load or for a ticket.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::ids::{BufferId, FrameId, PageId, TaskId, Ticket};

/// A page on its way to RAM.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The task that waits for the page; none for a prefetch.
    pub(crate) task: Option<TaskId>,
    pub(crate) page: PageId,
    pub(crate) writing: bool,
    /// The buffer that it is loaded into, from the load to the move.
    pub(crate) buffer: Option<BufferId>,
    /// The frame reserved for it, once one has been found.
    pub(crate) frame: Option<FrameId>,
    pub(crate) tries: u8,
}

impl Flight {
    pub(crate) const fn new(task: Option<TaskId>, page: PageId, writing: bool) -> Flight {
        Flight { task, page, writing, buffer: None, frame: None, tries: 1 }
    }
}

/// A fault for which nothing can be done yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) task: TaskId,
    pub(crate) page: PageId,
    pub(crate) writing: bool,
}

pub(crate) struct Flights {
    /// By ticket.
    flights: Box<[Option<Flight>]>,
    tickets: Vec<Ticket>,
    /// Oldest first.
    waiting: Vec<Waiting>,
}

impl Flights {
    /// Room for `flights` loads at a time and for `tasks` tasks.
    pub(crate) fn new(flights: usize, tasks: usize) -> Flights {
        Flights {
            flights: vec![None; flights].into_boxed_slice(),
            tickets: (0..flights).rev().map(Ticket::from).collect(),
            waiting: Vec::with_capacity(tasks),
        }
    }

    /// Loads that can be in flight at a time.
    pub(crate) fn most(&self) -> usize {
        self.flights.len()
    }

    pub(crate) fn take_ticket(&mut self) -> Option<Ticket> {
        self.tickets.pop()
    }

    /// A ticket that no fault will miss. The last free ticket is kept for faults, unless there is only one in all.
    pub(crate) fn take_spare_ticket(&mut self) -> Option<Ticket> {
        match self.has_spare_ticket() {
            true => self.tickets.pop(),
            false => None,
        }
    }

    pub(crate) fn has_spare_ticket(&self) -> bool {
        self.tickets.len() > usize::from(self.flights.len() > 1)
    }

    /// Returns a ticket that was taken and not used.
    pub(crate) fn give_back(&mut self, ticket: Ticket) {
        self.tickets.push(ticket);
    }

    pub(crate) fn begin(&mut self, ticket: Ticket, flight: Flight) {
        self.flights[ticket.index()] = Some(flight);
    }

    /// Ends the flight; its ticket is free again.
    pub(crate) fn end(&mut self, ticket: Ticket) {
        self.flights[ticket.index()] = None;
        self.tickets.push(ticket);
    }

    pub(crate) fn find(&self, ticket: Ticket) -> Option<&Flight> {
        self.flights.get(ticket.index()).and_then(Option::as_ref)
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Flight {
        self.flights[ticket.index()].expect("the ticket is in flight")
    }

    pub(crate) fn get_mut(&mut self, ticket: Ticket) -> &mut Flight {
        self.flights[ticket.index()].as_mut().expect("the ticket is in flight")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flight> + Clone {
        self.flights.iter().flatten()
    }

    /// Whether the device is loading a page.
    pub(crate) fn are_loading(&self) -> bool {
        self.iter().any(|flight| flight.buffer.is_some())
    }

    /// The fault waits, behind all others.
    pub(crate) fn wait(&mut self, fault: Waiting) {
        self.waiting.push(fault);
    }

    /// The fault that waits in this place of the queue.
    pub(crate) fn waiting(&self, place: usize) -> Option<Waiting> {
        self.waiting.get(place).copied()
    }

    /// The fault at this place of the queue no longer waits.
    pub(crate) fn admit(&mut self, place: usize) {
        self.waiting.remove(place);
    }

    /// Whether a fault or flight belongs to the task, or concerns one of these pages.
    pub(crate) fn concern(&self, task: TaskId, pages: impl Fn(PageId) -> bool) -> bool {
        self.iter().any(|flight| flight.task == Some(task) || pages(flight.page))
            || self.waiting.iter().any(|fault| fault.task == task || pages(fault.page))
    }

    /// Checks that each ticket is free or in flight. Returns the number of flights and of waiting faults.
    pub(crate) fn check(&self) -> (usize, usize) {
        let flying = self.iter().count();
        assert_eq!(self.tickets.len() + flying, self.flights.len(), "a ticket has leaked");
        (flying, self.waiting.len())
    }
}
