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
use coldframe_formats::swap::{read, SwapEvent, SwapOp, SwapTrace};
use rayon::prelude::*;

use crate::figure::{Claim, Origin, Paper, Row};
use crate::golden::Golden;

#[cfg(test)]
mod claims;
mod generator;

pub const PAPER: Paper = Paper {
    name: "lobi",
    rows,
    plots: |_| Ok(Vec::new()),
    claims: CLAIMS,
    readme: ["LOBI", "NVRAMOS 2008", "swap as a log on flash"],
    snapshot: include_str!("../../tests/snapshots/papers__lobi.snap"),
};

const CLAIMS: &[Claim] = &[
    ("Linux's cost over LOBI's, generated trace", "factor of two", "generated: Linux to LOBI (8)"),
    ("Linux's cost over LOBI's, trace recorded on x86", "factor of two", "recorded, x86: Linux to LOBI (8)"),
    ("Linux's cost over LOBI's, recorded, rotational disk", "factor of two", "recorded, rotational: Linux to LOBI (8)"),
    (
        "Linux's cost over LOBI's, generated, with swap cache",
        "factor of two",
        "generated, swap cache: Linux to LOBI (8)",
    ),
    ("cost of LOBI, window of 8, recorded on x86", "GC cost, 1024 blocks", "recorded, x86, log block:8"),
    ("cost of LOBI, window of 16, recorded on x86", "GC cost, 1024 blocks", "recorded, x86, log block:16"),
    ("cost of LOBI, window of 32, recorded on x86", "GC cost, 1024 blocks", "recorded, x86, log block:32"),
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

const SEED: u64 = 2008;

/// The collection threshold on the generated trace, in blocks: 3 % of 1024. On recorded traces nothing is fitted, and
/// the user's default applies.
const START: u32 = 31;

/// The origin of costs on the generated trace.
const FITTED: Origin =
    Origin::Fitted("size of a group, its lifetime, the part that returns, and where a collection starts", 5);

/// A method, and the treatment of a window's slots.
#[derive(Clone, Copy, Debug)]
struct Method {
    layout: &'static str,
    read_ahead: &'static str,
    keep: &'static str,
    logs: u32,
}

/// Linux (8) as given, LOBI (8), (16) and (32), and LOBI (8) as the slides' design has it: each process is stored
/// separately. 127 processes share the logs by their numbers, since each log holds an erase block open.
fn methods(linux: &[(&'static str, &'static str)], keep: &'static str) -> Vec<Method> {
    // Linux as the slides have it frees what is touched.
    let linux_keep = if keep == "until-read" { "until-touched" } else { keep };
    let linux = linux.iter().map(|(layout, read_ahead)| Method { layout, read_ahead, keep: linux_keep, logs: 1 });
    let lobi = [("block:8", 1), ("block:16", 1), ("block:32", 1), ("block:8", 32)];
    linux.chain(lobi.map(|(read_ahead, logs)| Method { layout: "log", read_ahead, keep, logs })).collect()
}

/// As the slides have them.
const SLIDES: &[(&str, &str)] = &[("linux", "aligned:8")];

/// On recorded swap-ins, which include the kernel's own read-ahead: Linux reads no further pages.
const REPLAYED: &[(&str, &str)] = &[("linux", "none")];

/// As a user gets them.
const PRACTICE: &[(&str, &str)] = &[("linux-ftl", "aligned:8")];

/// With a recorded kernel's own frees.
const FREED: &[(&str, &str)] = &[("linux", "aligned:8"), ("linux-ftl", "aligned:8")];

impl Method {
    /// Its name in the slides' table of costs.
    fn printed(&self) -> String {
        let window = self.read_ahead.strip_prefix("block:");
        window.map_or("linux_8".into(), |slots| format!("lobi_{slots}"))
    }

    fn name(&self) -> String {
        format!("{} {}{}", self.layout, self.read_ahead, self.suffix())
    }

    fn suffix(&self) -> &'static str {
        if self.logs > 1 {
            ", logs by process"
        } else {
            ""
        }
    }
}

/// The slides' collectors: GR, CB, CATA and CBA with 1 to 4 victims.
fn collectors() -> Vec<String> {
    let with_age = |name| (1..=4).map(move |victims| format!("{name}:{victims}"));
    let plain = ["greedy", "cost-benefit"].map(String::from);
    plain.into_iter().chain(with_age("cost-age-times")).chain(with_age("cost-benefit-age")).collect()
}

/// A trace under a reading.
struct Input {
    name: &'static str,
    trace: SwapTrace,
    methods: Vec<Method>,
    start: Option<u32>,
    /// Why its costs differ from the slides', if they do.
    why: &'static str,
}

const WHY_ROTATIONAL: &str =
    "this trace has 59,930 swap-outs and not 63,505: 112 erases and 8,400 reads less, whatever the method; nothing is \
    fitted to it";

const WHY_X86: &str = "another kernel's trace, and nothing is fitted to it: most slots are kept after a swap-in, of which outs and ins do not tell, so that the area fills \
    and Linux's blocks are copied again and again, while the log frees a window at once";

const WHY_PRACTICE: &str = "a page read ahead keeps its slot until it is touched, so that Linux and LOBI see the same valid slots and copy nearly \
    the same; the slides' factor of two needs the window's slots to be free at once";

const WHY_LOGS: &str = "32 logs; one block of each is open, so that up to 992 of 32768 slots wait for their process, and no journal of a run \
    tells the logs";

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

fn generated(methods: Vec<Method>, name: &'static str, why: &'static str) -> Input {
    Input { name, trace: generator::generate(SEED), methods, start: Some(START), why }
}

fn slides() -> Input {
    generated(methods(SLIDES, "until-read"), "generated", "a swap-in frees its window's slots")
}

fn recorded(traces: &Path, file: &str, name: &'static str, why: &'static str) -> Result<Input, ExperimentError> {
    let trace = outs_and_ins(&read(&traces.join(file))?);
    Ok(Input { name, trace, methods: methods(REPLAYED, "until-read"), start: None, why })
}

fn inputs(traces: &Path) -> Result<Vec<Input>, ExperimentError> {
    let freed = read(&traces.join(ROTATIONAL))?;
    Ok(vec![
        slides(),
        recorded(traces, X86, "recorded, x86", WHY_X86)?,
        recorded(traces, ROTATIONAL, "recorded, rotational", WHY_ROTATIONAL)?,
        generated(methods(PRACTICE, "until-touched"), "generated, swap cache", WHY_PRACTICE),
        Input {
            name: "recorded, kernel's frees",
            trace: freed,
            methods: methods(FREED, "trace"),
            start: None,
            why: WHY_FREED,
        },
    ])
}

fn rows(traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    let golden = golden();
    let mut rows = Vec::new();
    for input in inputs(traces)? {
        progress(input.name);
        cost_rows(&golden, &input, &mut rows)?;
    }
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
    plan.config.logs = method.logs;
    if let Some(start) = input.start {
        plan.config.areas.iter_mut().for_each(|area| (area.start, area.stop) = (start, start));
    }
    outcome(&plan, &input.trace, None)
}

fn under_all(input: &Input, method: &Method) -> Result<Vec<SwapOutcome>, ExperimentError> {
    collectors().par_iter().map(|collector| one(input, BLOCKS, method, collector)).collect()
}

fn least_and_most(outcomes: &[SwapOutcome]) -> (f64, f64) {
    let costs = || outcomes.iter().map(|o| o.found.cost as f64);
    (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max))
}

/// The slides' costs at 1024 blocks, where the trace has outs and ins alone as theirs, and their conclusion.
fn cost_rows(g: &Golden, input: &Input, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let origin = if input.start.is_some() { FITTED } else { Origin::Predicted };
    let compared = input.methods.iter().all(|method| method.layout != "linux-ftl");
    let mut least = Vec::new();
    for method in input.methods.iter().filter(|method| compared || method.printed().ends_with("_8")) {
        let outcomes = under_all(input, method)?;
        let span = least_and_most(&outcomes);
        least.push((method, span.0));
        if compared {
            let [low, high] = g.numbers(&format!("cost_1024_blocks.{}", method.printed()));
            let mut add = |which: &str, printed, ours| {
                let row = format!("{}, {}{which}", input.name, method.name());
                let digit = if low < high { 10_000.0 } else { 1_000.0 };
                let row = Row::new("GC cost, 1024 blocks", row, printed, ours, "reads", origin).to(digit);
                rows.push(row.note(cost_note(input, &outcomes)));
            };
            match low < high {
                true => {
                    add(": least of 10 collectors", low, span.0);
                    add(": most of 10 collectors", high, span.1);
                }
                false => add("", low, span.0),
            }
        }
    }
    let named = |printed| least.iter().filter(move |one| one.0.printed() == printed);
    let linux = named("linux_8").next_back().expect("each input has it").1;
    for (method, cost) in named("lobi_8") {
        let row = format!("{}: Linux to LOBI (8){}", input.name, method.suffix());
        let row = Row::new("factor of two", row, g.number("factor_about"), linux / cost, "times", origin).to(0.01);
        rows.push(row.note(if method.logs > 1 { WHY_LOGS } else { input.why }));
    }
    Ok(())
}

fn cost_note(input: &Input, outcomes: &[SwapOutcome]) -> String {
    let mean = |of: fn(&SwapOutcome) -> u64| outcomes.iter().map(of).sum::<u64>() / outcomes.len() as u64;
    let most = |of: fn(&SwapOutcome) -> u64| outcomes.iter().map(of).max().unwrap_or(0);
    let mut note = format!(
        "{}; mean over the collectors: {} reads, {} copies, {} erases; at most {} of 32768 slots hold a page",
        input.why,
        mean(|o| o.found.counts.reads),
        mean(|o| o.found.counts.copies),
        mean(|o| o.found.counts.erases),
        most(|o| o.found.counts.valid_slots_max),
    );
    let held = most(|o| o.found.counts.swap_cache_pages_max);
    if held > 0 {
        note += &format!("; at most {held} pages wait in RAM that were read ahead and not touched, which the slides' cost does not count");
    }
    let refused = most(|o| o.found.counts.refused);
    if refused > 0 {
        note += &format!("; {refused} swap-outs found the area full");
    }
    note
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
        let done = coldframe_boards::flash::Operations { reads: 1, programs: 1000, copies: 1, erases: 1 };
        assert_eq!(g.at("cost").as_str(), Some("read_count + 10 * copy_count + 75 * erase_count"));
        assert_eq!(lobi::cost(&done), 86);
    }

    /// 63,505 pages fill 1,985 blocks. An area of 1,024 blocks, less those that stay erased, takes the first of them.
    /// Each further block needs an erase, with any method. An area of 2,048 blocks needs none.
    #[test]
    fn erases_on_the_generated_trace_are_at_least_what_the_pages_need() {
        let input = slides();
        for method in input.methods.iter().chain(&methods(PRACTICE, "until-touched")) {
            for collector in ["greedy", "cost-benefit-age:4"] {
                let o = one(&input, 1024, method, collector).unwrap();
                assert!(o.found.counts.erases >= 63_505 / 32 - 1024, "{method:?}: {}", o.found.counts.erases);
                assert_eq!((o.found.counts.programs, o.found.counts.refused), (63_505, 0), "{method:?}");
                assert!(o.found.counts.reads >= 37_916 - o.found.counts.read_ahead_hits, "{method:?}");
                assert_eq!(o.found.counts.demand_reads + o.found.counts.read_ahead_hits, 37_916, "{method:?}");
            }
            assert_eq!(one(&input, 2048, method, "greedy").unwrap().found.counts.erases, 0, "{method:?}");
        }
    }
}
