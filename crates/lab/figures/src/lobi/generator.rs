//! A swap trace with the statistics that the slides print, from a seed. The slides' own trace is not available.
//!
//! Fitted to the printed counts: swap-outs, swap-ins, processes. From the slides' pictures: few processes do most of
//! the swapping, pages of a process leave in groups with consecutive slots, and a group comes back together. Assumed:
//! a process's share falls as 1 / rank; a lifetime is exponential; in one case of ten, a page deviates from its group
//! by up to a quarter of the lifetime. Pages that never come back stay to the end: the slides' trace has no exits.
//!
//! Three numbers below ([`GROUP`], [`LIFETIME`], [`COMES_BACK`]) and the threshold of collections ([`super::START`])
//! are fitted to the five costs that the slides print.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use coldframe_formats::swap::{SwapEvent, SwapOp, SwapTrace};

use crate::workload::Chance;

/// The most pages of a group; all sizes from 1 on are equally likely. Fitted.
const GROUP: u64 = 32;

/// Mean lifetime of a group, in events (swap-outs and swap-ins). Fitted.
const LIFETIME: f64 = 4_000.0;

/// The part of a group's pages that comes back, if the group does. Fitted.
const COMES_BACK: f64 = 0.8;

struct SwapTraceGenerator {
    chance: Chance,
    events: Vec<SwapEvent>,
    /// Pages that will come back: the time (in events), the order in which they left, the process.
    due: BinaryHeap<Reverse<(u64, u32, u32)>>,
    outs: u64,
    ins: u64,
}

impl SwapTraceGenerator {
    fn event(&mut self, op: SwapOp, slot: u32, pid: u32) {
        let time_ns = self.events.len() as u64;
        let page_number = u64::from(slot);
        self.events.push(SwapEvent { time_ns, page_number, slot, pid, op, flag: 0, kind: [0; 3] });
    }

    /// Reads the pages that are due, up to `most` in all.
    fn come_back(&mut self, until: u64, most: u64) {
        while let Some(&Reverse((when, slot, pid))) = self.due.peek() {
            if when > until || self.ins == most {
                return;
            }
            self.due.pop();
            self.event(SwapOp::In, slot, pid);
            self.ins += 1;
        }
    }

    fn group(&mut self, pid: u32, outs: u64, returns: f64) {
        let size = 1 + self.chance.below(GROUP);
        let lifetime = -LIFETIME * (1.0 - self.chance.unit()).ln();
        let comes_back = self.chance.unit() < returns;
        for _ in 0..size.min(outs - self.outs) {
            let slot = self.outs as u32;
            self.event(SwapOp::Out, slot, pid);
            self.outs += 1;
            let strays = if self.chance.below(10) == 0 { self.chance.unit() * lifetime / 4.0 } else { 0.0 };
            if comes_back && self.chance.unit() < COMES_BACK {
                let now = self.events.len() as u64;
                self.due.push(Reverse((now + (lifetime + strays) as u64, slot, pid)));
            }
        }
    }
}

/// The printed swap-outs, swap-ins and processes.
fn target() -> [u64; 3] {
    ["swap_outs", "swap_ins", "processes"].map(|name| super::golden().number(&format!("trace.{name}")) as u64)
}

/// The trace. Slot numbers name copies, one for each swap-out; each touch is an `in`.
pub fn generate(seed: u64) -> SwapTrace {
    let [outs, ins, processes] = target();
    let mut m =
        SwapTraceGenerator { chance: Chance(seed), events: Vec::new(), due: BinaryHeap::new(), outs: 0, ins: 0 };
    let weights: Vec<f64> = (1..=processes).map(|rank| 1.0 / rank as f64).collect();
    let sum: f64 = weights.iter().sum();
    // A little more than the share that must come back: copies that are out at the end do not come back.
    let returns = ins as f64 / outs as f64 * 1.1 / COMES_BACK;
    let mut first_ones = 0..processes as u32;
    while m.outs < outs {
        // Each process swaps once; then by weight.
        let pid = match first_ones.next() {
            Some(first) => first,
            None => pick(&weights, m.chance.unit() * sum),
        };
        m.group(pid + 1, outs, returns);
        m.come_back(m.events.len() as u64, ins);
    }
    m.come_back(u64::MAX, ins);
    SwapTrace { events: m.events, ..SwapTrace::default() }
}

fn pick(weights: &[f64], mut at: f64) -> u32 {
    for (i, weight) in weights.iter().enumerate() {
        at -= weight;
        if at < 0.0 {
            return i as u32;
        }
    }
    weights.len() as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_printed_counts_and_the_seed_repeats_it() {
        let trace = generate(1);
        let count = |op| trace.events.iter().filter(|e| e.op == op).count() as u64;
        let mut pids: Vec<u32> = trace.events.iter().map(|e| e.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!([count(SwapOp::Out), count(SwapOp::In), pids.len() as u64], target());
        assert_eq!(generate(1).events, trace.events);
        assert_ne!(generate(2).events, trace.events);
    }
}
