//! Finds the pages of slow memory that are used often enough for a copy in RAM to pay. Linux shows no program the
//! referenced bit of a page, so pages are sampled as NUMA balancing does: some at a time are taken out of the page
//! table, and the next touch of such a page faults.
//!
//! ```text
//!   Free ── taken out ──► Out ── read soon ──► Read ── taken out again ──► Again ── read soon ──► copied to RAM
//!    ▲                     │ late                                           │ late
//!    └─────────────────────┴────────────────────────────────────────────────┘
//! ```
//! *Soon* is a time in which such a page is read [`READS`] times before it leaves RAM again; a page leaves after as
//! many evictions as there are frames. So a program whose writes push pages out fast has few copies, or none.
//!
//! A page that is written in place is protected instead, so that only its writes count. Pages come to be written in
//! place when copies for writes have taken more than their share of the time.
//!
//! The log's writer samples, since slow memory has no log. It takes no lock: a handler has the engine copy the page
//! ([`crate::fault::serve`]).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Work;
use crate::page::pages::{Owner, Where};
use crate::sys;

/// A copy costs as much as this many reads in slow memory: DR.Swap's table II, by energy (by time: 86).
const READS: u64 = 99;
/// Time between samples.
const TICK_NS: u64 = 10_000_000;
/// The longest such time, while no page is touched.
const IDLE_NS: u64 = 100 * TICK_NS;
/// The most pages that are looked at in a tick.
const LOOKS: usize = 16 << 10;
/// The most pages that are watched at a time.
const WATCHED: usize = 512;
/// The number of pages that are taken out grows while fewer than this many of them are touched in a tick. Each touch is
/// a fault of 8 us and more (40 on a virtual machine), so they take a percent or two of the time.
const TOUCHES: u64 = 4;

/// Copies for writes take at most one in this many nanoseconds of the time, but for the first ones: a tenth of a
/// second.
const SHARE: u64 = 8;
const SLACK_NS: u64 = SHARE * 100_000_000;

const OUT: u64 = 1;
const READ: u64 = 2;
const AGAIN: u64 = 3;

/// The watched pages. A word is `page * 4 + state`; 0: free.
pub struct Samples {
    words: [AtomicU64; WATCHED],
    /// When each was taken out.
    since: [AtomicU64; WATCHED],
    /// The longest time that is soon, in nanoseconds.
    soon: AtomicU64,
    /// Touches of pages that were taken out, and pages that have left RAM, since the last tick.
    touches: AtomicU64,
    left: AtomicU64,
    /// When copies for writes would have taken their share.
    free_at: AtomicU64,
    frames: u64,
}

impl Samples {
    /// With so many frames of RAM.
    pub fn new(frames: usize) -> Samples {
        let zero = || AtomicU64::new(0);
        let (words, since) = ([const { AtomicU64::new(0) }; WATCHED], [const { AtomicU64::new(0) }; WATCHED]);
        let frames = frames as u64;
        Samples { words, since, soon: zero(), touches: zero(), left: zero(), free_at: zero(), frames }
    }

    /// A write fault that began at `started` has ended; `copy`: it copied a page out of its slot.
    pub fn copied(&self, copy: bool, started: u64) {
        if copy {
            let free_at = self.free_at.load(Relaxed).max(started);
            self.free_at.store(free_at + (sys::now() - started) * SHARE, Relaxed);
        }
    }

    /// Whether copies for writes have taken more than their share.
    pub fn copies_are_dear(&self, now: u64) -> bool {
        self.free_at.load(Relaxed) > now + SLACK_NS
    }

    /// A page has left RAM.
    pub fn leaves(&self) {
        self.left.fetch_add(1, Relaxed);
    }

    /// A page that had been taken out is used at `now`. Returns whether it is used often.
    pub fn is_used_often(&self, page: usize, now: u64) -> bool {
        self.touches.fetch_add(1, Relaxed);
        let found = (0..WATCHED).find(|i| self.words[*i].load(Relaxed) / 4 == page as u64 && self.state(*i) != 0);
        let Some(i) = found else { return false };
        let soon = now.saturating_sub(self.since[i].load(Relaxed)) <= self.soon.load(Relaxed);
        let state = self.state(i);
        self.words[i].store(if soon && state == OUT { page as u64 * 4 + READ } else { 0 }, Relaxed);
        soon && state == AGAIN
    }

    fn state(&self, i: usize) -> u64 {
        self.words[i].load(Relaxed) % 4
    }

    /// The watched pages of this tick: those that were read soon once more, and up to `fresh` of `new`; the others are
    /// free.
    fn renew(&self, now: u64, fresh: usize, new: &mut impl Iterator<Item = usize>, mut out: impl FnMut(usize) -> bool) {
        let mut left = fresh;
        for i in 0..WATCHED {
            let page = (self.words[i].load(Relaxed) / 4) as usize;
            let mut word = if self.state(i) == READ && out(page) { page as u64 * 4 + AGAIN } else { 0 };
            while word == 0 && left > 0 {
                let Some(page) = new.next() else { break };
                word = if out(page) { page as u64 * 4 + OUT } else { 0 };
                left -= usize::from(word != 0);
            }
            self.since[i].store(now, Relaxed);
            self.words[i].store(word, Relaxed);
        }
    }
}

/// Takes samples, in one thread.
pub struct Sampler<'a> {
    work: &'a Work,
    /// The next page to look at.
    cursor: usize,
    /// How many pages are taken out.
    fresh: usize,
    at: u64,
    wait: u64,
    /// Nanoseconds, and the pages that have left RAM in them: lately.
    lately: (u64, u64),
}

impl Sampler<'_> {
    /// `None`: there is no slow memory.
    pub fn of(work: &Work) -> Option<Sampler<'_>> {
        let (fresh, at) = (TOUCHES as usize, sys::now());
        let sampler = Sampler { work, cursor: 0, fresh, at, wait: TICK_NS, lately: (0, 0) };
        work.log().slow.is_some().then_some(sampler)
    }

    /// Takes samples if that is due. Returns after how many microseconds to call it again.
    pub fn visit(&mut self) -> u64 {
        let (now, samples) = (sys::now(), &self.work.samples);
        if now - self.at >= self.wait {
            let touches = samples.touches.swap(0, Relaxed);
            self.lately.0 = self.lately.0 / 8 * 7 + (now - self.at);
            self.lately.1 = self.lately.1 / 8 * 7 + samples.left.swap(0, Relaxed);
            let stay = samples.frames.saturating_mul(self.lately.0) / self.lately.1.max(1);
            samples.soon.store((stay / READS).min(TICK_NS), Relaxed);
            self.wait = if touches == 0 { (2 * self.wait).min(IDLE_NS) } else { TICK_NS };
            self.fresh = if touches < TOUCHES { 2 * self.fresh } else { self.fresh / 2 }.clamp(2, WATCHED / 2);
            self.at = now;
            self.sample(now);
        }
        (self.at + self.wait).saturating_sub(sys::now()) / 1000 + 1
    }

    /// From the page after the last one that was taken out, in the order of addresses.
    fn sample(&mut self, now: u64) {
        let work = self.work;
        let (pages, space) = (work.pages(), &work.memory.space);
        let (mut taken, mut count, mut last) = ([0; WATCHED], 0, None);
        let mut take = |page: usize| {
            let in_place = pages.acquire(page, Where::InPlace, Where::Busy, Owner::BRIEF);
            if in_place {
                work.memory.protect(page);
                pages.release(page, Owner::BRIEF, Where::InPlace);
            }
            let in_slot = !in_place && pages.acquire(page, Where::InSlot, Where::Busy, Owner::BRIEF);
            if in_slot {
                (taken[count], count) = (page, count + 1);
            }
            in_place || in_slot
        };
        let is_slow = |page: &usize| matches!(pages.get(*page), Where::InSlot | Where::InPlace);
        let touched = space.touched(self.cursor..space.pages).flatten().take(LOOKS);
        let mut new = touched.inspect(|page| last = Some(*page)).filter(is_slow);
        work.samples.renew(now, self.fresh, &mut new, &mut take);
        drop(new);
        self.cursor = last.map_or(0, |page| page + 1);
        for range in space.runs(taken[..count].iter().copied()) {
            work.memory.unmap_slots(range);
        }
        taken[..count].iter().for_each(|page| pages.release(*page, Owner::BRIEF, Where::InSlot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_used_often_if_it_is_read_soon_twice() {
        let samples = Samples::new(8);
        samples.soon.store(10, Relaxed);
        let tick = |now, new: &[usize]| samples.renew(now, 2, &mut new.iter().copied(), |page| page != 7);
        tick(100, &[5, 7, 6, 9]);
        let read = |page, now| samples.is_used_often(page, now);
        assert!(!read(5, 110) && !read(6, 111) && !read(9, 101), "once soon, late, not watched");
        tick(200, &[6]);
        assert!(!read(6, 201) && read(5, 210), "once soon, twice soon");
        assert!(!read(5, 210), "it is watched no more");
        tick(300, &[]);
        assert!(!read(6, 311), "late the second time");
        tick(400, &[]);
        assert!(!read(6, 401));
        assert_eq!(samples.touches.load(Relaxed), 8);
    }
}
