//! Chooses the handler that reads the messages. The other handlers sleep. If they waited for messages too, each
//! message would wake all of them, and processors that sleep.
//!
//! ```text
//!   leader     read ─ serve ─ read ─ serve ─ ... serve: has to wait ──────────────► done, sleeps or leads again
//!   follower   sleeps                               └─► takes the lead: read ─ serve ─ ...
//! ```
//! Before a leader waits for anything but the engine's lock, it gives up the lead, since the event it waits for may
//! need another handler. While the leader serves only one thread, it keeps the lead while it waits for the device or
//! takes pages out: that thread can have no other fault. The first fault of another thread then waits, so a leader does
//! not keep the lead while it waits for a slow device.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::sys;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and at least one thread sleeps until it is free.
const AWAITED: u32 = 2;

/// Messages of one thread in a row after which its handler expects more of them.
const STREAK: u32 = 16;
/// A device is slow if the median read of a page takes longer, in nanoseconds: many times as long as to wake a thread.
const SLOW_NS: u64 = 500_000;

/// The thread of a handler's last message, and the number of its messages in a row before that one.
#[derive(Default)]
pub(crate) struct Streak(u32, u32);

impl Streak {
    /// A message of `thread` has come. Returns whether it is one of many in a row.
    fn goes_on(&mut self, thread: u32) -> bool {
        let again = thread == self.0 && thread != 0;
        *self = Streak(thread, if again { self.1.saturating_add(1) } else { 0 });
        self.1 >= STREAK
    }
}

/// The lead.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    /// At first [`FREE`].
    word: AtomicU32,
    /// The thread that leads; 0: none.
    leader: AtomicU32,
    one_thread: AtomicBool,
}

impl Lead {
    /// Takes the lead, unless this thread has it. Sleeps until it is free.
    pub(crate) fn take(&self, me: u32) {
        if self.leader.load(Ordering::Relaxed) == me {
            return;
        }
        if self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
                sys::futex_wait(&self.word, AWAITED);
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

    /// The leader serves this message.
    pub(crate) fn serves(&self, streak: &mut Streak, thread: u32) {
        self.one_thread.store(streak.goes_on(thread), Ordering::Relaxed);
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

    /// The calling thread is about to take out a batch of pages. Other threads may fault meanwhile.
    pub(crate) fn step_aside_for_others(&self) {
        if !self.has_one_thread() {
            self.step_aside();
        }
    }

    /// The calling thread is about to wait for a device whose median read takes so long.
    pub(crate) fn step_aside_for_read(&self, read_ns: u64) {
        match read_ns > SLOW_NS {
            true => self.step_aside(),
            false => self.step_aside_for_others(),
        }
    }

    /// In a forked child: no thread leads.
    pub(crate) fn forget(&self) {
        self.leader.store(0, Ordering::Relaxed);
        self.word.store(FREE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_at_a_time_and_who_steps_aside_lets_another_one_lead() {
        let (lead, inside) = (Lead::default(), AtomicU32::new(0));
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
        let (lead, me) = (Lead::default(), sys::thread());
        lead.take(me);
        let mut streak = Streak::default();
        (0..=STREAK).for_each(|_| lead.serves(&mut streak, me));
        lead.step_aside_for_others();
        lead.step_aside_for_read(SLOW_NS);
        assert_eq!(lead.leader.load(Ordering::Relaxed), me);
        lead.step_aside_for_read(SLOW_NS + 1);
        assert_eq!(lead.leader.load(Ordering::Relaxed), 0, "the device is slow");
        lead.take(me);
        lead.serves(&mut streak, me + 1);
        lead.step_aside_for_others();
        assert_eq!(lead.leader.load(Ordering::Relaxed), 0);
    }
}
