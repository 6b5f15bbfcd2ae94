//! A lock that a signal handler may take: it spins for a while and then sleeps in the kernel, and allocates nothing.
//!
//! A thread that takes this lock must have signals blocked. Otherwise a signal handler of the program could fault and
//! wait for its own thread.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use crate::sys;
use crate::sys::sync::{futex_wait, futex_wake, pause, AtomicU32, Ordering, SPINS};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

/// A lock.
#[derive(Debug)]
pub struct Lock<T> {
    state: AtomicU32,
    /// The thread that holds it. Known only in debug builds, which check the order of locks.
    thread: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the one who has taken the lock.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The lock is held while this lives.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Lock<T> {
        Lock { state: AtomicU32::new(FREE), thread: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes it.
    pub fn lock(&self) -> Guard<'_, T> {
        if self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        if cfg!(debug_assertions) {
            self.thread.store(sys::thread(), Ordering::Relaxed);
        }
        Guard { lock: self }
    }

    /// Runs `work` with it.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.lock())
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            pause();
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
        }
        while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            futex_wait(&self.state, AWAITED);
        }
    }
}

impl<T> Lock<T> {
    /// The value of a lock whose guard this thread has forgotten.
    ///
    /// # Safety
    /// This thread holds the lock, and no other result of this call.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn held(&self) -> &mut T {
        // SAFETY: the lock is taken; the caller answers for the rest.
        unsafe { &mut *self.value.get() }
    }

    /// Whether this thread holds the lock. Always false in release builds.
    pub fn is_mine(&self) -> bool {
        cfg!(debug_assertions) && self.thread.load(Ordering::Relaxed) == sys::thread()
    }

    /// Frees a lock whose guard was forgotten: after a fork, in parent and child.
    pub fn free(&self) {
        drop(Guard { lock: self });
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            self.lock.thread.store(0, Ordering::Relaxed);
        }
        if self.lock.state.swap(FREE, Ordering::Release) == AWAITED {
            futex_wake(&self.lock.state, 1);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is taken.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is taken, and the guard is borrowed once.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_knows_whose_it_is() {
        let lock = Lock::new(());
        let guard = lock.lock();
        assert!(lock.is_mine() == cfg!(debug_assertions));
        std::thread::scope(|s| assert!(!s.spawn(|| lock.is_mine()).join().unwrap()));
        drop(guard);
        assert!(!lock.is_mine());
    }

    #[test]
    fn two_threads_count_to_the_sum() {
        let lock = Lock::new(0u64);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..50_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 200_000);
    }
}
