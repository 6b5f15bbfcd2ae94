//! Helps threads of the pager that sleep while the kernel reads pages for them (see [`crate::task::reaching`]).

use super::Work;
use crate::sys;
use crate::task::reaching::Reaching;
use crate::task::TASKS;

/// A reach that lasts from one check to the next is taken to sleep, in microseconds. If it is only slow, the check
/// does no harm.
pub const LOOK_US: u64 = 20_000;

/// Looks after the threads that sleep while they reach for pages.
pub struct Sleepers<'a> {
    work: &'a Work,
    /// What the last look has seen: the reach of each task.
    turns: [u32; TASKS],
    at: u64,
}

impl Sleepers<'_> {
    pub fn of(work: &Work) -> Sleepers<'_> {
        Sleepers { work, turns: [0; TASKS], at: 0 }
    }

    /// Looks, if that is due. Returns after how many microseconds to look again, if any thread has begun to reach since
    /// the last look, or still does.
    pub fn visit(&mut self) -> Option<u64> {
        if sys::now() - self.at >= LOOK_US * 1000 {
            self.look(sys::now());
        }
        let busy = |(task, last_turn): (usize, &u32)| {
            let reaching = &self.work.task(task).reaching;
            reaching.turn() != *last_turn || reaching.thread() != 0
        };
        self.turns.iter().enumerate().take(self.work.tasks().len()).any(busy).then_some(LOOK_US)
    }

    /// Helps the threads that were already reaching at the last look.
    fn look(&mut self, now: u64) {
        self.at = now;
        self.work.check_for_pinned();
        for (task, last_turn) in self.turns.iter_mut().enumerate().take(self.work.tasks().len()) {
            let turn = self.work.task(task).reaching.turn();
            if turn == *last_turn {
                self.work.help_task(task, |reaching| reaching.turn() == turn);
            }
            *last_turn = turn;
        }
    }
}

impl Work {
    /// A fault of this thread (0: not known) at a page that a thread owns. Returns true if the thread itself reaches
    /// for it; the thread then continues.
    pub fn help(&self, thread: u32) -> bool {
        let mine = |reaching: &Reaching| reaching.thread() == thread;
        thread != 0 && (0..self.tasks().len()).any(|task| self.help_task(task, mine))
    }

    fn help_task(&self, task: usize, asleep: impl Fn(&Reaching) -> bool) -> bool {
        self.task(task).reaching.help(asleep, |page| {
            self.memory.refill(page);
            self.memory.uffd().wake(self.memory.address(page));
        })
    }
}
