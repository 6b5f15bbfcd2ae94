//! Operations on memory: map, discard, prefetch, pin. Regions use them, and so does the preload library, for memory
//! without an owner.

use std::ops::Range;

use coldframe_core::{Event, PageId};
use coldframe_pager_plan::HINTS;

use crate::fault::pager::{Decider, Inner, Kind, Pager};
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::sys;
use crate::task::{Laps, Todo, VICTIMS};
use crate::{LiveError, Options, Snapshot, PAGE};

/// After this many discarded pages, the engine's lock is freed for others.
const DISCARDS: usize = 256;

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

    /// The options it was made from, with the values measured and chosen at the start.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The managed address space.
    pub fn span(&self) -> Range<usize> {
        self.inner.space.span()
    }

    /// Drops the content of a range: it reads as zeros.
    pub fn discard(&self, address: usize, len: usize) {
        let pages = self.inner.pages_at(address, len);
        if self.inner.is_unpaged() {
            return self.inner.discard_plain(&pages);
        }
        self.inner.space.touched(pages).for_each(|touched| self.inner.discard_pages(touched));
    }

    /// Loads a range, many pages at a time.
    pub fn will_need(&self, address: usize, len: usize) {
        let pages = self.inner.pages_at(address, len);
        let touched = self.inner.space.touched(pages).flatten();
        self.inner.load_pages(touched.filter(|page| self.inner.has_content(*page)));
    }

    /// Loads a range and keeps it in RAM until `unpin`. Pins nest.
    ///
    /// # Errors
    /// More pages than may be pinned.
    pub fn pin(&self, address: usize, len: usize) -> Result<(), LiveError> {
        self.inner.pin_pages(self.inner.pages_at(address, len))
    }

    /// Undoes `pin`.
    pub fn unpin(&self, address: usize, len: usize) {
        self.inner.unpin_touched(self.inner.pages_at(address, len));
    }

    /// Before a fork, called by the forking thread of a pager `for_program` (otherwise this happens by itself). When
    /// it returns, no fault is in flight and none begins.
    pub fn fork_prepare(&self) {
        self.inner.fork_prepare();
    }

    /// After the fork, in the parent.
    ///
    /// # Errors
    /// The kernel refused to let a child have the memory. If there is a child, it has ended at once.
    pub fn fork_parent(&self) -> std::io::Result<()> {
        self.inner.fork_parent().map_err(std::io::Error::from)
    }

    /// After the fork, in the child: from now on it pages for itself, in a budget of its own.
    pub fn fork_child(&self) {
        self.inner.fork_child();
    }

    /// The number of threads of this process that belong to the pager.
    pub fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// File descriptors that the program must not close.
    pub fn descriptors(&self) -> Vec<i32> {
        self.inner.descriptors()
    }

    /// The process is about to end: writes the journal to its file, and takes this process's share out of the
    /// statistics of the present.
    pub fn end(&self) {
        // In this process the log is the parent's, and its lock may be held for good.
        if self.inner.is_unpaged() {
            return;
        }
        self.flush_journal();
        // A child without paging has the log's tables as the parent locked them for the fork, and has no share in the
        // counts.
        if !self.inner.is_unpaged() {
            if let Some(recording) = self.inner.recording.get() {
                recording.end(self.inner.resident.load(std::sync::atomic::Ordering::Relaxed));
            }
            self.inner.note_tables();
            self.inner.withdraw();
        }
    }

    /// Writes the journal to its file.
    pub fn flush_journal(&self) {
        let _signals = Signals::block();
        if let Some(journal) = &mut self.inner.decider.lock().side.journal {
            journal.flush();
        }
    }

    /// Checks every invariant of the engine. For tests, while no fault is in flight.
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

    /// Runs `f` with a task, with the gate open and signals blocked, and then carries out its results.
    fn with_task(&self, f: impl FnOnce(&mut Decider, &mut Todo)) {
        let _signals = Signals::block();
        let number = self.take_task();
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { self.tasks().get(number).todo() };
        {
            let mut decider = self.enter();
            f(&mut decider, todo);
        }
        todo.laps = Laps::default();
        self.carry_out(todo);
        self.bring_back(todo);
        (todo.together, todo.asked_at) = (false, 0);
        self.leave();
        self.tasks().give(number);
    }

    /// Loads absent pages, [`HINTS`] at a time.
    pub(crate) fn load_pages(&self, pages: impl Iterator<Item = usize>) {
        if self.is_unpaged() {
            return;
        }
        let out = |page: &usize| match self.pages.get(*page) {
            Where::Nowhere => self.begin(*page),
            other => other == Where::Out,
        };
        let mut pages = pages.filter(out).peekable();
        while pages.peek().is_some() {
            self.with_task(|decider, todo| {
                todo.together = true;
                for page in pages.by_ref().take(HINTS) {
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

    /// Drops content. After every [`DISCARDS`] pages, other threads get the engine's lock and this thread gets its
    /// signals.
    pub(crate) fn discard_pages(&self, pages: Range<usize>) {
        if self.is_unpaged() {
            return self.discard_plain(&pages);
        }
        let mut next = pages.start;
        while next < pages.end {
            // Long ranges without content are skipped without a lock.
            if !self.has_content(next) && !self.has_slot(next) {
                next += 1;
                continue;
            }
            let (mut stuck, end) = (false, pages.end.min(next + DISCARDS));
            self.with_task(|decider, todo| {
                while next < end && todo.victims.len() < VICTIMS - 1 && !stuck {
                    stuck = !self.release(decider, todo, next);
                    next += usize::from(!stuck);
                }
            });
            if stuck {
                self.let_settle(next);
            }
        }
    }

    /// Sleeps while another thread is changing the page, or gives that thread time to bring the page in.
    fn let_settle(&self, page: usize) {
        match self.pages.get(page).is_owned() {
            true => self.pages.wait(page),
            false => sys::sleep_us(20),
        }
    }

    /// Returns false if another thread is changing or loading the page just now.
    fn release(&self, decider: &mut Decider, todo: &mut Todo, page: usize) -> bool {
        let event = Event::Released { page: PageId::from(page) };
        let state = self.pages.get(page);
        if state.is_owned() || state == Where::Kept || !decider.engine.accepts(&event) {
            return false;
        }
        self.deliver(decider, todo, event);
        Stats::sub(&self.stats().pinned, self.pages.pins(page).into());
        self.pages.set_pins(page, 0);
        if let Some(recording) = self.recording.get() {
            self.pages.set_sum(page, 0);
            recording.released(page);
        }
        let slot = self.pages.set_slot(page, None);
        self.log.get().forget(page, slot);
        true
    }

    /// Loads pages one by one and hides each from the policy.
    pub(crate) fn pin_pages(&self, pages: Range<usize>) -> Result<(), LiveError> {
        if self.is_unpaged() {
            return Ok(());
        }
        for page in pages.clone() {
            if let Err(error) = self.pin_page(page) {
                self.unpin_pages(pages.start..page);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A pinned page is writable: the kernel may write to it where it would not wait for a fault, or without the page
    /// table.
    fn pin_page(&self, page: usize) -> Result<(), LiveError> {
        let (address, mut result) = (self.address(page), None);
        let _signals = Signals::block();
        loop {
            match self.pages.get(page) {
                Where::Nowhere if self.begin(page) => {}
                Where::Nowhere => return Err(self.hole(page)),
                Where::Out | Where::Shelved => self.serve(address, true, Kind::Missing, 0),
                Where::Clean => self.serve(address, true, Kind::Protected, 0),
                Where::Busy | Where::Leaving | Where::Refused => self.pages.wait(page),
                Where::Kept => sys::sleep_us(20),
                was @ (Where::Dirty | Where::Unsure) => {
                    self.with_task(|decider, todo| {
                        let owner = Owner::task(todo.task);
                        if self.pages.acquire(page, was, Where::Busy, owner) {
                            result = Some(self.pin_resident(decider, todo, page));
                            // The kernel may write to it without a fault that shows it.
                            self.pages.release(page, owner, Where::Dirty);
                        }
                    });
                }
            }
            if let Some(result) = result {
                return result;
            }
        }
    }

    fn hole(&self, page: usize) -> LiveError {
        let start = page * PAGE;
        LiveError::Range { start, end: start + PAGE, len: self.space.span().len() }
    }

    fn pin_resident(&self, decider: &mut Decider, todo: &mut Todo, page: usize) -> Result<(), LiveError> {
        let (frames, pinned) = (decider.engine.frames_for_pages(), decider.engine.frames().pinned());
        let keep = decider.engine.config().caps.buffers as usize + decider.engine.config().evict_batch;
        if pinned + keep >= frames {
            return Err(LiveError::Pinned { asked: 1, pinned, frames, keep });
        }
        self.deliver(decider, todo, Event::Pinned { page: PageId::from(page) });
        debug_assert!(todo.done(), "pinning moves nothing");
        self.pages.set_pins(page, self.pages.pins(page) + 1);
        Stats::add(&self.stats().pinned, 1);
        Ok(())
    }

    pub(crate) fn unpin_pages(&self, pages: Range<usize>) {
        if self.is_unpaged() {
            return;
        }
        for page in pages {
            self.with_task(|decider, todo| {
                let event = Event::Unpinned { page: PageId::from(page) };
                if decider.engine.accepts(&event) {
                    self.deliver(decider, todo, event);
                    self.pages.set_pins(page, self.pages.pins(page) - 1);
                    Stats::sub(&self.stats().pinned, 1);
                }
            });
        }
    }
}
