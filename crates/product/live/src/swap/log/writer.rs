//! Writes full buffers to the device: one thread of the pager, with plain writes. A thread of the program never has a
//! write in progress when it returns to its work. A full or slow device delays only threads that need a buffer.
//!
//! ```text
//!   evicting thread   append ─ lock ─ copy ─ buffer full ─ unlock ─ call          (all buffers full: sleep on `done`)
//!   writer            sleep on `work` ─ lock ─ job ─ unlock ─ seal, write ─ lock ─ written ─ unlock ─ wake `done`
//! ```

use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

use super::segments::{Buffer, Inside, Job};
use super::{hung_up, Log, FILE_SHIFT, SEGMENT};
use crate::page::pages::Pages;
use crate::stats::Stats;
use crate::sys::lock::{Guard, Lock};
use crate::sys::thread::{spawn, Body, RawThread, THREAD};
use crate::sys::{self, fatal, Errno, Sys};
use crate::{LiveError, PAGE};

/// Pause before the next request to the device, in microseconds: after it was full, and after it failed.
const SPACE_US: u64 = 100_000;
const FAILED_US: u64 = 20_000;
/// After this many writes, it is checked which children are gone.
const BURY: u64 = 16;

/// The writer thread, which calls `write_on`, and those who wait for it.
#[derive(Debug)]
pub struct Writer {
    thread: Lock<Option<RawThread>>,
    calls: AtomicU32,
    asleep: AtomicU32,
    stops: AtomicU32,
    /// The thread sleeps without a time limit, since no thread has reached for pages lately.
    dozes: AtomicU32,
    /// Grows when a job is done; threads that need a buffer sleep on it.
    done: AtomicU32,
    waiting: AtomicU32,
    /// The device had no space at the last try, which was reported.
    full: AtomicBool,
    /// Room for the encrypted bytes of a buffer, or 0.
    sealed: usize,
}

impl Writer {
    pub fn new(seals: bool) -> Result<Writer, LiveError> {
        let sealed = if seals { sys::map_memory(SEGMENT * PAGE) } else { Ok(0) };
        Ok(Writer {
            thread: Lock::new(None),
            calls: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            stops: AtomicU32::new(0),
            dozes: AtomicU32::new(0),
            done: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            full: AtomicBool::new(false),
            sealed: sealed.map_err(|e| LiveError::os("memory for the log", e))?,
        })
    }

    pub fn memory(&self) -> Range<usize> {
        self.sealed..self.sealed + if self.sealed == 0 { 0 } else { SEGMENT * PAGE }
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

    fn stops(&self) -> bool {
        self.stops.load(SeqCst) != 0
    }

    pub fn call(&self) {
        self.calls.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) != 0 {
            sys::futex_wake(&self.calls, 1);
        }
    }

    /// The thread sleeps until it is called again after `calls` calls, or for at most that many microseconds.
    fn rest(&self, calls: u32, us: Option<u64>) {
        self.asleep.store(1, SeqCst);
        match us {
            _ if self.stops() => {}
            Some(us) => sys::futex_wait_for(&self.calls, calls, us),
            None => sys::futex_wait(&self.calls, calls),
        }
        self.asleep.store(0, SeqCst);
    }

    /// A pause that no call ends, only `stop`.
    fn pause(&self, us: u64) {
        sys::futex_wait_for(&self.stops, 0, us);
    }

    fn job_done(&self) {
        self.done.fetch_add(1, SeqCst);
        if self.waiting.load(SeqCst) != 0 {
            sys::futex_wake(&self.done, i32::MAX as usize);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.sealed != 0 {
            // SAFETY: the thread is gone, or is the parent's and has memory of its own.
            unsafe { sys::unmap_memory(self.sealed, SEGMENT * PAGE) };
        }
    }
}

impl Log {
    /// The writer thread's work, until it is stopped. `visit`: its other work, which returns the microseconds until it
    /// must be called again, or `None`.
    pub fn write_on(&self, pages: &Pages, stats: &Stats, mut visit: impl FnMut() -> Option<u64>) {
        let writer = &self.writer;
        while !writer.stops() {
            // It does not miss a call that comes after this.
            let calls = writer.calls.load(SeqCst);
            let wants = visit();
            if self.work(pages, stats) {
                continue;
            }
            // A call is no reason to ask a full device sooner.
            if writer.full.load(SeqCst) && self.state.lock().has_job() {
                writer.pause(wants.unwrap_or(SPACE_US));
                continue;
            }
            // A thread that begins to reach from here on wakes the writer.
            writer.dozes.store(1, SeqCst);
            let limit = visit();
            if limit.is_some() {
                writer.dozes.store(0, SeqCst);
            }
            writer.rest(calls, limit);
            writer.dozes.store(0, SeqCst);
        }
    }

    /// No page has left lately.
    pub fn dozes(&self) -> bool {
        self.writer.dozes.load(SeqCst) != 0
    }

    /// A thread begins to reach for pages; the writer must look after it.
    pub fn watch(&self) {
        let writer = &self.writer;
        if writer.dozes.load(SeqCst) != 0 && writer.dozes.swap(0, SeqCst) != 0 {
            writer.call();
        }
    }

    /// Waits until the writer has done a job.
    pub(super) fn await_writer<'a>(&'a self, state: Guard<'a, Inside>) -> Guard<'a, Inside> {
        let writer = &self.writer;
        let calls = writer.done.load(SeqCst);
        drop(state);
        writer.call();
        writer.waiting.fetch_add(1, SeqCst);
        sys::futex_wait_for(&writer.done, calls, SPACE_US);
        writer.waiting.fetch_sub(1, SeqCst);
        self.state.lock()
    }

    /// Does the next job. Returns false if none can be done now. It does not wait for space: the writer looks after
    /// others meanwhile.
    fn work(&self, pages: &Pages, stats: &Stats) -> bool {
        let job = self.state.lock().job();
        let done = match job {
            None => false,
            Some(Job::Write(b)) => self.write(b, pages, stats),
            Some(Job::Reserve(from, to)) => self.reserve(from, to),
            Some(Job::Bury) => {
                self.state.lock().bury(hung_up);
                true
            }
        };
        if done {
            self.writer.job_done();
        }
        done
    }

    /// Writes a full buffer. Returns false if it must be written again later. If the device fails, the program ends:
    /// the bytes are nowhere else.
    fn write(&self, b: usize, pages: &Pages, stats: &Stats) -> bool {
        let buffer = self.state.lock().buffers[b];
        let start = (buffer.segment * SEGMENT * PAGE) as u64;
        let bytes = self.sealed(b, &buffer, pages);
        let (mut place, mut whole) = (0, true);
        while place < SEGMENT && whole {
            let run = buffer.run(place);
            if run > 0 {
                let offset = start + u64::from(buffer.slots[place]) * PAGE as u64;
                whole = self.write_run(bytes + place * PAGE, run * PAGE, offset, stats);
            }
            place += run.max(1);
        }
        let mut state = self.state.lock();
        state.written(b, whole);
        if whole {
            Stats::add(&stats.pages_written, buffer.used() as u64);
            if state.buffers[b].turn.is_multiple_of(BURY) {
                state.bury(hung_up);
            }
        }
        whole
    }

    /// Returns false if the device has no space, or if the thread must end first.
    fn write_run(&self, from: usize, len: usize, offset: u64, stats: &Stats) -> bool {
        let mut tries = 0;
        while !self.writer.stops() {
            Stats::add(&stats.device_writes, 1);
            // SAFETY: the buffer's pages, which no other thread changes during the write.
            match unsafe { self.device().write(from, len, offset) } {
                Ok(()) => {
                    Stats::add(&stats.device_bytes_written, len as u64);
                    self.writer.full.store(false, SeqCst);
                    return true;
                }
                Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                    self.say_full(error);
                    return false;
                }
                Err(error) => {
                    Stats::add(&stats.failures, 1);
                    tries += 1;
                    if tries == coldframe_core::engine::TRIES {
                        let (path, error) = (self.device().path().display(), sys::words(error));
                        fatal::stop(format_args!("{path}: {error}, writing {len} bytes at {offset}, {tries} times"));
                    }
                    self.writer.pause(FAILED_US);
                }
            }
        }
        false
    }

    /// Reserves room for as many of the segments as the file system allows. Returns false if a thread waits for more.
    fn reserve(&self, from: usize, to: usize) -> bool {
        let bytes = |segments: usize| (segments * SEGMENT * PAGE) as u64;
        let mut count = to - from;
        let refused = loop {
            match self.device().reserve(bytes(from), bytes(from + count)) {
                Ok(()) => break None,
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) if count > 1 => count /= 2,
                Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => break Some(error),
                Err(error) => fatal::stop(format_args!("{}: {}", self.device().path().display(), sys::words(error))),
            }
        };
        let mut state = self.state.lock();
        state.reserved(refused.is_none().then_some(from + count));
        let starved = state.starved();
        drop(state);
        match refused {
            None => self.writer.full.store(false, SeqCst),
            Some(error) if starved => self.say_full(error),
            Some(_) => {}
        }
        refused.is_none() || !starved
    }

    /// Nothing is lost while the program waits. It continues when there is space.
    fn say_full(&self, error: Errno) {
        if self.writer.full.swap(true, SeqCst) {
            return;
        }
        let path = self.device().path().display();
        match error {
            Errno::FBIG => fatal::say(format_args!(
                "{path}: the swap file may not grow (ulimit -f); the program waits until it may (prlimit --fsize)"
            )),
            _ => fatal::say(format_args!(
                "{path}: no space left for the swap file; the program waits until there is some"
            )),
        }
    }

    /// The bytes of a full buffer to write: its own, or their encrypted copies.
    fn sealed(&self, b: usize, buffer: &Buffer, pages: &Pages) -> usize {
        if self.sealers.is_empty() {
            return buffer.address;
        }
        (0..SEGMENT).filter(|i| buffer.has(*i)).for_each(|i| self.seal(b, i, pages));
        self.writer.sealed
    }

    /// Encrypts one page of a buffer. The page's nonce and tag are set only if its bytes are still these: meanwhile
    /// it may have been loaded from the buffer, written to, and appended again.
    fn seal(&self, b: usize, i: usize, pages: &Pages) {
        let (from, page, slot) = {
            let x = &self.state.lock().buffers[b];
            (x.address + i * PAGE, x.pages[i] as usize, x.segment * SEGMENT + usize::from(x.slots[i]))
        };
        let sealer = self.sealers.last().expect("there is one for each file");
        // SAFETY: one buffer is written at a time; its bytes do not change until then, and the room for sealed ones is
        // the writer's.
        let (nonce, tag) = unsafe { sealer.seal(from, self.writer.sealed + i * PAGE, page) };
        let _state = self.state.lock();
        let here = self.own_number() << FILE_SHIFT | slot as u64;
        if pages.slot(page) == Some(here) {
            pages.set_seal(page, nonce, tag);
        }
    }
}
