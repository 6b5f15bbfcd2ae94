//! Into the page table and out of it: a loaded page is copied in, a page of the invalid list lies in the holding area and is moved back.

use std::sync::atomic::Ordering;

use crate::fatal;
use crate::pager::Inner;
use crate::pages::Where;
use crate::stats::Stats;
use crate::sys::{self, Errno};
use crate::task::{CopyIn, Move, Todo};
use crate::PAGE;

impl Inner {
    pub(crate) fn copy_in(&self, todo: &mut Todo) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        while let Some(CopyIn { page, from, write, content }) = todo.copies.pop() {
            let to = if write {
                Where::Dirty
            } else if content && !self.options.observe && self.write_share.load(Ordering::Relaxed) > 26 {
                Where::Unsure
            } else {
                Where::Clean
            };
            let address = self.address(page);
            match self.uffd.get().copy(address, from, to == Where::Clean) {
                Ok(()) => {}
                // Something is there already: a raw system call of the program has put it there.
                Err(Errno::EXIST) => {}
                Err(error) => {
                    let error = error.io();
                    fatal::stop(format_args!(
                        "the page at {address:#x} cannot be put into place (UFFDIO_COPY): {error}"
                    ));
                }
            }
            self.pages.set_epoch(page, epoch);
            let resident = self.resident.fetch_add(1, Ordering::Relaxed) + 1;
            Stats::add(&self.stats().resident, 1);
            self.stats().resident_max.fetch_max(resident as u64, Ordering::Relaxed);
            self.pages.set(page, to);
            todo.spare.push(from);
        }
        // One may wait for this task's next fault; more would be missed by others.
        if todo.spare.len() > 1 {
            self.decider.lock().side.spare.append(&mut todo.spare);
        }
    }

    /// To the holding area and back. Before anything else that the engine has commanded: others may be waiting for these pages.
    pub(crate) fn move_pages(&self, todo: &mut Todo) {
        let scratch = self.tasks().get(todo.task).staging;
        for one in todo.moves.drain(..) {
            match one {
                Move::Hold { page, was } => self.hold_page(page, was, scratch),
                Move::Back { page, write } => self.unhold_page(page, write),
            }
        }
    }

    /// Takes a page out of the page table and keeps it: `Command::Unmap`.
    fn hold_page(&self, page: usize, was: Where, scratch: usize) {
        let (address, holding) = (self.address(page), self.holding(page));
        let uffd = self.uffd.get();
        if !uffd.can_move || uffd.move_page(holding, address).is_err() {
            // Shared with a child, or pinned for a moment: write-protect it, copy it, drop it.
            if was != Where::Clean {
                self.must(uffd.protect(address..address + PAGE, true), "protect a page", page);
            }
            let copied = match uffd.copy(holding, address, false) {
                // The program has made it inaccessible.
                // SAFETY: the scratch page is this thread's.
                Err(Errno::FAULT) => {
                    unsafe { sys::peek(address, scratch) }.and_then(|()| uffd.copy(holding, scratch, false))
                }
                other => other,
            };
            self.must(copied, "hold a page", page);
            // SAFETY: its bytes are in the holding area.
            let dropped = unsafe { sys::advise(address..address + PAGE, libc::MADV_DONTNEED) };
            self.must(dropped, "drop a page", page);
        }
        Stats::add(&self.stats().flushes, 1);
        self.pages.set(page, Where::Held);
    }

    /// Puts it back: a false fault.
    fn unhold_page(&self, page: usize, write: bool) {
        let (address, holding) = (self.address(page), self.holding(page));
        let uffd = self.uffd.get();
        if !uffd.can_move || uffd.move_page(address, holding).is_err() {
            self.must(uffd.copy(address, holding, false), "put a held page back", page);
            // SAFETY: its bytes are in place.
            let dropped = unsafe { sys::advise(holding..holding + PAGE, libc::MADV_DONTNEED) };
            self.must(dropped, "drop a page", page);
        }
        self.pages.set_epoch(page, self.epoch.load(Ordering::Relaxed));
        self.pages.set(page, if write { Where::Dirty } else { Where::Unsure });
    }
}
