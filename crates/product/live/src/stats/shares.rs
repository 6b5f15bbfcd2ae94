//! One budget for all processes of a run: each has a place in the statistics that they share, with the frames that it
//! has. What no place has is free.
//!
//! ```text
//!   take   my share grows by n ─ the sum of all shares ─ what is beyond the budget goes back
//!   ask    the process with the fewest faults lately, above its floor: asked = n, its lender wakes
//!          ─ its pages leave ─ its share shrinks by n ─ the next `take` finds them
//!   end    the kernel marks the place when the lender thread is gone (a robust futex), and it counts no more
//! ```
//! Nobody keeps the sum. So a process that is killed between two steps takes no frame with it, and whoever is next to
//! take finds the frames of the dead. Two that take at once may both go back; never do both get the same frame.
//!
//! Who has started the run measures its other memory, and takes it off the budget (`beside`); then it asks for what the
//! shares exceed the budget by.
//!
//! A place is its process's: others write only `asked`. Any program of the run may write anything here; so a process
//! knows its own frames by itself, and a wrong number can only make it give back more or get less.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use crate::sys;

/// The most processes that share a budget. Others have their floor.
const PLACES: usize = 512;
/// `FUTEX_TID_MASK` and `FUTEX_OWNER_DIED` (`include/uapi/linux/futex.h`).
const THREAD: u32 = 0x3fff_ffff;
const DIED: u32 = 0x4000_0000;
/// Faults count half after this time, in milliseconds. A guess: many transfers of frames, and less than a user waits.
const HALF_MS: u32 = 500;
/// A fault in the units of a level, so that its decay is not rounded away.
const FAULT: u32 = 256;

/// The place of a process.
#[repr(C)]
#[derive(Debug)]
pub struct ProcessPlace {
    /// The lender thread; 0: nobody's. The kernel puts [`DIED`] here at its end.
    owner: AtomicU32,
    /// Frames that others ask it for. Its lender sleeps while this is 0.
    pub asked: AtomicU32,
    /// Frames that it has.
    pub share: AtomicU32,
    /// Frames that it keeps.
    pub floor: AtomicU32,
    /// When it had its last fault, in milliseconds, and its faults lately.
    faults: AtomicU64,
}

impl ProcessPlace {
    fn lives(&self) -> bool {
        let owner = self.owner.load(SeqCst);
        owner & THREAD != 0 && owner & DIED == 0
    }

    /// Frames that it could give.
    fn excess(&self) -> u32 {
        self.share.load(SeqCst).saturating_sub(self.floor.load(Relaxed))
    }

    /// Faults lately. Old ones fade.
    fn level(&self, now_ms: u32) -> u32 {
        let word = self.faults.load(Relaxed);
        let (level, since) = (word as u32, now_ms.wrapping_sub((word >> 32) as u32));
        let level = level.checked_shr(since / HALF_MS).unwrap_or(0);
        level - (u64::from(level) * u64::from(since % HALF_MS) / u64::from(2 * HALF_MS)) as u32
    }

    /// Its process has a fault. Called under the engine's lock.
    pub fn note_fault(&self, now: u64) {
        let now_ms = (now / 1_000_000) as u32;
        let word = self.faults.load(Relaxed);
        let (level, then) = match (word >> 32) as u32 {
            then if then == now_ms => (word as u32, then),
            _ => (self.level(now_ms), now_ms),
        };
        self.faults.store(u64::from(then) << 32 | u64::from(level.saturating_add(FAULT)), Relaxed);
    }
}

/// All places.
#[repr(C)]
#[derive(Debug)]
pub struct Shares {
    /// Places that were ever used.
    used: AtomicU32,
    /// Frames of the budget that the run's other memory takes, which is not managed.
    beside: AtomicU32,
    places: [ProcessPlace; PLACES],
}

impl Shares {
    /// A place of this number; it exists.
    pub fn place(&self, number: usize) -> &ProcessPlace {
        &self.places[number]
    }

    fn living(&self) -> impl Iterator<Item = (usize, &ProcessPlace)> {
        let used = (self.used.load(SeqCst) as usize).min(PLACES);
        self.places[..used].iter().enumerate().filter(|(_, place)| place.lives())
    }

    /// Whether processes share a budget here.
    pub fn are_used(&self) -> bool {
        self.used.load(SeqCst) > 0
    }

    /// Frames that all living processes have.
    pub fn sum(&self) -> usize {
        self.living().map(|(_, place)| place.share.load(SeqCst) as usize).sum()
    }

    /// What other memory leaves of a budget of so many frames.
    pub fn left_of(&self, frames: usize) -> usize {
        frames.saturating_sub(self.beside.load(Relaxed) as usize)
    }

    /// The other memory takes so many frames now.
    pub fn set_beside(&self, frames: usize) {
        self.beside.store(frames as u32, Relaxed);
    }

    /// A place for the calling thread. `mark` gets the word that the kernel is to change at the thread's end.
    pub fn claim(&self, thread: u32, share: usize, floor: usize, mut mark: impl FnMut(&AtomicU32)) -> Option<usize> {
        let number = self.places.iter().enumerate().position(|(number, place)| {
            let owner = place.owner.load(SeqCst);
            if place.lives() {
                return false;
            }
            mark(&place.owner);
            self.used.fetch_max(number as u32 + 1, SeqCst);
            place.owner.compare_exchange(owner, thread & THREAD, SeqCst, SeqCst).is_ok()
        })?;
        let place = self.place(number);
        place.share.store(share as u32, SeqCst);
        place.floor.store(floor as u32, Relaxed);
        place.faults.store(0, Relaxed);
        place.asked.store(0, SeqCst);
        Some(number)
    }

    /// Takes up to `frames` that are free; returns how many.
    pub fn take(&self, me: usize, frames: usize, budget: usize) -> usize {
        let share = &self.place(me).share;
        share.fetch_add(frames as u32, SeqCst);
        let back = self.sum().saturating_sub(budget).min(frames);
        share.fetch_sub(back as u32, SeqCst);
        frames - back
    }

    /// Asks the idlest process above its floor for up to `frames`, if it has a quarter fewer faults than this one. If
    /// the shares exceed the budget, it also requests the excess from any process, itself included, unless
    /// `spare_self`. `me`: `None` is no process of the run, and has no faults.
    pub fn ask(&self, me: Option<usize>, frames: usize, spare_self: bool, budget: usize, now: u64) {
        let (over, now_ms) = (self.sum().saturating_sub(budget), (now / 1_000_000) as u32);
        let mine = me.map_or(0, |me| u64::from(self.place(me).level(now_ms)));
        let mut left = frames.max(over) as u32;
        while left > 0 {
            let may_give = |(number, place): &(usize, &ProcessPlace)| {
                ((over > 0 && !spare_self) || Some(*number) != me)
                    && place.excess() > 0
                    && place.asked.load(SeqCst) == 0
            };
            let idlest = self.living().filter(may_give).min_by_key(|(_, p)| (p.level(now_ms), Reverse(p.excess())));
            let Some((_, place)) = idlest else { return };
            if over == 0 && 4 * u64::from(place.level(now_ms)) >= 3 * mine {
                return;
            }
            let asked = left.min(place.excess()).max(1);
            if place.asked.compare_exchange(0, asked, SeqCst, SeqCst).is_ok() {
                sys::futex_wake_shared(&place.asked);
                left -= asked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares() -> Box<Shares> {
        // SAFETY: all are numbers.
        Box::new(unsafe { std::mem::zeroed() })
    }

    #[test]
    fn no_frame_is_anybodys_twice_and_those_of_the_dead_come_back() {
        let shares = shares();
        let places = [1, 2, 3].map(|thread| shares.claim(thread, 100, 50, |_| {}).unwrap());
        assert_eq!((places, shares.sum()), ([0, 1, 2], 300));
        assert_eq!((shares.take(0, 150, 400), shares.take(1, 150, 400)), (100, 0));
        shares.place(0).owner.store(DIED, SeqCst);
        assert_eq!((shares.sum(), shares.take(1, 150, 400), shares.take(2, 150, 400)), (200, 150, 50));
        assert_eq!(shares.claim(4, 50, 50, |_| {}), Some(0), "the place of the dead is free");
        assert_eq!((shares.sum(), shares.take(1, 10, 400)), (450, 0), "a floor is given in any case");
    }

    #[test]
    fn threads_that_take_and_give_at_once_are_never_beyond_the_budget() {
        let (shares, out) = (shares(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (shares, out) = (&shares, &out);
                scope.spawn(move || {
                    let me = shares.claim(thread, 0, 0, |_| {}).unwrap();
                    for round in 0..2000 {
                        let taken = shares.take(me, 1 + round % 40, 100) as u32;
                        assert!(out.fetch_add(taken, SeqCst) + taken <= 100);
                        out.fetch_sub(taken, SeqCst);
                        shares.place(me).share.fetch_sub(taken, SeqCst);
                    }
                });
            }
        });
        assert_eq!(shares.sum(), 0);
    }

    #[test]
    fn the_idlest_is_asked_down_to_its_floor_and_nobody_who_faults_as_much() {
        let shares = shares();
        let [me, idle, busy] = [1, 2, 3].map(|thread| shares.claim(thread, 100, 40, |_| {}).unwrap());
        let asked = |place: usize| shares.place(place).asked.load(SeqCst);
        let now = 9_000_000_000;
        (0..50).for_each(|_| shares.place(me).note_fault(now));
        (0..45).for_each(|_| shares.place(busy).note_fault(now));
        shares.ask(Some(me), 64, false, 300, now);
        assert_eq!([me, idle, busy].map(asked), [0, 60, 0]);
        // Faults fade: two seconds later the other one is idle, too.
        shares.place(idle).share.store(40, SeqCst);
        shares.place(me).note_fault(now + 2_000_000_000);
        (0..10).for_each(|_| shares.place(me).note_fault(now + 2_000_000_000));
        shares.ask(Some(me), 10, false, 240, now + 2_000_000_000);
        assert_eq!([me, busy].map(asked), [0, 10]);
        // More is out than there is: whoever is idlest gives, whether it faults or not.
        shares.place(busy).asked.store(0, SeqCst);
        shares.ask(Some(me), 0, false, 200, now + 2_000_000_000);
        assert_eq!([me, busy].map(asked), [0, 40]);
        // So does who is no process of the run: the busiest keeps most.
        shares.place(busy).asked.store(0, SeqCst);
        shares.set_beside(30);
        shares.ask(None, 0, false, shares.left_of(260), now + 2_000_000_000);
        assert_eq!([me, idle, busy].map(asked), [0, 60, 10]);
        // The same for one that is idler than all, and is spare_self.
        shares.place(busy).asked.store(0, SeqCst);
        (0..50).for_each(|_| shares.place(busy).note_fault(now + 2_000_000_000));
        shares.ask(Some(me), 0, true, 220, now + 2_000_000_000);
        assert_eq!([me, busy].map(asked), [0, 20]);
    }
}
