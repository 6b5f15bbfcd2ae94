//! The content of a swap trace, as in the slides: counts by process and direction, the positions of slots over time,
//! the lifetime of copies, and how often neighbours come back together.

use std::collections::BTreeMap;

use coldframe_formats::swap::{SwapOp, SwapTrace};
use coldframe_sheet::quantity::human_count;
use schemars::JsonSchema;
use serde::Serialize;

use coldframe_show::plot::{Plot, Series};
use coldframe_show::table::styled;

/// Groups of the slides, in slots of the log.
const GROUPS: [usize; 3] = [8, 16, 32];

/// Neighbours come back together if they come within this many nanoseconds: 1 s.
const TOGETHER_NS: u64 = 1_000_000_000;

/// Most points of a picture.
const POINTS_MAX: usize = 1500;

/// One process.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Owner {
    /// Process.
    pub pid: u32,
    /// Pages swapped out.
    pub outs: u64,
    /// Pages swapped in.
    pub ins: u64,
}

/// A group of copies that left in a row.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Group {
    /// Copies in it.
    #[serde(rename = "slots")]
    pub size: usize,
    /// Groups in which all copies that came back did so within `TOGETHER_NS`, of those with two or more that came back.
    pub together: u64,
    /// Groups with two or more that came back.
    pub of: u64,
}

/// The findings for a trace.
#[derive(Clone, Debug)]
pub struct SwapAnalysis {
    /// As they are printed for programs.
    pub info: SwapInfo,
    /// Time from swap-out to the first touch of each copy, in the order of swap-outs; `None`: it was never touched.
    pub lifetimes_ns: Vec<Option<u64>>,
    /// (time, slot) of swap-outs and swap-ins.
    positions: [Vec<(u64, u32)>; 2],
}

/// The findings as they are printed for programs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SwapInfo {
    pub swap_outs: u64,
    pub swap_ins: u64,
    pub evictions: u64,
    pub faults: u64,
    pub frees: u64,
    /// Swap-outs whose slot follows that of the swap-out before.
    pub sequential_percent: f64,
    pub processes: Vec<Owner>,
    /// Half of the copies were touched again within this time; `None`: none was.
    pub lifetime_median_s: Option<f64>,
    pub groups: Vec<Group>,
}

/// Analyses a trace. Touches are its `fault` rows, or its `in` rows if it has none.
pub fn analyse(trace: &SwapTrace) -> SwapAnalysis {
    let touch = if trace.has(SwapOp::Fault) { SwapOp::Fault } else { SwapOp::In };
    let mut owners: BTreeMap<u32, Owner> = BTreeMap::new();
    let mut newest: Vec<Option<usize>> = vec![None; trace.slots()];
    let (mut counts, mut positions) = ([0; 5], [Vec::new(), Vec::new()]);
    let mut left: Vec<(u64, Option<u64>)> = Vec::new();
    let (mut sequential, mut before) = (0u64, None);
    for e in &trace.events {
        counts[e.op as usize] += 1;
        let owner = owners.entry(e.pid).or_insert(Owner { pid: e.pid, ..Owner::default() });
        match e.op {
            SwapOp::Out => {
                owner.outs += 1;
                positions[0].push((e.time_ns, e.slot));
                sequential += u64::from(before == e.slot.checked_sub(1));
                before = Some(e.slot);
                newest[e.slot as usize] = Some(left.len());
                left.push((e.time_ns, None));
            }
            SwapOp::In => {
                owner.ins += 1;
                positions[1].push((e.time_ns, e.slot));
            }
            SwapOp::Free | SwapOp::Evict | SwapOp::Fault => {}
        }
        if e.op == touch {
            let copy = newest[e.slot as usize].map(|i| &mut left[i].1);
            copy.into_iter().for_each(|back| *back = back.or(Some(e.time_ns)));
        }
        if e.op == SwapOp::Free {
            newest[e.slot as usize] = None;
        }
    }
    let mut processes: Vec<Owner> = owners.into_values().filter(|o| o.outs + o.ins > 0).collect();
    processes.sort_by_key(|o| (std::cmp::Reverse(o.outs + o.ins), o.pid));
    let lifetimes_ns: Vec<_> = left.iter().map(|(out, back)| back.map(|b| b - out)).collect();
    let [swap_outs, swap_ins, evictions, faults, frees] = counts;
    let info = SwapInfo {
        swap_outs,
        swap_ins,
        evictions,
        faults,
        frees,
        sequential_percent: sequential as f64 / swap_outs.max(1) as f64 * 100.0,
        processes,
        lifetime_median_s: quantile(&lifetimes_ns, 0.5),
        groups: GROUPS.iter().map(|size| group(&left, *size)).collect(),
    };
    SwapAnalysis { info, lifetimes_ns, positions }
}

/// The quantile of lifetimes of touched copies, in seconds; `None`: none was touched.
fn quantile(lifetimes_ns: &[Option<u64>], part: f64) -> Option<f64> {
    let mut all: Vec<u64> = lifetimes_ns.iter().flatten().copied().collect();
    all.sort_unstable();
    let at = (all.len().checked_sub(1)? as f64 * part).round() as usize;
    Some(all[at] as f64 / 1e9)
}

fn group(left: &[(u64, Option<u64>)], size: usize) -> Group {
    let mut group = Group { size, together: 0, of: 0 };
    for chunk in left.chunks_exact(size) {
        let back: Vec<u64> = chunk.iter().filter_map(|(_, back)| *back).collect();
        if let (2.., Some(first), Some(last)) = (back.len(), back.iter().min(), back.iter().max()) {
            group.of += 1;
            group.together += u64::from(last - first <= TOGETHER_NS);
        }
    }
    group
}

impl SwapAnalysis {
    pub fn text(&self) -> String {
        let info = &self.info;
        let mut out = String::new();
        for (name, count) in [
            ("swap-outs", info.swap_outs),
            ("swap-ins", info.swap_ins),
            ("evictions", info.evictions),
            ("faults", info.faults),
            ("frees", info.frees),
        ] {
            out += &format!("{name:<14}{}\n", human_count(count));
        }
        out += &format!("{:<14}{:.1} % of swap-outs follow the slot before\n", "sequential", info.sequential_percent);
        if let [Some(low), Some(median), Some(high)] = [0.1, 0.5, 0.9].map(|part| quantile(&self.lifetimes_ns, part)) {
            out += &format!(
                "{:<14}{low:.2} s, {median:.2} s, {high:.2} s (10, 50, 90 % of the copies that were touched)\n",
                "lifetime"
            );
        }
        for g in &info.groups {
            let percent = g.together as f64 / g.of.max(1) as f64 * 100.0;
            out += &format!(
                "{:<14}{percent:.1} % of {} groups came back within a second\n",
                format!("groups of {}", g.size),
                g.of
            );
        }
        let rows = info.processes.iter().take(10).map(|o| {
            let part = (o.outs + o.ins) as f64 / (info.swap_outs + info.swap_ins).max(1) as f64 * 100.0;
            vec![o.pid.to_string(), human_count(o.outs), human_count(o.ins), format!("{part:.1} %")]
        });
        out + &format!(
            "{} processes, the largest:\n{}\n",
            info.processes.len(),
            styled(&["process", "out", "in", "of all"], rows.collect(), 1)
        )
    }

    /// Slot position over time, lifetime by slot in the order of swap-outs, and the mean lifetime of groups.
    pub fn plots(&self) -> Vec<Plot> {
        let seconds = |(time, slot): &(u64, u32)| (*time as f64 / 1e9, f64::from(*slot));
        let position = |name: &str, points: &[(u64, u32)]| Series {
            name: name.into(),
            points: thin(points.len()).map(|i| seconds(&points[i])).collect(),
        };
        let plot = |title: &str, x: &str, y: &str, series| Plot {
            title: title.into(),
            x: x.into(),
            y: y.into(),
            series,
            log_x: false,
            log_y: false,
        };
        let all = self.lifetimes_ns.len();
        let single = thin(all).filter_map(|i| Some((i as f64, self.lifetimes_ns[i]? as f64 / 1e9))).collect();
        let mut plots = vec![
            plot(
                "Slots over time",
                "time, s",
                "slot",
                vec![position("swap-out", &self.positions[0]), position("swap-in", &self.positions[1])],
            ),
            plot("Lifetime by slot of the log", "swap-out", "s", vec![Series { name: "slot".into(), points: single }]),
        ];
        for size in GROUPS {
            let series = Series { name: format!("mean of {size} slots"), points: self.group_means(size) };
            plots.push(plot(&format!("Lifetime by {size} slots of the log"), "swap-out", "s", vec![series]));
        }
        plots
    }

    fn group_means(&self, size: usize) -> Vec<(f64, f64)> {
        let groups: Vec<&[Option<u64>]> = self.lifetimes_ns.chunks_exact(size).collect();
        let mean = |i: usize| {
            let touched: Vec<u64> = groups[i].iter().flatten().copied().collect();
            let sum = touched.iter().sum::<u64>() as f64 / 1e9;
            (!touched.is_empty()).then(|| ((i * size) as f64, sum / touched.len() as f64))
        };
        thin(groups.len()).filter_map(mean).collect()
    }
}

/// Indices of at most [`POINTS_MAX`] of `n`, evenly spread.
fn thin(n: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by(n.div_ceil(POINTS_MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_formats::format::Input;

    #[test]
    fn a_few_rows_are_counted_by_hand() {
        let text = "ts_ns,op,slot,pid\n0,out,1,7\n1,out,2,7\n2,out,9,8\n\
                    3000000000,in,1,7\n3500000000,in,2,7\n4000000000,free,1,7\n";
        let trace = coldframe_formats::swap::read_input(Input::Bytes(text.as_bytes().to_vec().into())).unwrap();
        let a = analyse(&trace);
        let info = &a.info;
        assert_eq!((info.swap_outs, info.swap_ins, info.faults, info.frees), (3, 2, 0, 1));
        assert_eq!((info.processes[0].pid, info.processes[0].outs, info.processes[0].ins), (7, 2, 2));
        assert_eq!(a.lifetimes_ns, [Some(3_000_000_000), Some(3_499_999_999), None]);
        assert!((info.sequential_percent - 100.0 / 3.0).abs() < 1e-9);
        let pair = group(&[(0, Some(5)), (1, Some(2_000_000_000)), (2, Some(7)), (3, Some(8))], 2);
        assert_eq!((pair.together, pair.of), (1, 2));
    }
}
