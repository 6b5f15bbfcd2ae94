//! Chooses the handler thread that reads the messages. The other handler threads sleep. If they waited for messages
//! too, each message would wake all of them, and processors that sleep.
//!
//! ```text
//!   reader   read ─ serve ─ read ─ serve ─ ... serve: has to wait ──────────────► done, sleeps or reads again
//!   other    sleeps                               └─► becomes the reader: read ─ serve ─ ...
//! ```
//! Before the reader waits for anything but the engine's lock, it hands over to another handler thread, because the
//! event that it waits for may need one. While it serves only one thread, it remains the reader while it waits for the
//! device or evicts pages: that thread can have no other fault. The first fault of another thread then waits, so the
//! reader hands over before it waits for a slow device.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::sys;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and at least one thread sleeps until it is free.
const AWAITED: u32 = 2;

/// Consecutive messages of one thread after which its handler thread expects more of them.
const CONSECUTIVE_MIN: u32 = 16;
/// A device is slow if the median read of a page takes longer, in nanoseconds: many times as long as to wake a thread.
const SLOW_NS: u64 = 500_000;

/// The thread of a handler thread's last message, and the number of consecutive messages of that thread before it.
#[derive(Default)]
pub(crate) struct Consecutive(u32, u32);

impl Consecutive {
    /// A message of `thread` has come. Returns whether it is one of many consecutive ones.
    fn add(&mut self, thread: u32) -> bool {
        let again = thread == self.0 && thread != 0;
        *self = Consecutive(thread, if again { self.1.saturating_add(1) } else { 0 });
        self.1 >= CONSECUTIVE_MIN
    }
}

#[derive(Debug, Default)]
pub(crate) struct MessageReader {
    /// At first [`FREE`].
    word: AtomicU32,
    /// The thread that reads the messages; 0: none.
    thread: AtomicU32,
    one_thread: AtomicBool,
}

impl MessageReader {
    /// Makes this thread the reader, unless it is. Sleeps until the other reader hands over.
    pub(crate) fn become_reader(&self, me: u32) {
        if self.thread.load(Ordering::Relaxed) == me {
            return;
        }
        if self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
                sys::futex_wait(&self.word, AWAITED);
            }
        }
        self.thread.store(me, Ordering::Relaxed);
    }

    pub(crate) fn resign(&self, me: u32) {
        if self.thread.compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            && self.word.swap(FREE, Ordering::Release) == AWAITED
        {
            sys::futex_wake(&self.word, 1);
        }
    }

    pub(crate) fn serves(&self, consecutive: &mut Consecutive, thread: u32) {
        self.one_thread.store(consecutive.add(thread), Ordering::Relaxed);
    }

    pub(crate) fn serves_one_thread(&self) -> bool {
        self.one_thread.load(Ordering::Relaxed)
    }

    pub(crate) fn hand_over(&self) {
        if self.thread.load(Ordering::Relaxed) != 0 {
            self.resign(sys::thread());
        }
    }

    /// The calling thread is about to evict a batch of pages. Other threads may fault during that time.
    pub(crate) fn hand_over_unless_alone(&self) {
        if !self.serves_one_thread() {
            self.hand_over();
        }
    }

    /// The calling thread is about to wait for a device whose median read takes `read_ns`.
    pub(crate) fn hand_over_for_read(&self, read_ns: u64) {
        match read_ns > SLOW_NS {
            true => self.hand_over(),
            false => self.hand_over_unless_alone(),
        }
    }

    /// In a forked child: no thread is the reader.
    pub(crate) fn forget(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.word.store(FREE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_at_a_time_and_who_steps_aside_lets_another_one_lead() {
        let (reader, inside) = (MessageReader::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let me = sys::thread();
                    for round in 0..2000 {
                        reader.become_reader(me);
                        assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0);
                        assert_eq!(inside.fetch_sub(1, Ordering::AcqRel), 1);
                        match round % 3 {
                            0 => reader.hand_over(),
                            1 => reader.resign(me),
                            _ => {}
                        }
                    }
                    reader.resign(me);
                    reader.resign(me);
                });
            }
        });
        assert_eq!(reader.word.load(Ordering::Relaxed), FREE);
    }

    #[test]
    fn with_one_thread_a_leader_keeps_the_lead_while_it_waits_for_the_device() {
        let (reader, me) = (MessageReader::default(), sys::thread());
        reader.become_reader(me);
        let mut consecutive = Consecutive::default();
        (0..=CONSECUTIVE_MIN).for_each(|_| reader.serves(&mut consecutive, me));
        reader.hand_over_unless_alone();
        reader.hand_over_for_read(SLOW_NS);
        assert_eq!(reader.thread.load(Ordering::Relaxed), me);
        reader.hand_over_for_read(SLOW_NS + 1);
        assert_eq!(reader.thread.load(Ordering::Relaxed), 0, "the device is slow");
        reader.become_reader(me);
        reader.serves(&mut consecutive, me + 1);
        reader.hand_over_unless_alone();
        assert_eq!(reader.thread.load(Ordering::Relaxed), 0);
    }
}
