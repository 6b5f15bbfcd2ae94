//! Pauses before kernel calls that change the page table, so that tests find races in the time between two calls.
//! They apply to all pagers of the process. Without [`crate::Inject::pause`], a pause reads one word.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// The longest pause, in microseconds: several times as long as a call, and shorter than any scheduler's time slice.
const LONGEST_US: u64 = 250;

static ONE_IN: AtomicU32 = AtomicU32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Once in `one_in` calls there is a pause; 0: never.
pub fn set(one_in: u32) {
    ONE_IN.store(one_in, Ordering::Relaxed);
}

#[inline]
pub fn here() {
    let one_in = ONE_IN.load(Ordering::Relaxed);
    if one_in != 0 {
        perhaps(one_in);
    }
}

#[cold]
fn perhaps(one_in: u32) {
    // Knuth's multiplicative hash of the call's number: as good as chance here, and the same in each run.
    let chance = CALLS.fetch_add(1, Ordering::Relaxed).wrapping_mul(2_654_435_761) >> 8;
    if chance.is_multiple_of(one_in) {
        sys::sleep_us(1 + u64::from(chance / one_in) % LONGEST_US);
    }
}
