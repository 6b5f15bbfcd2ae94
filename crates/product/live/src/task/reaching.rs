//! Pages that the kernel reads for a thread of the pager, and that may be absent.
//!
//! A thread that evicts pages lets the kernel refer to their frames (`vmsplice`). The program may have dropped one of
//! these pages just before, by a system call that the pager does not see (MADV_DONTNEED). If messages report faults,
//! the thread then sleeps in the fault. It owns the page and may hold the engine's lock, for which all handlers wait,
//! so no handler reads the message. Therefore the thread first publishes which pages it will read. A handler that
//! reads the message, or the log's writer, which checks while pages leave, puts these pages in place.
//!
//! ```text
//!   evicting thread   Reach::new ─ vmsplice ─ asleep ·················· continues ─ drop
//!   writer, handler                   lock ─ still reaching? ─ refill, wake ─ unlock
//! ```

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

use super::VICTIMS;
use crate::sys;
use crate::sys::lock::Lock;

pub struct Reaching {
    /// The thread; 0: none.
    thread: AtomicU32,
    /// Held while another thread puts pages in place, so that this thread does not continue before that and give them
    /// up.
    helped: Lock<()>,
    /// Its pages; `count` says how many.
    pages: [AtomicUsize; VICTIMS],
    count: AtomicUsize,
    /// The number of this reach of the task.
    turn: AtomicU32,
}

impl Reaching {
    pub fn nothing() -> Reaching {
        Reaching {
            thread: AtomicU32::new(0),
            helped: Lock::new(()),
            pages: [const { AtomicUsize::new(0) }; VICTIMS],
            count: AtomicUsize::new(0),
            turn: AtomicU32::new(0),
        }
    }
}

/// While it lives, faults of this thread come from the kernel, which reads these pages.
pub struct Reach<'a>(&'a Reaching);

impl Reach<'_> {
    pub fn new(reaching: &Reaching, pages: impl Iterator<Item = usize>) -> Reach<'_> {
        let count = reaching.pages.iter().zip(pages).map(|(place, page)| place.store(page, SeqCst)).count();
        reaching.count.store(count, SeqCst);
        reaching.turn.fetch_add(1, SeqCst);
        reaching.thread.store(sys::thread(), SeqCst);
        Reach(reaching)
    }
}

impl Drop for Reach<'_> {
    fn drop(&mut self) {
        let _helped = self.0.helped.lock();
        self.0.thread.store(0, SeqCst);
    }
}

impl Reaching {
    pub fn turn(&self) -> u32 {
        self.turn.load(SeqCst)
    }

    /// The thread that reaches now; 0: none.
    pub fn thread(&self) -> u32 {
        self.thread.load(SeqCst)
    }

    /// Puts the pages in place by `put` if `asleep` says so of the thread that reaches for them. Returns whether.
    pub fn help(&self, asleep: impl Fn(&Reaching) -> bool, put: impl Fn(usize)) -> bool {
        if self.thread() == 0 || !asleep(self) {
            return false;
        }
        let _helped = self.helped.lock();
        // It may have continued since.
        if self.thread() == 0 || !asleep(self) {
            return false;
        }
        self.pages[..self.count.load(SeqCst)].iter().for_each(|page| put(page.load(SeqCst)));
        true
    }
}
