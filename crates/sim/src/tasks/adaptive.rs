//! An activation moment that adapts (SAP section 6, future work). Prefetching starts when the rest of the slice is a
//! multiple of the device's time for the wanted pages, since the running task's own loads go before them. The factor
//! and two more numbers are a [`Rule`].
//!
//! ```text
//!   start when   left of the slice <= ahead x wanted pages x pace + a tick, and `earliest` of the slice is used
//!   pace         what a prefetched page has taken the device lately, with the write that made room for it: throughput
//!   wanted       the next task's listed pages that are absent (list length), at most its limit
//!   limit        half of itself if the last list for the task lost (times `loss`) more than it gained; else 5/4: memory size
//!   gained       pages that were used: one fault less each
//!   lost         pages evicted unused that the task had to load itself, and faults on pages that would still be in RAM
//! ```
//!
//! The limit sets the moment only: once started, the whole list is worked through, also while its task runs. The rule
//! needs to know neither the size of RAM nor the other tasks: the two losses are counted where they happen
//! ([`Prefetched`]).
//!
//! When not to use it: for tasks of a few slices. From a list's length down to a small memory, the limit needs one
//! slice for each half.

use coldframe_core::Ps;

use super::Prefetched;

/// A rule for the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Percent of the time that the wanted pages will take the device.
    pub ahead_percent: u32,
    /// The weight of a lost page against a gained one.
    pub loss: u32,
    /// Percent of the slice that must be used before anything starts.
    pub earliest_percent: u32,
}

impl Rule {
    /// The rule in use if none is given: the one with the least harm on the learning mixes (`coldframe papers sap
    /// --all` learns it again).
    pub const LEARNT: Rule = Rule { ahead_percent: 800, loss: 4, earliest_percent: 50 };
}

/// The state of the rule.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    rule: Rule,
    pace: Ps,
    /// The device's background time and background loads at the last look at the pace.
    seen: (Ps, u64),
    tasks: Vec<Learnt>,
    list_max: usize,
}

/// The state of one task.
#[derive(Clone, Copy, Debug)]
struct Learnt {
    limit: usize,
    before: Prefetched,
}

impl Adaptive {
    /// The state at the start: a page takes `load`, and a list of `list_max` pages can wait.
    pub(super) fn new(rule: Rule, tasks: usize, load: Ps, list_max: usize) -> Adaptive {
        let learnt = Learnt { limit: list_max, before: Prefetched::default() };
        Adaptive { rule, pace: load, seen: (Ps::ZERO, 0), tasks: vec![learnt; tasks], list_max }
    }

    /// The time before the end of a slice at which this task's list should start, with this many absent pages.
    pub(super) fn ahead(&self, task: usize, absent: usize) -> Ps {
        let takes = self.pace * absent.min(self.tasks[task].limit) as u64;
        Ps(takes.0 * u64::from(self.rule.ahead_percent) / 100)
    }

    /// The task's list is about to be worked through. Looks at the outcome of the last list, and at the device's
    /// background time and loads so far.
    pub(super) fn learn(&mut self, task: usize, now: Prefetched, device: (Ps, u64)) {
        let loads = device.1 - self.seen.1;
        if let Some(lately) = (device.0 - self.seen.0).0.checked_div(loads) {
            self.pace = Ps((self.pace.0 + lately) / 2);
            self.seen = device;
        }
        let learnt = &mut self.tasks[task];
        let since = |count: fn(&Prefetched) -> u64| count(&now) - count(&learnt.before);
        let (gained, lost) = (since(|p| p.used), since(|p| p.early + p.displaced));
        if since(|p| p.loads) > 0 {
            let grown = (learnt.limit + learnt.limit / 4 + 1).min(self.list_max);
            learnt.limit = if lost * u64::from(self.rule.loss) > gained { (learnt.limit / 2).max(1) } else { grown };
        }
        learnt.before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: Rule = Rule { ahead_percent: 200, loss: 1, earliest_percent: 0 };

    #[test]
    fn the_pace_goes_half_way_to_what_the_device_took_lately() {
        let mut adaptive = Adaptive::new(TWICE, 1, Ps(100), 8);
        adaptive.learn(0, Prefetched::default(), (Ps(3_000), 10));
        assert_eq!(adaptive.ahead(0, 1), Ps(400), "twice 200: 100 before, 300 lately");
        adaptive.learn(0, Prefetched::default(), (Ps(3_000), 10));
        assert_eq!(adaptive.ahead(0, 3), Ps(1_200), "nothing was loaded since");
    }

    #[test]
    fn the_limit_halves_or_grows_by_a_quarter_with_what_became_of_the_last_list() {
        let mut adaptive = Adaptive::new(TWICE, 2, Ps(100), 64);
        let (mut counts, mut limits) = (Prefetched::default(), Vec::new());
        // By list: loads, used, early, displaced.
        for [loads, used, early, displaced] in
            [[40, 4, 5, 0], [40, 4, 0, 5], [10, 5, 3, 2], [0, 0, 9, 0], [40, 40, 0, 0]]
        {
            counts.loads += loads;
            counts.used += used;
            counts.early += early;
            counts.displaced += displaced;
            adaptive.learn(0, counts, (Ps::ZERO, 0));
            limits.push(adaptive.ahead(0, 1_000).0 / 200);
        }
        // 64 / 2, 32 / 2, 16 + 5, nothing was loaded, 21 + 6.
        assert_eq!(limits, [32, 16, 21, 21, 27]);
        assert_eq!(adaptive.ahead(1, 1_000), Ps(64 * 200), "each task has its own");
    }

    #[test]
    fn a_limit_never_ends_the_search() {
        let mut adaptive = Adaptive::new(TWICE, 1, Ps(100), 8);
        for i in 1..20 {
            adaptive.learn(0, Prefetched { loads: i, early: i, ..Prefetched::default() }, (Ps::ZERO, 0));
        }
        assert_eq!(adaptive.ahead(0, 1_000), Ps(200));
    }
}
