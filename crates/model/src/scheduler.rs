//! Which thread goes on. Races that matter often need one thread to stand still at one step while another goes a long way; by even chance that
//! never comes about, and a few changes placed anywhere (PCT) seldom hit. So each try has a temper of its own: from one that changes threads at
//! every other step to one that does so at every hundredth.

use fastrand::Rng;
use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

/// Changes of thread at one in so many steps.
const TEMPERS: [u32; 5] = [2, 5, 15, 40, 120];

/// A scheduler for so many tries. The same seed tries the same.
pub struct Tempers {
    random: Rng,
    left: usize,
    one_in: u32,
}

impl Tempers {
    /// With the seed of MODEL_SEED, or always the same: a test fails each time or never.
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
