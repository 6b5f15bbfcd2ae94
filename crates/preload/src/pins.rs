//! Managed memory that must stay in RAM, because the kernel has taken its frames or touches it where no page can be
//! brought in: buffers of an io_uring, robust mutexes, the control block of a thread that ends. Each hold is a pin
//! with a holder, which releases it. When the program unmaps memory, its holds end.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coldframe_live::{LiveError, PAGE};

use crate::gate;
use crate::memory::{self, backing};
use crate::sys::{self, Lock};

/// Why memory is pinned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// A fixed buffer of the ring with this descriptor.
    RingBuffer,
    /// A ring of provided buffers of the ring with this descriptor.
    RingProvided,
    /// A fixed buffer of liburing's ring at this address.
    Liburing,
    /// A robust mutex at this address.
    Mutex,
    /// A word at this address that the kernel clears when a thread ends, and the memory around it.
    Thread,
    /// A file of the C library, during a fork.
    File,
    /// It is not known how long.
    Good,
}

/// The holder of pinned memory: a reason, the object that it belongs to, and a number.
pub type Holder = (Why, usize, u32);

struct Holds(Lock, UnsafeCell<BTreeMap<Holder, Range<usize>>>);
// SAFETY: the map is touched under the lock only.
unsafe impl Sync for Holds {}
static HOLDS: Holds = Holds(Lock::new(), UnsafeCell::new(BTreeMap::new()));
/// The number of holds, so that programs without any only pay for a look.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Inside the gate, so that no fork copies a held lock, and with signals held back, so that no handler waits for its
/// own thread.
fn with<T>(work: impl FnOnce(&mut BTreeMap<Holder, Range<usize>>) -> T) -> T {
    let _inside = gate::enter();
    sys::undisturbed(|| {
        HOLDS.0.with(|| {
            // SAFETY: the lock is held, and `work` does not come back here.
            let holds = unsafe { &mut *HOLDS.1.get() };
            let result = work(holds);
            COUNT.store(holds.len(), Relaxed);
            result
        })
    })
}

/// The whole pages of the managed part of a range; empty where there is none.
fn pages(address: usize, len: usize) -> Range<usize> {
    let span = memory::span();
    let end = address.saturating_add(len).checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
    let part = (address / PAGE * PAGE).max(span.start)..end.min(span.end);
    if len == 0 || part.is_empty() {
        0..0
    } else {
        part
    }
}

fn unpin(range: Range<usize>) {
    if !range.is_empty() {
        backing().unpin(range.start, range.len());
    }
}

/// Pinned memory without a holder yet. It is unpinned if it gets none.
pub struct Pinned(Range<usize>);

impl Pinned {
    /// Pins the managed part of a range, if there is one. `None`: more than may be pinned.
    pub fn new(address: usize, len: usize) -> Option<Pinned> {
        Pinned::try_new(address, len).ok()
    }

    /// The same, with the reason of a failure.
    pub fn try_new(address: usize, len: usize) -> Result<Pinned, LiveError> {
        let range = pages(address, len);
        if !range.is_empty() {
            backing().pin(range.start, range.len())?;
        }
        Ok(Pinned(range))
    }

    /// Gives it a holder. The holder's earlier holds end.
    pub fn hold(mut self, holder: Holder) {
        let range = std::mem::take(&mut self.0);
        let before = with(|holds| match range.is_empty() {
            true => holds.remove(&holder),
            false => holds.insert(holder, range),
        });
        unpin(before.unwrap_or_default());
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        unpin(std::mem::take(&mut self.0));
    }
}

/// Whether there is any hold.
pub fn any() -> bool {
    COUNT.load(Relaxed) > 0
}

/// Releases the holds of one object.
pub fn release(why: Why, of: usize) {
    take(|holder, _| (holder.0, holder.1) == (why, of)).into_iter().for_each(|(_, range)| unpin(range));
}

/// Releases all holds for a reason.
pub fn release_all(why: Why) {
    take(|holder, _| holder.0 == why).into_iter().for_each(|(_, range)| unpin(range));
}

/// Releases one hold.
pub fn release_one(holder: Holder) {
    if any() {
        unpin(with(|holds| holds.remove(&holder)).unwrap_or_default());
    }
}

/// Turns the holds of one object into holds that last as long as the memory exists.
pub fn keep_for_good(why: Why, of: usize) {
    for ((_, _, which), range) in take(|holder, _| (holder.0, holder.1) == (why, of)) {
        let number = NUMBER.fetch_add(1, Relaxed);
        with(|holds| holds.insert((Why::Good, number, which), range));
    }
}

/// Distinguishes holds that last as long as the memory.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Whether the object has a hold.
pub fn holds(why: Why, of: usize) -> bool {
    any() && with(|holds| holds.range((why, of, 0)..=(why, of, u32::MAX)).next().is_some())
}

/// Removes all holds for which `what` is true. Their memory is still pinned.
fn take(what: impl Fn(&Holder, &Range<usize>) -> bool) -> Vec<(Holder, Range<usize>)> {
    let mut taken = Vec::new();
    if any() {
        with(|holds| {
            holds.retain(|holder, range| {
                let goes = what(holder, range);
                goes.then(|| taken.push((*holder, range.clone())));
                !goes
            });
        });
    }
    taken
}

/// The holders for a reason.
pub fn holders(why: Why) -> Vec<usize> {
    match any() {
        false => Vec::new(),
        true => {
            with(|holds| holds.range((why, 0, 0)..=(why, usize::MAX, u32::MAX)).map(|(holder, _)| holder.1).collect())
        }
    }
}

/// Unmaps managed memory: all holds of it end. Parts that are not mapped are skipped.
pub fn unmap(part: Range<usize>) -> Result<(), LiveError> {
    take(|_, range| range.start < part.end && part.start < range.end).into_iter().for_each(|(_, range)| unpin(range));
    backing().unmap(part)
}
