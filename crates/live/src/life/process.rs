//! The pagers of this process. A fork stops them.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use super::Inner;
use crate::sys;
use crate::sys::lock::Lock;
use crate::sys::Signals;
use crate::LiveError;

/// Pagers that a process can have.
const PAGERS: usize = 64;

static PLACES: [AtomicPtr<Inner>; PAGERS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PAGERS];
/// The signals that the forking thread had blocked.
static MASK: AtomicUsize = AtomicUsize::new(0);
/// Held while the list of pagers changes, and during a fork.
static LIST: Lock<()> = Lock::new(());
static FORKS: Once = Once::new();

/// From now on forks take the pager into account.
pub fn register(inner: &Arc<Inner>) -> Result<(), LiveError> {
    FORKS.call_once(|| {
        // SAFETY: three functions of that type, which stay loaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(parent_after_fork), Some(child_after_fork)) };
    });
    let _signals = Signals::block();
    let _list = LIST.lock();
    let new = Arc::as_ptr(inner).cast_mut();
    let empty = std::ptr::null_mut();
    let free =
        |place: &&AtomicPtr<Inner>| place.compare_exchange(empty, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    PLACES.iter().find(free).map(drop).ok_or_else(|| LiveError::Setting {
        field: "pagers",
        reason: format!("a process can have {PAGERS} pagers; drop one first, or use one for several regions"),
    })
}

/// The pager is about to end.
pub fn unregister(inner: *const Inner) {
    let _signals = Signals::block();
    let _list = LIST.lock();
    for place in &PLACES {
        let empty = std::ptr::null_mut();
        let _ = place.compare_exchange(inner.cast_mut(), empty, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Whether there is a pager.
pub fn any() -> bool {
    PLACES.iter().any(|place| !place.load(Ordering::Relaxed).is_null())
}

/// The pagers. Call it between `before_fork` and the end of the fork: the list is locked.
fn pagers() -> impl DoubleEndedIterator<Item = &'static Inner> {
    // SAFETY: the list is locked, so that no pager ends.
    PLACES.iter().filter_map(|place| unsafe { place.load(Ordering::Acquire).as_ref() })
}

extern "C" fn before_fork() {
    let mask = sys::block_signals();
    std::mem::forget(LIST.lock());
    MASK.store(mask as usize, Ordering::Relaxed);
    pagers().for_each(Inner::fork_prepare);
}

extern "C" fn parent_after_fork() {
    for pager in pagers().rev() {
        // If there must be no child, the child has reported this and ended.
        let _ = pager.fork_parent();
    }
    after_fork();
}

extern "C" fn child_after_fork() {
    pagers().rev().for_each(Inner::fork_child);
    after_fork();
}

fn after_fork() {
    let mask = MASK.load(Ordering::Relaxed) as u64;
    LIST.free();
    sys::restore_signals(mask);
}
