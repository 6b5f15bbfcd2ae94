//! Sections that results of several drivers have.

use std::collections::BTreeMap;

use coldframe_boards::flash;
use coldframe_drivers::tasks::Prefetched as Loaded;
use coldframe_lane::{Latency, SwapDone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Picoseconds or picojoules, by the name of the term.
pub type Terms = BTreeMap<String, u64>;

pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The failures of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Transfers that failed.
    pub failures: u64,
    /// How often a page was lost and the task that needed it was stopped.
    pub halts: u64,
}

impl Failed {
    /// `None` if nothing failed.
    pub fn new(failures: u64, halts: u64) -> Option<Failed> {
        (failures > 0).then_some(Failed { failures, halts })
    }
}

section! {
    /// The use of pages that were loaded ahead.
    #[derive(Copy)]
    Prefetched(p: Loaded) {
        /// Pages loaded ahead.
        loads: u64 = p.loads;
        /// Of these, used.
        used: u64 = p.used;
        /// Of these, evicted before they were used.
        useless: u64 = p.useless;
    }
}

/// Latencies of faults of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    /// Faults.
    pub count: u64,
    /// `None` without faults.
    #[serde(flatten)]
    pub distribution: Option<Distribution>,
}

/// Latencies in picoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Longest.
    pub max: u64,
    /// The lower and the upper end of each bin, and the number of faults in it.
    pub bins: Vec<(u64, u64, u64)>,
}

impl From<&Latency> for Latencies {
    fn from(of: &Latency) -> Latencies {
        let at = |q: f64| of.quantile(q).unwrap_or_default().0;
        let distribution = of.mean().map(|mean| Distribution {
            mean: mean.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: of.max().0,
            bins: of.bins().iter().map(|bin| (bin.from.0, bin.to.0, bin.count)).collect(),
        });
        Latencies { count: of.count(), distribution }
    }
}

section! {
    /// The work of a swap area on flash under an engine.
    SwapArea(done: &SwapDone) {
        /// Slots programmed from RAM.
        programs: u64 = done.counts.programs;
        /// Slots copied by collections.
        copies: u64 = done.counts.copies;
        /// Blocks erased.
        erases: u64 = done.counts.erases;
        /// Collections.
        collections: u64 = done.counts.collections;
        /// How often it was full and a page went elsewhere.
        area_full: u64 = done.counts.areas_full;
        /// Erases of the most worn block.
        erases_max: u32 = flash::wear(&done.erases).max;
        /// Standard deviation of the blocks' erases.
        erases_deviation: f64 = flash::wear(&done.erases).deviation;
    }
}
