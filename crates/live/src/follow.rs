//! Which processor a handler runs on: the one of the thread whose faults it serves, while these are one thread's.
//!
//! ```text
//!   processor A   thread ─fault┐       ┌─ goes on        handler and thread take turns: about 5 us for both ways
//!                handler       └ serves┘
//!   processor B   idle
//! ```
//! Left alone the scheduler wakes a handler on an idle processor, and then the thread on the other one, which has become idle: each fault
//! wakes a sleeping processor twice, and both are asleep most of the time (measured in a virtual machine: 97 us a fault more than on one
//! processor, which made a program that thrashes take 68 s and not 28 s). So a handler that has served one thread for a while stays on the
//! processor of that thread, and wakes it there: for the moment of the wake-up the thread may run nowhere else. Afterwards it may run wherever
//! it was allowed to, and the scheduler moves it as it likes; the handler looks for it again every [`LOOK_NS`].
//!
//! A handler asks for short slices of time, so that the thread it wakes does not run before it has said so. If the thread does, it sees one
//! processor for that moment; what it starts meanwhile is not to inherit that (`Drawn::let_go`).
//!
//! Where the faults come from several threads by turns, the scheduler is left alone.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::lock::Lock;
use crate::sys::{self, Processors};

/// Messages of one thread, one after the other, before a handler follows it.
const STREAK: u32 = 16;

/// How often the thread's processor is looked up, in nanoseconds: that takes about 15 us.
const LOOK_NS: u64 = 4_000_000;

/// Of one handler.
#[derive(Debug)]
pub struct Follow {
    /// The thread of the last message.
    thread: u32,
    /// How many messages it has sent one after the other.
    streak: u32,
    /// The processor that the handler stays on.
    home: Option<usize>,
    looked: u64,
    /// Where the handler may run when it follows nobody; `None`: it never follows.
    anywhere: Option<Processors>,
}

impl Follow {
    /// For the calling thread.
    pub fn new() -> Follow {
        let anywhere = Processors::of(0).ok().filter(|all| all.count() > 1);
        Follow { thread: 0, streak: 0, home: None, looked: 0, anywhere }
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
        if self.home.is_none() || now - self.looked > LOOK_NS {
            self.looked = now;
            self.stay(sys::processor_of(thread));
        }
    }

    fn stay(&mut self, home: Option<usize>) {
        let (false, Some(anywhere)) = (self.home == home, &self.anywhere) else { return };
        let allowed = home.map_or(*anywhere, Processors::only);
        self.home = home;
        if allowed.set(0).is_err() {
            // A filter of system calls, or a processor that is not for this process.
            (self.home, self.anywhere) = (None, None);
        }
    }

    /// Whether it follows a thread.
    pub fn follows(&self) -> bool {
        self.home.is_some()
    }

    /// Runs `wake`, which lets the thread go on, so that it goes on here if the handler follows it.
    pub fn waking(&self, drawn: &Drawn, wake: impl FnOnce()) {
        let (Some(home), thread) = (self.home, self.thread) else { return wake() };
        let allowed = Processors::of(thread).ok().filter(|all| all.has(home) && all.count() > 1);
        let here = allowed.filter(|all| drawn.begin(thread, all) && Processors::only(home).set(thread).is_ok());
        wake();
        if here.is_some() {
            // The thread has a place in the queue of this processor by now.
            drawn.end(thread, thread);
        }
    }
}

/// The thread that may run on one processor only just now, until it has been woken there.
#[derive(Debug)]
pub struct Drawn {
    thread: AtomicU32,
    anywhere: Lock<Option<Processors>>,
}

impl Default for Drawn {
    fn default() -> Drawn {
        Drawn { thread: AtomicU32::new(0), anywhere: Lock::new(None) }
    }
}

impl Drawn {
    /// False: another thread is being woken.
    fn begin(&self, thread: u32, anywhere: &Processors) -> bool {
        if self.thread.load(Ordering::Relaxed) != 0 {
            return false;
        }
        *self.anywhere.lock() = Some(*anywhere);
        self.thread.store(thread, Ordering::Release);
        true
    }

    /// The thread may run anywhere again, if it is the one; `by`: 0 if it says so itself.
    fn end(&self, thread: u32, by: u32) {
        let anywhere = *self.anywhere.lock();
        if self.thread.compare_exchange(thread, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let _ = anywhere.map(|anywhere| anywhere.set(by));
        }
    }

    /// Before the calling thread makes a thread or a process, which would inherit where it may run: it may run anywhere.
    pub fn let_go(&self) {
        if self.thread.load(Ordering::Acquire) != 0 {
            self.end(sys::thread(), 0);
        }
    }

    /// In a forked child.
    pub fn forget(&self) {
        self.thread.store(0, Ordering::Relaxed);
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
        let (thread, home) = (sys::thread(), sys::processor_of(sys::thread()));
        let follow = Follow { thread, streak: STREAK, home, looked: 0, anywhere: Some(before) };
        let mut during = None;
        let drawn = Drawn::default();
        follow.waking(&drawn, || during = Processors::of(0).ok());
        assert_eq!(during.map(|here| here.count()), Some(1));
        assert_eq!(Processors::of(0), Ok(before));
    }

    #[test]
    fn what_a_drawn_thread_starts_may_run_anywhere() {
        let before = Processors::of(0).unwrap();
        let (thread, home) = (sys::thread(), sys::processor_of(sys::thread()));
        let follow = Follow { thread, streak: STREAK, home, looked: 0, anywhere: Some(before) };
        let (drawn, mut inherited) = (Drawn::default(), None);
        follow.waking(&drawn, || {
            drawn.let_go();
            inherited = std::thread::spawn(|| Processors::of(0)).join().ok();
        });
        assert_eq!(inherited, Some(Ok(before)));
        assert_eq!(Processors::of(0), Ok(before));
    }

    #[test]
    fn a_handler_that_may_not_choose_leaves_all_as_it_is() {
        let mut follow = Follow { thread: 1, streak: STREAK, home: None, looked: 0, anywhere: None };
        follow.met(1);
        assert_eq!(follow.home, None);
        let mut woken = 0;
        follow.waking(&Drawn::default(), || woken += 1);
        assert_eq!(woken, 1);
    }
}
