//! Sections that results of several drivers have.

use std::collections::BTreeMap;

use coldframe_boards::flash;
use coldframe_drivers::tasks::Prefetched as Loaded;
use coldframe_lane::{Latency, SwapDone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::slots::SlotMap;

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

/// The use of pages that were loaded ahead.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prefetched {
    /// Pages loaded ahead.
    pub loads: u64,
    /// Of these, used.
    pub used: u64,
    /// Of these, evicted before they were used.
    pub useless: u64,
}

impl From<Loaded> for Prefetched {
    fn from(p: Loaded) -> Prefetched {
        Prefetched { loads: p.loads, used: p.used, useless: p.useless }
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

/// The work of a swap area on flash under an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SwapArea {
    /// Slots programmed from RAM.
    pub programs: u64,
    /// Slots copied by collections.
    pub copies: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Collections.
    pub collections: u64,
    /// How often it was full and a page went elsewhere.
    pub area_full: u64,
    /// Erases of the most worn block.
    pub erases_max: u32,
    /// Standard deviation of the blocks' erases.
    pub erases_deviation: f64,
    /// Erases over the blocks.
    pub wear_map: WearMap,
    /// The owner of each slot over time; `None` if it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotMap>,
}

impl SwapArea {
    /// From the counts and the owners.
    pub fn new(done: &SwapDone, slots: Option<SlotMap>) -> SwapArea {
        let (c, wear) = (&done.counts, flash::wear(&done.erases));
        SwapArea {
            programs: c.programs,
            copies: c.copies,
            erases: c.erases,
            collections: c.collections,
            area_full: c.areas_full,
            erases_max: wear.max,
            erases_deviation: wear.deviation,
            wear_map: WearMap::new(&done.erases),
            slots,
        }
    }
}

/// Most cells of a map of erase blocks.
const WEAR_CELLS_MAX: usize = 256;

/// Erases over the blocks of an area, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WearMap {
    /// Blocks.
    pub blocks: usize,
    /// Neighbours that share a cell.
    pub blocks_per_cell: usize,
    /// The erases of the most worn block of each cell.
    pub erases_max: Vec<u32>,
}

impl WearMap {
    /// From each block's erases.
    pub fn new(erases: &[u32]) -> WearMap {
        let blocks_per_cell = erases.len().div_ceil(WEAR_CELLS_MAX).max(1);
        let erases_max = erases.chunks(blocks_per_cell).filter_map(|blocks| blocks.iter().copied().max()).collect();
        WearMap { blocks: erases.len(), blocks_per_cell, erases_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wear_map_is_bounded_and_shows_the_most_worn_of_each_cell() {
        let few = WearMap::new(&[3, 0, 7]);
        assert_eq!((few.blocks_per_cell, few.erases_max), (1, vec![3, 0, 7]));
        let many = WearMap::new(&(0..1000).collect::<Vec<u32>>());
        assert_eq!((many.blocks_per_cell, many.erases_max.len()), (4, 250));
        assert_eq!((many.erases_max[0], many.erases_max[249]), (3, 999));
    }
}
