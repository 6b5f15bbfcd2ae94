//! System calls without the C library, since this crate replaces the C library's wrappers.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering::*};

pub use coldframe_live::calls::raw as call;
pub use coldframe_live::calls::{block_signals, futex_wait, futex_wake, read_file, restore_signals, sleep_us};

/// The result of the C library's wrappers: -1 and `errno`.
pub fn answer(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        set_errno(-result as i32);
        return -1;
    }
    result
}

/// The thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the C library gives every thread one.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// Runs `work` with all signals blocked.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let before = block_signals();
    let result = work();
    restore_signals(before);
    result
}

/// A lock so small that one can see that it neither allocates nor calls other code, with what it guards.
pub struct Lock<T>(AtomicU32, UnsafeCell<T>);

// SAFETY: what it guards is touched under the lock only.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Open.
    pub const fn new(value: T) -> Lock<T> {
        Lock(AtomicU32::new(0), UnsafeCell::new(value))
    }

    /// Runs `work` under the lock. 0: free, 1: held, 2: held and a thread may sleep.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.0.swap(2, Acquire) != 0 {
                futex_wait(&self.0, 2);
            }
        }
        // SAFETY: the lock is held; `work` would wait for ever if it came back here.
        let result = work(unsafe { &mut *self.1.get() });
        if self.0.swap(0, Release) == 2 {
            futex_wake(&self.0, i32::MAX as usize);
        }
        result
    }
}
