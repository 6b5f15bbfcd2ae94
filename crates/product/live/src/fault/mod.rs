//! A page fault: the state of its page, the engine's decision, and the work that follows.
//!
//! [`Faults`] is what serves. Managed memory ([`crate::region`]) calls `serve` for each message and for a page that it
//! needs, and `with_task` for any other event. For the order of calls within an event see [`gate::Gate`]. This room
//! does not know who calls it, nor what starts and ends it.

mod carry_out;
pub mod gate;
mod lending;
pub mod machine;
pub mod serve;

use crate::memory::space::Space;
use crate::memory::Memory;
use crate::page::pages::Pages;
use crate::stats::Stats;
use crate::sys::Signals;
use crate::task::{Laps, Todo};
use crate::work::Work;
use gate::{Decider, Gate};

pub struct Faults {
    pub work: Work,
    pub gate: Gate,
    pub stats: &'static Stats,
}

impl Faults {
    pub fn new(work: Work, gate: Gate) -> Faults {
        Faults { stats: work.stats, work, gate }
    }

    pub fn memory(&self) -> &Memory {
        &self.work.memory
    }

    pub fn space(&self) -> &Space {
        &self.work.memory.space
    }

    pub fn pages(&self) -> &Pages {
        &self.work.memory.pages
    }

    /// Takes a task; waits for one. Take it before the engine's lock: all tasks may be waiting for the holder of that
    /// lock.
    fn take_task(&self) -> usize {
        debug_assert!(!self.gate.is_mine(), "a task is taken before the engine's lock");
        self.work.tasks().free.take()
    }

    /// Runs `f` with a task, with the gate open and signals blocked, and then carries out its results.
    pub fn with_task(&self, f: impl FnOnce(&mut Decider, &mut Todo)) {
        let _signals = Signals::block();
        let number = self.take_task();
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { self.work.tasks().get(number).todo() };
        f(&mut self.gate.enter(), todo);
        todo.laps = Laps::default();
        self.carry_out(todo);
        self.bring_back(todo);
        todo.requested_at = 0;
        self.gate.leave();
        self.work.tasks().free.give(number);
    }
}
