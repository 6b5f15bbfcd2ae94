//! Sums over all settings: faults by kind, settings, failures.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use coldframe_live::Snapshot;

use crate::setting::Setting;

/// The sums.
#[derive(Debug)]
pub struct Tally {
    began: Instant,
    kinds: BTreeMap<&'static str, u64>,
    policies: BTreeMap<String, u64>,
    settings: u64,
    failures: Vec<String>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            began: Instant::now(),
            kinds: BTreeMap::new(),
            policies: BTreeMap::new(),
            settings: 0,
            failures: Vec::new(),
        }
    }
}

/// Faults that went through the fault handler.
pub fn live_faults(stats: &Snapshot) -> u64 {
    stats.true_faults + stats.false_faults + stats.write_faults
}

impl Tally {
    /// Adds a setting that has ended; `failure`: why it failed.
    pub fn add(&mut self, setting: &Setting, stats: &Snapshot, failure: Option<String>) {
        self.settings += 1;
        *self.policies.entry(setting.policy.split(':').next().unwrap_or_default().to_string()).or_default() +=
            live_faults(stats);
        let from_device = stats.device_fault.count;
        for (kind, n) in [
            ("true faults", stats.true_faults),
            ("- from the device", from_device),
            ("- zeros or from the log", stats.true_faults - from_device.min(stats.true_faults)),
            ("false faults", stats.false_faults),
            ("write faults", stats.write_faults),
            ("pages read ahead or prefetched on a hint", stats.prefetches),
            ("evictions", stats.evictions),
            ("forks", stats.forks),
        ] {
            *self.kinds.entry(kind).or_default() += n;
        }
        // The stacks of a setting that hung have been printed already.
        let first = |why: String| why.lines().next().unwrap_or_default().to_string();
        self.failures.extend(failure.map(|why| format!("{setting}\n    {}", first(why))));
    }

    /// The number of live faults.
    pub fn faults(&self) -> u64 {
        ["true faults", "false faults", "write faults"]
            .iter()
            .map(|kind| self.kinds.get(kind).copied().unwrap_or(0))
            .sum()
    }

    /// Settings that failed.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed().as_secs_f64();
        let rate = self.faults() as f64 / seconds.max(0.001);
        writeln!(
            f,
            "{} live faults in {} settings in {seconds:.0} s, {rate:.0} a second",
            self.faults(),
            self.settings
        )?;
        self.kinds.iter().try_for_each(|(kind, n)| writeln!(f, "  {n:>14} {kind}"))?;
        writeln!(f, "live faults by policy")?;
        self.policies.iter().try_for_each(|(policy, n)| writeln!(f, "  {n:>14} {policy}"))?;
        writeln!(f, "{} settings failed", self.failures.len())?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "  {failure}"))
    }
}
