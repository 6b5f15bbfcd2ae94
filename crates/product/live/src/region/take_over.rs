//! Hands all memory from the kernel to the engine (`memory/kernel_owned.rs`).
//!
//! ```text
//!   watch all ranges ─ what is there becomes the engine's, page by page ─ from now on as everywhere else
//! ```
//! The program's threads run during this time. A page that is there is used without a fault; one that is not has a
//! fault as always. What the program drops goes by the kernel until the end, as by a bare system call.

use std::ops::Range;

use coldframe_core::{Event, PageId};

use super::ManagedMemory;
use crate::memory::kernel_owned::KernelOwned;
use crate::page::pages::Where;
use crate::sys::{self, fatal, Signals, Sys};
use crate::PAGE;

/// Pages that are looked at, and given to the engine, at a time.
const STEP: usize = 64;

impl ManagedMemory {
    /// From now on the engine owns the memory: pins, forks and pinned frames need that.
    pub fn take_over(&self) {
        if self.memory().kernel_owned.is_on() {
            let _signals = Signals::block();
            let _changing = self.space().changing();
            if let Err(error) = self.watch_all() {
                fatal::stop(format_args!("memory cannot be watched (UFFDIO_REGISTER): {}", sys::words(error)));
            }
        }
    }

    /// Before the program may touch memory that it could not touch.
    pub fn open_range(&self, range: Range<usize>) -> Sys<()> {
        if !self.memory().kernel_owned.is_on() {
            return Ok(());
        }
        let _signals = Signals::block();
        let _changing = self.space().changing();
        let closed = self.space().managed_within(range.clone()).into_iter().filter(|(_, manner)| !manner.opened);
        let more = closed.map(|(part, _)| part.len() / PAGE).sum();
        if !self.is_kernel_owned(more) {
            return self.watch_all();
        }
        self.space().extents().change(range, |manner| manner.opened = true);
        self.memory().count_in(more);
        Ok(())
    }

    /// Whether the program may touch `more` pages, and none has to be watched.
    pub(super) fn is_kernel_owned(&self, more: usize) -> bool {
        let (memory, pages) = (self.memory(), self.memory().resident() + more);
        memory.kernel_owned.is_on() && (memory.kernel_owned.has_room(pages) || self.borrow_for(pages))
    }

    /// From now on memory is watched. The caller changes the space.
    pub(super) fn watch_all(&self) -> Sys<()> {
        if !self.memory().kernel_owned.is_on() {
            return Ok(());
        }
        let managed = self.space().managed_within(self.space().span());
        managed.iter().try_for_each(|(range, _)| self.memory().uffd().register(range.clone()))?;
        self.memory().count_out(self.memory().resident());
        // What nobody could ever touch has no page: some runtimes reserve 1 TiB, and use a thousandth.
        let touchable = managed.into_iter().filter(|(_, manner)| manner.opened && !manner.guarded);
        touchable.map(|(range, _)| range).try_for_each(|range| self.adopt(range))?;
        self.memory().kernel_owned.end();
        Ok(())
    }

    fn adopt(&self, range: Range<usize>) -> Sys<()> {
        for start in range.clone().step_by(STEP * PAGE) {
            let mut there = [0u64; STEP];
            let there = &mut there[..(range.end - start).div_ceil(PAGE).min(STEP)];
            self.memory().kernel_owned.look(start, there)?;
            let first = self.space().pages_of(&(start..start)).start;
            let there = there.iter().enumerate().filter(|(_, there)| KernelOwned::has_content(**there));
            self.with_task(|decider, todo| {
                for (page, entry) in there.map(|(i, entry)| (first + i, entry)).filter(|(page, _)| self.adopted(*page))
                {
                    if KernelOwned::is_shared(*entry) {
                        self.memory().note_shared(page);
                    }
                    let event = Event::FirstTouchNeighbour { page: PageId::from(page) };
                    if decider.engine().accepts(&event) {
                        decider.deliver(&self.work, todo, event);
                    }
                    if self.pages().get(page) == Where::Unevicted {
                        todo.note_unevicted(page);
                    }
                }
            });
        }
        Ok(())
    }

    /// The page is there, and the engine gets it, beside no other; if it has no frame, by a fault. False: a fault of
    /// the program's was faster.
    fn adopted(&self, page: usize) -> bool {
        let mut new = false;
        self.space().touch(page, || {
            new = self.pages().get(page) == Where::Nowhere;
            if new {
                self.pages().set(page, Where::Unevicted);
            }
        });
        new
    }
}
