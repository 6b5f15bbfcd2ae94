//! A task and its progress.

use coldframe_core::{PageId, Ps};

use super::{Step, TaskResult, TaskSpec};

pub(super) struct Task {
    pub(super) spec: TaskSpec,
    pub(super) step: usize,
    pub(super) rounds: u32,
    /// Finished turns of this round.
    pub(super) turns: u32,
    /// The used part of its time unit, in any number of pieces. The schedulers' own counters restart when it has slept,
    /// so a task that sleeps on faults would never reach a fraction of its slice.
    pub(super) unit_used: Ps,
    /// The used part of its last unit before it paused; none if it never paused. The next unit is expected to be as
    /// long (section 3.1: the moment lies between the release of the current job and that of the next).
    pub(super) unit_last: Option<Ps>,
    pub(super) woken: Ps,
    /// When it began to wait for the device.
    pub(super) stalled: Ps,
    /// Whether the fault that it sleeps on was a write.
    pub(super) writing: Option<PageId>,
    /// The page that it slept on has come, and the access counts as done with that: the task goes on even if the page
    /// has left again. Otherwise five tasks in four frames could push out each other's pages without end.
    pub(super) served: bool,
    /// Whether pages were prefetched for it since it ran last.
    pub(super) prefetched: bool,
    /// Whether these pages have not been made recent at its dispatch yet.
    pub(super) arrived: bool,
    /// When its last fault began.
    pub(super) faulted: Ps,
    /// The step before which its turn in the foreground ends; `None`: turns of a program have the same number of steps.
    pub(super) turn_end: Option<usize>,
    /// In the foreground: it was killed or never started, and has not run since.
    pub(super) ended: bool,
    /// In the foreground: what is left of a launch that it repeats.
    pub(super) again: std::vec::IntoIter<Step>,
    /// The step before which it launched last: a launch that is cut short is not repeated before that step is done.
    pub(super) launched: Option<usize>,
    /// Whether it was stopped before its end.
    pub(super) halted: bool,
    pub(super) result: TaskResult,
}

impl Task {
    /// The step before which this turn ends.
    pub(super) fn turn_ends(&self) -> usize {
        let (steps, turns) = (self.spec.program.steps.len(), self.spec.turns.max(1) as usize);
        self.turn_end.unwrap_or_else(|| steps * (self.turns as usize + 1).min(turns) / turns)
    }

    pub(super) fn goes_on(&self) -> bool {
        self.spec.rounds.is_some() && self.result.ended.is_none() && !self.halted
    }

    pub(super) fn new(spec: &TaskSpec) -> Task {
        Task {
            spec: spec.clone(),
            step: 0,
            rounds: 0,
            turns: 0,
            unit_used: Ps::ZERO,
            unit_last: None,
            woken: Ps::ZERO,
            stalled: Ps::ZERO,
            writing: None,
            served: false,
            prefetched: false,
            arrived: false,
            faulted: Ps::ZERO,
            turn_end: None,
            ended: false,
            again: Vec::new().into_iter(),
            launched: None,
            halted: false,
            result: TaskResult::default(),
        }
    }
}
