//! Processors of a handler and of the thread whose faults it serves. They run on the same processor while all faults
//! come from this one thread.
//!
//! ```text
//!   processor A   thread ─fault┐       ┌─ goes on        handler and thread take turns: about 5 us for both ways
//!                handler       └ serves┘
//!   processor B   idle
//! ```
//! Without this file, the scheduler wakes a handler on an idle processor and then the thread on the other processor,
//! which has become idle. Each fault then wakes a sleeping processor twice (measured in a virtual machine: 97 us a
//! fault more than on one processor; a program that thrashes took 68 s and not 28 s). So a handler that has served
//! one thread for a while stays on its processor and wakes the thread there: when it is woken, the thread may run on
//! no other processor.
//!
//! Setting and clearing this restriction are calls into the kernel, 4 us for each fault. So the thread stays
//! restricted to the handler's processor ([`Drawn`]) while faults come fast. The restriction ends in three cases.
//! First, when [`REST_NS`] pass without a fault; another handler checks this. Second, for the time between two
//! faults, every [`LOOK_NS`], so that the scheduler can move the thread. Third, before the thread asks where it may
//! run or starts something that would inherit the answer (`Drawn::let_go`). If the pager does not see such questions
//! of the program, the restriction ends after each wake-up.
//!
//! A handler asks for short time slices, so that the thread it wakes does not run before the handler sleeps.
//!
//! If several threads fault by turns, no thread is restricted.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::sys::{self, Processors};

/// Messages of one thread in a row before a handler follows it.
const STREAK: u32 = 16;

/// How often the scheduler may move handler and thread, for the time between two faults, in nanoseconds.
const LOOK_NS: u64 = 4_000_000;

/// After this time without a fault, in nanoseconds, a drawn thread may run anywhere.
const REST_NS: u64 = 4_000_000;

/// After a thread was let go, no thread is drawn for this time, in nanoseconds. The thread should have done by then
/// what it was let go for.
const HOLD_OFF_NS: u64 = 50_000_000;

/// The state of one handler.
#[derive(Debug)]
pub struct Follow {
    /// The thread of the last message.
    thread: u32,
    /// The number of its messages in a row.
    streak: u32,
    /// The processor that the handler stays on.
    home: Option<usize>,
    looked: u64,
    /// The next wake-up lets the drawn thread go.
    lets_go: bool,
    /// Where the handler may run while it follows no thread; `None`: it never follows.
    anywhere: Option<Processors>,
}

impl Follow {
    /// For the calling thread.
    pub fn new() -> Follow {
        let anywhere = Processors::of(0).ok().filter(|all| all.count() > 1);
        Follow { thread: 0, streak: 0, home: None, looked: 0, lets_go: false, anywhere }
    }

    /// A message of a thread has come.
    pub fn met(&mut self, thread: u32) {
        if self.anywhere.is_none() {
            return;
        }
        if thread != self.thread || thread == 0 {
            (self.thread, self.streak) = (thread, 0);
            return self.stay(None);
        }
        self.streak = self.streak.saturating_add(1);
        if self.streak < STREAK {
            return;
        }
        let now = sys::now();
        if self.home.is_none() {
            self.looked = now;
            return self.stay(sys::here());
        }
        self.lets_go |= now - self.looked > LOOK_NS;
    }

    fn stay(&mut self, home: Option<usize>) {
        let (false, Some(anywhere)) = (self.home == home, &self.anywhere) else { return };
        let allowed = home.map_or(*anywhere, Processors::only);
        self.home = home;
        if allowed.set(0).is_err() {
            // A filter of system calls, or a processor that this process may not use.
            (self.home, self.anywhere) = (None, None);
        }
    }

    /// Whether it follows a thread.
    pub fn follows(&self) -> bool {
        self.home.is_some()
    }

    /// Runs `wake`, which lets the thread go on. If the handler follows the thread, the thread continues on this
    /// processor. Returns true if the thread has been drawn; [`Drawn::look_after`] must then let it go.
    pub fn waking(&mut self, drawn: &Drawn, wake: impl FnOnce()) -> bool {
        let (Some(home), thread) = (self.home, self.thread) else {
            wake();
            return false;
        };
        let was = drawn.is(thread, home);
        let here = was || drawn.begin(thread, home);
        wake();
        if here && (self.lets_go || !drawn.keeps) {
            // By now the thread is in this processor's queue.
            drawn.end(thread, thread);
        }
        if std::mem::take(&mut self.lets_go) {
            self.stay(None);
            return false;
        }
        here && !was && drawn.keeps
    }
}

/// In place of the thread's number: the number is being changed.
const CHANGING: u32 = u32::MAX;

/// How often a thread checks whether a change is over. A change takes two calls into the kernel.
const LOOKS: u32 = 1000;

/// The thread that is restricted to one processor, for now.
///
/// No thread waits for a lock here: the program's threads call [`Drawn::let_go`], and may fault while they do.
#[derive(Debug)]
pub struct Drawn {
    /// 0: none.
    thread: AtomicU32,
    home: AtomicUsize,
    /// The processors that the thread may use otherwise.
    anywhere: UnsafeCell<Processors>,
    /// When it was woken last.
    woken: AtomicU64,
    /// No thread is drawn before this time.
    not_before: AtomicU64,
    /// The thread that last asked for a release.
    said: AtomicU32,
    /// The thread stays drawn from one fault to the next.
    keeps: bool,
}

// SAFETY: `anywhere` is reached by the one only that has made `thread` `CHANGING`.
unsafe impl Sync for Drawn {}

impl Drawn {
    /// `keeps`: the program calls [`Drawn::let_go`] before it asks where it may run, and a thread calls
    /// [`Drawn::look_after`].
    pub fn new(keeps: bool) -> Drawn {
        Drawn {
            thread: AtomicU32::new(0),
            home: AtomicUsize::new(0),
            anywhere: UnsafeCell::new(Processors::only(0)),
            woken: AtomicU64::new(0),
            not_before: AtomicU64::new(0),
            said: AtomicU32::new(0),
            keeps,
        }
    }

    fn changes(&self, from: u32) -> bool {
        self.thread.compare_exchange(from, CHANGING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether this thread is drawn to this processor. If so, it is being woken.
    fn is(&self, thread: u32, home: usize) -> bool {
        if self.thread.load(Ordering::Acquire) != thread {
            return false;
        }
        self.woken.store(sys::now(), Ordering::Relaxed);
        let here = self.home.load(Ordering::Relaxed) == home;
        if !here {
            self.end(thread, thread);
        }
        here
    }

    /// Returns false if another thread is drawn, or if this thread may not run there or may run nowhere else.
    fn begin(&self, thread: u32, home: usize) -> bool {
        let now = sys::now();
        if now < self.not_before.load(Ordering::Relaxed) || !self.changes(0) {
            return false;
        }
        let allowed = Processors::of(thread).ok().filter(|all| all.has(home) && all.count() > 1);
        let done = allowed.is_some_and(|all| {
            // SAFETY: only one thread at a time changes which thread is drawn.
            unsafe { *self.anywhere.get() = all };
            self.home.store(home, Ordering::Relaxed);
            self.woken.store(now, Ordering::Relaxed);
            Processors::only(home).set(thread).is_ok()
        });
        self.thread.store(if done { thread } else { 0 }, Ordering::Release);
        done
    }

    /// Lets the thread run anywhere again, if it is the drawn one; `by`: 0 if the thread itself asks.
    fn end(&self, thread: u32, by: u32) {
        if self.changes(thread) {
            // SAFETY: only one thread at a time changes which thread is drawn.
            let _ = unsafe { &*self.anywhere.get() }.set(by);
            self.thread.store(0, Ordering::Release);
        }
    }

    /// Call this before the calling thread makes a thread or a process, which would inherit where it may run, and
    /// before it asks or sets where a thread may run. All threads then run where they were allowed to, and this does
    /// not change for a while.
    pub fn let_go(&self) {
        let me = sys::thread();
        self.said.store(me, Ordering::Relaxed);
        self.not_before.store(sys::now() + HOLD_OFF_NS, Ordering::Relaxed);
        for _ in 0..LOOKS {
            match self.thread.load(Ordering::Acquire) {
                0 => return,
                CHANGING => sys::give_way(),
                drawn => self.end(drawn, if drawn == me { 0 } else { drawn }),
            }
        }
    }

    /// How long to sleep before [`Drawn::look_after`], in microseconds; `None`: until a thread is drawn.
    pub fn patience(&self) -> Option<u64> {
        (self.keeps && self.thread.load(Ordering::Acquire) != 0).then_some(REST_NS / 1000)
    }

    /// Lets the thread go if it has not faulted for a while.
    pub fn look_after(&self) {
        let thread = self.thread.load(Ordering::Acquire);
        let rests = sys::now().saturating_sub(self.woken.load(Ordering::Relaxed)) > REST_NS;
        if thread != 0 && thread != CHANGING && rests {
            self.end(thread, thread);
        }
    }

    /// In a forked child: its only thread may run where the forking thread might.
    pub fn forget(&self) {
        let drawn = self.thread.swap(0, Ordering::Relaxed);
        if drawn != 0 && drawn == self.said.load(Ordering::Relaxed) {
            // SAFETY: this process has no other thread.
            let _ = unsafe { &*self.anywhere.get() }.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a handler of its own thread does with these messages: whether it follows after each.
    fn follows(messages: &[u32]) -> Vec<bool> {
        let messages = messages.to_vec();
        let run = move || {
            let mut follow = Follow::new();
            let each = messages.iter().map(|thread| {
                follow.met(*thread);
                follow.home.is_some() && Processors::of(0).is_ok_and(|here| here.count() == 1)
            });
            each.collect()
        };
        std::thread::spawn(run).join().unwrap()
    }

    #[test]
    fn one_threads_handler_stays_with_it_and_several_threads_is_free() {
        if Processors::of(0).unwrap().count() < 2 {
            return;
        }
        let own = sys::thread();
        let one = follows(&vec![own; 2 * STREAK as usize]);
        assert!(!one[STREAK as usize - 1] && one[STREAK as usize], "{one:?}");
        assert!(one[2 * STREAK as usize - 1]);
        let mut turns = vec![own; 2 * STREAK as usize];
        turns.push(own + 1);
        assert_eq!(follows(&turns).last(), Some(&false));
    }

    #[test]
    fn a_thread_may_run_wherever_it_might_after_it_has_been_woken() {
        let before = Processors::of(0).unwrap();
        let (thread, home) = (sys::thread(), sys::here());
        let mut follow = Follow { thread, streak: STREAK, home, looked: 0, lets_go: false, anywhere: Some(before) };
        let mut during = None;
        let drawn = Drawn::new(false);
        follow.waking(&drawn, || during = Processors::of(0).ok());
        assert_eq!(during.map(|here| here.count()), Some(1));
        assert_eq!(Processors::of(0), Ok(before));
    }

    #[test]
    fn what_a_drawn_thread_starts_may_run_anywhere() {
        let before = Processors::of(0).unwrap();
        let (thread, home) = (sys::thread(), sys::here());
        let mut follow = Follow { thread, streak: STREAK, home, looked: 0, lets_go: false, anywhere: Some(before) };
        let (drawn, mut inherited) = (Drawn::new(false), None);
        follow.waking(&drawn, || {
            drawn.let_go();
            inherited = std::thread::spawn(|| Processors::of(0)).join().ok();
        });
        assert_eq!(inherited, Some(Ok(before)));
        assert_eq!(Processors::of(0), Ok(before));
    }

    #[test]
    fn a_thread_that_faults_often_stays_drawn_until_it_rests_or_asks() {
        let before = Processors::of(0).unwrap();
        let (thread, home) = (sys::thread(), sys::here());
        if before.count() < 2 {
            return;
        }
        let mut follow = Follow { thread, streak: STREAK, home, looked: 0, lets_go: false, anywhere: Some(before) };
        let here = || Processors::of(0).map(|here| here.count());
        let drawn = Drawn::new(true);
        assert!(follow.waking(&drawn, || ()), "somebody is to look after it");
        assert_eq!((here(), drawn.patience()), (Ok(1), Some(REST_NS / 1000)));
        assert!(!follow.waking(&drawn, || ()));
        sys::sleep_us(2 * REST_NS / 1000);
        drawn.look_after();
        assert_eq!((Processors::of(0), drawn.patience()), (Ok(before), None));
        assert!(follow.waking(&drawn, || ()));
        follow.lets_go = true;
        assert!(!follow.waking(&drawn, || ()));
        assert_eq!((Processors::of(0), follow.home), (Ok(before), None), "the scheduler has its turn");
        follow.home = home;
        assert!(follow.waking(&drawn, || ()));
        drawn.let_go();
        assert_eq!(Processors::of(0), Ok(before));
        assert!(!follow.waking(&drawn, || ()) && Processors::of(0) == Ok(before), "nor is it drawn again at once");
    }

    #[test]
    fn a_handler_that_may_not_choose_leaves_all_as_it_is() {
        let mut follow = Follow { thread: 1, streak: STREAK, home: None, looked: 0, lets_go: false, anywhere: None };
        follow.met(1);
        assert_eq!(follow.home, None);
        let mut woken = 0;
        follow.waking(&Drawn::new(false), || woken += 1);
        assert_eq!(woken, 1);
    }
}
