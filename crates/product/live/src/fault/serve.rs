//! Serves a fault: looks at its page, reports it to the engine, carries out what follows.

use std::ops::Range;
use std::sync::atomic::Ordering;

use coldframe_core::{Access, Event, PageId, Stage, TaskId};

use super::gate::Decider;
use super::Faults;
use crate::memory::space::BLOCK;
use crate::page::pages::{Owner, Where};
use crate::stats::Stats;
use crate::swap::log::SEGMENT;
use crate::sys::lock::Guard;
use crate::sys::{self, fatal};
use crate::task::Laps;
use crate::PAGE;

/// The state of the page when the fault was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The page was absent.
    Missing,
    /// The page was there, and protected.
    Protected,
}

impl Faults {
    /// Resolves a fault of `thread` (0: not known). When this returns, the access may be repeated.
    pub fn serve(&self, address: usize, write: bool, kind: FaultKind, thread: u32) {
        let started = sys::now();
        let page = (address - self.memory().space.start) / PAGE;
        if page >= self.memory().space.pages {
            return stray(thread);
        }
        let mut waited = false;
        loop {
            let state = self.pages().get(page);
            match state {
                Where::Busy | Where::Leaving | Where::Refused if self.work.help(thread) => return,
                // Not managed: when the access is repeated, the kernel sends SIGSEGV.
                Where::Nowhere if !self.memory().begin(page) => return,
                Where::Nowhere => {}
                Where::Clean if write => {
                    if self.pages().acquire(page, state, Where::Busy, Owner::BRIEF) {
                        return self.unprotect(page, started);
                    }
                }
                Where::Clean | Where::Dirty | Where::Unsure => return self.look_again(page, state, kind, waited),
                // A bare call of the program has just dropped it.
                Where::Unevicted => {
                    self.work.reader.hand_over();
                    sys::sleep_us(20);
                }
                Where::Busy | Where::Leaving | Where::Refused => {
                    self.work.reader.hand_over();
                    self.pages().wait(page);
                }
                // It was taken out of the page table, as a sample or by the kernel, or another thread was faster.
                Where::InSlot if !write => {
                    if self.work.samples.is_used_often(page, started) && self.promote(page) {
                        return;
                    }
                    if self.pages().acquire(page, state, Where::Busy, Owner::BRIEF) {
                        self.memory().map_slot(page);
                        return self.pages().release(page, Owner::BRIEF, Where::InSlot);
                    }
                }
                // Taken as a sample, or dropped by a bare call of the program.
                Where::InPlace => {
                    if self.work.samples.is_used_often(page, started) && self.promote(page) {
                        return;
                    }
                    if self.pages().acquire(page, state, Where::Busy, Owner::BRIEF) {
                        match kind {
                            FaultKind::Protected => self.memory().unprotect(page),
                            FaultKind::Missing => _ = self.memory().refill(page),
                        }
                        return self.pages().release(page, Owner::BRIEF, Where::InPlace);
                    }
                }
                Where::InSlot if self.work.samples.copies_are_dear(started) => self.write_in_place(page),
                Where::Out | Where::Aside | Where::InSlot => {
                    if self.fault(page, write, started, thread) {
                        self.work.samples.copied(state == Where::InSlot, started);
                        return;
                    }
                }
            }
            waited = true;
        }
    }

    /// Makes the pages of a block that are in their slots writable, as private pages in slow memory; their slots are
    /// freed. The engine does not learn of it. A fork waits for this, since the child reads the slots.
    fn write_in_place(&self, page: usize) {
        drop(self.gate.enter());
        let (memory, Some(slow)) = (self.memory(), &self.work.log().slow) else {
            unreachable!("a page is in its slot")
        };
        let first = page / BLOCK * BLOCK;
        let mine = |page: &usize| self.pages().acquire(*page, Where::InSlot, Where::Busy, Owner::BRIEF);
        let taken: Vec<usize> = (first..memory.space.pages.min(first + BLOCK)).filter(mine).collect();
        for run in memory.space.runs(taken.iter().copied()) {
            let pages = memory.space.pages_of(&run);
            memory.unmap_slots(run);
            slow.on_node(|slots| pages.clone().for_each(|page| memory.put_in_place(page, slots + page * PAGE)));
            slow.free(pages.start, pages.len());
        }
        taken.iter().for_each(|page| self.pages().release(*page, Owner::BRIEF, Where::InPlace));
        Stats::add(&self.stats.in_place, taken.len() as u64);
        self.gate.leave();
    }

    /// Copies a page that is used often out of slow memory. Returns false if that is not possible now.
    pub fn promote(&self, page: usize) -> bool {
        let event = Event::ReadOften { page: PageId::from(page) };
        self.with_task(|decider, todo| {
            if matches!(self.pages().get(page), Where::InSlot | Where::InPlace) && decider.engine().accepts(&event) {
                decider.deliver(&self.work, todo, event);
            }
        });
        let is_in_ram = self.pages().get(page).is_mapped();
        Stats::add(&self.stats.promotions, is_in_ram.into());
        is_in_ram
    }

    /// The first write to a page that was mapped read-only.
    fn unprotect(&self, page: usize, started: u64) {
        self.memory().unprotect(page);
        self.pages().release(page, Owner::BRIEF, Where::Dirty);
        self.work.note_written(true);
        Stats::add(&self.stats.write_faults, 1);
        self.stats.write_fault.record(sys::now() - started);
    }

    /// The page is mapped. Either another thread was faster, or the kernel dropped the page without our knowledge,
    /// which makes it zeros. This thread takes the page first, since it may have moved by now. If the page is not
    /// what it was, the access is repeated.
    pub fn look_again(&self, page: usize, state: Where, kind: FaultKind, waited: bool) {
        Stats::add(&self.stats.stale_faults, 1);
        let idle = match kind {
            FaultKind::Protected => state == Where::Clean,
            FaultKind::Missing => waited,
        };
        if idle || !self.pages().acquire(page, state, Where::Busy, Owner::BRIEF) {
            return;
        }
        let after = match kind {
            // A write protection that a fork or a race has left on a writable page.
            FaultKind::Protected => {
                self.memory().unprotect(page);
                state
            }
            FaultKind::Missing if self.memory().refill(page) => Where::Dirty,
            FaultKind::Missing => state,
        };
        self.pages().release(page, Owner::BRIEF, after);
    }

    /// Reports the fault to the engine. Returns false if the page has moved by now; the caller then looks again.
    fn fault(&self, page: usize, write: bool, started: u64, thread: u32) -> bool {
        let number = self.take_task();
        let task = self.work.tasks().get(number);
        // SAFETY: the task was free and is this thread's now.
        let todo = unsafe { task.todo() };
        task.begin();
        let Some(mut decider) = self.admit(page) else {
            self.work.tasks().free.give(number);
            return false;
        };
        todo.laps = Laps::begin(self.stats.true_faults.load(Ordering::Relaxed), started);
        todo.laps.lap(Stage::PreProcess);
        let is_aside = self.pages().get(page) == Where::Aside;
        if !is_aside {
            self.want_frame(&mut decider, todo, started);
        }
        todo.fault = Some((page, write));
        let access = if write { Access::Write } else { Access::Read };
        let event = Event::Fault { task: TaskId::from(number), page: PageId::from(page), access };
        let ahead = if is_aside { Ahead::default() } else { self.ahead(&mut decider, page) };
        let neighbours = self.first_touch_neighbours(&decider, page);
        decider.deliver(&self.work, todo, event);
        ahead.pages[..ahead.len].iter().for_each(|page| decider.wish(&self.work, todo, page.index()));
        for page in &neighbours.pages[..neighbours.len] {
            decider.deliver(&self.work, todo, Event::FirstTouchNeighbour { page: *page });
        }
        drop(decider);
        self.carry_out(todo);
        let requested = std::mem::take(&mut todo.requested_at);
        todo.fault = None;
        task.await_resume(|| self.work.reader.hand_over());
        todo.laps.lap(Stage::PostProcess);
        self.record(started, requested, is_aside, &todo.laps);
        self.bring_back(todo);
        if let Some(recording) = self.work.recording() {
            recording.entry(page, write, !is_aside, thread, started, self.memory().resident());
        }
        self.gate.leave();
        self.work.tasks().free.give(number);
        true
    }

    /// If the page is touched for the first time: what is untouched of its block and of its mapping. Ask this before
    /// the engine gets the fault, too.
    fn first_touch_neighbours(&self, decider: &Decider, page: usize) -> Ahead {
        let mut neighbours = Ahead::default();
        let block = if self.work.takes_blocks { decider.engine().block_around(page.into()) } else { 0..0 };
        let extent = if block.is_empty() { None } else { self.space().extent_of(page) };
        let Range { start, end } = extent.unwrap_or_default();
        for other in start.max(block.start as usize)..end.min(block.end as usize) {
            let new = match self.pages().get(other) {
                Where::Nowhere => self.memory().begin(other),
                state => state == Where::Out && self.pages().slot(other).is_none() && !self.work.log().has_slot(other),
            };
            if new
                && other != page
                && decider.engine().accepts(&Event::FirstTouchNeighbour { page: PageId::from(other) })
            {
                neighbours.add(other);
            }
        }
        neighbours
    }

    /// The engine's lock, if the page still needs a fault.
    fn admit(&self, page: usize) -> Option<Guard<'_, Decider>> {
        let decider = self.gate.enter();
        if matches!(self.pages().get(page), Where::Out | Where::Aside | Where::InSlot) {
            return Some(decider);
        }
        self.gate.leave();
        None
    }

    fn record(&self, started: u64, requested: u64, is_aside: bool, laps: &Laps) {
        let stats = self.stats;
        let took = sys::now() - started;
        if is_aside {
            Stats::add(&stats.false_faults, 1);
            return stats.false_fault.record(took);
        }
        Stats::add(&stats.true_faults, 1);
        if requested > 0 { &stats.device_fault } else { &stats.memory_fault }.record(took);
        stats.stages().into_iter().for_each(|(stage, counter)| Stats::add(counter, laps.of(stage)));
    }

    /// The pages to load with a fault: if it continues a stream those behind it, otherwise those that left together
    /// with it. All are out and have content. A stream ends where the memory ends. Ask this before the engine gets the
    /// fault: otherwise the answer would depend on when this fault's victims leave.
    fn ahead(&self, decider: &mut Decider, page: usize) -> Ahead {
        let mut ahead = Ahead::default();
        let stream = decider.streams.fault(PageId::from(page));
        let extent = self.memory().space.extent_of(page).map_or(page, |extent| extent.end);
        let behind = (stream.start as usize)..(stream.end as usize).min(extent);
        let is_out = |page: &usize| self.pages().get(*page) == Where::Out;
        let has_content = |page: &usize| self.pages().slot(*page).is_some();
        behind.filter(|page| has_content(page) && is_out(page)).for_each(|page| ahead.add(page));
        let block = match stream.is_empty() && self.pages().slot(page).is_some() {
            true => decider.neighbours.fault(PageId::from(page)) as usize,
            false => 0,
        };
        if block > 0 {
            let neighbours = self.work.log().neighbours(self.pages(), page, block);
            let others = neighbours.into_iter().flatten().map(|page| page as usize);
            others.filter(is_out).for_each(|page| ahead.add(page));
            ahead.len = decider.neighbours.choose(&mut ahead.pages[..ahead.len]).len();
        }
        ahead
    }
}

/// The pages to read ahead with a fault, or the neighbours that come in with its first touch.
struct Ahead {
    pages: [PageId; BLOCK],
    len: usize,
}

const _: () = assert!(crate::READ_AHEAD_MAX as usize <= BLOCK && SEGMENT <= BLOCK);

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead { pages: [PageId(0); BLOCK], len: 0 }
    }
}

impl Ahead {
    fn add(&mut self, page: usize) {
        self.pages[self.len] = PageId::from(page);
        self.len += 1;
    }
}

/// A wild pointer has hit the aside mapping. No page belongs there; the thread gets the signal that the kernel would
/// send.
fn stray(thread: u32) {
    let signal = [sys::pids::program(), thread as usize, libc::SIGSEGV as usize, 0, 0, 0];
    // SAFETY: sends a signal to a thread of the program.
    if unsafe { sys::call(libc::SYS_tgkill, signal) }.is_err() {
        fatal::stop("the program has used an address that it does not have");
    }
}
