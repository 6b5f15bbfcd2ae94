//! LOBI: the slides' experiment on a generated trace with their statistics and on two recorded on real kernels.
//!
//! There are two readings. *The slides'*: a swap-in frees the slots of its whole window, since the slides list
//! read-ahead under "swap slot release" (`swap.keep=until-read`); a trace has swap-outs and swap-ins, as their
//! recorder wrote it. *A user's*: a page read ahead waits in the swap cache with a valid slot, and the device below
//! Linux may have a translation layer (`linux-ftl`); a recorded trace has touches, evictions and frees.

use std::path::Path;

use coldframe_experiment::resolve::swaps;
use coldframe_experiment::settings::{Settings, Swap};
use coldframe_experiment::swap::{outcome, SwapOutcome};
use coldframe_experiment::ExperimentError;
use coldframe_trace::swap::{read, SwapEvent, SwapOp, SwapTrace};
use rayon::prelude::*;

use crate::figure::{Claim, Paper, Reached, Row};
use crate::golden::Golden;

#[cfg(test)]
mod claims;
mod generator;

/// The slides.
pub const PAPER: Paper = Paper { name: "lobi", rows, plots: |_| Ok(Vec::new()), claims: CLAIMS };

const CLAIMS: &[Claim] = &[
    (
        "Linux (8): least cost of the collectors",
        "GC cost, 1024 blocks",
        "generated, linux aligned:8: least of 10 collectors",
    ),
    ("Linux (8): most", "GC cost, 1024 blocks", "generated, linux aligned:8: most of 10 collectors"),
    ("LOBI (8)", "GC cost, 1024 blocks", "generated, log block:8: least of 10 collectors"),
    ("LOBI (16)", "GC cost, 1024 blocks", "generated, log block:16: least of 10 collectors"),
    ("LOBI (32)", "GC cost, 1024 blocks", "generated, log block:32: least of 10 collectors"),
    ("Linux costs so many times LOBI (8)", "factor of two", "generated: Linux's least cost to LOBI (8)'s"),
    (
        "the same with a swap cache, as a user has it",
        "factor of two",
        "generated, swap cache: Linux's least cost to LOBI (8)'s",
    ),
];

/// Erase blocks of the area whose costs the slides print.
const BLOCKS: u32 = 1024;

fn golden() -> Golden {
    Golden::read(include_str!("golden.toml"))
}

/// A kernel that allocates slots as the slides describe (rotational disk).
const ROTATIONAL: &str = "swap-desktop.csv.zst";

/// A present-day kernel, cut after as many swap-outs as the slides have.
const X86: &str = "swap-desktop-x86.csv.zst";

/// The seeds of the generated trace. If only one is shown, it is the first.
const SEEDS: [u64; 5] = [2008, 2009, 2010, 2011, 2012];

/// The collection threshold on the generated trace, in blocks: 3 % of 1024. It is fitted to the slides' five costs,
/// together with three numbers of the generator. On recorded traces nothing is fitted, and the user's default
/// applies.
const START: u32 = 31;

/// A method, and the treatment of a window's slots.
#[derive(Clone, Copy, Debug)]
struct Method {
    printed: &'static str,
    layout: &'static str,
    read_ahead: &'static str,
    keep: &'static str,
}

const fn method(printed: &'static str, layout: &'static str, read_ahead: &'static str, keep: &'static str) -> Method {
    Method { printed, layout, read_ahead, keep }
}

/// Linux, LOBI (8), (16) and (32) as the slides have them.
const SLIDES: [Method; 4] = [
    method("linux_8", "linux", "aligned:8", "until-touched"),
    method("lobi_8", "log", "block:8", "until-read"),
    method("lobi_16", "log", "block:16", "until-read"),
    method("lobi_32", "log", "block:32", "until-read"),
];

/// The same on recorded swap-ins, which include the kernel's own read-ahead: Linux reads no further pages.
const REPLAYED: [Method; 4] = [method("linux_8", "linux", "none", "until-touched"), SLIDES[1], SLIDES[2], SLIDES[3]];

/// The methods as a user gets them.
const PRACTICE: [Method; 4] = [
    method("linux_8", "linux-ftl", "aligned:8", "until-touched"),
    method("lobi_8", "log", "block:8", "until-touched"),
    method("lobi_16", "log", "block:16", "until-touched"),
    method("lobi_32", "log", "block:32", "until-touched"),
];

/// The same with a recorded kernel's own frees.
const FREED: [Method; 5] = [
    method("linux_8", "linux", "aligned:8", "trace"),
    method("linux_8", "linux-ftl", "aligned:8", "trace"),
    method("lobi_8", "log", "block:8", "trace"),
    method("lobi_16", "log", "block:16", "trace"),
    method("lobi_32", "log", "block:32", "trace"),
];

impl Method {
    fn name(&self) -> String {
        format!("{} {}", self.layout, self.read_ahead)
    }
}

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

/// A trace under a reading.
struct Input {
    name: &'static str,
    trace: SwapTrace,
    methods: &'static [Method],
    start: Option<u32>,
    /// Why its costs differ from the slides', if they do.
    why: &'static str,
}

const WHY_ROTATIONAL: &str =
    "this trace has 59,930 swap-outs and not 63,505: 112 erases and 8,400 reads less, whatever the method; nothing is \
    fitted to it";

const WHY_X86: &str = "this kernel keeps most slots after a swap-in, of which a trace of outs and ins does not tell: the area fills, and Linux's \
    blocks are copied again and again; nothing is fitted to it";

const WHY_PRACTICE: &str = "a page read ahead keeps its slot until it is touched, so that Linux and LOBI see the same valid slots and copy nearly \
    the same; the slides' factor of two needs the window's slots to be free at once";

const WHY_FREED: &str = "today's kernel keeps a slot after the swap-in, so that the area is nearly full and its blocks are copied again and again";

/// The slides' reading of a trace: only the outs and ins that their recorder wrote.
fn outs_and_ins(trace: &SwapTrace) -> SwapTrace {
    let plain = |event: &SwapEvent| match event.op {
        SwapOp::Out => Some(*event),
        SwapOp::In => Some(SwapEvent { flag: 0, ..*event }),
        _ => None,
    };
    SwapTrace { events: trace.events.iter().filter_map(plain).collect(), ..SwapTrace::default() }
}

fn generated(seed: u64, methods: &'static [Method], name: &'static str, why: &'static str) -> Input {
    Input { name, trace: generator::generate(seed), methods, start: Some(START), why }
}

fn slides() -> Input {
    generated(SEEDS[0], &SLIDES, "generated", "four numbers are fitted to the five costs")
}

fn recorded(traces: &Path, file: &str, name: &'static str, why: &'static str) -> Result<Input, ExperimentError> {
    let trace = outs_and_ins(&read(&traces.join(file))?);
    Ok(Input { name, trace, methods: &REPLAYED, start: None, why })
}

fn inputs(traces: &Path) -> Result<Vec<Input>, ExperimentError> {
    let freed = read(&traces.join(ROTATIONAL))?;
    Ok(vec![
        slides(),
        recorded(traces, X86, "recorded, x86", WHY_X86)?,
        recorded(traces, ROTATIONAL, "recorded, rotational", WHY_ROTATIONAL)?,
        generated(SEEDS[0], &PRACTICE, "generated, swap cache", WHY_PRACTICE),
        Input { name: "recorded, kernel's frees", trace: freed, methods: &FREED, start: None, why: WHY_FREED },
    ])
}

fn rows(traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    let golden = golden();
    let mut rows = Vec::new();
    for input in inputs(traces)? {
        progress(input.name);
        if !input.name.contains(", swap cache") && !input.name.contains("frees") {
            trace_rows(&golden, &input, &mut rows);
        }
        cost_rows(&golden, &input, &mut rows)?;
    }
    progress("seeds");
    seed_rows(&golden, &mut rows)?;
    Ok(rows)
}

fn one(input: &Input, blocks: u32, method: &Method, collector: &str) -> Result<SwapOutcome, ExperimentError> {
    let swap = Swap {
        blocks: Some(blocks.to_string()),
        layout: Some(method.layout.into()),
        read_ahead: Some(method.read_ahead.into()),
        collector: Some(collector.into()),
        keep: Some(method.keep.into()),
        ..Swap::default()
    };
    let mut plan = swaps(&Settings { swap, ..Settings::default() })?;
    if let Some(start) = input.start {
        plan.config.areas.iter_mut().for_each(|area| (area.start, area.stop) = (start, start));
    }
    outcome(&plan, &input.trace)
}

/// One method under all collectors.
fn under_all(input: &Input, method: &Method) -> Result<Vec<SwapOutcome>, ExperimentError> {
    COLLECTORS.par_iter().map(|collector| one(input, BLOCKS, method, collector)).collect()
}

fn least_and_most(outcomes: &[SwapOutcome]) -> (f64, f64) {
    let costs = || outcomes.iter().map(|o| o.cost() as f64);
    (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max))
}

/// Counts of the trace. The generated trace must agree with the slides; the recorded ones are shown as they are.
fn trace_rows(g: &Golden, input: &Input, rows: &mut Vec<Row>) {
    let events = &input.trace.events;
    let count = |op| events.iter().filter(|e| e.op == op).count() as f64;
    let mut outs_by = std::collections::BTreeMap::<u32, u64>::new();
    events.iter().filter(|e| e.op == SwapOp::Out).for_each(|e| *outs_by.entry(e.pid).or_default() += 1);
    let mut shares: Vec<u64> = outs_by.values().copied().collect();
    shares.sort_unstable_by(|a, b| b.cmp(a));
    let top = shares.iter().take(10).sum::<u64>() as f64 / count(SwapOp::Out) * 100.0;
    for (what, paper, ours) in [
        ("swap-outs", "swap_outs", count(SwapOp::Out)),
        ("swap-ins", "swap_ins", count(SwapOp::In)),
        ("processes that swapped", "processes", outs_by.len() as f64),
    ] {
        let paper = g.number(&format!("trace.{paper}"));
        let reached = if paper == ours { Reached::Yes } else { Reached::NoClaim };
        let note = "the generated trace is fitted to this; the recorded one is of the same kind of work";
        rows.push(Row::new("trace", format!("{}: {what}", input.name), paper, ours, "", reached).noted(note));
    }
    let few = format!("{}: part of swap-outs by 10 processes", input.name);
    let note = "the slides say that a few processes make most of it, and print no number";
    rows.push(Row::new("process analysis", few, None, top, "%", Reached::shape_if(top > 50.0)).noted(note));
}

/// Cost at 1024 blocks: least and most over the collectors, in the form of the slides' costs of Linux.
fn cost_rows(g: &Golden, input: &Input, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let mut spans = Vec::new();
    for method in input.methods {
        let outcomes = under_all(input, method)?;
        let span = least_and_most(&outcomes);
        for (which, ours, paper) in [("least", span.0, 0), ("most", span.1, 1)] {
            let printed = printed(g, method.printed)[paper];
            let name = format!("{}, {}: {which} of 10 collectors", input.name, method.name());
            let reached = Reached::within(printed, ours, TOLERANCE);
            let row = Row::new("GC cost, 1024 blocks", name, printed, ours, "reads", reached);
            rows.push(row.noted(cost_note(input, &outcomes)));
        }
        spans.push(span);
    }
    claim_rows(g, input, &spans, rows);
    Ok(())
}

/// A value within a twentieth counts as reached.
const TOLERANCE: f64 = 0.05;

/// Least and most cost of a method.
fn printed(g: &Golden, method: &str) -> [f64; 2] {
    g.numbers(&format!("cost_1024_blocks.{method}"))
}

fn cost_note(input: &Input, outcomes: &[SwapOutcome]) -> String {
    let mean = |of: fn(&SwapOutcome) -> u64| outcomes.iter().map(of).sum::<u64>() / outcomes.len() as u64;
    let most = |of: fn(&SwapOutcome) -> u64| outcomes.iter().map(of).max().unwrap_or(0);
    let mut note = format!(
        "{}; mean over the collectors: {} reads, {} copies, {} erases; at most {} of 32768 slots hold a page",
        input.why,
        mean(|o| o.operations.reads),
        mean(|o| o.operations.copies),
        mean(|o| o.operations.erases),
        most(|o| o.result.copies_max),
    );
    let held = most(|o| o.result.cache.held_max);
    if held > 0 {
        note += &format!("; at most {held} pages wait in RAM that were read ahead and not touched, which the slides' cost does not count");
    }
    let refused = most(|o| o.result.refused);
    if refused > 0 {
        note += &format!("; {refused} swap-outs found the area full");
    }
    note
}

/// The conclusions of the slides.
fn claim_rows(g: &Golden, input: &Input, spans: &[(f64, f64)], rows: &mut Vec<Row>) {
    let span = |name: &str| {
        let of = input.methods.iter().zip(spans).filter(|(method, _)| method.printed == name);
        *of.map(|(_, span)| span).next_back().expect("each input has all four methods")
    };
    let least = |name: &str| printed(g, name)[0];
    let paper = least("linux_8") / least("lobi_8");
    let ours = span("linux_8").0 / span("lobi_8").0;
    // A value far beyond it would be another finding than the slides'.
    let reached = Reached::shape_if((paper * (1.0 - TOLERANCE)..2.0 * paper).contains(&ours));
    let name = format!("{}: Linux's least cost to LOBI (8)'s", input.name);
    rows.push(Row::new("factor of two", name, paper, ours, "x", reached).noted(input.why));
    for name in ["lobi_16", "lobi_32"] {
        let (paper, ours) = (least(name) / least("lobi_8"), span(name).0 / span("lobi_8").0);
        let (row, reached) = (format!("{}: {name} to lobi_8", input.name), Reached::shape_if(ours >= 1.0));
        let note = "larger windows read more pages that nobody uses";
        rows.push(Row::new("order of windows", row, paper, ours, "x", reached).noted(note));
    }
}

/// Five generated traces: how much the costs depend on the seed.
fn seed_rows(g: &Golden, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let inputs: Vec<Input> = SEEDS.iter().map(|seed| generated(*seed, &SLIDES, "generated", "")).collect();
    for method in &SLIDES {
        let spans: Vec<(f64, f64)> = inputs
            .par_iter()
            .map(|input| Ok(least_and_most(&under_all(input, method)?)))
            .collect::<Result<_, ExperimentError>>()?;
        for (which, paper, of) in
            [("least", 0, &(|span: &(f64, f64)| span.0) as &dyn Fn(&(f64, f64)) -> f64), ("most", 1, &|span| span.1)]
        {
            let printed = printed(g, method.printed)[paper];
            let costs: Vec<f64> = spans.iter().map(of).collect();
            let farthest = costs.iter().copied().max_by(|a, b| (a - printed).abs().total_cmp(&(b - printed).abs()));
            let ours = farthest.expect("there are seeds");
            let name = format!("{}: {which} of 10 collectors, the farthest of 5 seeds", method.name());
            let list: Vec<String> = costs.iter().map(|cost| format!("{cost:.0}")).collect();
            let reached = Reached::within(printed, ours, TOLERANCE);
            let row = Row::new("five seeds", name, printed, ours, "reads", reached);
            rows.push(row.noted(format!("by seed: {}", list.join(", "))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::swap::{collect, linux, AREAS_MAX};
    use coldframe_experiment::systems::lobi;

    #[test]
    fn the_systems_numbers_are_those_of_the_slides() {
        let g = golden();
        for (printed, ours) in [
            ("slot_bytes", lobi::SLOT.0),
            ("slots_per_erase_block", lobi::SLOTS_PER_BLOCK.into()),
            ("max_swap_areas", AREAS_MAX as u64),
            ("linux.cluster_slots", linux::CLUSTER.into()),
        ] {
            assert_eq!(g.number(printed), ours as f64, "{printed}");
        }
        assert_eq!(g.numbers::<4>("swap_area_blocks")[3], f64::from(lobi::BLOCKS));
        assert_eq!(g.at("gc").as_array().map(Vec::len), Some(collect::ALL.len()));
        let done = coldframe_device::flash::Operations { reads: 1, programs: 1000, copies: 1, erases: 1 };
        assert_eq!(g.at("cost").as_str(), Some("read_count + 10 * copy_count + 75 * erase_count"));
        assert_eq!(lobi::cost(&done), 86);
    }

    /// 63,505 pages fill 1,985 blocks. An area of 1,024 blocks, less those that stay erased, takes the first of them.
    /// Each further block needs an erase, with any method. An area of 2,048 blocks needs none.
    #[test]
    fn erases_on_the_generated_trace_are_at_least_what_the_pages_need() {
        let input = slides();
        for method in SLIDES.iter().chain(&PRACTICE) {
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
