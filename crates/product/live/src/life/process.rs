//! The pagers of this process. A fork stops them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};

use super::fork::ForkedChild;
use super::Inner;
use crate::sys::lock::Lock;
use crate::sys::{self, Signals};

/// Their addresses. Held while a pager begins or ends, and during a fork.
static PAGERS: Lock<Vec<usize>> = Lock::new(Vec::new());
/// The signals that the forking thread had blocked.
static MASK: AtomicU64 = AtomicU64::new(0);
static FORKS: Once = Once::new();

pub fn register(inner: &Arc<Inner>) {
    FORKS.call_once(|| {
        // SAFETY: three functions of that type, which stay loaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(parent_after_fork), Some(child_after_fork)) };
    });
    let _signals = Signals::block();
    PAGERS.lock().push(Arc::as_ptr(inner) as usize);
}

pub fn unregister(inner: *const Inner) {
    let _signals = Signals::block();
    PAGERS.lock().retain(|pager| *pager != inner as usize);
}

pub fn any() -> bool {
    let _signals = Signals::block();
    !PAGERS.lock().is_empty()
}

/// The pagers. Call it between `before_fork` and the end of the fork: the list is locked.
fn pagers() -> impl DoubleEndedIterator<Item = &'static Inner> + Clone {
    // SAFETY: the list is locked, so that no pager ends.
    unsafe { PAGERS.held().iter().map(|pager| &*(*pager as *const Inner)) }
}

extern "C" fn before_fork() {
    let mask = sys::block_signals();
    std::mem::forget(PAGERS.lock());
    MASK.store(mask, Relaxed);
    pagers().for_each(|pager| pager.fork_prepare(ForkedChild::Pages));
}

extern "C" fn parent_after_fork() {
    for pager in pagers().rev() {
        // If there must be no child, the child has reported this and ended.
        let _ = pager.fork_parent();
    }
    after_fork();
}

extern "C" fn child_after_fork() {
    Inner::fork_children(pagers().rev());
    after_fork();
}

fn after_fork() {
    let mask = MASK.load(Relaxed);
    PAGERS.free();
    sys::restore_signals(mask);
}
