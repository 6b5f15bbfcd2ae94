//! Puts pages into the page table and takes them out: a loaded page is copied in; a page of the invalid list is moved
//! to the aside mapping and back.

use std::sync::atomic::Ordering;

use super::Work;
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys::fatal;
use crate::task::{CopyIn, Move, Task, Todo, Victim, VICTIMS};
use crate::PAGE;

/// This many pages go to the aside mapping together. For fewer, a move of each costs less.
const TOGETHER_MIN: usize = 3;

impl Work {
    pub fn copy_in(&self, todo: &mut Todo) {
        while let Some(copy) = todo.copies.pop() {
            self.copy_one(todo, copy);
        }
        // One buffer may stay here for this task's next fault; others would need more than one.
        if todo.spare.len() > 1 {
            self.returned.lock().append(&mut todo.spare);
        }
    }

    /// Untouched pages come in, as zeros.
    pub fn put_zeros(&self, todo: &mut Todo) {
        Stats::add(&self.stats.first_touch_neighbours, todo.zeros.len() as u64);
        self.memory.space.runs(todo.zeros.iter().copied()).for_each(|range| self.memory.put_zeros(range));
        todo.zeros.drain(..).for_each(|page| self.pages().release(page, Owner::task(todo.task), Where::Unsure));
    }

    fn copy_one(&self, todo: &mut Todo, copy: CopyIn) {
        let CopyIn { page, from, write, content } = copy;
        // By hash if pages are often written to, and in a recording, which examines each page that leaves.
        let often = content && !self.exact && self.write_share.load(Ordering::Relaxed) > 26;
        let to = match write {
            true => Where::Dirty,
            false if often || self.recording().is_some() => Where::Unsure,
            false => Where::Clean,
        };
        let put = self.memory.put_in(page, from, content, to == Where::Clean);
        self.pages().release(page, Owner::task(todo.task), if put { to } else { Where::Dirty });
        todo.spare.push(from);
    }

    /// Moves pages to the aside mapping and back, before the engine's other commands: other threads may be waiting for
    /// these pages. Only while the task's staging memory is free.
    ///
    /// Pages that go there go together if there are several, and if several threads fault. Otherwise the thread's TLB
    /// is this processor's own, and no other processor has to be interrupted.
    pub fn move_pages(&self, todo: &mut Todo) {
        let (task, owner) = (self.task(todo.task), Owner::task(todo.task));
        // Staged victims must stay where they are. A recording looks at each page.
        let may = !self.reader.serves_one_thread() && todo.zapped == 0 && self.recording().is_none();
        if may && todo.moves.iter().filter(|one| one.sets_aside()).count() >= TOGETHER_MIN {
            todo.moves.sort_unstable_by_key(Move::sets_aside);
            let first = todo.moves.partition_point(|one| !one.sets_aside());
            let done = todo.moves[first..].chunks(VICTIMS).take_while(|pages| self.set_pages_aside(task, pages, owner));
            let done = done.map(<[Move]>::len).sum::<usize>();
            todo.moves.drain(first..first + done);
        }
        self.move_each(todo);
    }

    /// The same, one after the other.
    pub fn move_each(&self, todo: &mut Todo) {
        let owner = Owner::task(todo.task);
        for i in 0..todo.moves.len() {
            self.move_one(todo.moves[i], todo, owner);
        }
        todo.moves.clear();
    }

    fn move_one(&self, one: Move, todo: &mut Todo, owner: Owner) {
        match one {
            Move::SetAside { page, clean } => self.set_page_aside(page, clean, todo, owner),
            Move::Restore { page, write } => self.restore_page(page, write, owner),
        }
    }

    /// Carries out the noted commands for a page of this task now, so that the page is at rest.
    pub fn do_noted(&self, todo: &mut Todo, page: usize) {
        if let Some(i) = todo.moves.iter().position(|one| one.page() == page) {
            let one = todo.moves.remove(i);
            self.move_one(one, todo, Owner::task(todo.task));
        } else if let Some(i) = todo.copies.iter().position(|copy| copy.page == page) {
            let copy = todo.copies.swap_remove(i);
            self.copy_one(todo, copy);
        } else if todo.zeros.contains(&page) {
            self.put_zeros(todo);
        } else {
            fatal::stop(format_args!("internal error: page {page} is this task's, which has nothing noted for it"));
        }
    }

    /// Moves a page out of the page table into the aside mapping: `Command::Unmap`.
    fn set_page_aside(&self, page: usize, clean: bool, todo: &mut Todo, owner: Owner) {
        let task = self.task(todo.task);
        let evicting = self.evicting(task);
        match evicting.by_move {
            true if !self.try_leave(task, page, clean) => {
                todo.note_unevicted(page);
                return self.pages().release(page, owner, Where::Unevicted);
            }
            true => {}
            false => self.memory.set_aside(page, task.scratch()),
        }
        if let Some(recording) = self.recording() {
            recording.leaves(page, self.memory.aside(page), self.pages(), self.log());
        }
        Stats::add(&self.stats.set_aside, 1);
        self.pages().release(page, owner, Where::Aside);
    }

    /// Does the same for several pages, with one flush of the TLB: each move of its own has a flush, which interrupts
    /// every processor that runs the program. Costs a copy of each page instead. Returns false, and does nothing, if
    /// each must be moved because its frame may be pinned.
    fn set_pages_aside(&self, task: &Task, pages: &[Move], owner: Owner) -> bool {
        let evicting = self.evicting(task);
        if evicting.by_move {
            return false;
        }
        let mut leaving = [Victim::default(); VICTIMS];
        for (to, one) in leaving.iter_mut().zip(pages) {
            let page = one.page();
            *to = Victim { page, address: self.memory.address(page), ..Victim::default() };
        }
        let leaving = &mut leaving[..pages.len()];
        self.pull(task, leaving, leaving.len(), 0, &evicting);
        for one in leaving {
            self.memory.copy_aside(one.page, task.staging + one.staged * PAGE);
            self.pages().release(one.page, owner, Where::Aside);
        }
        Stats::add(&self.stats.set_aside, pages.len() as u64);
        true
    }

    /// Puts the page back: a false fault. The engine knows of earlier writes.
    fn restore_page(&self, page: usize, write: bool, owner: Owner) {
        let clean = self.exact && !write;
        self.memory.restore(page, clean);
        let to = if write { Where::Dirty } else { Where::Unsure };
        self.pages().release(page, owner, if clean { Where::Clean } else { to });
    }
}
