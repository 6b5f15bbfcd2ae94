//! The free tasks. A thread takes a task before the engine's lock, never under it: otherwise it would wait, with the
//! lock, for a task whose thread waits for the lock.

use crate::page::parking::Parking;
use crate::sys::sync::{AtomicU64, Ordering};

/// The free tasks, one bit each.
#[derive(Debug)]
pub struct FreeTasks {
    free: AtomicU64,
    queue: Parking,
}

impl FreeTasks {
    /// `count` tasks, all free; at most 63.
    pub fn new(count: usize) -> FreeTasks {
        FreeTasks { free: AtomicU64::new((1 << count) - 1), queue: Parking::default() }
    }

    pub fn take(&self) -> usize {
        loop {
            let free = self.free.load(Ordering::SeqCst);
            if free == 0 {
                self.queue.wait(0, || self.free.load(Ordering::SeqCst) == 0);
                continue;
            }
            let i = free.trailing_zeros();
            if self.free.compare_exchange(free, free & !(1 << i), Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return i as usize;
            }
        }
    }

    pub fn give(&self, task: usize) {
        self.free.fetch_or(1 << task, Ordering::SeqCst);
        self.queue.wake(0);
    }

    /// In a forked child: `count` tasks are free, and no thread waits.
    pub fn renew(&self, count: usize) {
        self.queue.forget_sleepers();
        self.free.store((1 << count) - 1, Ordering::Release);
    }
}
