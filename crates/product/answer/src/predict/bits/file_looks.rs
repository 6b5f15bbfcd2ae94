//! The files that a program maps, looked at while it runs: how much of each is in RAM, and how much was referenced
//! between two clearings of its bits.

use std::time::{Duration, Instant};

use coldframe_proc::{add_files, mappings, Files, Process, References};

use crate::predict::bits::budget::Budget;
use crate::predict::bits::watcher::GROWTH;

/// What looks may cost.
const BUDGET: Budget = Budget { share: 0.01, patience: 0.02, advance: None };

/// Looks at the files that a program maps while it runs.
pub(crate) struct FileLooks {
    root: Process,
    began: Instant,
    due: Duration,
    spent: Duration,
    cleared: Duration,
    /// What was seen.
    pub files: Files,
}

impl FileLooks {
    /// Of a process that starts now, and all that it starts.
    pub fn new(process: u32) -> FileLooks {
        let (root, began, [due, spent, cleared]) = (Process::of(process), Instant::now(), [Duration::ZERO; 3]);
        FileLooks { root, began, due, spent, cleared, files: Files::new() }
    }

    /// Looks, if it is time and the looks so far have not cost too much. The time between two clearings is as long as
    /// all time before.
    pub fn look(&mut self) {
        let now = self.began.elapsed();
        if now < self.due || !BUDGET.allows(self.spent.as_secs_f64(), now) {
            return;
        }
        let clear = now >= 2 * self.cleared;
        for process in self.root.with_descendants().into_iter().map(Process::of) {
            add_files(&mut self.files, &mappings(&process.smaps().unwrap_or_default()));
            if clear {
                // A process that is not there any more has nothing to clear.
                let _ = process.clear_references(References::Files);
            }
        }
        self.cleared = if clear { now } else { self.cleared };
        self.spent += self.began.elapsed() - now;
        self.due = now.mul_f64(GROWTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_programs_own_code_is_a_mapped_file_and_looks_have_a_pause() {
        let mut looks = FileLooks::new(std::process::id());
        looks.look();
        (looks.due, looks.spent) = (Duration::ZERO, Duration::from_secs(20));
        looks.look();
        assert_eq!(looks.due, Duration::ZERO, "looks have cost too much");
        let code = looks.files[std::env::current_exe().unwrap().to_str().unwrap()];
        assert!(code.code && (1..=code.mapped).contains(&code.resident), "{code:?}");
    }
}
