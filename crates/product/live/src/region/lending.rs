//! Gives frames back that other processes of the run ask for (`fault/lending.rs`).

use coldframe_recording::plan::BATCH_MAX;

use super::ManagedMemory;
use crate::sys::Signals;

impl ManagedMemory {
    /// Returns frames, keeping the minimum. Free frames go first; for more, the engine takes over the memory and
    /// evicts.
    pub fn give_back(&self, asked: usize) {
        let share = &self.memory().share;
        let mut left = asked.min(share.frames().saturating_sub(share.floor()));
        {
            let _signals = Signals::block();
            let _changing = self.space().changing();
            if self.memory().kernel_owned.is_on() {
                let room = share.plan(share.frames()).frames.saturating_sub(self.memory().resident());
                left -= self.give(left.min(room));
            }
        }
        if left > 0 {
            self.take_over();
        }
        while left > 0 {
            match self.give(left.min(BATCH_MAX)) {
                // More is pinned than the floor leaves.
                0 => return share.set_floor(share.frames()),
                given => left -= given,
            }
        }
    }

    /// Gives so many frames back, or none. When this returns, the pages have left.
    fn give(&self, frames: usize) -> usize {
        let mut given = false;
        if frames > 0 {
            self.with_task(|decider, todo| given = self.shrink(decider, todo, frames));
        }
        if given {
            self.memory().share.give(frames);
        }
        frames * usize::from(given)
    }
}
