//! A device that fails at times, around any machine. A seed decides when it fails, so a run can be repeated.
//!
//! ```text
//!   a load, a write      the machine carries it out, and its end is reported as a failure
//!   a copy, an erase     as well, reported before the end of anything issued later
//!   a slot whose write or copy failed cannot be read until something else is brought there
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use coldframe_core::swap::{Flash, Order, Refused};
use coldframe_core::{After, Command, Event, Machine, PageId, SlotId, Ticket, Transfer};
use fastrand::Rng;

/// The transfers that fail.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Failures {
    /// The part of all transfers that fails, 0 to 1.
    pub rate: f64,
    /// The seed that decides which transfers fail.
    pub seed: u64,
}

/// The transfers under way, and those that fail.
pub struct Faulty {
    failures: Failures,
    rng: Rng,
    loads: BTreeMap<Ticket, SlotId>,
    writes: BTreeMap<PageId, SlotId>,
    torn: BTreeSet<SlotId>,
    failed: VecDeque<Event>,
}

impl Faulty {
    /// A device without a failure so far.
    pub fn new(failures: Failures) -> Faulty {
        Faulty {
            failures,
            rng: Rng::with_seed(failures.seed),
            loads: BTreeMap::new(),
            writes: BTreeMap::new(),
            torn: BTreeSet::new(),
            failed: VecDeque::new(),
        }
    }

    fn fails(&mut self) -> bool {
        self.rng.f64() < self.failures.rate
    }

    /// The event as this device reports it: an end, or a failure in its place.
    pub fn turn(&mut self, event: Event) -> Event {
        match event {
            Event::Loaded { ticket } => {
                let torn = self.loads.remove(&ticket).is_some_and(|slot| self.torn.contains(&slot));
                let failed = self.fails() || torn;
                if failed {
                    return Event::Failed { transfer: Transfer::Load(ticket) };
                }
            }
            Event::Written { page } => {
                let to = self.writes.remove(&page);
                if self.fails() {
                    self.torn.extend(to);
                    return Event::Failed { transfer: Transfer::Write(page) };
                }
                to.map(|slot| self.torn.remove(&slot));
            }
            _ => {}
        }
        event
    }

    /// The next failure of a copy or an erase.
    pub fn next_failure(&mut self) -> Option<Event> {
        self.failed.pop_front()
    }

    /// The machine with this device.
    pub fn around<'a>(&'a mut self, machine: &'a mut dyn Machine) -> FaultyMachine<'a> {
        FaultyMachine { faulty: self, machine }
    }
}

/// A flash that fails and stores nothing, for a swap area without an engine.
impl Flash for Faulty {
    fn carry_out(&mut self, _: Order) -> Result<(), Refused> {
        match self.fails() {
            true => Err(Refused),
            false => Ok(()),
        }
    }
}

/// A machine with a device that fails.
pub struct FaultyMachine<'a> {
    faulty: &'a mut Faulty,
    machine: &'a mut dyn Machine,
}

impl Machine for FaultyMachine<'_> {
    fn issue(&mut self, command: Command) {
        let faulty = &mut *self.faulty;
        match command {
            Command::Load { ticket, from, .. } => drop(faulty.loads.insert(ticket, from)),
            Command::Write { page, to, .. } => {
                faulty.writes.insert(page, to);
            }
            Command::CopySlot { page, to, .. } => {
                if faulty.fails() {
                    faulty.torn.insert(to);
                    faulty.failed.push_back(Event::Failed { transfer: Transfer::Copy { page, to } });
                } else {
                    faulty.torn.remove(&to);
                }
            }
            Command::EraseBlock { block } if faulty.fails() => {
                faulty.failed.push_back(Event::Failed { transfer: Transfer::Erase(block) });
            }
            _ => {}
        }
        self.machine.issue(command);
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        self.machine.referenced(page, after)
    }

    fn dirty(&mut self, page: PageId) -> bool {
        self.machine.dirty(page)
    }

    fn filled(&mut self, page: PageId) -> bool {
        self.machine.filled(page)
    }
}
