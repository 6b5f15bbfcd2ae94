//! Figures 10 to 12 and PA-Clock's column of table 4 about the paper's own programs: page references whose distances
//! give Clock's column, since the programs themselves are not free.
//!
//! ```text
//!   misses an instruction            (1, CHANCE)                             every visit of another page
//!                                        \ straight in logarithms
//!                                         (64, m64) ─ (128, m128) ─ (256, m256) ─ (512, m512) ─ 513..1024 evenly
//!                                                                               LRU distance in pages of 1 KiB
//! ```
//!
//! An instruction leaves its page with the chance `CHANCE`, which is assumed. Then the page at an LRU distance is next,
//! drawn from that curve. Memory is warm: every page has been touched before anything is counted.

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::Ps;
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::{Run, Stream};
use coldframe_experiment::systems::swl;
use coldframe_lane::{DeviceTimes, LaneConfig, PageRef};

use super::{item, CARRIED, SIZES, VALID};
use crate::figure::{Origin, Row};
use crate::golden::Golden;
use crate::workload::Chance;

/// The chance that an instruction leaves its page. Assumed.
const CHANCE: f64 = 0.05;

/// Pages of a program.
const PAGES: u32 = 1024;

/// Where the curve begins, and table 4's sizes, in pages.
const DISTANCES: [f64; 5] = [1.0, 64.0, 128.0, 256.0, 512.0];

const SEED: u64 = 2007;

/// The LRU distance of the next page for a number from 0 to 1: the place where the part of longer distances is that
/// number. `longer`: these parts at `DISTANCES`, which fall from 1.
fn distance(longer: [f64; 5], chance: f64) -> u32 {
    match (1..DISTANCES.len()).find(|i| chance > longer[*i]) {
        Some(i) => {
            let part = (chance / longer[i - 1]).ln() / (longer[i] / longer[i - 1]).ln();
            let place = DISTANCES[i - 1] * (DISTANCES[i] / DISTANCES[i - 1]).powf(part);
            (place.ceil() as u32).clamp(2, DISTANCES[i] as u32)
        }
        None => {
            let last = DISTANCES[DISTANCES.len() - 1];
            (last + (f64::from(PAGES) - last) * (chance / longer[4])).ceil().clamp(last + 1.0, f64::from(PAGES)) as u32
        }
    }
}

/// The pages that a program visits, one after the other, from a stack in the order of their numbers.
fn visits(misses: [f64; 4], count: u64) -> Vec<PageRef> {
    let longer = std::array::from_fn(|i| if i == 0 { 1.0 } else { misses[i - 1] / CHANCE });
    let (mut chance, mut stack) = (Chance(SEED), (0..PAGES).collect::<Vec<u32>>());
    let next = |_| {
        let place = distance(longer, chance.unit()) as usize - 1;
        stack[..=place].rotate_right(1);
        PageRef::new(stack[0], false, false)
    };
    (0..count).map(next).collect()
}

/// Misses and paging time of an instruction, by policy and size.
fn run(misses: [f64; 4], instructions: f64, policies: &[(&str, &str)]) -> Vec<[(f64, f64); 4]> {
    let config = |(policy, by): &(&str, &str), kb: &str| {
        let policy = PolicyChoice::parse(policy).expect("our own text");
        let prices = swl::prices(policy.spec.name);
        let device = DeviceTimes { load: swl::LOAD_STOPOVER, program: None };
        let frames = kb.parse().expect("a number");
        LaneConfig::new(policy, handler::find(by).expect("our own text"), frames, prices, device)
    };
    let configs: Vec<_> = policies.iter().flat_map(|policy| SIZES.map(|kb| config(policy, kb))).collect();
    let front_end = Box::new(Plain::new(Stream::Both, 10, Spaces::default(), None));
    let mut run = Run::new(front_end, IdlePrices::default(), PAGES as usize);
    run.add_lanes(&configs).expect("our own configurations");
    let warm: Vec<_> = (0..PAGES).rev().map(|page| PageRef::new(page, false, false)).collect();
    run.references(&warm, Ps::ZERO);
    let before = run.lane_results();
    run.references(&visits(misses, (instructions * CHANCE) as u64), Ps::ZERO);
    let counted = |(after, before): (coldframe_lane::LaneResult, coldframe_lane::LaneResult)| {
        let faults = after.counts.true_faults - before.counts.true_faults;
        (faults as f64 / instructions, (after.paging - before.paging).0 as f64 / instructions)
    };
    let each: Vec<_> = run.lane_results().into_iter().zip(before).map(counted).collect();
    each.chunks(SIZES.len()).map(|sizes| std::array::from_fn(|i| sizes[i])).collect()
}

const NOTE: &str = "references from Clock's column of table 4 (an input), with an assumed chance of 0.05 that an \
                    instruction leaves its page; seed 2007";

/// PA-Clock's cells of the program, and its reductions with the literal delay and with ours.
pub(super) fn rows(g: &Golden, name: &str, rows: &mut Vec<Row>) {
    let printed: [[f64; 2]; 4] = SIZES.map(|kb| g.numbers(&format!("table4.{name}.{kb}")));
    let [_, instructions] = g.numbers::<2>(&format!("table3.{name}"));
    let fifo_sc = format!("fifo-sc:valid={VALID}");
    let literal = format!("pa-fifo-sc:valid={VALID}");
    let bounded = format!("{literal},max-downgrades={}", swl::HIDDEN_DOWNGRADES);
    let policies = [
        ("clock", "sequential"),
        ("pa-clock:budget=13", "parallel"),
        (&fifo_sc, "parallel"),
        (&literal, "parallel"),
        (&bounded, "parallel"),
    ];
    let ours = run(printed.map(|cell| cell[0]), instructions, &policies);
    for (i, kb) in SIZES.into_iter().enumerate() {
        let row = format!("{name} from its curve, {kb} KB, Clock");
        let row = Row::new("table 4", row, printed[i][0], ours[0][i].0, "misses/instr.", Origin::Input).to(1e-6);
        rows.push(row.note(NOTE));
        let row = format!("{name} from its curve, {kb} KB, PA-Clock");
        let row = Row::new("table 4", row, printed[i][1], ours[1][i].0, "misses/instr.", Origin::Predicted).to(1e-6);
        rows.push(row.compared_with("Clock's printed ratio", printed[i][0]).note(NOTE));
    }
    // Each miss of the instruction cache, as table 2 has it.
    let missed = 1.0 - g.number(&format!("table3.icache_hit_ratio.{name}"));
    let fetch = swl::INSTRUCTION.0 as f64 + missed * swl::FRONT_END.icache_miss.0 as f64;
    let range: [f64; 2] = g.numbers(&format!("fig10_12.{name}"));
    for (policy, delay) in [(3, "all downgrades that wait"), (4, "3 downgrades")] {
        let less = |i: usize| (1.0 - (fetch + ours[policy][i].1) / (fetch + ours[2][i].1)) * 100.0;
        let reductions = [0, 1, 2, 3].map(less);
        let by_size = [0, 1, 2, 3].map(|i: usize| format!("{:.1} % at {} KB", reductions[i], SIZES[i])).join(", ");
        let note = format!("{NOTE}; {VALID} frames of the valid list are carried over; by size: {by_size}");
        let values = || reductions.iter().copied();
        let ends = [values().fold(f64::INFINITY, f64::min), values().fold(f64::MIN, f64::max)];
        for (end, which) in ["least", "most"].into_iter().enumerate() {
            let row = format!("{name} from its curve, {delay}: {which} reduction");
            rows.push(Row::new(item(name), row, range[end], ends[end], "%", CARRIED).to(0.1).note(&note));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of all distances are beyond 64, a quarter beyond 128, an eighth beyond 256, a sixteenth beyond 512.
    #[test]
    fn a_distance_has_the_part_of_longer_ones_that_is_asked_for() {
        let longer = [1.0, 0.5, 0.25, 0.125, 0.0625];
        assert_eq!(
            [1.0, 0.5001, 0.26, 0.13, 0.063].map(|chance| distance(longer, chance) <= 64),
            [true, true, false, false, false]
        );
        assert_eq!(distance(longer, 0.75), 6, "64 to the power of ln 0.75 / ln 0.5 = 0.415 is 5.62");
        assert_eq!(distance(longer, 0.03125), 768, "half of the longest");
        let level = [1.0, 0.5, 0.25, 0.1, 0.1];
        assert!((257..=1024).contains(&distance(level, 0.1)), "no distance lies where the curve is level");
    }

    #[test]
    fn a_page_is_visited_again_at_its_distance() {
        let visits = visits([0.025, 0.0125, 0.00625, 0.003125], 20_000);
        let far = |most: usize| {
            let (mut stack, mut far) = ((0..PAGES as usize).collect::<Vec<_>>(), 0);
            for visit in &visits {
                let place = stack.iter().position(|page| *page == visit.page()).expect("it is there");
                stack[..=place].rotate_right(1);
                far += u32::from(place >= most);
            }
            f64::from(far) / visits.len() as f64
        };
        for (most, part) in [(64, 0.5), (128, 0.25), (256, 0.125), (512, 0.0625)] {
            assert!((far(most) - part).abs() < 0.015, "{most}: {}", far(most));
        }
    }
}
