//! Chooses the handler that reads the messages. The other handlers sleep. If they waited for messages too, each
//! message would wake all of them, and processors that sleep.
//!
//! ```text
//!   leader     read ─ serve ─ read ─ serve ─ ... serve: has to wait ──────────────► done, sleeps or leads again
//!   follower   sleeps                               └─► takes the lead: read ─ serve ─ ...
//! ```
//! Before a leader waits for anything but the engine's lock, it gives up the lead, since the event it waits for may
//! need another handler. While the leader serves only one thread, it keeps the lead while it waits for the device or
//! takes pages out: that thread can have no other fault.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::follow::Drawn;
use crate::sys;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and at least one thread sleeps until it is free.
const AWAITED: u32 = 2;

/// The lead.
#[derive(Debug)]
pub(crate) struct Lead {
    word: AtomicU32,
    /// The thread that leads; 0: none.
    leader: AtomicU32,
    one_thread: AtomicBool,
    /// The thread that may run only where its handler does.
    pub(crate) drawn: Drawn,
}

impl Lead {
    /// No thread leads. `keeps`: see [`Drawn::new`].
    pub(crate) fn new(keeps: bool) -> Lead {
        let (word, leader, one_thread) = (AtomicU32::new(FREE), AtomicU32::new(0), AtomicBool::new(false));
        Lead { word, leader, one_thread, drawn: Drawn::new(keeps) }
    }

    /// Takes the lead, unless this thread has it. Sleeps until it is free.
    pub(crate) fn take(&self, me: u32) {
        if self.leader.load(Ordering::Relaxed) == me {
            return;
        }
        if self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
                match self.drawn.patience() {
                    Some(us) => sys::futex_wait_for(&self.word, AWAITED, us),
                    None => sys::futex_wait(&self.word, AWAITED),
                }
                self.drawn.look_after();
            }
        }
        self.leader.store(me, Ordering::Relaxed);
    }

    /// Gives the lead up, if this thread has it.
    pub(crate) fn give(&self, me: u32) {
        if self.leader.compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && self.word.swap(FREE, Ordering::Release) == AWAITED
        {
            sys::futex_wake(&self.word, 1);
        }
    }

    /// A thread has been drawn: the thread that waits for the lead must look after it.
    pub(crate) fn look_after(&self) {
        sys::futex_wake(&self.word, 1);
    }

    /// `one`: lately only one thread has faulted, and the leader serves it.
    pub(crate) fn serves_one_thread(&self, one: bool) {
        self.one_thread.store(one, Ordering::Relaxed);
    }

    /// Whether the leader serves one thread only.
    pub(crate) fn has_one_thread(&self) -> bool {
        self.one_thread.load(Ordering::Relaxed)
    }

    /// The calling thread is about to wait.
    pub(crate) fn step_aside(&self) {
        if self.leader.load(Ordering::Relaxed) != 0 {
            self.give(sys::thread());
        }
    }

    /// The calling thread is about to wait for a device, or to take out a batch of pages. Other threads may fault
    /// meanwhile.
    pub(crate) fn step_aside_for_others(&self) {
        if !self.has_one_thread() {
            self.step_aside();
        }
    }

    /// In a forked child: no thread leads.
    pub(crate) fn forget(&self) {
        self.leader.store(0, Ordering::Relaxed);
        self.word.store(FREE, Ordering::Relaxed);
        self.drawn.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_at_a_time_and_who_steps_aside_lets_another_one_lead() {
        let (lead, inside) = (Lead::new(true), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let me = sys::thread();
                    for round in 0..2000 {
                        lead.take(me);
                        assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0);
                        assert_eq!(inside.fetch_sub(1, Ordering::AcqRel), 1);
                        match round % 3 {
                            0 => lead.step_aside(),
                            1 => lead.give(me),
                            _ => {}
                        }
                    }
                    lead.give(me);
                    lead.give(me);
                });
            }
        });
        assert_eq!(lead.word.load(Ordering::Relaxed), FREE);
    }

    #[test]
    fn with_one_thread_a_leader_keeps_the_lead_while_it_waits_for_the_device() {
        let (lead, me) = (Lead::new(true), sys::thread());
        lead.take(me);
        lead.serves_one_thread(true);
        lead.step_aside_for_others();
        assert_eq!(lead.leader.load(Ordering::Relaxed), me);
        lead.serves_one_thread(false);
        lead.step_aside_for_others();
        assert_eq!(lead.leader.load(Ordering::Relaxed), 0);
    }
}
