//! Managed memory that must stay in RAM, because the kernel touches it where no page can be brought in: robust mutexes
//! and those with priority inheritance, the control block of a thread that ends. Each is a pin with an owner, which
//! releases it. When the program unmaps memory, its pins end.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coldframe_live::{LiveError, PAGE};

use crate::managed::gate;
use crate::managed::memory;
use crate::sys::{self, Lock};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// A mutex at this address that the kernel writes to.
    Mutex,
    /// A word at this address that the kernel clears when a thread ends, and the memory around it.
    Thread,
    /// The robust list of a thread: its number, and the place in the list.
    Robust,
    /// A page that a pipe refers to: the pipe's descriptor in the upper half, and a count.
    Pipe,
    /// A file of the C library, during a fork.
    File,
}

/// The owner of pinned memory: a reason, and the object that it belongs to.
pub type PinOwner = (Why, usize);

static PINS: Lock<BTreeMap<PinOwner, Range<usize>>> = Lock::new(BTreeMap::new());
/// The number of pins, so that programs without any only pay for a look.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Inside the gate, so that no fork copies a held lock, and with signals blocked, so that no handler waits for its
/// own thread.
fn with<T>(work: impl FnOnce(&mut BTreeMap<PinOwner, Range<usize>>) -> T) -> T {
    let _inside = gate::enter();
    sys::undisturbed(|| {
        PINS.with(|pins| {
            let result = work(pins);
            COUNT.store(pins.len(), Relaxed);
            result
        })
    })
}

/// The whole pages of the managed part of a range; empty where there is none.
pub fn pages(address: usize, len: usize) -> Range<usize> {
    let span = memory::span();
    let end = address.saturating_add(len).checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
    let part = (address / PAGE * PAGE).max(span.start)..end.min(span.end);
    Some(part).filter(|part| len > 0 && !part.is_empty()).unwrap_or_default()
}

fn unpin(range: Range<usize>) {
    if !range.is_empty() {
        memory::unpin(range);
    }
}

/// Pinned memory without an owner yet. It is unpinned if it gets none.
pub struct Pinned(Range<usize>);

impl Pinned {
    /// Pins the managed part of a range, if there is one; fails for more than may be pinned.
    pub fn new(address: usize, len: usize) -> Result<Pinned, LiveError> {
        let range = pages(address, len);
        if !range.is_empty() {
            memory::pin(range.clone())?;
        }
        Ok(Pinned(range))
    }

    /// Gives it an owner. The owner's earlier pins end.
    pub fn belong_to(mut self, owner: PinOwner) {
        let range = std::mem::take(&mut self.0);
        let before = with(|pins| match range.is_empty() {
            true => pins.remove(&owner),
            false => pins.insert(owner, range),
        });
        unpin(before.unwrap_or_default());
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        unpin(std::mem::take(&mut self.0));
    }
}

fn any() -> bool {
    COUNT.load(Relaxed) > 0
}

pub fn release_all(why: Why) {
    take(|owner, _| owner.0 == why).into_iter().for_each(|(_, range)| unpin(range));
}

pub fn release(owner: PinOwner) {
    if any() {
        unpin(with(|pins| pins.remove(&owner)).unwrap_or_default());
    }
}

/// Removes all pins for which `what` is true. Their memory is still pinned.
fn take(what: impl Fn(&PinOwner, &Range<usize>) -> bool) -> Vec<(PinOwner, Range<usize>)> {
    let mut taken = Vec::new();
    if any() {
        with(|pins| {
            pins.retain(|owner, range| {
                let goes = what(owner, range);
                goes.then(|| taken.push((*owner, range.clone())));
                !goes
            });
        });
    }
    taken
}

pub fn owners(why: Why) -> Vec<usize> {
    match any() {
        false => Vec::new(),
        true => with(|pins| pins.range((why, 0)..=(why, usize::MAX)).map(|(owner, _)| owner.1).collect()),
    }
}

/// Unmaps managed memory: all pins of it end. Parts that are not mapped are skipped.
pub fn unmap(part: Range<usize>) -> Result<(), LiveError> {
    end(&part);
    memory::unmap(part)
}

fn end(part: &Range<usize>) {
    take(|_, range| range.start < part.end && part.start < range.end).into_iter().for_each(|(_, range)| unpin(range));
}
