//! The engine behind its lock, and the gate that a fork shuts.
//!
//! [`Gate::enter`], any number of [`Decider::deliver`], the lock's release, the work that is noted by then, and
//! [`Gate::leave`]: in this order, once for each fault and each call of a region. A thread takes its task before
//! `enter`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use coldframe_core::prefetch::{Neighbours, Streams};
use coldframe_core::{Engine, Event, Machine, PageId};
use coldframe_journal::Entry;

use super::machine::{Linux, UnderLock};
use crate::record::journal::JournalFile;
use crate::stats::Stats;
use crate::sys::lock::{Guard, Lock};
use crate::sys::{self, fatal};
use crate::task::Todo;
use crate::work::Work;
use crate::Options;

/// After this time, a message says what a fork waits for.
const LONG_NS: u64 = 2_000_000_000;

/// What the engine's lock guards.
pub struct Decider {
    pub(super) engine: Engine,
    pub(super) streams: Streams,
    pub(super) neighbours: Neighbours,
    under_lock: UnderLock,
}

impl Decider {
    pub fn new(engine: Engine, options: &Options, under_lock: UnderLock) -> Decider {
        let (streams, neighbours) = (Streams::new(options.read_ahead), Neighbours::new(options.block));
        Decider { engine, streams, neighbours, under_lock }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Frames for pages, those that are pinned, and those that no pin may take: the device's buffers and a batch of
    /// victims.
    pub fn for_pins(&self) -> (usize, usize, usize) {
        let (engine, config) = (&self.engine, self.engine.config());
        (engine.frames().len(), engine.frames().pinned(), config.caps.buffers as usize + config.evict_batch)
    }

    pub fn journal(&mut self) -> &mut Option<JournalFile> {
        &mut self.under_lock.journal
    }

    /// Reports an event; its commands are carried out or noted in `todo`.
    pub fn deliver(&mut self, work: &Work, todo: &mut Todo, event: Event) {
        self.handle(work, todo, event, false);
    }

    /// `more_follow`: other events follow at once, and their loads go to the device together.
    fn handle(&mut self, work: &Work, todo: &mut Todo, event: Event, more_follow: bool) {
        let Decider { engine, under_lock, .. } = self;
        if let Some(journal) = &mut under_lock.journal {
            journal.event(&Entry::Event { now: sys::now() * 1000, event });
        }
        for buffer in todo.spare.drain(..) {
            under_lock.spare.push(buffer);
        }
        let (pinned, forced) = (engine.frames().pinned(), engine.counts().forced_evictions);
        let mut linux = Linux::new(work, under_lock, todo, more_follow);
        engine.handle(event, &mut linux as &mut dyn Machine);
        if engine.frames().pinned() != pinned {
            Stats::add(&work.stats.pinned, engine.frames().pinned().wrapping_sub(pinned) as u64);
        }
        Stats::add(&work.stats.forced_evictions, engine.counts().forced_evictions - forced);
        if let Some(swap) = engine.swap() {
            under_lock.reported.add_to(swap, work.stats);
        }
    }

    /// Asks for a page ahead of its fault. Its load goes to the device with others, by `Work::start_loads`.
    pub fn wish(&mut self, work: &Work, todo: &mut Todo, page: usize) {
        let before = *self.engine.counts();
        self.handle(work, todo, Event::WillNeed { page: PageId::from(page) }, true);
        let (stats, after) = (work.stats, self.engine.counts());
        Stats::add(&stats.prefetches, after.prefetches - before.prefetches);
        Stats::add(&stats.prefetches_dropped, after.prefetches_dropped - before.prefetches_dropped);
    }
}

/// The engine's lock, and who is inside.
pub struct Gate {
    decider: Lock<Decider>,
    /// Threads that have entered and not left.
    inside: AtomicUsize,
    /// A fork is in progress: no thread enters.
    shut: AtomicBool,
}

impl Gate {
    pub fn new(decider: Decider) -> Gate {
        Gate { decider: Lock::new(decider), inside: AtomicUsize::new(0), shut: AtomicBool::new(false) }
    }

    /// The engine's lock; waits while a fork is in progress. No fork can begin until `leave`.
    pub fn enter(&self) -> Guard<'_, Decider> {
        loop {
            let decider = self.decider.lock();
            if !self.shut.load(Ordering::Relaxed) {
                self.inside.fetch_add(1, Ordering::AcqRel);
                return decider;
            }
            drop(decider);
            sys::sleep_us(20);
        }
    }

    pub fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }

    /// The engine's lock, to look, or for a thread that has entered.
    pub fn lock(&self) -> Guard<'_, Decider> {
        self.decider.lock()
    }

    pub fn is_mine(&self) -> bool {
        self.decider.is_mine()
    }

    /// Before a fork: takes the engine's lock when no thread is inside, and keeps it.
    pub fn close(&self) {
        let started = sys::now();
        let mut reported = false;
        loop {
            // Another thread's fork may have opened the gate since.
            self.shut.store(true, Ordering::Relaxed);
            let decider = self.decider.lock();
            if self.inside.load(Ordering::Acquire) == 0 {
                self.shut.store(true, Ordering::Relaxed);
                std::mem::forget(decider);
                return;
            }
            drop(decider);
            if !reported && sys::now() - started > LONG_NS {
                reported = true;
                fatal::say("a fork waits until the device has answered the faults in flight");
            }
            sys::give_way();
        }
    }

    /// What the lock guards, between `close` and `open`, or at a start.
    ///
    /// # Safety
    /// This is the thread that closed the gate, or the only thread that knows the pager.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn held(&self) -> &mut Decider {
        // SAFETY: the caller answers for it.
        unsafe { self.decider.held() }
    }

    /// After a fork, in parent and child.
    pub fn open(&self) {
        self.shut.store(false, Ordering::Relaxed);
        self.decider.free();
    }
}
