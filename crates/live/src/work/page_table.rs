//! Puts pages into the page table and takes them out: a loaded page is copied in; a page of the invalid list is kept
//! on the shelf and moved back.

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use crate::fault::pager::Inner;
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys::fatal;
use crate::sys::{self, Errno};
use crate::task::{CopyIn, Move, Task, Todo, Victim, VICTIMS};
use crate::PAGE;

/// This many pages go to the shelf together. For fewer, a move of each costs less.
const TOGETHER_MIN: usize = 3;
/// If a page is found dropped this often, it is an internal error.
const LOOKS: u32 = 100;

impl Inner {
    pub(crate) fn copy_in(&self, todo: &mut Todo) {
        while let Some(copy) = todo.copies.pop() {
            self.copy_one(todo, copy);
        }
        // One buffer may stay here for this task's next fault; others would need more than one.
        if todo.spare.len() > 1 {
            self.returned.lock().append(&mut todo.spare);
        }
    }

    fn copy_one(&self, todo: &mut Todo, copy: CopyIn) {
        let CopyIn { page, from, write, content, shared } = copy;
        // By hash if pages are often written to, and in a recording, which examines each page that leaves.
        let often = content && !self.exact() && self.write_share.load(Ordering::Relaxed) > 26;
        let to = match write {
            true => Where::Dirty,
            false if often || self.options.record.is_some() => Where::Unsure,
            false => Where::Clean,
        };
        let address = self.address(page);
        let source = if shared { self.unpacked(todo.task, page, from) } else { from };
        let to = match self.uffd.get().copy(address, source, to == Where::Clean) {
            Ok(()) => to,
            // A raw system call of the program has put zeros or other bytes there. Over a page with content that
            // would be a silent loss.
            Err(Errno::EXIST) if !content => Where::Dirty,
            Err(error) => {
                let error = error.io();
                fatal::stop(format_args!("the page at {address:#x} cannot be put into place (UFFDIO_COPY): {error}"));
            }
        };
        self.pages.set_epoch(page, self.epoch.load(Ordering::Relaxed));
        self.note_resident();
        self.pages.release(page, Owner::task(todo.task), to);
        todo.spare.push(from);
    }

    /// One more page is in RAM.
    pub(crate) fn note_resident(&self) {
        let resident = self.resident.fetch_add(1, Ordering::Relaxed) + 1;
        Stats::add(&self.stats().resident, 1);
        self.stats().resident_max.fetch_max(resident as u64, Ordering::Relaxed);
    }

    /// Whether the engine must learn only of real writes: for a recorder, and if each dirty page that leaves is
    /// programmed.
    fn exact(&self) -> bool {
        self.options.observe || self.options.swap.is_some()
    }

    /// Moves pages to the shelf and back, before the engine's other commands: other threads may be waiting for
    /// these pages. Only while the task's staging memory is free.
    ///
    /// Pages that go there go together if there are several, and if several threads fault, or if the faulting thread
    /// runs on another processor than this one. Otherwise the thread's TLB is this processor's own, and no other
    /// processor has to be interrupted.
    pub(crate) fn move_pages(&self, todo: &mut Todo) {
        let (task, owner) = (self.tasks().get(todo.task), Owner::task(todo.task));
        let shelves = |one: &Move| matches!(one, Move::Shelve { .. });
        // Bytes of victims that are in the pipe must stay the first ones there. A recording looks at each page.
        let apart = todo.apart || !self.lead.has_one_thread();
        let may = apart && todo.zapped == 0 && self.recording.get().is_none();
        if may && todo.moves.iter().filter(|one| shelves(one)).count() >= TOGETHER_MIN {
            todo.moves.sort_unstable_by_key(shelves);
            let first = todo.moves.partition_point(|one| !shelves(one));
            let done = todo.moves[first..].chunks(VICTIMS).take_while(|pages| self.shelve_pages(task, pages, owner));
            let done = done.map(<[Move]>::len).sum::<usize>();
            todo.moves.drain(first..first + done);
        }
        self.move_each(todo);
    }

    /// The same, one after the other.
    pub(crate) fn move_each(&self, todo: &mut Todo) {
        let owner = Owner::task(todo.task);
        for i in 0..todo.moves.len() {
            self.move_one(todo.moves[i], todo, owner);
        }
        todo.moves.clear();
    }

    fn move_one(&self, one: Move, todo: &mut Todo, owner: Owner) {
        match one {
            Move::Shelve { page, clean } => self.shelve_page(page, clean, todo, owner),
            Move::Back { page, write } => self.unshelve_page(page, write, owner),
        }
    }

    /// Carries out the noted commands for a page of this task now, so that the page is at rest.
    pub(crate) fn do_noted(&self, todo: &mut Todo, page: usize) {
        let of = |m: &Move| m.page() == page;
        if let Some(i) = todo.moves.iter().position(of) {
            let one = todo.moves.remove(i);
            self.move_one(one, todo, Owner::task(todo.task));
        } else if let Some(i) = todo.copies.iter().position(|copy| copy.page == page) {
            let copy = todo.copies.swap_remove(i);
            self.copy_one(todo, copy);
        } else {
            fatal::stop(format_args!("internal error: page {page} is this task's, which has nothing noted for it"));
        }
    }

    /// Restores a page that a raw system call of the program (MADV_DONTNEED) has dropped, with zeros. Only for the
    /// owner of the page.
    pub(crate) fn refill(&self, page: usize) -> bool {
        let address = self.address(page);
        // This says that a page swapped out by the kernel is absent; the copy then finds it in place.
        !sys::is_there(address) && self.uffd.get().copy(address, self.space.zeros(), false).is_ok()
    }

    /// Write-protects a page and copies it, whether the program may read it or not, without ever sleeping in a fault.
    /// Only for its owner. The page may be absent afterwards.
    pub(crate) fn peek(&self, page: usize, into: usize) {
        let address = self.address(page);
        for _ in 0..LOOKS {
            self.refill(page);
            self.must(self.uffd.get().protect(address..address + PAGE, true), "protect a page", page);
            // SAFETY: the caller has a page for it.
            match unsafe { self.memory.get().peek(address, into) } {
                Ok(()) => return,
                // Dropped meanwhile; or, if this repeats, swapped out and not readable as a file.
                Err(Errno::FAULT) => {}
                Err(_) => break,
            }
        }
        // SAFETY: as above, and the page is in the caller's hand.
        self.must(unsafe { sys::peek_elsewhere(address, into) }, "read a page", page);
    }

    /// Removes a page from the page table and keeps it: `Command::Unmap`.
    fn shelve_page(&self, page: usize, clean: bool, todo: &mut Todo, owner: Owner) {
        let task = self.tasks().get(todo.task);
        let (scratch, address, shelf) = (task.scratch(), self.address(page), self.shelf(page));
        let (uffd, taking) = (self.uffd.get(), self.taking(task));
        let careful = taking.wary && !clean;
        if careful && !self.try_leave(task, page) {
            todo.keep(page);
            return self.pages.release(page, owner, Where::Kept);
        }
        if !careful && (!uffd.can_move || uffd.move_page(shelf, address).is_err()) {
            // Shared with a child, held, or absent: copy it, then drop it.
            self.peek(page, scratch);
            self.must(uffd.copy(shelf, scratch, false), "shelve a page", page);
            // SAFETY: its bytes are on the shelf.
            let dropped = unsafe { sys::drop_range(address..address + PAGE) };
            self.must(dropped, "drop a page", page);
        }
        Stats::add(&self.stats().flushes, 1);
        self.note_left(page, shelf);
        self.pages.release(page, owner, Where::Shelved);
    }

    /// Removes pages from the page table and keeps them, with one flush of the TLB: each move of its own has a flush,
    /// which interrupts every processor that runs the program. Costs a copy of each page instead. Returns false, and does
    /// nothing, if each must be moved because the kernel may hold its frame.
    fn shelve_pages(&self, task: &Task, pages: &[Move], owner: Owner) -> bool {
        let taking = self.taking(task);
        if taking.wary {
            return false;
        }
        let mut leaving = [Victim::default(); VICTIMS];
        for (to, one) in leaving.iter_mut().zip(pages) {
            let page = one.page();
            *to = Victim { page, address: self.address(page), ..Victim::default() };
        }
        let leaving = &mut leaving[..pages.len()];
        self.pull(task, leaving, leaving.len(), &taking);
        self.put_on_shelf(task, leaving, 0, owner);
        true
    }

    /// Puts pages onto the shelf whose bytes are next in the pipe, through the staging memory from page `at` on.
    pub(crate) fn put_on_shelf(&self, task: &Task, leaving: &[Victim], at: usize, owner: Owner) {
        let staging = task.staging + at * PAGE;
        // SAFETY: the staging memory takes as many pages as there can be victims.
        if unsafe { sys::read_pipe(task.pipe.0.as_raw_fd(), staging, leaving.len() * PAGE) }.is_err() {
            fatal::stop("the kernel did not give pages back (read of a pipe)");
        }
        for (i, one) in leaving.iter().enumerate() {
            let from = staging + i * PAGE;
            self.compare(one, from);
            self.must(self.uffd.get().copy(self.shelf(one.page), from, false), "shelve a page", one.page);
            self.pages.release(one.page, owner, Where::Shelved);
        }
    }

    /// Puts the page back: a false fault.
    fn unshelve_page(&self, page: usize, write: bool, owner: Owner) {
        let (address, shelf) = (self.address(page), self.shelf(page));
        let uffd = self.uffd.get();
        // A moved page can be written to from that moment on. The engine knows of earlier writes.
        let clean = self.exact() && !write;
        let moved = if clean || !uffd.can_move { Err(Errno::BUSY) } else { uffd.move_page(address, shelf) };
        if moved == Err(Errno::NOENT) {
            // A read would wait for a fault that only this thread could serve.
            fatal::stop(format_args!("internal error: the page for {address:#x} is not on the shelf"));
        }
        if moved.is_err() {
            self.must(uffd.copy(address, shelf, clean), "put a shelved page back", page);
            // SAFETY: its bytes are in place.
            let dropped = unsafe { sys::drop_range(shelf..shelf + PAGE) };
            self.must(dropped, "drop a page", page);
        }
        self.pages.set_epoch(page, self.epoch.load(Ordering::Relaxed));
        let to = if write { Where::Dirty } else { Where::Unsure };
        self.pages.release(page, owner, if clean { Where::Clean } else { to });
    }
}
