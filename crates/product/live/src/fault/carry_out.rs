//! Carries out the engine's commands, and reports to the engine what they brought.

use coldframe_core::{Access, Event, PageId, Stage, TaskId, Ticket, Transfer};

use super::Faults;
use crate::page::pages::{Owner, Where};
use crate::task::{Todo, LOADS, VICTIMS};

impl Faults {
    /// Carries out the engine's commands and their consequences, until nothing is left.
    pub fn carry_out(&self, todo: &mut Todo) {
        let work = &self.work;
        while !todo.done() {
            work.start_loads(todo);
            work.move_pages(todo);
            work.evict(todo);
            work.put_zeros(todo);
            let victims = todo.laps.lap(Stage::GetFreeframe);
            work.finish_loads(todo, victims);
            todo.laps.lap(Stage::LoadStopover);
            self.report(todo);
            // Pages that it has downgraded are `Leaving`. A thread that wants one as a victim waits for it with the
            // engine's lock held, and `copy_in` waits for that lock. So these pages move first.
            work.move_pages(todo);
            todo.laps.lap(Stage::PostProcess);
            work.copy_in(todo);
            todo.laps.lap(Stage::TransHostMem);
        }
    }

    /// Some evicted pages could not leave. The engine believes they are gone, so we report a fault for each to correct
    /// it. The task serves no other fault until then. A policy may choose the same pages again and again (SIEVE's hand
    /// stays among the newest pages), so after some rounds they are hidden from the policy until all of them are back.
    pub fn bring_back(&self, todo: &mut Todo) {
        while !todo.unevicted.is_empty() {
            while let Some(page) = todo.unevicted.pop() {
                self.bring_back_one(todo, page);
            }
            self.work.reset_refusals();
            while let Some(page) = todo.hidden.pop() {
                let (mut decider, event) = (self.gate.lock(), Event::Unpinned { page: PageId::from(page) });
                if decider.engine().accepts(&event) {
                    decider.deliver(&self.work, todo, event);
                }
            }
            // The invalid list has grown by these pages and may send others to the aside mapping.
            self.carry_out(todo);
        }
    }

    fn bring_back_one(&self, todo: &mut Todo, page: usize) {
        let (mut decider, task) = (self.gate.lock(), self.work.tasks().get(todo.task));
        // Otherwise another thread took it out after all.
        if self.pages().get(page) != Where::Unevicted {
            return;
        }
        task.begin();
        let (number, page) = (TaskId::from(todo.task), PageId::from(page));
        decider.deliver(&self.work, todo, Event::Fault { task: number, page, access: Access::Write });
        drop(decider);
        self.carry_out(todo);
        task.await_resume(|| self.work.reader.hand_over());
        todo.requested_at = 0;
        if self.work.all_refused() && todo.hidden.len() < todo.hidden.capacity() {
            let mut decider = self.gate.lock();
            let ((frames, pinned, keep), event) = (decider.for_pins(), Event::Pinned { page });
            if pinned + keep < frames && decider.engine().accepts(&event) {
                decider.deliver(&self.work, todo, event);
                todo.hidden.push(page.index());
            }
        }
    }

    /// Tells the engine which victims are safe and which loads have ended.
    fn report(&self, todo: &mut Todo) {
        let (left, loads) = (todo.victims.len(), todo.loads.len());
        if left + loads == 0 {
            return;
        }
        let mut ends = [(Ticket(0), false); LOADS];
        for (end, load) in ends.iter_mut().zip(todo.loads.drain(..)) {
            *end = (load.ticket, load.good == Some(true));
        }
        let owner = Owner::task(todo.task);
        debug_assert!(todo.moves.is_empty() && todo.copies.is_empty(), "a page on its way waits for the engine's lock");
        let mut victims = [0; VICTIMS];
        victims.iter_mut().zip(todo.victims.drain(..)).for_each(|(to, victim)| *to = victim.page);
        todo.zapped -= left;
        let decider = &mut *self.gate.lock();
        for &page in &victims[..left] {
            // First: the engine may map it in its slot at once. Other threads wait for the lock.
            self.pages().release(page, owner, Where::Out);
            decider.deliver(&self.work, todo, Event::Written { page: PageId::from(page) });
        }
        for &(ticket, good) in &ends[..loads] {
            let failed = Event::Failed { transfer: Transfer::Load(ticket) };
            decider.deliver(&self.work, todo, if good { Event::Loaded { ticket } } else { failed });
        }
    }
}
