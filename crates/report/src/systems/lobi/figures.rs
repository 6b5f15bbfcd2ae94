//! LOBI: the slides' experiment on a generated trace with their statistics and on one recorded on a real kernel.
//!
//! Below Linux the slides leave open what the flash is. Two readings: bare flash, whose slots Linux allocates as it finds them erased
//! (`linux`), and a device with a translation layer that is not told of free slots (`linux-ftl`), as Linux of 2008 had it.

use std::path::Path;

use crate::systems::lobi::{golden, AREA_BLOCKS};
use coldframe_trace::swap::{read, SwapOp, SwapTrace};

use crate::error::ReportError;
use crate::papers::{Reached, Row};
use crate::resolve::swaps;
use crate::settings::{Settings, Swap};
use crate::swap::{outcome, SwapOutcome};
use crate::swap_table::pictures;

#[cfg(test)]
mod claims;
pub mod generator;

/// The recorded trace: a kernel that allocates slots as the slides describe (rotational disk).
const RECORDED: &str = "swap-desktop.csv.zst";

/// The seed of the generated one.
const SEED: u64 = 2008;

/// Methods: the printed name, layout, read-ahead.
const METHODS: [(&str, &str, &str); 5] = [
    ("linux_8", "linux", "aligned:8"),
    ("linux_8", "linux-ftl", "aligned:8"),
    ("lobi_8", "log", "block:8"),
    ("lobi_16", "log", "block:16"),
    ("lobi_32", "log", "block:32"),
];

/// The slides' collectors: GR, CB, CATA and CBA with 1 to 4 victims.
const COLLECTORS: [&str; 10] = [
    "greedy",
    "cost-benefit",
    "cost-age-times:1",
    "cost-age-times:2",
    "cost-age-times:3",
    "cost-age-times:4",
    "cost-benefit-age:1",
    "cost-benefit-age:2",
    "cost-benefit-age:3",
    "cost-benefit-age:4",
];

/// A trace and how it is read.
struct Input {
    name: &'static str,
    trace: SwapTrace,
    keep: &'static str,
}

fn inputs(traces: &Path) -> Result<[Input; 2], ReportError> {
    Ok([
        Input { name: "generated", trace: generator::generate(SEED), keep: "until-touched" },
        Input { name: "recorded", trace: read(&traces.join(RECORDED))?, keep: "trace" },
    ])
}

/// All rows.
///
/// # Errors
/// The trace cannot be read.
pub fn rows(traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError> {
    let golden = golden::read();
    let mut rows = Vec::new();
    for input in inputs(traces)? {
        progress(input.name);
        trace_rows(&golden, &input, &mut rows);
        cost_rows(&golden, &input, &mut rows)?;
        picture_rows(&input, &mut rows)?;
    }
    Ok(rows)
}

/// The slides' bars, greedy collector, 1024 blocks.
///
/// # Errors
/// The trace cannot be read.
pub fn bars(traces: &Path) -> Result<String, ReportError> {
    let mut out = String::new();
    for input in inputs(traces)? {
        let outcomes =
            METHODS.iter().map(|m| one(&input, AREA_BLOCKS[0], m, "greedy")).collect::<Result<Vec<_>, _>>()?;
        out += &format!("1024 blocks, {} trace\n\n{}\n", input.name, pictures(&outcomes));
    }
    Ok(out)
}

fn one(
    input: &Input,
    blocks: u32,
    (_, layout, read_ahead): &(&str, &str, &str),
    collector: &str,
) -> Result<SwapOutcome, ReportError> {
    let swap = Swap {
        blocks: Some(blocks.to_string()),
        layout: Some((*layout).into()),
        read_ahead: Some((*read_ahead).into()),
        collector: Some(collector.into()),
        keep: Some(input.keep.into()),
        ..Swap::default()
    };
    outcome(&swaps(&Settings { swap, ..Settings::default() })?, &input.trace)
}

fn row(item: &str, row: String, paper: Option<f64>, ours: f64, unit: &'static str, reached: Reached) -> Row {
    Row {
        paper: "lobi",
        item: item.into(),
        row,
        paper_value: paper,
        our_value: ours,
        unit,
        deviation_percent: paper.map(|p| (ours / p - 1.0) * 100.0),
        reached,
        note: String::new(),
    }
}

/// Counts of the trace. The generated one must fit; the recorded one is what it is.
fn trace_rows(g: &golden::Golden, input: &Input, rows: &mut Vec<Row>) {
    let events = &input.trace.events;
    let count = |op| events.iter().filter(|e| e.op == op).count() as f64;
    let mut outs_by = std::collections::BTreeMap::<u32, u64>::new();
    events.iter().filter(|e| e.op == SwapOp::Out).for_each(|e| *outs_by.entry(e.pid).or_default() += 1);
    let mut shares: Vec<u64> = outs_by.values().copied().collect();
    shares.sort_unstable_by(|a, b| b.cmp(a));
    let top = shares.iter().take(10).sum::<u64>() as f64 / count(SwapOp::Out) * 100.0;
    for (what, paper, ours) in [
        ("swap-outs", g.trace.swap_outs, count(SwapOp::Out)),
        ("swap-ins", g.trace.swap_ins, count(SwapOp::In)),
        ("processes that swapped", g.trace.processes, outs_by.len() as f64),
    ] {
        let reached = if paper as f64 == ours { Reached::Yes } else { Reached::NoClaim };
        let mut row = row("trace", format!("{}: {what}", input.name), Some(paper as f64), ours, "", reached);
        row.note = "the generated trace is fitted to this; the recorded one is of the same kind of work".into();
        rows.push(row);
    }
    let mut few = row(
        "process analysis",
        format!("{}: part of swap-outs by 10 processes", input.name),
        None,
        top,
        "%",
        if top > 50.0 { Reached::Shape } else { Reached::No },
    );
    few.note = "the slides say that a few processes make most of it, and print no number".into();
    rows.push(few);
}

/// Cost at 1024 blocks: least and most over the collectors, as the slides give Linux's.
fn cost_rows(g: &golden::Golden, input: &Input, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let mut spans = Vec::new();
    for method in &METHODS {
        let outcomes =
            COLLECTORS.iter().map(|c| one(input, AREA_BLOCKS[0], method, c)).collect::<Result<Vec<_>, _>>()?;
        let costs = || outcomes.iter().map(|o| o.cost() as f64);
        let span = (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max));
        let refused = outcomes.iter().map(|o| o.result.refused).max().unwrap_or(0);
        for (which, ours, paper) in [("least", span.0, 0), ("most", span.1, 1)] {
            let printed = g.cost_1024_blocks[method.0][paper] as f64;
            let close = (ours / printed - 1.0).abs() <= TOLERANCE;
            let reached = if close { Reached::Yes } else { Reached::No };
            let name = format!("{}, {} {}: {which} of 10 collectors", input.name, method.1, method.2);
            let mut row = row("GC cost, 1024 blocks", name, Some(printed), ours, "reads", reached);
            row.note = cost_note(input, &outcomes, refused);
            rows.push(row);
        }
        spans.push(span);
    }
    claim_rows(g, input, &spans, rows);
    Ok(())
}

/// Within a tenth counts as reached: the slides round to thousands and their trace is not ours.
const TOLERANCE: f64 = 0.1;

fn cost_note(input: &Input, outcomes: &[SwapOutcome], refused: u64) -> String {
    let mean = |of: fn(&SwapOutcome) -> u64| outcomes.iter().map(of).sum::<u64>() / outcomes.len() as u64;
    let mut note = format!(
        "mean over the collectors: {} reads, {} copies, {} erases; at most {} of 32768 slots hold a page",
        mean(|o| o.operations.reads),
        mean(|o| o.operations.copies),
        mean(|o| o.operations.erases),
        outcomes.iter().map(|o| o.result.copies_max).max().unwrap_or(0),
    );
    if input.keep == "trace" {
        note += "; today's kernel keeps a slot after the swap-in, so that the area is nearly full and its blocks are copied again and again";
    }
    if refused > 0 {
        note += &format!("; {refused} swap-outs found the area full");
    }
    note
}

/// What the slides conclude.
fn claim_rows(g: &golden::Golden, input: &Input, spans: &[(f64, f64)], rows: &mut Vec<Row>) {
    let middle = |i: usize| (spans[i].0 + spans[i].1) / 2.0;
    let printed = |name: &str| g.cost_1024_blocks[name].iter().sum::<u64>() as f64 / 2.0;
    let paper = printed("linux_8") / printed("lobi_8");
    for (i, why) in [
        (0, "bare flash: Linux then writes nearly as sequentially as a log, and the two hardly differ"),
        (1, "translation layer without discard: it copies slots that the kernel has freed"),
    ] {
        let ours = middle(i) / middle(2);
        let reached = if ours >= 0.9 * paper { Reached::Shape } else { Reached::No };
        let name = format!("{}, {}: Linux (8) to LOBI (8), middles", input.name, METHODS[i].1);
        let mut row = row("about 200 % better", name, Some(paper), ours, "x", reached);
        row.note = why.into();
        rows.push(row);
    }
    for (i, name) in [(3, "lobi_16"), (4, "lobi_32")] {
        let (paper, ours) = (printed(name) / printed("lobi_8"), middle(i) / middle(2));
        let reached = if ours >= 1.0 { Reached::Shape } else { Reached::No };
        let text = format!("{}: {name} to lobi_8", input.name);
        let mut row = row("order of windows", text, Some(paper), ours, "x", reached);
        row.note = "larger windows read more pages that nobody uses; the slides' trace used most of them".into();
        rows.push(row);
    }
}

/// The pictures, which have no numbers: ours, with the greedy collector.
fn picture_rows(input: &Input, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    for blocks in AREA_BLOCKS {
        for method in &METHODS {
            let o = one(input, blocks, method, "greedy")?;
            for (what, value) in [
                ("read count", o.operations.reads as f64),
                ("erase count", o.operations.erases as f64),
                ("erase copy count", o.operations.copies as f64),
                ("wear-levelling degree (standard deviation)", o.wear.deviation),
            ] {
                let name = format!("{}, {} {}: {what}", input.name, method.1, method.2);
                let mut row = row(&format!("{blocks} blocks"), name, None, value, "", Reached::NoClaim);
                row.note = "drawn without numbers in the slides; greedy collector".into();
                rows.push(row);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 63,505 pages fill 1,985 blocks; 1,024 blocks less the erased ones can hold the first of them, so at least so many erases follow,
    /// whatever the method; 2,048 blocks need none.
    #[test]
    fn erases_on_the_generated_trace_are_at_least_what_the_pages_need() {
        let input = Input { name: "generated", trace: generator::generate(SEED), keep: "until-touched" };
        for method in &METHODS {
            for collector in ["greedy", "cost-benefit-age:4"] {
                let o = one(&input, 1024, method, collector).unwrap();
                assert!(o.operations.erases >= 63_505 / 32 - 1024, "{method:?}: {}", o.operations.erases);
                assert_eq!((o.operations.programs, o.result.refused), (63_505, 0), "{method:?}");
                assert!(o.operations.reads >= 37_916 - o.result.cache.hits, "{method:?}");
                assert_eq!(o.result.demand_reads + o.result.cache.hits, 37_916, "{method:?}");
            }
            assert_eq!(one(&input, 2048, method, "greedy").unwrap().operations.erases, 0, "{method:?}");
        }
    }
}
