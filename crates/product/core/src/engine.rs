//! The engine. All events enter here.
//!
//! [`Engine::builder`] makes one. Call [`Engine::handle`] for each event, one at a time. When it returns, all commands
//! have been issued. Never call it from within `Machine::issue`. It cannot fail: a refusal by the device comes back as
//! `Event::Failed` and ends, after some tries, in `Command::Halt` for the task that needs the page.

use core::ops::Range;

use crate::command::{Stage, Work};
use crate::event::{Access, Event, Transfer};
use crate::fault::block_size::FirstTouchBlocks;
use crate::fault::buffers::Buffers;
use crate::fault::first_touch::first_touch_neighbour;
use crate::fault::flights::{Flight, Flights, Waiting};
use crate::fault::get_freeframe::{frame_behind_slice, lend};
use crate::fault::handler::Handler;
use crate::fault::held::{move_held, touched};
use crate::fault::in_slot::{leave_slot, map_in_slot, read_in_slot};
use crate::fault::resident;
use crate::fault::turn::Turn;
use crate::frames::{Frame, Frames};
use crate::ids::{FrameId, PageId, SlotId};
use crate::machine::Machine;
use crate::page_state::{PageState, PageStates};
use crate::policy::Made;
use crate::prefetch::Arrival;
use crate::ram::Ram;
use crate::swap::backing::Backing;
use crate::swap::slots::Slots;
use crate::swap::Swap;

mod accepts;
mod builder;
mod check;
mod failed;

pub use crate::config::{Below, Config, ConfigError};
pub use crate::counts::Counts;
pub use builder::Builder;
pub use failed::TRIES;

use failed::{copy_failed, erase_failed, load_failed, write_failed};

/// The engine. Its rooms are described in [`crate::fault::turn`].
pub struct Engine {
    config: Config,
    handler: &'static Handler,
    arrival: Arrival,
    pages: PageStates,
    ram: Ram,
    blocks: FirstTouchBlocks,
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

    /// The block of a page that was never touched, for `Event::FirstTouchNeighbour` after its fault; empty for other
    /// pages.
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
                return fault(turn, handler, Waiting { task, page, writing: access == Access::Write });
            }
            Event::Loaded { ticket } => (handler.loaded)(turn, ticket),
            Event::Written { page } => written(turn, page),
            Event::Failed { transfer: Transfer::Load(ticket) } => load_failed(turn, ticket),
            Event::Failed { transfer: Transfer::Write(page) } => write_failed(turn, page),
            Event::Failed { transfer: Transfer::Copy { page, to } } => copy_failed(turn, page, to),
            Event::Failed { transfer: Transfer::Erase(block) } => erase_failed(turn, block),
            Event::Slice => return begin_slice(turn),
            Event::Released { page } => turn.release(page),
            Event::WillNeed { page } => return will_need(turn, handler, page),
            Event::FirstTouchNeighbour { page } => return first_touch_neighbour(turn, page),
            Event::ReadOften { page } => return read_often(turn, handler, page),
            Event::Owned { task, page, backed } => return turn.backing.own(task, page, backed),
            Event::Foreground { task } => return slots(turn).foreground(task),
            Event::Pinned { page } => return pin(turn, page),
            Event::Unpinned { page } => return unpin(turn, page),
            Event::Lend { frames } => return lend(turn, frames as usize),
            Event::Borrow { frames } => return turn.has_frames(|lent| lent - frames as usize),
        }
        admit(turn, handler);
    }

    fn turn<'a>(&'a mut self, machine: &'a mut dyn Machine) -> Turn<'a> {
        let Engine { config, arrival, pages, ram, blocks, flights, buffers, backing, counts, .. } = self;
        let (arrival, work) = (*arrival, Work::default());
        Turn { config, arrival, pages, ram, blocks, flights, buffers, backing, counts, machine, work }
    }
}

/// Serves a fault now, or lets it wait.
fn fault(turn: &mut Turn<'_>, handler: &Handler, fault: Waiting) {
    if start(turn, handler, fault) {
        return;
    }
    if let PageState::Loading(ticket) = turn.pages.get(fault.page) {
        turn.counts.prefetch_waits += u64::from(turn.flights.get(ticket).task.is_none());
    }
    turn.flights.wait(fault);
}

/// Does what can be done for a fault now. Returns false if the fault must wait for a transfer or for a ticket.
fn start(turn: &mut Turn<'_>, handler: &Handler, fault: Waiting) -> bool {
    let Waiting { task, page, writing } = fault;
    let state = turn.pages.get(page);
    match state {
        PageState::Resident(frame) => resident(turn, task, frame, writing),
        PageState::Held(buffer) => return touched(turn, task, (page, buffer), writing),
        PageState::InSlot(slot) if !writing => read_in_slot(turn, task, page, slot),
        PageState::Loading(_) | PageState::Writing { .. } => return false,
        PageState::Lost => turn.halt(task, page),
        PageState::Absent | PageState::Untouched | PageState::InSlot(_) => {
            if let Some(slot) = direct(turn, page).filter(|_| !writing && state != PageState::Untouched) {
                read_in_slot(turn, task, page, slot);
                return true;
            }
            let Some(ticket) = turn.flights.take_ticket() else { return false };
            if let PageState::InSlot(_) = state {
                turn.counts.write_faults += 1;
                leave_slot(turn, page);
            } else {
                turn.counts.true_faults += 1;
                if state == PageState::Untouched {
                    turn.counts.cold_faults += 1;
                    turn.blocks.fault(page, turn.pages);
                }
            }
            handler.begin(turn, ticket, Flight::new(Some(task), page, writing));
        }
    }
    true
}

/// The slot in which the page can be read without a copy.
fn direct(turn: &Turn<'_>, page: PageId) -> Option<SlotId> {
    turn.backing.in_area(page).filter(|_| turn.config.caps.direct_read)
}

/// Lets waiting faults continue, the oldest first.
fn admit(turn: &mut Turn<'_>, handler: &Handler) {
    let mut place = 0;
    while let Some(fault) = turn.flights.waiting(place) {
        if start(turn, handler, fault) {
            turn.flights.admit(place);
        } else {
            place += 1;
        }
    }
}

fn begin_slice(turn: &mut Turn<'_>) {
    let (policy, mut residents) = turn.policy_and_residents();
    policy.begin_slice(&mut residents);
}

fn written(turn: &mut Turn<'_>, page: PageId) {
    let PageState::Writing { released, .. } = turn.pages.get(page) else { unreachable!("not accepted") };
    turn.pages.set(page, if released { PageState::Untouched } else { PageState::Absent });
    if let Some(home) = turn.backing.home_area(page).filter(|_| !released) {
        map_in_slot(turn, page, home, false);
    }
}

/// Only an engine with slots takes events about tasks in the foreground.
fn slots<'t>(turn: &'t mut Turn<'_>) -> &'t mut Slots {
    turn.backing.slots.as_mut().expect("accepted")
}

/// Pins a page. A pinned page must stay in its place, so a page held in a buffer moves to a frame first.
fn pin(turn: &mut Turn<'_>, page: PageId) {
    let frame = match turn.pages.get(page) {
        PageState::Held(buffer) => move_held(turn, (page, buffer), false),
        PageState::Resident(frame) => frame,
        _ => unreachable!("not accepted"),
    };
    turn.ram.pin(frame);
}

fn unpin(turn: &mut Turn<'_>, page: PageId) {
    let PageState::Resident(frame) = turn.pages.get(page) else { unreachable!("not accepted") };
    if turn.ram.frames.unpin(frame) {
        let (policy, mut residents) = turn.policy_and_residents();
        policy.insert(frame, &mut residents);
        turn.mark(Stage::UpdateMMU);
    }
}

/// The page is read in its slot so often that a copy pays. The page goes to a frame like any swapped page; no
/// task waits. If there is no ticket, the page stays in its slot, which is harmless.
fn read_often(turn: &mut Turn<'_>, handler: &Handler, page: PageId) {
    let Some(ticket) = turn.flights.take_ticket() else { return };
    turn.counts.read_often += 1;
    leave_slot(turn, page);
    handler.begin(turn, ticket, Flight::new(None, page, false));
}

/// Prefetches a page, or makes it recent if it is in RAM. No task waits.
fn will_need(turn: &mut Turn<'_>, handler: &Handler, page: PageId) {
    match turn.pages.get(page) {
        PageState::Absent | PageState::Untouched => {
            let begun = prefetch(turn, handler, page);
            turn.counts.prefetches_dropped += u64::from(!begun);
        }
        PageState::Resident(frame) => renew(turn, frame),
        _ => {}
    }
}

/// Returns false if no ticket can be spared, or if no frame can be found without evicting a page of the running
/// slice.
fn prefetch(turn: &mut Turn<'_>, handler: &Handler, page: PageId) -> bool {
    let Some(ticket) = turn.flights.take_spare_ticket() else { return false };
    let mut flight = Flight::new(None, page, false);
    if turn.arrival.is_behind_slice() {
        flight.frame = frame_behind_slice(turn);
        if flight.frame.is_none() {
            turn.flights.give_back(ticket);
            return false;
        }
    }
    turn.counts.prefetches += 1;
    handler.begin(turn, ticket, flight);
    true
}

/// A prefetch hint for a page in RAM makes it recent (SAP section 3.4: to make pages present moves them in the
/// LRU list).
fn renew(turn: &mut Turn<'_>, frame: FrameId) {
    let Frame { pins, first_touch_neighbour, .. } = *turn.ram.frames.get(frame);
    if turn.arrival.is_behind_slice() && pins == 0 && !first_touch_neighbour {
        let (policy, mut residents) = turn.policy_and_residents();
        let renewed = policy.renew_behind_slice(frame, &mut residents);
        turn.counts.prefetches_present += u64::from(renewed);
    }
}
