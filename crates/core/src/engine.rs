//! The engine: page states, and the one door through which events come in.
//!
//! Call [`Engine::handle`] for each event, one at a time; commands have been issued when it returns. Never call it from within
//! `Machine::issue`. It cannot fail: what the device refuses comes back as `Event::Failed` and ends, after some tries, in
//! `Command::Halt` for the task that needs the page.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::backing::Backing;
use crate::command::{Command, Stage, Work};
use crate::event::{Access, Event, Transfer};
use crate::fault::handler::Handler;
use crate::fault::held::{move_held, touched, Held};
use crate::fault::in_slot::{copy_often_read, leave_slot, read_in_slot};
use crate::fault::{frame_behind_slice, resident, Fault, InFlight};
use crate::frames::{Frame, Frames, Residents};
use crate::ids::{BufferId, FrameId, PageId, SlotId, TaskId, Ticket};
use crate::machine::Machine;
use crate::page_state::{PageState, PageStates, NUMBERS};
use crate::policy::Policy;
use crate::prefetch::Arrival;
use crate::slots::{Slots, SlotsConfig};
use crate::swap::Swap;

mod check;
mod config;
mod counts;

pub use config::{Config, ConfigError};
pub use counts::Counts;

/// How often a transfer is tried before the page is given up.
pub const TRIES: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    task: TaskId,
    page: PageId,
    writing: bool,
}

/// The engine.
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) pages: PageStates,
    pub(crate) frames: Frames,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) backing: Backing,
    handler: &'static Handler,
    pub(crate) arrival: Arrival,
    pub(crate) in_flight: Box<[Option<InFlight>]>,
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) buffers: Vec<BufferId>,
    /// Pages that stay in their buffers, oldest first.
    pub(crate) held: Vec<Held>,
    waiting: Vec<Waiting>,
    pub(crate) counts: Counts,
}

impl PageId {
    /// The slot in which the page lies as long as no swap area has given it another: the one of its own number.
    pub const fn home(self) -> SlotId {
        SlotId(self.0)
    }
}

impl Engine {
    /// An engine with nothing in RAM. All memory it will ever use is allocated here.
    ///
    /// # Errors
    /// A bound is zero or does not fit into 29 bits.
    pub fn new(config: Config, policy: Box<dyn Policy>, handler: &'static Handler) -> Result<Engine, ConfigError> {
        let buffers = config.caps.buffers as usize;
        let Config { frames, pages, tasks, evict_batch, .. } = config;
        for (field, value) in
            [("frames", frames), ("pages", pages), ("tasks", tasks), ("evict_batch", evict_batch), ("buffers", buffers)]
        {
            match value {
                0 => return Err(ConfigError::Zero { field }),
                n if n >= NUMBERS => return Err(ConfigError::TooLarge { field, value }),
                _ => {}
            }
        }
        // With a frame for each fault in flight a search cannot come back empty-handed.
        let loads = buffers.min(config.frames);
        Ok(Engine {
            pages: PageStates::new(config.pages),
            frames: Frames::new(config.frames),
            policy,
            backing: Backing::new(config.pages),
            handler,
            arrival: Arrival::default(),
            in_flight: vec![None; loads].into_boxed_slice(),
            tickets: (0..loads).rev().map(Ticket::from).collect(),
            buffers: (0..buffers).rev().map(BufferId::from).collect(),
            held: Vec::with_capacity(if handler.needs_xip { buffers } else { 0 }),
            waiting: Vec::with_capacity(config.tasks),
            counts: Counts::default(),
            config,
        })
    }

    /// Gives it a swap area, before the first event: pages that are written out get a slot there, numbered behind the home slots.
    ///
    /// # Panics
    /// If the area cannot name every page, or the machine places pages itself.
    pub fn set_swap(&mut self, swap: Swap) {
        assert!(!self.config.caps.places, "a swap area on a machine that places pages itself");
        assert!(swap.pages() >= self.config.pages, "a swap area for fewer pages than there are");
        self.backing.swap = Some(swap);
    }

    /// Gives it a swap area whose slots are rewritten in place, before the first event; they too are numbered behind the home slots.
    ///
    /// # Panics
    /// If it has a swap area, slots do not fit into 29 bits, or the machine places pages itself.
    pub fn set_slots(&mut self, config: SlotsConfig) {
        assert!(!self.config.caps.places, "a swap area on a machine that places pages itself");
        assert!(self.backing.swap.is_none() && config.slots < NUMBERS, "one swap area of fewer than 2^29 slots");
        self.backing.slots = Some(Slots::new(config, self.config.pages, self.config.tasks));
    }

    /// Slots that nobody holds, if it was given some.
    pub fn free_slots(&self) -> Option<usize> {
        self.backing.slots.as_ref().map(Slots::free)
    }

    /// The swap area, if it was given one.
    pub fn swap(&self) -> Option<&Swap> {
        self.backing.swap.as_ref()
    }

    /// How pages enter RAM from now on for which nobody stands still.
    pub fn set_arrival(&mut self, arrival: Arrival) {
        self.arrival = arrival;
    }

    fn begin_slice(&mut self, machine: &mut dyn Machine) {
        let (policy, mut residents) = (
            &mut self.policy,
            Residents { frames: &mut self.frames, machine, caps: self.config.caps, work: &mut Work::default() },
        );
        policy.begin_slice(&mut residents);
    }

    /// The bounds it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What has happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether a load is under way.
    pub fn is_loading(&self) -> bool {
        self.in_flight.iter().any(Option::is_some)
    }

    /// The frames and who lives in them.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The frame that holds `page`, if one does.
    pub fn frame_of(&self, page: PageId) -> Option<FrameId> {
        match self.pages.get(page) {
            PageState::Resident(frame) => Some(frame),
            _ => None,
        }
    }

    /// Whether a machine may send this event now. It may not: an end of something that was not begun, a second fault of a task that
    /// stands still, a page or task beyond the bounds, the release of a page in flight.
    pub fn accepts(&self, event: &Event) -> bool {
        let page_state = |page: PageId| self.pages.find(page);
        let in_flight = |ticket: Ticket| self.in_flight.get(ticket.index()).copied().flatten();
        match *event {
            Event::Fault { task, page, .. } => {
                task.index() < self.config.tasks
                    && page_state(page).is_some()
                    && self.waiting.iter().all(|w| w.task != task)
                    && self.in_flight.iter().flatten().all(|f| f.task != Some(task))
            }
            Event::Loaded { ticket } | Event::Failed { transfer: Transfer::Load(ticket) } => {
                in_flight(ticket).is_some_and(|flight| flight.buffer.is_some())
            }
            Event::Written { page } | Event::Failed { transfer: Transfer::Write(page) } => {
                matches!(page_state(page), Some(PageState::Writing { .. }))
            }
            Event::Failed { transfer: Transfer::Copy { page, to } } => {
                page_state(page).is_some() && self.backing.takes_copies(page, to)
            }
            Event::Failed { transfer: Transfer::Erase(block) } => {
                self.backing.swap.as_ref().is_some_and(|swap| block.index() < swap.block_count())
            }
            Event::Slice => true,
            Event::Released { page } => !matches!(page_state(page), None | Some(PageState::Loading(_))),
            Event::WillNeed { page } => page_state(page).is_some(),
            Event::Pinned { page } => {
                self.resident_frame(page).is_some_and(|frame| frame.mapped)
                    || (matches!(page_state(page), Some(PageState::Held(_))) && self.has_frame_to_give())
            }
            Event::Owned { task, page, .. } => {
                task.index() < self.config.tasks
                    && page_state(page) == Some(PageState::Untouched)
                    && self.backing.slots.as_ref().is_some_and(|slots| slots.owner(page).is_none())
            }
            Event::Foreground { task } => task.index() < self.config.tasks && self.backing.slots.is_some(),
            Event::ReadOften { page } => matches!(page_state(page), Some(PageState::InSlot(_))),
            Event::Forked { page, child } => {
                let owned = |slots: &Slots| slots.owner(child).is_some() && !slots.is_file(child);
                matches!(page_state(page), Some(PageState::Absent | PageState::InSlot(_)))
                    && self.backing.in_slots(page).is_some()
                    && page_state(child) == Some(PageState::Untouched)
                    && self.backing.slots.as_ref().is_some_and(owned)
            }
            Event::Unpinned { page } => self.resident_frame(page).is_some_and(|frame| frame.pins > 0),
        }
    }

    /// Takes one event in and issues the commands that follow from it.
    ///
    /// # Panics
    /// On an event that it does not accept: the machine is broken.
    pub fn handle(&mut self, event: Event, machine: &mut dyn Machine) {
        assert!(self.accepts(&event), "the machine may not send {event:?} now");
        match event {
            Event::Fault { task, page, access } => {
                let fault = Waiting { task, page, writing: access == Access::Write };
                if !self.start(fault, machine) {
                    self.counts.prefetch_waits += u64::from(self.is_prefetched(page));
                    self.waiting.push(fault);
                }
                return;
            }
            Event::Loaded { ticket } => (self.handler.loaded)(&mut self.fault(ticket, machine)),
            Event::Written { page } => self.written(page),
            Event::Failed { transfer: Transfer::Load(ticket) } => self.load_failed(ticket, machine),
            Event::Failed { transfer: Transfer::Write(page) } => self.write_failed(page, machine),
            Event::Failed { transfer: Transfer::Copy { page, to } } => self.copy_failed(page, to, machine),
            Event::Failed { transfer: Transfer::Erase(block) } => {
                self.counts.failures += 1;
                self.backing.erase_failed(block);
            }
            Event::Slice => return self.begin_slice(machine),
            Event::Released { page } => self.release(page, machine),
            Event::WillNeed { page } => return self.prefetch(page, machine),
            Event::ReadOften { page } => return copy_often_read(self, machine, page),
            Event::Owned { .. } | Event::Foreground { .. } | Event::Forked { .. } => return self.told(event),
            Event::Pinned { page } | Event::Unpinned { page } => {
                self.move_before_pin(page, machine);
                let frame = self.frame_of(page).expect("accepted");
                return self.pin(frame, matches!(event, Event::Pinned { .. }), machine);
            }
        }
        self.admit(machine);
    }

    pub(crate) fn policy_and_residents<'a>(
        &'a mut self,
        machine: &'a mut dyn Machine,
        work: &'a mut Work,
    ) -> (&'a mut dyn Policy, Residents<'a>) {
        let residents = Residents { frames: &mut self.frames, machine, caps: self.config.caps, work };
        (&mut *self.policy, residents)
    }

    fn fault<'a>(&'a mut self, ticket: Ticket, machine: &'a mut dyn Machine) -> Fault<'a> {
        Fault { engine: self, machine, ticket, work: Work::default() }
    }

    /// Does what can be done for a fault now. False: it must wait for a transfer, or for a ticket.
    fn start(&mut self, fault: Waiting, machine: &mut dyn Machine) -> bool {
        let Waiting { task, page, writing } = fault;
        let state = self.pages.get(page);
        match state {
            PageState::Resident(frame) => resident(self, machine, task, frame, writing),
            PageState::Held(buffer) => return touched(self, machine, task, (page, buffer), writing),
            PageState::InSlot(slot) if !writing => read_in_slot(self, machine, task, page, slot),
            PageState::InSlot(_) => {
                let Some(ticket) = self.tickets.pop() else { return false };
                leave_slot(self, machine, page);
                let flight = InFlight { task: Some(task), page, writing, buffer: None, frame: None, tries: 1 };
                self.load(ticket, flight, machine);
            }
            PageState::Loading(_) | PageState::Writing { .. } => return false,
            PageState::Lost => self.halt(task, page, machine),
            PageState::Absent | PageState::Untouched => {
                if let Some(slot) = self.direct(page).filter(|_| !writing) {
                    read_in_slot(self, machine, task, page, slot);
                    return true;
                }
                let Some(ticket) = self.tickets.pop() else { return false };
                self.counts.true_faults += 1;
                self.counts.cold_faults += u64::from(state == PageState::Untouched);
                let flight = InFlight { task: Some(task), page, writing, buffer: None, frame: None, tries: 1 };
                self.load(ticket, flight, machine);
            }
        }
        true
    }

    /// The slot in which the page can be read as it lies.
    fn direct(&self, page: PageId) -> Option<SlotId> {
        self.backing.in_area(page).filter(|_| self.config.caps.direct_read)
    }

    /// What an engine with slots is told of tasks and their pages.
    fn told(&mut self, event: Event) {
        let slots = self.backing.slots.as_mut().expect("accepted");
        match event {
            Event::Owned { task, page, backed } => slots.own(task, page, backed),
            Event::Foreground { task } => slots.foreground(task),
            Event::Forked { page, child } => {
                slots.share(page, child);
                self.pages.set(child, PageState::Absent);
            }
            other => unreachable!("{other:?} is no news of tasks"),
        }
    }

    /// Whether the task stands in nobody's way if it is ended now: it waits for nothing, and none of its pages is between two places.
    pub(crate) fn may_end(&self, task: TaskId) -> bool {
        let owns = |page: PageId| self.backing.slots.as_ref().and_then(|slots| slots.owner(page)) == Some(task);
        let flies = |flight: &InFlight| flight.task == Some(task) || owns(flight.page);
        !self.in_flight.iter().flatten().any(flies)
            && self.waiting.iter().all(|waiting| waiting.task != task && !owns(waiting.page))
            && !self.held.iter().any(|(page, _)| owns(*page))
    }

    pub(crate) fn load(&mut self, ticket: Ticket, flight: InFlight, machine: &mut dyn Machine) {
        self.pages.set(flight.page, PageState::Loading(ticket));
        self.in_flight[ticket.index()] = Some(flight);
        (self.handler.fault)(&mut self.fault(ticket, machine));
    }

    fn resident_frame(&self, page: PageId) -> Option<&Frame> {
        match self.pages.find(page) {
            Some(PageState::Resident(frame)) => Some(self.frames.get(frame)),
            _ => None,
        }
    }

    /// The page is in its buffer no more, which is free again.
    pub(crate) fn forget_held(&mut self, page: PageId) {
        let at = self.held.iter().position(|(held, _)| *held == page).expect("the page is held");
        let (_, buffer) = self.held.remove(at);
        self.buffers.push(buffer);
    }

    /// A move from a buffer to a frame; the processor makes it, and the device may be loading meanwhile.
    pub(crate) fn count_move(&mut self) {
        self.counts.page_moves += 1;
        let loading = self.in_flight.iter().flatten().any(|flight| flight.buffer.is_some());
        self.counts.page_moves_dual += u64::from(loading);
    }

    /// A frame can be had now: it is free, or its page can leave. Otherwise all are promised to loads, or pinned.
    pub(crate) fn has_frame_to_give(&self) -> bool {
        self.frames.free() > 0 || !self.policy.is_empty()
    }

    /// A pinned page must stay where it is, and a buffer is no place to stay.
    fn move_before_pin(&mut self, page: PageId, machine: &mut dyn Machine) {
        if let PageState::Held(buffer) = self.pages.get(page) {
            move_held(self, machine, (page, buffer), false);
        }
    }

    /// A pinned page is out of the policy's sight.
    fn pin(&mut self, frame: FrameId, on: bool, machine: &mut dyn Machine) {
        if on {
            if self.frames.pin(frame) {
                self.policy.remove(frame);
            }
        } else if self.frames.unpin(frame) {
            let mut work = Work::default();
            let (policy, mut residents) = self.policy_and_residents(machine, &mut work);
            policy.insert(frame, &mut residents);
            machine.issue(Command::Stage { stage: Stage::UpdateMMU, work });
        }
    }

    fn is_prefetched(&self, page: PageId) -> bool {
        let PageState::Loading(ticket) = self.pages.get(page) else { return false };
        self.in_flight[ticket.index()].is_some_and(|flight| flight.task.is_none())
    }

    /// Loads a page for nobody, with a ticket that no fault can miss: the last one is kept for those.
    fn prefetch(&mut self, page: PageId, machine: &mut dyn Machine) {
        match self.pages.get(page) {
            PageState::Absent | PageState::Untouched => {}
            PageState::Resident(frame) => return self.renew(frame, machine),
            _ => return,
        }
        if self.tickets.len() < 2 && self.in_flight.len() > 1 {
            self.counts.prefetches_dropped += 1;
            return;
        }
        let Some(ticket) = self.tickets.pop() else {
            self.counts.prefetches_dropped += 1;
            return;
        };
        let frame = match self.arrival {
            Arrival::Mapped => None,
            Arrival::BehindSlice | Arrival::MappedBehindSlice => match frame_behind_slice(self, machine) {
                Some(frame) => Some(frame),
                None => {
                    self.tickets.push(ticket);
                    self.counts.prefetches_dropped += 1;
                    return;
                }
            },
        };
        self.counts.prefetches += 1;
        self.load(ticket, InFlight { task: None, page, writing: false, buffer: None, frame, tries: 1 }, machine);
    }

    /// Makes a page recent that was wished for and is there (SAP section 3.4: to make pages present moves them in the LRU list).
    fn renew(&mut self, frame: FrameId, machine: &mut dyn Machine) {
        if self.arrival.is_behind_slice() && self.frames.get(frame).pins == 0 {
            let mut work = Work::default();
            let (policy, mut residents) = self.policy_and_residents(machine, &mut work);
            let renewed = policy.renew_behind_slice(frame, &mut residents);
            self.counts.prefetches_present += u64::from(renewed);
        }
    }

    /// Whether the page loaded with this ticket is for nobody and takes no place of the running slice.
    pub(crate) fn enters_behind_slice(&self, flight: &InFlight) -> bool {
        flight.task.is_none() && self.arrival.is_behind_slice()
    }

    /// Lets waiting faults go on, the oldest first.
    fn admit(&mut self, machine: &mut dyn Machine) {
        let mut i = 0;
        while i < self.waiting.len() {
            if self.start(self.waiting[i], machine) {
                self.waiting.remove(i);
            } else {
                i += 1;
            }
        }
    }

    fn written(&mut self, page: PageId) {
        let PageState::Writing { released, .. } = self.pages.get(page) else { unreachable!("not accepted") };
        self.pages.set(page, if released { PageState::Untouched } else { PageState::Absent });
    }

    fn write_failed(&mut self, page: PageId, machine: &mut dyn Machine) {
        let PageState::Writing { tries, released } = self.pages.get(page) else { unreachable!("not accepted") };
        self.counts.failures += 1;
        let state = match (released, tries < TRIES) {
            (true, _) => PageState::Untouched,
            (false, false) => PageState::Lost,
            (false, true) => {
                self.backing.failed(page);
                let to = self.backing.slot_for(page, &mut self.pages, machine);
                machine.issue(Command::Write { page, from: None, to });
                PageState::Writing { tries: tries + 1, released }
            }
        };
        self.pages.set(page, state);
    }

    /// A page was to move within the swap area, and its old slot is gone. The machine has its bytes: they go to another slot, at last to the
    /// home slot. If that fails, too, only RAM can still have the page.
    fn copy_failed(&mut self, page: PageId, to: SlotId, machine: &mut dyn Machine) {
        self.counts.failures += 1;
        if !self.backing.copy_failed(page, to) {
            return;
        }
        if to != page.home() {
            let to = self.backing.slot_for(page, &mut self.pages, machine);
            return machine.issue(Command::CopySlot { page, from: None, to });
        }
        match self.pages.get(page) {
            PageState::Resident(frame) => self.frames.get_mut(frame).dirty = true,
            PageState::Held(buffer) if self.has_frame_to_give() => {
                move_held(self, machine, (page, buffer), false);
                let frame = self.frame_of(page).expect("it moved there");
                self.frames.get_mut(frame).dirty = true;
            }
            PageState::Held(_) => {
                machine.issue(Command::Unmap { page });
                self.forget_held(page);
                self.pages.set(page, PageState::Lost);
            }
            PageState::Absent => self.pages.set(page, PageState::Lost),
            // Its load fails, and with it the task; its write has newer bytes.
            _ => {}
        }
    }

    fn load_failed(&mut self, ticket: Ticket, machine: &mut dyn Machine) {
        self.counts.failures += 1;
        let flight = self.in_flight[ticket.index()].as_mut().expect("the ticket is in flight");
        let InFlight { task, page, buffer, frame, tries, .. } = *flight;
        let into = buffer.expect("a load has a buffer");
        if tries < TRIES {
            flight.tries += 1;
            self.counts.page_loads += 1;
            machine.issue(Command::Load { ticket, page, from: self.backing.slot_of(page), into });
            return;
        }
        self.in_flight[ticket.index()] = None;
        self.tickets.push(ticket);
        self.buffers.push(into);
        if let Some(frame) = frame {
            self.frames.release(frame);
        }
        // The slot may still be readable for somebody else later; this task cannot go on.
        self.pages.set(page, PageState::Absent);
        if let Some(task) = task {
            self.halt(task, page, machine);
        }
    }

    fn halt(&mut self, task: TaskId, page: PageId, machine: &mut dyn Machine) {
        self.counts.halts += 1;
        machine.issue(Command::Halt { task, page });
    }

    pub(crate) fn release(&mut self, page: PageId, machine: &mut dyn Machine) {
        let state = match self.pages.get(page) {
            PageState::Loading(_) => unreachable!("not accepted"),
            PageState::Writing { tries, .. } => PageState::Writing { tries, released: true },
            PageState::Resident(frame) => {
                machine.issue(Command::Evict { page, from: frame });
                if self.frames.get(frame).pins == 0 {
                    self.policy.remove(frame);
                }
                self.frames.release(frame);
                self.backing.left(page);
                PageState::Untouched
            }
            PageState::InSlot(_) => {
                machine.issue(Command::Unmap { page });
                PageState::Untouched
            }
            PageState::Held(_) => {
                machine.issue(Command::Unmap { page });
                self.forget_held(page);
                PageState::Untouched
            }
            PageState::Untouched | PageState::Absent | PageState::Lost => PageState::Untouched,
        };
        self.backing.release(page);
        self.pages.set(page, state);
    }
}
