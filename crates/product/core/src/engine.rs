//! The engine. All events enter here.
//!
//! [`Engine::builder`] makes one. Call [`Engine::handle`] for each event, one at a time. When it returns, all commands
//! have been issued. Never call it from within `Machine::issue`. It cannot fail: a refusal by the device comes back as
//! `Event::Failed` and ends, after some tries, in `Command::Halt` for the task that needs the page.

use core::ops::Range;

use crate::backing::Backing;
use crate::block_size::Blocks;
use crate::buffers::Buffers;
use crate::command::{Stage, Work};
use crate::event::{Access, Event, Transfer};
use crate::fault::get_freeframe::{frame_behind_slice, lend};
use crate::fault::handler::Handler;
use crate::fault::held::{move_held, touched};
use crate::fault::in_slot::{leave_slot, map_in_slot, read_in_slot};
use crate::fault::resident;
use crate::flights::{Flight, Flights, Waiting};
use crate::frames::{Frame, Frames};
use crate::ids::{FrameId, PageId, SlotId};
use crate::machine::Machine;
use crate::page_state::{PageState, PageStates};
use crate::policy::Made;
use crate::prefetch::Arrival;
use crate::ram::Ram;
use crate::slots::Slots;
use crate::swap::Swap;
use crate::turn::Turn;

mod accepts;
mod builder;
mod check;
mod failed;

pub use crate::config::{Below, Config, ConfigError};
pub use crate::counts::Counts;
pub use builder::Builder;
pub use failed::TRIES;

/// The engine. Its rooms are described in [`crate::turn`].
pub struct Engine {
    config: Config,
    handler: &'static Handler,
    arrival: Arrival,
    pages: PageStates,
    ram: Ram,
    blocks: Blocks,
    flights: Flights,
    buffers: Buffers,
    backing: Backing,
    counts: Counts,
}

impl Engine {
    /// Begins an engine with these bounds. Home slots only are below the frames, unless [`Builder::below`] says
    /// otherwise.
    pub fn builder(config: Config, policy: Made, handler: &'static Handler) -> Builder {
        Builder { config, policy, handler, below: Below::default(), arrival: Arrival::default() }
    }

    /// Free slots, if the engine has slots.
    pub fn free_slots(&self) -> Option<usize> {
        self.backing.slots.as_ref().map(Slots::free)
    }

    /// The swap area, if the engine has one.
    pub fn swap(&self) -> Option<&Swap> {
        self.backing.swap.as_ref()
    }

    /// The bounds it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What has happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether a prefetch could begin now, as far as buffers go: one buffer is kept for the next fault.
    pub fn has_spare_buffer(&self) -> bool {
        self.flights.has_spare_ticket()
    }

    /// The frames and who lives in them.
    pub fn frames(&self) -> &Frames {
        &self.ram.frames
    }

    /// The frame that holds `page`, if one does.
    pub fn frame_of(&self, page: PageId) -> Option<FrameId> {
        match self.pages.find(page) {
            Some(PageState::Resident(frame)) => Some(frame),
            _ => None,
        }
    }

    /// The block of a page that was never touched, for `Event::Beside` after its fault; empty for other pages.
    pub fn block_around(&self, page: PageId) -> Range<u32> {
        match self.pages.find(page) {
            Some(PageState::Untouched) => self.blocks.around(page),
            _ => 0..0,
        }
    }

    /// Takes one event in and issues the commands that follow from it.
    ///
    /// # Panics
    /// On an event that it does not accept: the machine is broken.
    pub fn handle(&mut self, event: Event, machine: &mut dyn Machine) {
        assert!(self.accepts(&event), "the machine may not send {event:?} now");
        let handler = self.handler;
        let turn = &mut self.turn(machine);
        match event {
            Event::Fault { task, page, access } => {
                return turn.fault(handler, Waiting { task, page, writing: access == Access::Write });
            }
            Event::Loaded { ticket } => (handler.loaded)(turn, ticket),
            Event::Written { page } => turn.written(page),
            Event::Failed { transfer: Transfer::Load(ticket) } => turn.load_failed(ticket),
            Event::Failed { transfer: Transfer::Write(page) } => turn.write_failed(page),
            Event::Failed { transfer: Transfer::Copy { page, to } } => turn.copy_failed(page, to),
            Event::Failed { transfer: Transfer::Erase(block) } => turn.erase_failed(block),
            Event::Slice => return turn.begin_slice(),
            Event::Released { page } => turn.release(page),
            Event::WillNeed { page } => return turn.will_need(handler, page),
            Event::Beside { page } => return turn.beside(page),
            Event::ReadOften { page } => return turn.read_often(handler, page),
            Event::Owned { task, page, backed } => return turn.slots().own(task, page, backed),
            Event::Foreground { task } => return turn.slots().foreground(task),
            Event::Pinned { page } => return turn.pin(page),
            Event::Unpinned { page } => return turn.unpin(page),
            Event::Lend { frames } => return lend(turn, frames as usize),
            Event::Borrow { frames } => return turn.has_frames(|lent| lent - frames as usize),
        }
        turn.admit(handler);
    }

    fn turn<'a>(&'a mut self, machine: &'a mut dyn Machine) -> Turn<'a> {
        let Engine { config, arrival, pages, ram, blocks, flights, buffers, backing, counts, .. } = self;
        let (arrival, work) = (*arrival, Work::default());
        Turn { config, arrival, pages, ram, blocks, flights, buffers, backing, counts, machine, work }
    }
}

/// What the engine does for each event.
impl Turn<'_> {
    fn fault(&mut self, handler: &Handler, fault: Waiting) {
        if self.start(handler, fault) {
            return;
        }
        if let PageState::Loading(ticket) = self.pages.get(fault.page) {
            self.counts.prefetch_waits += u64::from(self.flights.get(ticket).task.is_none());
        }
        self.flights.wait(fault);
    }

    /// Does what can be done for a fault now. Returns false if the fault must wait for a transfer or for a ticket.
    fn start(&mut self, handler: &Handler, fault: Waiting) -> bool {
        let Waiting { task, page, writing } = fault;
        let state = self.pages.get(page);
        match state {
            PageState::Resident(frame) => resident(self, task, frame, writing),
            PageState::Held(buffer) => return touched(self, task, (page, buffer), writing),
            PageState::InSlot(slot) if !writing => read_in_slot(self, task, page, slot),
            PageState::Loading(_) | PageState::Writing { .. } => return false,
            PageState::Lost => self.halt(task, page),
            PageState::Absent | PageState::Untouched | PageState::InSlot(_) => {
                if let Some(slot) = self.direct(page).filter(|_| !writing && state != PageState::Untouched) {
                    read_in_slot(self, task, page, slot);
                    return true;
                }
                let Some(ticket) = self.flights.take_ticket() else { return false };
                if let PageState::InSlot(_) = state {
                    self.counts.write_faults += 1;
                    leave_slot(self, page);
                } else {
                    self.counts.true_faults += 1;
                    if state == PageState::Untouched {
                        self.counts.cold_faults += 1;
                        self.blocks.fault(page, self.pages);
                    }
                }
                handler.begin(self, ticket, Flight::new(Some(task), page, writing));
            }
        }
        true
    }

    /// The slot in which the page can be read without a copy.
    fn direct(&self, page: PageId) -> Option<SlotId> {
        self.backing.in_area(page).filter(|_| self.config.caps.direct_read)
    }

    /// Lets waiting faults continue, the oldest first.
    fn admit(&mut self, handler: &Handler) {
        let mut place = 0;
        while let Some(fault) = self.flights.waiting(place) {
            if self.start(handler, fault) {
                self.flights.admit(place);
            } else {
                place += 1;
            }
        }
    }

    fn begin_slice(&mut self) {
        let (policy, mut residents) = self.policy_and_residents();
        policy.begin_slice(&mut residents);
    }

    fn written(&mut self, page: PageId) {
        let PageState::Writing { released, .. } = self.pages.get(page) else { unreachable!("not accepted") };
        self.pages.set(page, if released { PageState::Untouched } else { PageState::Absent });
        if let Some(home) = self.backing.home_area(page).filter(|_| !released) {
            map_in_slot(self, page, home, false);
        }
    }

    /// Only an engine with slots takes events about tasks and their pages.
    fn slots(&mut self) -> &mut Slots {
        self.backing.slots.as_mut().expect("accepted")
    }

    /// Pins a page. A pinned page must stay in its place, so a page held in a buffer moves to a frame first.
    fn pin(&mut self, page: PageId) {
        let frame = match self.pages.get(page) {
            PageState::Held(buffer) => move_held(self, (page, buffer), false),
            PageState::Resident(frame) => frame,
            _ => unreachable!("not accepted"),
        };
        self.ram.pin(frame);
    }

    fn unpin(&mut self, page: PageId) {
        let PageState::Resident(frame) = self.pages.get(page) else { unreachable!("not accepted") };
        if self.ram.frames.unpin(frame) {
            let (policy, mut residents) = self.policy_and_residents();
            policy.insert(frame, &mut residents);
            self.mark(Stage::UpdateMMU);
        }
    }

    /// The page is read in its slot so often that a copy pays. The page goes to a frame like any swapped page; no
    /// task waits. If there is no ticket, the page stays in its slot, which is harmless.
    fn read_often(&mut self, handler: &Handler, page: PageId) {
        let Some(ticket) = self.flights.take_ticket() else { return };
        self.counts.read_often += 1;
        leave_slot(self, page);
        handler.begin(self, ticket, Flight::new(None, page, false));
    }

    /// Prefetches a page, or makes it recent if it is in RAM. No task waits.
    fn will_need(&mut self, handler: &Handler, page: PageId) {
        match self.pages.get(page) {
            PageState::Absent | PageState::Untouched => {
                let begun = self.prefetch(handler, page);
                self.counts.prefetches_dropped += u64::from(!begun);
            }
            PageState::Resident(frame) => self.renew(frame),
            _ => {}
        }
    }

    /// Returns false if no ticket can be spared, or if no frame can be found without evicting a page of the running
    /// slice.
    fn prefetch(&mut self, handler: &Handler, page: PageId) -> bool {
        let Some(ticket) = self.flights.take_spare_ticket() else { return false };
        let mut flight = Flight::new(None, page, false);
        if self.arrival.is_behind_slice() {
            flight.frame = frame_behind_slice(self);
            if flight.frame.is_none() {
                self.flights.give_back(ticket);
                return false;
            }
        }
        self.counts.prefetches += 1;
        handler.begin(self, ticket, flight);
        true
    }

    /// A prefetch hint for a page in RAM makes it recent (SAP section 3.4: to make pages present moves them in the
    /// LRU list).
    fn renew(&mut self, frame: FrameId) {
        let Frame { pins, beside, .. } = *self.ram.frames.get(frame);
        if self.arrival.is_behind_slice() && pins == 0 && !beside {
            let (policy, mut residents) = self.policy_and_residents();
            let renewed = policy.renew_behind_slice(frame, &mut residents);
            self.counts.prefetches_present += u64::from(renewed);
        }
    }
}
