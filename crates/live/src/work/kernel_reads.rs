//! Pages that the kernel reads for a thread of the pager, and that may be absent.
//!
//! A thread that evicts pages lets the kernel refer to their frames (`vmsplice`). The program may have dropped one of
//! these pages just before, by a system call that the pager does not see (MADV_DONTNEED). If messages report faults,
//! the thread then sleeps in the fault. It owns the page and may hold the engine's lock, for which all handlers wait,
//! so no handler reads the message. Therefore the thread first publishes which pages it will read. A handler that
//! reads the message, or the log's writer, which checks while pages leave, puts these pages in place.
//!
//! ```text
//!   evicting thread   Reach::new ─ vmsplice ─ asleep ·················· goes on ─ drop
//!   writer, handler                   lock ─ still reaching? ─ refill, wake ─ unlock
//! ```

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

use crate::fault::pager::Inner;
use crate::sys;
use crate::sys::lock::Lock;
use crate::task::{TASKS, VICTIMS};

/// A reach that lasts from one check to the next is taken to sleep, in microseconds. If it is only slow, the check
/// does no harm.
pub const LOOK_US: u64 = 20_000;

/// The pages that a task's thread reaches for.
pub struct Reaching {
    /// The thread; 0: none.
    thread: AtomicU32,
    /// Held while another thread puts pages in place, so that this thread does not go on meanwhile and give them up.
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

/// What the last check has seen: the reach of each task.
pub struct Looks {
    turns: [u32; TASKS],
    at: u64,
}

impl Looks {
    pub fn new() -> Looks {
        Looks { turns: [0; TASKS], at: 0 }
    }
}

impl Inner {
    /// A fault of this thread (0: not known) at a page that a thread owns. Returns true if the thread itself reaches
    /// for it; the thread then goes on.
    pub(crate) fn help(&self, thread: u32) -> bool {
        let mine = |reaching: &Reaching| reaching.thread.load(SeqCst) == thread;
        thread != 0 && (0..self.tasks().len()).any(|task| self.help_task(task, mine))
    }

    /// Helps the threads that were already reaching at the last check.
    pub(crate) fn help_sleepers(&self, looks: &mut Looks) {
        let now = sys::now();
        if now - looks.at < LOOK_US * 1000 {
            return;
        }
        looks.at = now;
        self.look_for_held();
        for (task, seen) in looks.turns.iter_mut().enumerate().take(self.tasks().len()) {
            let turn = self.tasks().get(task).reaching.turn.load(SeqCst);
            if turn == *seen {
                self.help_task(task, |reaching| reaching.turn.load(SeqCst) == turn);
            }
            *seen = turn;
        }
    }

    /// Whether any thread has begun to reach since the last check, or still does.
    pub(crate) fn reached_since(&self, looks: &Looks) -> bool {
        let busy = |(task, seen): (usize, &u32)| {
            let reaching = &self.tasks().get(task).reaching;
            reaching.turn.load(SeqCst) != *seen || reaching.thread.load(SeqCst) != 0
        };
        looks.turns.iter().enumerate().take(self.tasks().len()).any(busy)
    }

    fn help_task(&self, task: usize, asleep: impl Fn(&Reaching) -> bool) -> bool {
        let reaching = &self.tasks().get(task).reaching;
        if reaching.thread.load(SeqCst) == 0 || !asleep(reaching) {
            return false;
        }
        let _helped = reaching.helped.lock();
        // It may have gone on meanwhile.
        if reaching.thread.load(SeqCst) == 0 || !asleep(reaching) {
            return false;
        }
        for page in &reaching.pages[..reaching.count.load(SeqCst)] {
            let page = page.load(SeqCst);
            self.refill(page);
            self.uffd.get().wake(self.address(page));
        }
        true
    }
}
