//! The parts of memory that cost most: a program's mappings, or ranges of touched pages if the recorder has noted no
//! mappings.

use std::collections::BTreeMap;

use coldframe_core::Ps;
use coldframe_store::Provenance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use coldframe_experiment::owner;
use coldframe_experiment::string::PlacedCost;
use coldframe_experiment::tasks::TasksOutcome;

const SHOWN: usize = 3;
/// A gap of this many bytes ends a range. Allocators and loaders leave such gaps between unrelated memory.
const GAP: u64 = 1 << 20;

/// A region of memory whose faults take time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// The mapping's file or kind, or the range's addresses; with the task if there are several.
    pub name: String,
    /// Faults on its pages.
    pub faults: u64,
    /// Their time.
    pub time_ps: u64,
    /// Their share of the time of all faults.
    pub share: f64,
}

/// The regions whose faults take the most time, the most costly first.
pub fn costliest(mut costs: Vec<PlacedCost>, trace: &Provenance) -> Vec<Region> {
    costs.sort_by_key(|cost| (cost.space, cost.address));
    by_region(&costs, trace)
}

/// The tasks that wait longest for pages, the one with the longest wait first.
pub fn costliest_tasks(outcome: &TasksOutcome) -> Vec<Region> {
    let mut by_region = BTreeMap::<String, (u64, Ps)>::new();
    for ((id, name), task) in outcome.names.iter().zip(&outcome.result.tasks) {
        let waited = Ps(u64::try_from(task.stall.sum()).unwrap_or(u64::MAX));
        by_region.insert(format!("task {id} {name}").trim_end().into(), (task.major, waited));
    }
    ranked(by_region)
}

fn by_region(costs: &[PlacedCost], trace: &Provenance) -> Vec<Region> {
    let mut by_region: BTreeMap<String, (u64, Ps)> = BTreeMap::new();
    for (name, cost) in named(costs, trace) {
        let sum = by_region.entry(name).or_default();
        sum.0 += cost.cost.faults;
        sum.1 += cost.cost.time;
    }
    ranked(by_region)
}

fn ranked(by_region: BTreeMap<String, (u64, Ps)>) -> Vec<Region> {
    let all = by_region.values().map(|(_, time)| time.0).sum::<u64>().max(1) as f64;
    let region = |(name, (faults, Ps(time_ps))): (String, (u64, Ps))| Region {
        name,
        faults,
        time_ps,
        share: time_ps as f64 / all,
    };
    let mut regions: Vec<Region> = by_region.into_iter().map(region).collect();
    regions.sort_by(|a, b| b.time_ps.cmp(&a.time_ps).then_with(|| a.name.cmp(&b.name)));
    regions.truncate(SHOWN);
    regions
}

/// Each cost with the name of its region; costs are in the order of their places.
fn named<'a>(costs: &'a [PlacedCost], trace: &'a Provenance) -> impl Iterator<Item = (String, &'a PlacedCost)> {
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for (i, cost) in costs.iter().enumerate() {
        let follows = i > 0 && costs[i - 1].space == cost.space && cost.address - costs[i - 1].address < GAP;
        match stretches.last_mut().filter(|_| follows) {
            Some(last) => last.1 = i,
            None => stretches.push((i, i)),
        }
    }
    let several = costs.first().map(|c| c.space) != costs.last().map(|c| c.space);
    stretches.into_iter().flat_map(move |(from, to)| {
        let stretch = format!("{:#x} to {:#x}", costs[from].address, costs[to].address);
        costs[from..=to].iter().map(move |cost| {
            let name = mapping(cost, trace).unwrap_or_else(|| stretch.clone());
            (if several { format!("{}: {name}", owner::task(cost.space, trace)) } else { name }, cost)
        })
    })
}

/// Mappings belong to one program; they can name pages only if there is one address space.
fn mapping(cost: &PlacedCost, trace: &Provenance) -> Option<String> {
    let one = trace.tasks.iter().all(|task| task.space == cost.space);
    let by_region = trace.mappings.iter().find(|m| (m.start..m.end).contains(&cost.address))?;
    one.then(|| owner::mapping(by_region))
}

#[cfg(test)]
mod tests {
    use coldframe_lane::PageCost;
    use coldframe_store::provenance::Mapping;
    use coldframe_store::Fidelity;

    use super::*;

    fn cost(address: u64, faults: u64, time: u64) -> PlacedCost {
        PlacedCost { space: 0, address, cost: PageCost { faults, time: Ps(time) } }
    }

    #[test]
    fn pages_of_a_mapping_are_one_region_and_the_rest_are_stretches() {
        let mut trace = Provenance::new("a test", Fidelity::ExactReferences);
        let heap = Mapping { name: "[heap]".into(), start: 0x1000, end: 0x4000, protection: "rw-p".into() };
        trace.mappings.push(heap);
        let costs = [
            cost(0x1000, 2, 20),
            cost(0x3000, 1, 10),
            cost(0x40_0000, 1, 60),
            cost(0x40_1000, 1, 5),
            cost(0x4000_0000, 1, 5),
            cost(0x7000_0000, 1, 1),
        ];
        let regions = by_region(&costs, &trace);
        let shown: Vec<_> = regions.iter().map(|r| (r.name.as_str(), r.faults, r.time_ps)).collect();
        assert_eq!(
            shown,
            [("0x400000 to 0x401000", 2, 65), ("[heap] rw-p", 3, 30), ("0x40000000 to 0x40000000", 1, 5)]
        );
        assert!((regions[0].share - 65.0 / 101.0).abs() < 1e-12);
    }
}
