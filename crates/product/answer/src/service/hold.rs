//! When the limit of a service goes down, up, or stays: a pure function of looks. `holding` carries it out.
//!
//! ```text
//!   no limit ── a calm window ─► a part less than is in use ── a calm window ─► a part less ─► …
//!      ▲                                          (not below what failed, until its pause is over)
//!      └── at once: it waited too long, what was taken came back, its latency or its check failed ──┘
//! ```
//! Up is always the old limit: what is in swap stays there until it is used, so that a mistake costs the pages that
//! were needed and no others. After each failed step the pause before the next try there is twice as long.

use coldframe_kernel::Reading;
use serde::{Deserialize, Serialize};

use super::history::History;

/// A step down takes this part, and this one after a failed step.
const PART: u64 = 16;
const PART_AFTER: u64 = 32;
/// And no more bytes than this, so that a look is never late.
const STEP_MAX: u64 = 256 << 20;
/// Until a pause is over, this part more than what failed is kept.
const ABOVE: u64 = 8;
/// The first pause after a failed step and the longest one, in windows: a minute and an hour for windows of 10 s.
const PAUSE: f64 = 6.0;
const PAUSE_MAX: f64 = 360.0;
/// Pages that may come back whatever was taken.
const FEW: u64 = 64;
/// Latencies that a bound is made of at least, and after how many older ones count half.
const LATENCIES: usize = 100;
const MANY: f64 = 10_000.0;
/// The most that are kept for a bound.
const KEPT: usize = 100_000;

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Seconds of a window.
    pub watch: f64,
    /// The part of a window that some process may wait for memory.
    pub stall_max: f64,
    /// The part by which the 99th percentile of latencies may grow; `None`: the service tells none.
    pub within: Option<f64>,
}

/// What a look at the group has shown since the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceLook {
    /// Seconds since 1970.
    pub at: f64,
    /// The group.
    pub group: Reading,
    /// The service's own latencies, in milliseconds.
    pub latencies: Vec<f64>,
    /// Its check failed.
    pub check_failed: bool,
}

/// HoldReason the limit changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HoldReason {
    /// A window was calm.
    Calm,
    /// Some process waited too long for memory.
    Waits,
    /// Most of what the last step took came back.
    CameBack,
    /// The 99th percentile of the latencies has grown too much.
    Latency,
    /// The check failed.
    Check,
    /// A process got no page, or was killed.
    Starved,
    /// The kernel could not push out enough.
    Stuck,
    /// Somebody else has set the limit.
    Foreign,
    /// A signal came.
    Stopped,
    /// The last process has ended.
    Gone,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Nothing.
    Stay,
    /// This limit.
    Lower(u64),
    /// The old limit.
    Raise(HoldReason),
    /// Nothing more: somebody else's limit stays.
    Leave,
}

/// What is remembered between looks, and in the state file from one start to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    /// What the group used.
    pub history: History,
    /// The limit that failed last, bytes.
    failed: Option<u64>,
    /// Before this time it is not tried again.
    retry: f64,
    /// The pause after the last failed step, in windows.
    pause: f64,
    /// The limit that is held; `None`: the old one.
    #[serde(skip)]
    pub limit: Option<u64>,
    /// A whole window without a limit has passed since the last failed step.
    #[serde(skip)]
    settled: bool,
    #[serde(skip)]
    window: Window,
    /// The latencies that are compared.
    #[serde(skip)]
    latency: Latency,
}

/// Since the last window ended.
#[derive(Clone, Debug, Default, PartialEq)]
struct Window {
    began: Option<f64>,
    waited: f64,
    near: u64,
    /// Pages that were taken at its begin.
    took: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Latency {
    /// Those without a limit, once settled.
    free: Vec<f64>,
    /// Their 99th percentile.
    bound: Option<f64>,
    /// Those with a limit since it was set, and how many of them were above what is allowed.
    held: f64,
    above: f64,
}

impl Holding {
    /// Takes a look, and says what is to be done.
    pub fn look(&mut self, rule: &Rule, look: &ServiceLook) -> Act {
        self.history.add(look.at, look.group.usage, rule.watch);
        if look.group.foreign.is_some() {
            return Act::Leave;
        }
        // The clock may be set back.
        let began = self.window.began.filter(|began| *began <= look.at).unwrap_or(look.at);
        self.window.began = Some(began);
        self.retry = self.retry.min(look.at + PAUSE_MAX * rule.watch);
        self.window.waited += look.group.waited;
        self.window.near += look.group.near;
        self.latency.add(look, self.limit.is_none(), rule.within.unwrap_or(0.0));
        match (self.pressure(rule, look), self.limit) {
            (Some(why), Some(limit)) => self.raise(rule, look.at, limit, why),
            // Without a limit it is not the limit: the service's own calm is awaited.
            (Some(_), None) => {
                self.window = Window { began: Some(look.at), ..Window::default() };
                Act::Stay
            }
            (None, _) if look.at - began < rule.watch => Act::Stay,
            (None, _) => self.lower(rule, look),
        }
    }

    fn pressure(&self, rule: &Rule, look: &ServiceLook) -> Option<HoldReason> {
        let taken = self.window.took;
        [
            (look.group.starved, HoldReason::Starved),
            (look.check_failed, HoldReason::Check),
            (self.window.waited > rule.stall_max * rule.watch, HoldReason::Waits),
            (taken > 0 && self.window.near > (taken / 2).max(FEW), HoldReason::CameBack),
            (self.limit.is_some() && self.latency.grown(), HoldReason::Latency),
        ]
        .into_iter()
        .find_map(|(is, why)| is.then_some(why))
    }

    /// A step has failed, whether by what it did or since the service now needs more.
    fn raise(&mut self, rule: &Rule, at: f64, limit: u64, why: HoldReason) -> Act {
        let again = self.failed.is_some_and(|failed| limit <= failed + failed / ABOVE);
        self.pause = if again { (2.0 * self.pause).min(PAUSE_MAX) } else { PAUSE };
        (self.failed, self.retry) = (Some(limit), at + self.pause * rule.watch);
        (self.limit, self.settled) = (None, false);
        self.window = Window { began: Some(at), ..Window::default() };
        self.latency.restart();
        Act::Raise(why)
    }

    /// A window was calm.
    fn lower(&mut self, rule: &Rule, look: &ServiceLook) -> Act {
        let calm = self.window.waited <= rule.stall_max * rule.watch / 2.0;
        self.window = Window { began: Some(look.at), ..Window::default() };
        if self.limit.is_none() && !self.settled {
            self.settled = true;
            self.latency.restart();
            return Act::Stay;
        }
        if self.limit.is_none() && rule.within.is_some() && !self.latency.set_bound() {
            return Act::Stay;
        }
        if self.failed.is_some_and(|failed| self.limit.is_some_and(|limit| limit < failed)) {
            self.failed = None;
        }
        let base = look.group.usage.min(self.limit.unwrap_or(u64::MAX));
        let part = if self.failed.is_some() { PART_AFTER } else { PART };
        let kept = self.failed.filter(|_| look.at < self.retry).map_or(0, |failed| failed + failed / ABOVE);
        let target = (base - (base / part).min(STEP_MAX)).max(kept).max(look.group.least);
        if !calm || self.limit.is_some_and(|limit| target >= limit) {
            return Act::Stay;
        }
        self.window.took = look.group.usage.saturating_sub(target) / coldframe_proc::PAGE;
        self.limit = Some(target);
        self.latency.restart();
        Act::Lower(target)
    }

    /// The kernel has set this limit instead; `None`: it could not push out enough.
    pub fn set(&mut self, rule: &Rule, at: f64, limit: Option<u64>) -> Act {
        match (limit, self.limit) {
            (None, Some(asked)) => self.raise(rule, at, asked, HoldReason::Stuck),
            (limit, _) => {
                self.limit = limit;
                Act::Stay
            }
        }
    }

    /// The latencies' 99th percentile without a limit, in milliseconds.
    pub fn bound_ms(&self) -> Option<f64> {
        self.latency.bound
    }
}

impl Latency {
    fn add(&mut self, look: &ServiceLook, free: bool, within: f64) {
        if free {
            self.free.extend(look.latencies.iter().take(KEPT - self.free.len().min(KEPT)));
        } else if let Some(bound) = self.bound {
            let above = look.latencies.iter().filter(|it| **it > bound * (1.0 + within)).count();
            (self.held, self.above) = (self.held + look.latencies.len() as f64, self.above + above as f64);
            if self.held > MANY {
                (self.held, self.above) = (self.held / 2.0, self.above / 2.0);
            }
        }
    }

    /// More than a hundredth is above what is allowed, and more than chance explains: 2.5 standard deviations of a
    /// Poisson count, and one.
    fn grown(&self) -> bool {
        let expected = self.held / 100.0;
        self.above > expected + 2.5 * expected.sqrt() + 1.0
    }

    /// A calm window without a limit has ended: the bound is that of now, since the load may have changed. False: there
    /// are too few latencies for one.
    fn set_bound(&mut self) -> bool {
        let free = &mut self.free;
        if free.len() < LATENCIES {
            return false;
        }
        free.sort_by(f64::total_cmp);
        self.bound = Some(free[(free.len() * 99).div_ceil(100) - 1]);
        free.clear();
        true
    }

    fn restart(&mut self) {
        self.free.clear();
        (self.held, self.above) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const RULE: Rule = Rule { watch: 10.0, stall_max: 0.005, within: None };

    /// A service that needs so much, and has so much in RAM. Below its need a part of the time is waiting, and what was
    /// taken comes back.
    struct Fake {
        at: f64,
        limit: u64,
        usage: u64,
        need: u64,
    }

    impl Fake {
        fn new(usage: u64, need: u64) -> Fake {
            Fake { at: 1e9, limit: u64::MAX, usage: usage * MIB, need: need * MIB }
        }

        /// A second passes.
        fn look(&mut self) -> ServiceLook {
            self.at += 1.0;
            let lack = self.need.saturating_sub(self.usage.min(self.limit));
            self.usage = self.usage.max(self.need).min(self.limit);
            let waited = if lack > 0 { 0.2 } else { 0.0 };
            let group = Reading { usage: self.usage, least: MIB, waited, near: lack / 4096, ..Reading::default() };
            ServiceLook { at: self.at, group, ..ServiceLook::default() }
        }

        /// So many seconds pass. Returns the changes: the second, and the limit in MiB or why it went up.
        fn seconds(&mut self, holding: &mut Holding, seconds: u32) -> Vec<(u32, Result<u64, HoldReason>)> {
            let mut changes = Vec::new();
            for second in 0..seconds {
                let look = self.look();
                match holding.look(&RULE, &look) {
                    Act::Lower(limit) => {
                        (self.limit, self.usage) = (limit, self.usage.min(limit));
                        changes.push((second, Ok(limit / MIB)));
                    }
                    Act::Raise(why) => {
                        self.limit = u64::MAX;
                        changes.push((second, Err(why)));
                    }
                    Act::Stay => {}
                    Act::Leave => panic!("nobody else sets it"),
                }
            }
            changes
        }
    }

    fn failures(changes: &[(u32, Result<u64, HoldReason>)]) -> Vec<u32> {
        changes.iter().filter(|(_, to)| to.is_err()).map(|(at, _)| *at).collect()
    }

    #[test]
    fn it_goes_down_step_by_step_up_at_once_and_then_stays_just_above_what_failed() {
        let (mut fake, mut holding) = (Fake::new(200, 60), Holding::default());
        let changes = fake.seconds(&mut holding, 400);
        let first = changes.iter().position(|(_, to)| to.is_err()).unwrap();
        assert!(first > 10, "a sixteenth at a time: {changes:?}");
        let steps: Vec<u32> = changes[..first].windows(2).map(|two| two[1].0 - two[0].0).collect();
        assert!(steps.iter().all(|seconds| *seconds == 10), "a step a window: {changes:?}");
        let (lowered, failed) = (changes[first - 1].0, changes[first].0);
        assert_eq!(failed, lowered + 1, "at the first look that shows it: {changes:?}");
        // The limit that failed is just below the need; what is kept is at most an eighth above it.
        let held: Vec<u64> = changes[first..].iter().filter_map(|(_, to)| to.ok()).collect();
        assert!(!held.is_empty() && held.iter().all(|mib| (56..70).contains(mib)), "{changes:?}");
    }

    #[test]
    fn each_failed_try_at_the_same_place_doubles_the_pause_up_to_an_hour() {
        let (mut fake, mut holding) = (Fake::new(100, 60), Holding::default());
        let failed = failures(&fake.seconds(&mut holding, 8 * 3600));
        let pauses: Vec<u32> = failed.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(pauses.len() > 5 && pauses.windows(2).all(|two| two[1] >= two[0]), "{pauses:?}");
        assert!(pauses[0] < 200 && *pauses.last().unwrap() >= 3600, "{pauses:?}");
    }

    #[test]
    fn it_follows_a_need_that_changes_by_the_hour() {
        let (mut fake, mut holding) = (Fake::new(200, 60), Holding::default());
        let (mut worst, mut sum) = (0, 0.0);
        for hour in 0..24 {
            fake.need = [60, 120, 30][hour % 3] * MIB;
            for _ in 0..60 {
                let failed = failures(&fake.seconds(&mut holding, 60));
                worst = worst.max(failed.len());
                sum += fake.usage as f64 / fake.need as f64 / 1440.0;
            }
        }
        assert!(worst <= 2, "{worst} failed steps in a minute");
        // Without a limit the mean of 200 MiB over the need is 3.8.
        assert!((1.0..1.6).contains(&sum), "{sum}");
        let p99 = holding.history.quantile(0.99).unwrap() / MIB;
        assert!((110..=200).contains(&p99), "{p99}");
    }

    #[test]
    fn after_a_restart_what_failed_and_the_history_are_remembered() {
        let (mut fake, mut holding) = (Fake::new(100, 60), Holding::default());
        fake.seconds(&mut holding, 3600);
        let text = serde_json::to_string(&holding).unwrap();
        let mut again: Holding = serde_json::from_str(&text).unwrap();
        assert_eq!((again.failed, again.retry, again.pause), (holding.failed, holding.retry, holding.pause));
        assert_eq!((&again.history, again.limit), (&holding.history, None));
        // The old limit is back, and the service has started anew.
        (fake.limit, fake.usage) = (u64::MAX, 100 * MIB);
        let left = (holding.retry - fake.at) as u32;
        assert!(left > 60, "{left}");
        assert_eq!(failures(&fake.seconds(&mut again, left)), [0; 0], "before the pause is over nothing fails");
        assert!(fake.usage < 75 * MIB, "{}", fake.usage / MIB);
    }

    #[test]
    fn without_a_limit_a_service_that_waits_or_fails_is_left_alone() {
        let mut holding = Holding::default();
        for second in 0..600 {
            let at = 1e9 + f64::from(second);
            let look = ServiceLook {
                at,
                group: Reading { waited: 0.3, ..in_use(100) },
                check_failed: second % 7 == 0,
                ..ServiceLook::default()
            };
            assert_eq!(holding.look(&RULE, &look), Act::Stay);
        }
        assert_eq!((holding.failed, holding.limit), (None, None));
    }

    fn in_use(mib: u64) -> Reading {
        Reading { usage: mib * MIB, ..Reading::default() }
    }

    /// A fake that has been lowered once.
    fn lowered(rule: &Rule, latencies: &[f64]) -> (Holding, ServiceLook) {
        let (mut holding, mut look) =
            (Holding::default(), ServiceLook { group: in_use(100), ..ServiceLook::default() });
        for second in 0..1000 {
            (look.at, look.latencies) = (1e9 + f64::from(second), latencies.to_vec());
            if let Act::Lower(_) = holding.look(rule, &look) {
                look.latencies.clear();
                look.at += 1.0;
                return (holding, look);
            }
        }
        panic!("it is never lowered");
    }

    #[test]
    fn each_sign_of_harm_raises_the_limit_at_once_and_somebody_elses_limit_stays() {
        let raised = |change: &dyn Fn(&mut ServiceLook)| {
            let (mut holding, mut look) = lowered(&RULE, &[]);
            change(&mut look);
            holding.look(&RULE, &look)
        };
        assert_eq!(raised(&|_| ()), Act::Stay);
        assert_eq!(raised(&|look| look.group.waited = 0.051), Act::Raise(HoldReason::Waits));
        assert_eq!(raised(&|look| look.group.waited = 0.049), Act::Stay);
        assert_eq!(raised(&|look| look.check_failed = true), Act::Raise(HoldReason::Check));
        assert_eq!(raised(&|look| look.group.starved = true), Act::Raise(HoldReason::Starved));
        // The step has taken 1600 pages.
        assert_eq!(raised(&|look| look.group.near = 801), Act::Raise(HoldReason::CameBack));
        assert_eq!(raised(&|look| look.group.near = 799), Act::Stay);
        assert_eq!(raised(&|look| look.group.foreign = Some("max".into())), Act::Leave);
        let (mut holding, look) = lowered(&RULE, &[]);
        assert_eq!(holding.set(&RULE, look.at, None), Act::Raise(HoldReason::Stuck));
        assert_eq!((holding.limit, holding.failed.map(|it| it < 100 * MIB)), (None, Some(true)));
    }

    #[test]
    fn the_99th_percentile_may_grow_by_so_much_and_no_more() {
        let rule = Rule { within: Some(0.1), ..RULE };
        // 50 latencies a second: 98 % of 1 ms and 2 % of 5 ms.
        let usual: Vec<f64> = [vec![1.0; 49], vec![5.0]].concat();
        let act = |latencies: &[f64]| {
            let (mut holding, mut look) = lowered(&rule, &usual);
            assert_eq!(holding.bound_ms(), Some(5.0));
            for second in 0..8 {
                (look.latencies, look.at) = (latencies.to_vec(), look.at + 1.0);
                if let Act::Raise(why) = holding.look(&rule, &look) {
                    return Some((second, why));
                }
            }
            None
        };
        assert_eq!(act(&usual), None);
        assert_eq!(act(&[5.4; 50]), None, "within a tenth");
        assert_eq!(act(&[5.6; 50]), Some((0, HoldReason::Latency)), "at the first look");
        let some: Vec<f64> = [vec![1.0; 47], vec![5.6; 3]].concat();
        assert!(matches!(act(&some), Some((1..=5, HoldReason::Latency))), "6 % are above: {:?}", act(&some));
        // Without latencies there is no bound, and the limit stays as it was.
        let mut silent = Holding::default();
        for second in 0..600 {
            let look = ServiceLook { at: 1e9 + f64::from(second), group: in_use(100), ..ServiceLook::default() };
            assert_eq!(silent.look(&rule, &look), Act::Stay);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nothing_for_longer_than_the_longest_pause() {
        let (mut fake, mut holding) = (Fake::new(100, 60), Holding::default());
        fake.seconds(&mut holding, 1000);
        let failed = holding.failed.unwrap();
        fake.at -= 1e8;
        fake.need = 20 * MIB;
        fake.seconds(&mut holding, 7200);
        assert!(fake.usage < failed, "{} {}", fake.usage, failed);
    }

    #[test]
    fn when_the_load_has_changed_the_bound_is_that_of_now() {
        let rule = Rule { within: Some(0.1), ..RULE };
        let (mut holding, mut look) = lowered(&rule, &[1.0; 50]);
        let mut raised = 0;
        for _ in 0..600 {
            look.at += 1.0;
            look.latencies = vec![3.0; 50];
            raised += u32::from(matches!(holding.look(&rule, &look), Act::Raise(_)));
        }
        assert_eq!((raised, holding.bound_ms()), (1, Some(3.0)));
        assert!(holding.limit.is_some());
    }
}
