//! Operations on memory: map, discard, prefetch, pin. Regions use them, and so does the preload library, for memory
//! without an owner.

use std::ops::Range;

use coldframe_core::{Event, PageId};
use coldframe_recording::plan::HINTS;

use super::ManagedMemory;
use crate::fault::gate::Decider;
use crate::fault::serve::FaultKind;
use crate::page::pages::{Owner, Where};
use crate::sys::{self, Signals};
use crate::task::{Todo, VICTIMS};
use crate::{LiveError, PAGE};

/// After this many discarded pages, the engine's lock is freed for others.
const DISCARDS: usize = 256;

impl ManagedMemory {
    /// Loads absent pages, [`HINTS`] at a time.
    pub fn load_pages(&self, pages: impl Iterator<Item = usize>) {
        // In slow memory pages are read where they are.
        if self.memory().is_the_kernels() || self.space().is_of_file() {
            return;
        }
        let out = |page: &usize| match self.pages().get(*page) {
            Where::Nowhere => self.memory().begin(*page),
            other => other == Where::Out,
        };
        let mut pages = pages.filter(out).peekable();
        while pages.peek().is_some() {
            self.with_task(|decider, todo| {
                for page in pages.by_ref().take(HINTS) {
                    if self.pages().get(page) == Where::Out {
                        decider.wish(&self.work, todo, page);
                    }
                }
            });
        }
    }

    pub fn discard(&self, pages: Range<usize>) {
        if self.memory().is_the_kernels() {
            self.discard_plain(&pages);
        }
        if self.memory().is_plain() {
            return;
        }
        // Of memory that comes under watch just now, the engine may have some pages already.
        self.space().touched(pages).for_each(|touched| self.discard_pages(touched));
    }

    /// Drops content. After every [`DISCARDS`] pages, other threads get the engine's lock and this thread gets its
    /// signals.
    pub fn discard_pages(&self, pages: Range<usize>) {
        let mut next = pages.start;
        while next < pages.end {
            // Long ranges without content are skipped without a lock.
            if !self.memory().has_content(next) && !self.work.log().has_slot(next) {
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
            // Sleeps while another thread is changing the page, or gives that thread time to bring the page in.
            match stuck.then(|| self.pages().get(next)) {
                None => {}
                Some(state) if state.is_owned() => self.pages().wait(next),
                Some(_) => sys::sleep_us(20),
            }
        }
    }

    /// Returns false if another thread is changing or loading the page just now.
    fn release(&self, decider: &mut Decider, todo: &mut Todo, page: usize) -> bool {
        let event = Event::Released { page: PageId::from(page) };
        let state = self.pages().get(page);
        if state.is_owned() || state == Where::Unevicted || !decider.engine().accepts(&event) {
            return false;
        }
        decider.deliver(&self.work, todo, event);
        self.work.forget(page);
        true
    }

    /// Loads pages one by one and hides each from the policy.
    pub fn pin_pages(&self, pages: Range<usize>) -> Result<(), LiveError> {
        self.take_over();
        if self.memory().is_plain() {
            return Ok(());
        }
        for page in pages.clone() {
            while let Err(error) = self.pin_page(page) {
                if !matches!(error, LiveError::Pinned { .. }) || self.frames_to_pin(1) == 0 {
                    self.unpin_pages(pages.start..page);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// A pinned page is writable: the kernel may write to it where it would not wait for a fault, or without the page
    /// table.
    fn pin_page(&self, page: usize) -> Result<(), LiveError> {
        let (address, mut result) = (self.memory().address(page), None);
        let _signals = Signals::block();
        loop {
            match self.pages().get(page) {
                Where::Nowhere if self.memory().begin(page) => {}
                Where::Nowhere => return Err(self.hole(page)),
                Where::Out | Where::Aside => self.serve(address, true, FaultKind::Missing, 0),
                Where::InPlace => _ = self.promote(page),
                Where::Clean | Where::InSlot => self.serve(address, true, FaultKind::Protected, 0),
                Where::Busy | Where::Leaving | Where::Refused => self.pages().wait(page),
                Where::Unevicted => sys::sleep_us(20),
                was @ (Where::Dirty | Where::Unsure) => {
                    self.with_task(|decider, todo| {
                        let owner = Owner::task(todo.task);
                        if self.pages().acquire(page, was, Where::Busy, owner) {
                            result = Some(self.pin_resident(decider, todo, page));
                            // The kernel may write to it without a fault that shows it.
                            self.pages().release(page, owner, Where::Dirty);
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
        LiveError::Range { start, end: start + PAGE, len: self.space().span().len() }
    }

    fn pin_resident(&self, decider: &mut Decider, todo: &mut Todo, page: usize) -> Result<(), LiveError> {
        let full = |decider: &Decider| {
            let (frames, pinned, keep) = decider.for_pins();
            pinned + keep >= frames
        };
        if full(decider) {
            let (frames, pinned, keep) = decider.for_pins();
            return Err(LiveError::Pinned { requested: 1, pinned, frames, keep });
        }
        decider.deliver(&self.work, todo, Event::Pinned { page: PageId::from(page) });
        debug_assert!(todo.done(), "pinning moves nothing");
        Ok(())
    }

    pub fn unpin_pages(&self, pages: Range<usize>) {
        if self.memory().is_plain() {
            return;
        }
        for page in pages {
            self.with_task(|decider, todo| {
                let event = Event::Unpinned { page: PageId::from(page) };
                if decider.engine().accepts(&event) {
                    decider.deliver(&self.work, todo, event);
                }
            });
        }
    }
}
