//! Sections that results of several drivers have.

use std::collections::BTreeMap;

use coldframe_core::Ps;
use coldframe_drivers::tasks::Prefetched as Loaded;
use coldframe_lane::{Latency, SwapDone};
use coldframe_sheet::flash;
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

section! {
    /// Latencies of faults of one kind.
    Latencies(of: &Latency) {
        /// Faults.
        count: u64 = of.count();
        /// `None` without faults.
        #[serde(flatten)]
        distribution: Option<Distribution> =
            of.mean().map(|mean| Distribution::new(of, mean, |q| of.quantile(q).unwrap_or_default().0));
    }
}

section! {
    /// Latencies in picoseconds.
    Distribution(of: &Latency, all: Ps, at: impl Fn(f64) -> u64) {
        /// Mean.
        mean: u64 = all.0;
        /// Median.
        p50: u64 = at(0.5);
        /// 90th percentile.
        p90: u64 = at(0.9);
        /// 99th percentile.
        p99: u64 = at(0.99);
        /// 99.9th percentile.
        p999: u64 = at(0.999);
        /// Longest.
        max: u64 = of.max().0;
        /// The lower and the upper end of each bin, and the number of faults in it.
        bins: Vec<(u64, u64, u64)> = of.bins().iter().map(|bin| (bin.from.0, bin.to.0, bin.count)).collect();
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
