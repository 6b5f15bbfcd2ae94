//! The pagers of this process. The signal handler looks them up by address; a fork stops them.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use crate::lock::Lock;
use crate::memory::Signals;
use crate::pager::Inner;
use crate::sys;
use crate::LiveError;

/// Pagers that a process can have.
const PAGERS: usize = 64;

/// A pager, and the number of threads that use it just now. A thread that removes it from the list waits until the
/// number is 0.
struct Place {
    inner: AtomicPtr<Inner>,
    looking: AtomicUsize,
}

static PLACES: [Place; PAGERS] =
    [const { Place { inner: AtomicPtr::new(std::ptr::null_mut()), looking: AtomicUsize::new(0) } }; PAGERS];
/// The signals that the forking thread had blocked.
static MASK: AtomicUsize = AtomicUsize::new(0);
/// Held while the list of pagers changes, and during a fork.
static LIST: Lock<()> = Lock::new(());
static FORKS: Once = Once::new();

/// From now on the pager is found by its addresses, and forks take it into account.
pub fn register(inner: &Arc<Inner>) -> Result<(), LiveError> {
    FORKS.call_once(|| {
        // SAFETY: three functions of that type, which stay loaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(parent_after_fork), Some(child_after_fork)) };
    });
    let _signals = Signals::block();
    let _list = LIST.lock();
    let new = Arc::as_ptr(inner).cast_mut();
    let empty = std::ptr::null_mut();
    let free = |place: &&Place| place.inner.compare_exchange(empty, new, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    PLACES.iter().find(free).map(drop).ok_or_else(|| LiveError::Setting {
        field: "pagers",
        reason: format!("a process can have {PAGERS} pagers; drop one first, or use one for several regions"),
    })
}

/// The pager is about to end. When this returns, no thread uses it any more; there is no fault of it to serve, since
/// it has no region.
pub fn unregister(inner: *const Inner) {
    let _signals = Signals::block();
    let _list = LIST.lock();
    for place in &PLACES {
        let empty = std::ptr::null_mut();
        if place.inner.compare_exchange(inner.cast_mut(), empty, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            while place.looking.load(Ordering::SeqCst) > 0 {
                sys::give_way();
            }
        }
    }
}

/// Whether there is a pager.
pub fn any() -> bool {
    PLACES.iter().any(|place| !place.inner.load(Ordering::Relaxed).is_null())
}

/// Runs `work` with the pager of the address. The pager stays alive meanwhile.
pub fn with<T>(address: usize, work: impl FnOnce(&Inner) -> T) -> Option<T> {
    for place in PLACES.iter().filter(|place| !place.inner.load(Ordering::Relaxed).is_null()) {
        place.looking.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the thread that removes the pager from the list waits for this thread before it frees the pager.
        // Either it sees the count above, or this load sees the empty place: both are sequentially consistent.
        let inner = unsafe { place.inner.load(Ordering::SeqCst).as_ref() };
        if let Some(inner) = inner.filter(|inner| inner.space.span().contains(&address)) {
            let result = work(inner);
            place.looking.fetch_sub(1, Ordering::SeqCst);
            return Some(result);
        }
        place.looking.fetch_sub(1, Ordering::SeqCst);
    }
    None
}

/// The pagers. Call it between `before_fork` and the end of the fork: the list is locked.
fn pagers() -> impl DoubleEndedIterator<Item = &'static Inner> {
    // SAFETY: the list is locked, so that no pager ends.
    PLACES.iter().filter_map(|place| unsafe { place.inner.load(Ordering::Acquire).as_ref() })
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
    // Threads that used a pager or served a fault are not in this process.
    PLACES.iter().for_each(|place| place.looking.store(0, Ordering::Relaxed));
    crate::signal::free_stacks();
    pagers().rev().for_each(Inner::fork_child);
    after_fork();
}

fn after_fork() {
    let mask = MASK.load(Ordering::Relaxed) as u64;
    LIST.free();
    sys::restore_signals(mask);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use crate::{Faults, Options, Pager};

    #[test]
    fn a_pager_does_not_end_while_a_handler_looks_at_it() {
        let options = Options { max_memory: 1 << 30, faults: Faults::InThread, ..Options::new(1 << 20) };
        let pager = Pager::start(options).unwrap();
        let address = pager.span().start;
        let (looking, done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                with(address, |_| {
                    looking.store(true, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(50));
                    done.store(true, Ordering::SeqCst);
                })
            });
            while !looking.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            drop(pager);
            assert!(done.load(Ordering::SeqCst));
        });
        assert!(with(address, |_| ()).is_none());
    }
}
