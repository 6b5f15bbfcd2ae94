//! Chooses the thread that runs next. Important races often need one thread to pause at one step while another thread
//! runs far. Even chances almost never produce this, and a few switches at random places (PCT) seldom do. So each try
//! has its own rate of switches: from every second step to about every hundredth.

use fastrand::Rng;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// The thread is switched at one in this many steps.
const TEMPERS: [u32; 5] = [2, 5, 15, 40, 120];

/// A scheduler for a number of tries. The same seed gives the same tries.
pub struct Tempers {
    random: Rng,
    left: usize,
    one_in: u32,
}

impl Tempers {
    /// Takes the seed from MODEL_SEED. The default seed is fixed, so that a test always fails or never.
    pub fn new(tries: usize) -> Tempers {
        let seed = std::env::var("MODEL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        Tempers { random: Rng::with_seed(seed), left: tries, one_in: 1 }
    }
}

impl Scheduler for Tempers {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.left = self.left.checked_sub(1)?;
        self.one_in = *self.random.choice(&TEMPERS).expect("there are tempers");
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let stays = current.filter(|id| runnable.iter().any(|task| task.id() == *id));
        let others: Vec<TaskId> = runnable.iter().map(|task| task.id()).filter(|id| Some(*id) != stays).collect();
        match stays {
            Some(current) if others.is_empty() || (!is_yielding && self.random.u32(..self.one_in) > 0) => Some(current),
            _ => self.random.choice(others),
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}
