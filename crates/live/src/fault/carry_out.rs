//! Carries out the engine's commands, and reports to the engine what they brought.

use coldframe_core::{Access, Event, PageId, Stage, TaskId, Ticket, Transfer};

use super::gate::Decider;
use super::machine::Aside;
use super::Faults;
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::task::{Todo, Victim, LOADS, VICTIMS};
use crate::tier::{Compressed, IN_POOL};
use crate::work::TakenOut;
use crate::PAGE;

/// Pages that are compressed before the engine gets their sizes. A fault may be waiting for one of them, or for the
/// engine's lock.
const COMPRESSED_TOGETHER: usize = 4;

impl Faults {
    /// Carries out the engine's commands and their consequences, until nothing is left. `beside`: the work is for no
    /// fault, and the program runs meanwhile, on other processors.
    pub fn carry_out(&self, todo: &mut Todo, beside: bool) {
        let work = &self.work;
        while !todo.done() {
            work.start_loads(todo);
            let taken = if beside {
                work.evict_beside(todo)
            } else {
                work.move_pages(todo, false);
                work.evict(todo)
            };
            let victims = todo.laps.lap(Stage::GetFreeframe);
            work.finish_loads(todo, victims);
            todo.laps.lap(Stage::LoadStopover);
            self.report(todo, taken);
            // Pages that it has downgraded are `Leaving`. A thread that wants one as a victim waits for it with the
            // engine's lock held, and `copy_in` waits for that lock. So these pages move first.
            work.move_pages(todo, beside);
            todo.laps.lap(Stage::PostProcess);
            work.copy_in(todo);
            todo.laps.lap(Stage::TransHostMem);
        }
    }

    /// Some evicted pages could not leave. The engine believes they are gone, so we report a fault for each to correct
    /// it. The task serves no other fault meanwhile. A policy may choose the same pages again and again (SIEVE's hand
    /// stays among the newest pages), so after some rounds they are hidden from the policy until all of them are back.
    pub fn bring_back(&self, todo: &mut Todo) {
        while !todo.kept.is_empty() {
            while let Some(page) = todo.kept.pop() {
                self.bring_back_one(todo, page);
            }
            self.work.came_round();
            while let Some(page) = todo.hidden.pop() {
                let (mut decider, event) = (self.gate.lock(), Event::Unpinned { page: PageId::from(page) });
                if decider.engine().accepts(&event) {
                    decider.deliver(&self.work, todo, event);
                }
            }
            // A list that has grown by these pages may send others to the shelf.
            self.carry_out(todo, false);
        }
    }

    fn bring_back_one(&self, todo: &mut Todo, page: usize) {
        let (mut decider, task) = (self.gate.lock(), self.work.tasks().get(todo.task));
        // Otherwise another thread took it out after all.
        if self.pages().get(page) != Where::Kept {
            return;
        }
        task.begin();
        let (number, page) = (TaskId::from(todo.task), PageId::from(page));
        decider.deliver(&self.work, todo, Event::Fault { task: number, page, access: Access::Write });
        drop(decider);
        self.carry_out(todo, false);
        task.await_resume(|| self.work.lead.step_aside());
        todo.asked_at = 0;
        if self.work.goes_round() && todo.hidden.len() < todo.hidden.capacity() {
            let mut decider = self.gate.lock();
            let ((frames, pinned, keep), event) = (decider.for_pins(), Event::Pinned { page });
            if pinned + keep < frames && decider.engine().accepts(&event) {
                decider.deliver(&self.work, todo, event);
                todo.hidden.push(page.index());
            }
        }
    }

    fn report(&self, todo: &mut Todo, taken: TakenOut) {
        let left = todo.victims.len();
        if taken.written + taken.compressed + todo.loads.len() == 0 {
            debug_assert!(todo.victims.is_empty(), "who has nothing to write is done with");
            return;
        }
        let mut ends = [(Ticket(0), false, Aside::Nothing); LOADS];
        let loads = todo.loads.len();
        for (end, load) in ends.iter_mut().zip(todo.loads.drain(..)) {
            let aside = if load.shared { Aside::SharedSlot } else { Aside::Nothing };
            *end = (load.ticket, load.good == Some(true), aside);
        }
        let owner = Owner::task(todo.task);
        debug_assert!(todo.moves.is_empty() && todo.copies.is_empty(), "a page on its way waits for the engine's lock");
        let mut victims: [Option<Victim>; VICTIMS] = [None; VICTIMS];
        victims.iter_mut().zip(todo.victims.drain(..)).for_each(|(to, victim)| *to = Some(victim));
        todo.zapped -= left;
        let all = taken.written + taken.compressed;
        for together in victims[taken.written..all].chunks_mut(COMPRESSED_TOGETHER) {
            self.work.compress_staged(todo.task, together.iter_mut().flatten());
            let mut decider = self.gate.lock();
            together.iter().flatten().for_each(|victim| self.report_compressed(&mut decider, todo, victim));
        }
        let decider = &mut *self.gate.lock();
        for victim in victims[..taken.written].iter().flatten() {
            // First: the engine may map it in its slot at once. Other threads wait for the lock.
            self.pages().release(victim.page, owner, Where::Out);
            decider.deliver(&self.work, todo, Event::Written { page: PageId::from(victim.page) });
        }
        for &(ticket, good, aside) in &ends[..loads] {
            let failed = Event::Failed { transfer: Transfer::Load(ticket) };
            decider.deliver_with(&self.work, todo, if good { Event::Loaded { ticket } } else { failed }, aside);
        }
    }

    /// Reports the compressed size of each page. A page that is not kept goes to the log; a page of zeros needs no
    /// place.
    fn report_compressed(&self, decider: &mut Decider, todo: &mut Todo, victim: &Victim) {
        let Victim { page, staged, size, digest, write, .. } = *victim;
        let from = self.work.tasks().get(todo.task).staging + staged * PAGE;
        if digest == self.work.log().zero() {
            let old = self.pages().set_slot(page, None);
            self.work.log().forget(page, old);
            decider.deliver(&self.work, todo, Event::Written { page: PageId::from(page) });
            return self.pages().release(page, Owner::task(todo.task), Where::Out);
        }
        let known = self.pages().slot(page).is_some_and(|slot| slot != IN_POOL) && self.pages().sum(page) == digest;
        let compressed = Compressed { page, from, size, sum: digest, dirty: write && !known };
        Stats::add(&self.stats.writes_saved, u64::from(write && known));
        let event = Event::Compressed { page: PageId::from(page), size, same: known };
        decider.deliver_with(&self.work, todo, event, Aside::Compressed(compressed));
    }
}
