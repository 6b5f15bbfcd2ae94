//! Parking places: a thread sleeps here until another thread has finished with a page.
//!
//! Pages share the places by the low bits of their numbers. So a sleeping thread may be woken for another page, and
//! checks its page again. A thread that finishes with a page makes one load if no thread sleeps.
//!
//! ```text
//!   sleeper   waiters += 1; read `turn`; look at the page; sleep while `turn` is what was read
//!   owner     change the page; if waiters: turn += 1, wake all
//! ```
//! Both sides are sequentially consistent: either the sleeper's look sees the change, or the owner's look sees the
//! sleeper.

use crate::sys::sync::{futex_wait, futex_wake, pause, AtomicU32, Ordering, LOOKS};

/// Number of places; more than the threads that are likely to sleep at a time.
const PLACES: usize = 64;

/// A place, alone in its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ParkingPlace {
    waiters: AtomicU32,
    turn: AtomicU32,
}

#[derive(Debug)]
pub struct Parking([ParkingPlace; PLACES]);

impl Default for Parking {
    fn default() -> Parking {
        Parking(std::array::from_fn(|_| ParkingPlace::default()))
    }
}

impl Parking {
    /// Returns when `taken` is false. It is called again and again: a few times at once, then after each wake-up.
    pub fn wait(&self, page: usize, taken: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            if !taken() {
                return;
            }
            pause();
        }
        let place = &self.0[page % PLACES];
        place.waiters.fetch_add(1, Ordering::SeqCst);
        loop {
            let turn = place.turn.load(Ordering::SeqCst);
            if !taken() {
                break;
            }
            futex_wait(&place.turn, turn);
        }
        place.waiters.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes the threads that wait for a page that has just been changed.
    pub fn wake(&self, page: usize) {
        let place = &self.0[page % PLACES];
        if place.waiters.load(Ordering::SeqCst) != 0 {
            place.turn.fetch_add(1, Ordering::SeqCst);
            futex_wake(&place.turn, i32::MAX as usize);
        }
    }

    /// In a forked child: the sleepers are threads of the parent.
    pub fn forget_sleepers(&self) {
        for place in &self.0 {
            place.waiters.store(0, Ordering::SeqCst);
        }
    }
}
