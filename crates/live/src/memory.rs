//! Memory that comes and goes: mapping, discarding, wishing for, pinning. What a region is made of, and what the preload library
//! needs of it without an owner.

use std::ops::Range;

use coldframe_core::{Event, PageId};

use crate::pager::{wait, Decider, Inner, Pager};
use crate::pages::Where;
use crate::stats::Stats;
use crate::sys;
use crate::task::{Laps, Todo, LOADS, VICTIMS};
use crate::{LiveError, Options, Snapshot, PAGE};

/// Signals are blocked while it lives: a handler of the program must not fault while this thread holds a lock.
pub(crate) struct Signals(u64);

impl Signals {
    pub(crate) fn block() -> Signals {
        Signals(sys::block_signals())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        sys::restore_signals(self.0);
    }
}

impl Pager {
    /// Statistics now.
    pub fn stats(&self) -> Snapshot {
        self.inner.stats().snapshot()
    }

    /// The options it was made from, with what was measured and chosen at the start filled in.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The managed address space.
    pub fn span(&self) -> Range<usize> {
        self.inner.space.span()
    }

    /// Takes `len` bytes of zeroed managed memory at a multiple of `align`. For code that manages memory itself; others want
    /// [`Pager::anonymous`].
    ///
    /// # Errors
    /// No address space left.
    pub fn map(&self, len: usize, align: usize) -> Result<*mut u8, LiveError> {
        let pages = len.div_ceil(PAGE).max(1);
        let first = self.inner.space.take(pages, align.max(PAGE))?;
        self.inner.open_pages(first..first + pages, None);
        Ok(self.inner.address(first) as *mut u8)
    }

    /// Gives a range back; a later touch is a SIGSEGV.
    pub fn unmap(&self, address: usize, len: usize) {
        self.inner.close_pages(self.inner.pages_at(address, len));
    }

    /// Forgets the content of a range: it reads as zeros.
    pub fn discard(&self, address: usize, len: usize) {
        self.inner.discard_pages(self.inner.pages_at(address, len));
    }

    /// Loads a range, many pages at a time.
    pub fn will_need(&self, address: usize, len: usize) {
        self.inner.load_pages(self.inner.pages_at(address, len));
    }

    /// Loads a range and keeps it in RAM until `unpin`. Nests.
    ///
    /// # Errors
    /// More pages than may be pinned.
    pub fn pin(&self, address: usize, len: usize) -> Result<(), LiveError> {
        self.inner.pin_pages(self.inner.pages_at(address, len))
    }

    /// Undoes `pin`.
    pub fn unpin(&self, address: usize, len: usize) {
        self.inner.unpin_pages(self.inner.pages_at(address, len));
    }

    /// Before a fork, by the forking thread, if faults are handled by threads (else it is done by itself): when it returns, no fault
    /// is in flight and none begins.
    pub fn fork_prepare(&self) {
        self.inner.fork_prepare();
    }

    /// After the fork, in the parent.
    pub fn fork_parent(&self) {
        self.inner.fork_parent();
    }

    /// After the fork, in the child: it pages for itself from now on, in a budget of its own.
    pub fn fork_child(&self) {
        self.inner.fork_child();
    }

    /// File descriptors that the program must not close.
    pub fn descriptors(&self) -> Vec<i32> {
        self.inner.descriptors()
    }

    /// The process is about to end: the journal is brought to its file, and the statistics of what there is now are taken back.
    pub fn end(&self) {
        self.flush_journal();
        self.inner.withdraw();
    }

    /// Brings the journal to its file.
    pub fn flush_journal(&self) {
        let _signals = Signals::block();
        if let Some(journal) = &mut self.inner.decider.lock().side.journal {
            journal.flush();
        }
    }

    /// Checks every invariant of the engine; for tests, while no fault is in flight.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        let _signals = Signals::block();
        self.inner.decider.lock().engine.check();
    }
}

impl Inner {
    pub(crate) fn frames(&self) -> usize {
        self.options.ram as usize / PAGE
    }

    fn pages_at(&self, address: usize, len: usize) -> Range<usize> {
        let start = (address - self.space.start()) / PAGE;
        start..start + len.div_ceil(PAGE)
    }

    pub(crate) fn open_pages(&self, pages: Range<usize>, file: Option<usize>) {
        Stats::add(&self.stats().managed, pages.len() as u64);
        for page in pages {
            self.pages.set_file(page, file);
            self.pages.set(page, Where::Out);
        }
    }

    pub(crate) fn close_pages(&self, pages: Range<usize>) {
        self.discard_pages(pages.clone());
        for page in pages.clone() {
            self.pages.set(page, Where::Nowhere);
        }
        Stats::sub(&self.stats().managed, pages.len() as u64);
        self.space.give(pages.start, pages.len());
    }

    /// Runs `f` with a task, with the gate open and signals blocked, and then does what it has led to.
    fn with_task(&self, f: impl FnOnce(&mut Decider, &mut Todo)) {
        let number = self.tasks().take();
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { self.tasks().get(number).todo() };
        {
            let mut decider = self.enter();
            f(&mut decider, todo);
        }
        todo.laps = Laps::begin(sys::now());
        self.carry_out(todo);
        (todo.together, todo.asked_at) = (false, 0);
        self.leave();
        self.tasks().give(number);
    }

    /// Loads pages that are out, half as many at a time as can be in flight.
    pub(crate) fn load_pages(&self, pages: impl Iterator<Item = usize>) {
        let _signals = Signals::block();
        let mut pages = pages.filter(|page| self.pages.get(*page) == Where::Out).peekable();
        while pages.peek().is_some() {
            self.with_task(|decider, todo| {
                todo.together = true;
                for page in pages.by_ref().take(LOADS / 2) {
                    if self.pages.get(page) == Where::Out {
                        self.wish(decider, todo, page);
                    }
                }
            });
        }
    }

    pub(crate) fn wish(&self, decider: &mut Decider, todo: &mut Todo, page: usize) {
        let before = *decider.engine.counts();
        self.deliver(decider, todo, Event::WillNeed { page: PageId::from(page) });
        let after = decider.engine.counts();
        Stats::add(&self.stats().prefetches, after.prefetches - before.prefetches);
        Stats::add(&self.stats().prefetches_dropped, after.prefetches_dropped - before.prefetches_dropped);
    }

    /// Forgets content.
    pub(crate) fn discard_pages(&self, pages: Range<usize>) {
        let _signals = Signals::block();
        let mut next = pages.start;
        while next < pages.end {
            // Whole stretches of memory that was never touched are passed without a lock.
            if self.pages.get(next) == Where::Out && self.pages.slot(next).is_none() && self.pages.file(next).is_none()
            {
                next += 1;
                continue;
            }
            let mut stuck = false;
            self.with_task(|decider, todo| {
                while next < pages.end && todo.victims.len() < VICTIMS - 1 && !stuck {
                    stuck = !self.release(decider, todo, next);
                    next += usize::from(!stuck);
                }
            });
            if stuck {
                sys::give_way();
            }
        }
    }

    /// False: another thread is changing the page just now.
    fn release(&self, decider: &mut Decider, todo: &mut Todo, page: usize) -> bool {
        let event = Event::Released { page: PageId::from(page) };
        if matches!(self.pages.get(page), Where::Busy | Where::Leaving) || !decider.engine.accepts(&event) {
            return false;
        }
        self.deliver(decider, todo, event);
        let slot = self.pages.set_slot(page, None);
        if self.pages.file(page).is_none() {
            self.log.get().free(slot);
        }
        true
    }

    /// Loads pages one by one and takes each out of the policy's sight.
    pub(crate) fn pin_pages(&self, pages: Range<usize>) -> Result<(), LiveError> {
        let _signals = Signals::block();
        for page in pages.clone() {
            if let Err(error) = self.pin_page(page) {
                self.unpin_pages(pages.start..page);
                return Err(error);
            }
        }
        Ok(())
    }

    fn pin_page(&self, page: usize) -> Result<(), LiveError> {
        let mut looks = 0;
        loop {
            if matches!(self.pages.get(page), Where::Out | Where::Held) {
                self.serve(self.address(page), false, crate::pager::Kind::Missing, 0);
            }
            let mut decider = self.enter();
            let there = matches!(self.pages.get(page), Where::Clean | Where::Dirty | Where::Unsure);
            let result = there.then(|| self.pin_resident(&mut decider, page));
            drop(decider);
            self.leave();
            match result {
                Some(result) => return result,
                None => wait(&mut looks),
            }
        }
    }

    fn pin_resident(&self, decider: &mut Decider, page: usize) -> Result<(), LiveError> {
        let (id, frames) = (PageId::from(page), self.frames());
        let pinned = decider.engine.frames().pinned();
        let keep = decider.engine.config().caps.buffers as usize + decider.engine.config().evict_batch;
        if pinned + keep >= frames {
            return Err(LiveError::Pinned { asked: 1, pinned, frames, keep });
        }
        let number = self.tasks().take();
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { self.tasks().get(number).todo() };
        self.deliver(decider, todo, Event::Pinned { page: id });
        debug_assert!(todo.done(), "pinning moves nothing");
        self.tasks().give(number);
        Stats::add(&self.stats().pinned, 1);
        Ok(())
    }

    pub(crate) fn unpin_pages(&self, pages: Range<usize>) {
        let _signals = Signals::block();
        for page in pages {
            self.with_task(|decider, todo| {
                let event = Event::Unpinned { page: PageId::from(page) };
                if decider.engine.accepts(&event) {
                    self.deliver(decider, todo, event);
                    Stats::sub(&self.stats().pinned, 1);
                }
            });
        }
    }
}
