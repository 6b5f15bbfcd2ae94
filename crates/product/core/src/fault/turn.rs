//! One event's turn: the engine's rooms, lent together with the machine to the code that carries the event out.
//!
//! Each room keeps its fields private. `PageStates` says where each page is, `Ram` which page is in which frame,
//! `Flights` what is in flight and who waits, `Buffers` which pages stay in a buffer, and `Backing` where
//! pages are outside of RAM. Work on several rooms is here.

use crate::command::{Command, Stage, Work};
use crate::config::Config;
use crate::counts::Counts;
use crate::fault::block_size::FirstTouchBlocks;
use crate::fault::buffers::Buffers;
use crate::fault::flights::Flights;
use crate::frames::Residents;
use crate::ids::{PageId, SlotId, TaskId};
use crate::machine::Machine;
use crate::page_state::{PageState, PageStates};
use crate::policy::Policy;
use crate::prefetch::Arrival;
use crate::ram::Ram;
use crate::swap::backing::Backing;

/// What a stage of a fault works on.
pub struct Turn<'a> {
    pub(crate) config: &'a Config,
    pub(crate) arrival: Arrival,
    pub(crate) pages: &'a mut PageStates,
    pub(crate) ram: &'a mut Ram,
    pub(crate) blocks: &'a mut FirstTouchBlocks,
    pub(crate) flights: &'a mut Flights,
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) backing: &'a mut Backing,
    pub(crate) counts: &'a mut Counts,
    pub(crate) machine: &'a mut dyn Machine,
    /// The work since the last mark.
    pub(crate) work: Work,
}

impl Turn<'_> {
    pub(crate) fn issue(&mut self, command: Command) {
        self.machine.issue(command);
    }

    /// Marks the end of a stage with the work done since the last mark.
    pub(crate) fn mark(&mut self, stage: Stage) {
        let work = core::mem::take(&mut self.work);
        self.issue(Command::Stage { stage, work });
    }

    pub(crate) fn policy_and_residents(&mut self) -> (&mut dyn Policy, Residents<'_>) {
        self.ram.policy_and_residents(self.machine, &mut self.work)
    }

    /// The slot for the page's next copy.
    pub(crate) fn slot_for(&mut self, page: PageId) -> SlotId {
        self.backing.slot_for(page, self.pages, self.machine)
    }

    /// From now on the engine has all of its frames but those that are lent.
    pub(crate) fn has_frames(&mut self, lent: impl FnOnce(usize) -> usize) {
        self.ram.set_lent(lent(self.ram.frames.lent()));
        self.blocks.fit(self.ram.frames.len());
    }

    /// Victims that are evicted together: while frames are lent, an eighth of the others at most.
    pub(crate) fn evict_batch(&self) -> usize {
        match self.ram.frames.lent() {
            0 => self.config.evict_batch,
            _ => self.config.evict_batch.min(self.ram.frames.len() / 8).max(1),
        }
    }

    /// Counts a move from a buffer to a frame. The processor makes the move; the device may be loading at the same
    /// time.
    pub(crate) fn count_move(&mut self) {
        self.counts.page_moves += 1;
        self.counts.page_moves_dual += u64::from(self.flights.are_loading());
    }

    /// Whether the task can be ended now: it waits for nothing, and none of its pages is in transit.
    pub(crate) fn may_end(&self, task: TaskId) -> bool {
        let owns = |page: PageId| self.backing.slots.as_ref().and_then(|slots| slots.owner(page)) == Some(task);
        !self.flights.concern(task, owns) && !self.buffers.held().iter().any(|(page, _)| owns(*page))
    }

    /// The page is lost: the task cannot continue.
    pub(crate) fn halt(&mut self, task: TaskId, page: PageId) {
        self.counts.halts += 1;
        self.issue(Command::Halt { task, page });
    }

    /// Drops the page's bytes from all places.
    pub(crate) fn release(&mut self, page: PageId) {
        let state = match self.pages.get(page) {
            PageState::Loading(_) => unreachable!("not accepted"),
            PageState::Writing { tries, .. } => PageState::Writing { tries, released: true },
            PageState::Resident(frame) => {
                self.issue(Command::Evict { page, from: frame });
                self.ram.remove(frame);
                self.backing.left(page);
                PageState::Untouched
            }
            PageState::InSlot(_) => {
                self.issue(Command::Unmap { page });
                PageState::Untouched
            }
            PageState::Held(_) => {
                self.issue(Command::Unmap { page });
                self.buffers.forget(page);
                PageState::Untouched
            }
            PageState::Untouched | PageState::Absent | PageState::Lost => PageState::Untouched,
        };
        self.backing.release(page);
        self.pages.set(page, state);
    }
}
