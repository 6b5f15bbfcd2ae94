//! A task and how far it is.

use coldframe_core::{PageId, Ps};

use super::{Prefetched, TaskResult, TaskSpec};
use crate::latency::Latency;

/// A task.
pub(super) struct Task {
    pub(super) spec: TaskSpec,
    pub(super) step: usize,
    pub(super) rounds: u32,
    /// Turns of this round that are over.
    pub(super) turns: u32,
    /// How much of its time unit it has used, in however many pieces: the schedulers' own counters begin anew when it has slept, and a
    /// task that sleeps on faults would never come to any fraction of its slice.
    pub(super) unit_used: Ps,
    pub(super) unit_began: Ps,
    /// What it used of its last unit before it paused; none if it never paused. The next one is taken to be as long (section 3.1: the
    /// moment lies between the release of the current job and that of the next).
    pub(super) unit_last: Option<Ps>,
    pub(super) woken: Ps,
    /// When it began to wait for the device.
    pub(super) stalled: Ps,
    /// The fault that it sleeps on wrote.
    pub(super) writing: Option<PageId>,
    /// The page that it slept on has come, and with it the access was made: it goes on even if the page has left again, or five tasks in
    /// four frames could push out each other's pages for ever.
    pub(super) served: bool,
    /// Prefetched for since it ran last.
    pub(super) prefetched: bool,
    /// It was stopped before its end.
    pub(super) halted: bool,
    pub(super) job_began: Ps,
    pub(super) job_done: Ps,
    pub(super) result: TaskResult,
}

impl Task {
    /// The step before which this turn ends.
    pub(super) fn turn_ends(&self) -> usize {
        let (steps, turns) = (self.spec.program.steps.len(), self.spec.turns.max(1) as usize);
        steps * (self.turns as usize + 1).min(turns) / turns
    }

    pub(super) fn goes_on(&self) -> bool {
        self.spec.rounds.is_some() && self.result.ended.is_none() && !self.halted
    }

    pub(super) fn new(spec: &TaskSpec) -> Task {
        let result = TaskResult {
            major: 0,
            minor: 0,
            in_flight: 0,
            prefetched: Prefetched::default(),
            useful: Ps::ZERO,
            ended: None,
            wait: Latency::new(),
            stall: Latency::new(),
            jobs: Vec::new(),
        };
        Task {
            spec: spec.clone(),
            step: 0,
            rounds: 0,
            turns: 0,
            unit_used: Ps::ZERO,
            unit_began: Ps::ZERO,
            unit_last: None,
            woken: Ps::ZERO,
            stalled: Ps::ZERO,
            writing: None,
            served: false,
            prefetched: false,
            halted: false,
            job_began: Ps::ZERO,
            job_done: Ps::ZERO,
            result,
        }
    }
}
