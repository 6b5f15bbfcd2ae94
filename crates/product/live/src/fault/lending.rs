//! Frames that go from one process of a run to another: the engine has as many as the process's share of the budget
//! allows (`memory/budget.rs`).

use std::sync::atomic::Ordering::SeqCst;

use coldframe_core::Event;
use coldframe_recording::plan::Plan;

use super::gate::Decider;
use super::Faults;
use crate::sys::pids;
use crate::task::Todo;

/// Frames that a process takes at a time: an eighth of what it has, within these bounds. A guess: 256 KiB are two
/// batches of victims, and 4 MiB leave in some 10 ms.
const STEP_MIN: usize = 64;
const STEP_MAX: usize = 1024;

impl Faults {
    /// Before its first page: the process has its floor. The engine is made for the whole budget.
    pub fn begin_at_floor(&self) {
        let share = &self.memory().share;
        if share.is_on() {
            self.with_task(|decider, todo| _ = self.shrink(decider, todo, 0));
        }
    }

    /// A fault is about to need a frame.
    pub(super) fn want_frame(&self, decider: &mut Decider, todo: &mut Todo, now: u64) {
        let Some(place) = self.memory().share.place() else { return };
        place.note_fault(now);
        if decider.engine().frames().free() == 0 {
            self.borrow(decider, todo, (self.memory().share.frames() / 8).clamp(STEP_MIN, STEP_MAX));
        }
    }

    /// Takes up to `frames` that no process has, and asks another one for the others (`Share::grow`).
    fn borrow(&self, decider: &mut Decider, todo: &mut Todo, frames: usize) {
        let share = &self.memory().share;
        if share.is_on() && share.grow(frames) {
            self.grown(decider, todo);
        }
    }

    /// The share has grown.
    fn grown(&self, decider: &mut Decider, todo: &mut Todo) {
        let share = &self.memory().share;
        let plan = share.plan(share.frames());
        let frames = plan.frames.saturating_sub(decider.engine().frames().len()) as u32;
        decider.deliver(&self.work, todo, Event::Borrow { frames });
        self.follow(&plan);
    }

    /// Frames that pins may take besides those that they have. If these are fewer than `wanted`, other processes have
    /// to give them.
    pub fn frames_to_pin(&self, wanted: usize) -> usize {
        let (share, mut left, mut lacking) = (&self.memory().share, 0, 0);
        let count = |decider: &Decider| {
            let (frames, pinned, others) = decider.for_pins();
            (frames.saturating_sub(pinned + others), pinned + others)
        };
        self.with_task(|decider, _| {
            let (free, taken) = count(decider);
            left = free;
            lacking = if free < wanted { share.of_pages(taken + wanted).saturating_sub(share.frames()) } else { 0 };
        });
        if lacking > 0 && share.demand(lacking) {
            self.with_task(|decider, todo| {
                self.grown(decider, todo);
                left = count(decider).0;
            });
        }
        left
    }

    /// Whether the kernel may hold so many pages in all. Until the next call of this, other processes do not get their
    /// frames.
    pub fn promise(&self, pages: usize) -> bool {
        let promised = &self.memory().share.promised;
        promised.store(pages, SeqCst);
        let may = self.frames_to_pin(pages) >= pages;
        if !may {
            promised.store(0, SeqCst);
        }
        may
    }

    /// While the kernel owns the memory: takes frames for so many pages, if there are as many free ones. The caller
    /// changes the space. Returns whether there is room now.
    pub fn borrow_for(&self, pages: usize) -> bool {
        let share = &self.memory().share;
        let lacking = share.of_pages(pages).saturating_sub(share.frames());
        if !share.is_on() || lacking > share.free() {
            return false;
        }
        self.with_task(|decider, todo| self.borrow(decider, todo, lacking.max(STEP_MIN)));
        self.memory().kernel_owned.has_room(pages)
    }

    /// Pages that the kernel holds or is about to hold: it holds them before they are `promised` no more.
    fn held(&self) -> usize {
        let promised = self.memory().share.promised.load(SeqCst);
        let held = if self.work.may_be_pinned() && pids::is_pager() { pids::pinned_pages() } else { 0 };
        promised.max(held)
    }

    /// The engine evicts what a share smaller by `frames` has no room for, unless pins or the kernel forbid it.
    pub fn shrink(&self, decider: &mut Decider, todo: &mut Todo, frames: usize) -> bool {
        let share = &self.memory().share;
        let plan = share.plan(share.frames() - frames);
        let lent = decider.engine().frames().len().saturating_sub(plan.frames) as u32;
        let event = Event::Lend { frames: lent };
        let (_, pinned, others) = decider.for_pins();
        let may = decider.engine().accepts(&event) && (frames == 0 || pinned + others + self.held() <= plan.frames);
        if may {
            share.shrink(frames);
            decider.deliver(&self.work, todo, event);
            self.follow(&plan);
        }
        may
    }

    /// What depends on the size of the share.
    fn follow(&self, plan: &Plan) {
        self.memory().reserve.resize(plan.reserve);
        self.memory().kernel_owned.resize(plan.frames);
    }
}
