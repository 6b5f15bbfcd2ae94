//! A thread of the pager that sleeps until it is called.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::sys::lock::Lock;
use crate::sys::thread::{spawn, Body, RawThread, THREAD};
use crate::sys::{self, Sys};

/// The thread, and what it sleeps on.
#[derive(Debug)]
pub struct Worker {
    thread: Lock<Option<RawThread>>,
    /// Grows with each call.
    calls: AtomicU32,
    asleep: AtomicU32,
    stops: AtomicU32,
}

impl Worker {
    pub fn new() -> Worker {
        let zero = || AtomicU32::new(0);
        Worker { thread: Lock::new(None), calls: zero(), asleep: zero(), stops: zero() }
    }

    /// Starts the thread.
    ///
    /// # Safety
    /// As for `spawn`, until `stop` has returned.
    pub unsafe fn start(&self, body: Body, argument: *mut c_void) -> Sys<()> {
        self.stops.store(0, SeqCst);
        // SAFETY: the caller answers for it.
        *self.thread.lock() = Some(unsafe { spawn(body, argument, THREAD) }?);
        Ok(())
    }

    /// Ends the thread, if there is one.
    pub fn stop(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.stops.store(1, SeqCst);
        sys::futex_wake(&self.stops, 1);
        self.call();
        thread.join();
    }

    /// In a forked child: the thread is the parent's.
    pub fn forget(&self) {
        self.thread.lock().take().into_iter().for_each(RawThread::forget_in_child);
        self.asleep.store(0, SeqCst);
    }

    /// Whether the thread is to end.
    pub fn stops(&self) -> bool {
        self.stops.load(SeqCst) != 0
    }

    /// Wakes the thread.
    pub fn call(&self) {
        self.calls.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) != 0 {
            sys::futex_wake(&self.calls, 1);
        }
    }

    /// How often it was called. What it looks for after this question, it does not miss in `rest`.
    pub fn calls(&self) -> u32 {
        self.calls.load(SeqCst)
    }

    /// The thread sleeps until it is called again after `calls` calls, or for at most that many microseconds.
    pub fn rest(&self, calls: u32, us: Option<u64>) {
        self.asleep.store(1, SeqCst);
        match us {
            _ if self.stops() => {}
            Some(us) => sys::futex_wait_for(&self.calls, calls, us),
            None => sys::futex_wait(&self.calls, calls),
        }
        self.asleep.store(0, SeqCst);
    }

    /// A pause that no call ends, only `stop`.
    pub fn pause(&self, us: u64) {
        sys::futex_wait_for(&self.stops, 0, us);
    }
}
