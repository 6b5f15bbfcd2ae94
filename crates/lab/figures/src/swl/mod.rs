//! SWL: figures 6 to 9 by micro-experiments on the engine, table 4 and figures 10 to 12 on recorded programs of the
//! same kind.

use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Ps, Stage};
use coldframe_drivers::front_end::plain::Plain;
use coldframe_drivers::front_end::Spaces;
use coldframe_drivers::run::IdlePrices;
use coldframe_drivers::{Run, Stream};
use coldframe_experiment::result::RunResult;
use coldframe_experiment::settings::{Settings, Sweep};
use coldframe_experiment::string;
use coldframe_experiment::systems::swl;
use coldframe_experiment::ExperimentError;
use coldframe_lane::{DeviceTimes, LaneConfig, LaneResult, PageRef};
use coldframe_show::plot::{Plot, Series};

use crate::figure::{Claim, Origin, Paper, Row, Wanted};
use crate::golden::Golden;

#[cfg(test)]
mod claims;
mod curve;

pub const PAPER: Paper = Paper {
    name: "swl",
    rows,
    plots,
    claims: CLAIMS,
    readme: ["SWL", "LCTES 2007", "search for a free frame while the page loads"],
    snapshot: include_str!("../../tests/snapshots/papers__swl.snap"),
};

const CLAIMS: &[Claim] = &[
    ("search during the load makes a fault shorter by", "figure 7", "gain at walk 13"),
    ("frames that a search may look at for nothing", "figure 7", "parallel, constant until walk"),
    ("a ray tracer (paper: eon) fetches faster by up to", "figure 11", "eon | render: most reduction"),
    ("delayed downgrades make a false fault shorter by", "figure 9", "gain of PA-FIFO-SC"),
    ("a fault with Clock that looks at two frames takes", "figure 6", "Clock, sequential"),
    (
        "eon, from table 4's misses, fetches faster by up to",
        "figure 11",
        "eon from its curve, all downgrades that wait: most reduction",
    ),
    (
        "crafty, from table 4's misses, by up to",
        "figure 10",
        "crafty from its curve, all downgrades that wait: most reduction",
    ),
    ("PA-Clock's misses, 64 KB, eon from its curve", "table 4", "eon from its curve, 64 KB, PA-Clock"),
];

/// The paper's traces and ours of the same kind.
pub const TRACES: [(&str, &str); 3] =
    [("crafty", "chess.parquet"), ("eon", "render.parquet"), ("bzip2", "bzip2.parquet")];

/// Page cache sizes of table 4 and figures 10 to 12.
const SIZES: [&str; 4] = ["64", "128", "256", "512"];

/// Frames of the valid list at every size: "two FIFO lists of fixed size" (section 3.2). Fitted to figure 12, whose
/// range is the narrowest.
const VALID: u32 = 17;

const FITTED: Origin = Origin::Fitted("frames of the valid list", 2);

/// Frames of the micro-experiments: enough for a walk of 60.
const FRAMES: u32 = 64;

fn golden() -> Golden {
    Golden::read(include_str!("golden.toml"))
}

fn rows(traces: &Path, wanted: Wanted, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    let golden = golden();
    let mut rows = Vec::new();
    latency_rows(&golden, &mut rows);
    for (name, file) in TRACES {
        progress(file);
        if wanted.has(|row| row.starts_with(&format!("{name} |"))) {
            trace_rows(&golden, name, &traces.join(file), &mut rows)?;
        }
        if wanted.has(|row| row.starts_with(&format!("{name} from"))) {
            curve::rows(&golden, name, &mut rows);
        }
    }
    Ok(rows)
}

/// The engine with SWL's prices, driven by chosen page references.
struct Bench {
    run: Run,
}

impl Bench {
    fn new(policy: &str, handler: &str) -> Bench {
        let policy = PolicyChoice::parse(policy).expect("our own text");
        let (prices, handler) = (swl::prices(policy.spec.name), handler::find(handler).expect("our own text"));
        let device = DeviceTimes { load: swl::LOAD_STOPOVER, program: None };
        let config = LaneConfig::new(policy, handler, FRAMES as usize, prices, device);
        let front_end = Box::new(Plain::new(Stream::Both, 10, Spaces::default(), None));
        let mut run = Run::new(front_end, IdlePrices::default(), 4 * FRAMES as usize);
        run.add_lanes(&[config]).expect("our own configuration");
        Bench { run }
    }

    fn touch(&mut self, pages: impl IntoIterator<Item = u32>) -> &mut Bench {
        let references: Vec<_> = pages.into_iter().map(|page| PageRef::new(page, false, false)).collect();
        self.run.references(&references, Ps::ZERO);
        self
    }

    fn result(&self) -> LaneResult {
        self.run.lane_results().remove(0)
    }

    /// Latency and stages of the fault that touching `page` causes.
    fn fault(&mut self, page: u32) -> (f64, [f64; 6], u64) {
        let before = self.result();
        self.touch([page]);
        let after = self.result();
        let us = |a: Ps, b: Ps| (a - b).0 as f64 / 1e6;
        let stages = Stage::ALL.map(|s| us(after.stages[s as usize], before.stages[s as usize]));
        (us(after.paging, before.paging), stages, after.counts.walk_sum.0 - before.counts.walk_sum.0)
    }
}

/// Latency of one true fault whose search examines `walk` frames: all frames are full, the bits of the first `walk - 1`
/// are set.
fn clock_fault(policy: &str, handler: &str, walk: u32) -> f64 {
    let mut bench = Bench::new(policy, handler);
    bench.touch(0..FRAMES).touch(0..walk - 1);
    let (latency, _, walked) = bench.fault(FRAMES);
    debug_assert!(policy.starts_with("pa-") || walked == u64::from(walk));
    latency
}

/// Figures 7 and 8 as curves: latency of one true fault against the walk count, on the engine.
fn walk_plot(g: &Golden) -> Plot {
    let at = |name: &str| g.number(name);
    let printed = |name: &str, points: &[(f64, f64)]| Series { name: name.into(), points: points.to_vec() };
    let curve = |name: &str, policy, handler| Series {
        name: name.into(),
        points: (1..=60).map(|walk| (f64::from(walk), clock_fault(policy, handler, walk))).collect(),
    };
    Plot {
        title: "Figures 7 and 8: latency of a true fault by walk count; the paper prints the ends".into(),
        x: "frames examined".into(),
        y: "us".into(),
        series: vec![
            curve("Clock, sequential", CLOCK, "sequential"),
            curve("Clock, parallel", CLOCK, "parallel"),
            curve("PA-Clock, parallel", PA_CLOCK, "parallel"),
            printed(
                "paper, sequential",
                &[(1.0, at("fig7.sequential_us.walk_1")), (60.0, at("fig7.sequential_us.walk_60"))],
            ),
            printed("paper, parallel", &[(1.0, at("fig8.clock_us.from")), (59.0, at("fig8.clock_us.to"))]),
            printed("paper, PA-Clock", &[(1.0, at("fig8.pa_clock_us")), (60.0, at("fig8.pa_clock_us"))]),
        ],
        log_x: false,
        log_y: false,
    }
}

const CLOCK: &str = "clock:insert-bit=clear";

/// Its search notices in the 14th step that the load is done, of which 13 are hidden.
const PA_CLOCK: &str = "pa-clock:budget=14,insert-bit=clear";

fn fifo_sc_fault(handler: &str) -> f64 {
    Bench::new("fifo-sc:valid=50%", handler).touch(0..FRAMES).fault(FRAMES).0
}

/// Latency of a false fault and of its reference step: page 0 is on the invalid list.
fn false_fault(policy: &str) -> (f64, f64) {
    let (latency, stages, _) = Bench::new(policy, "parallel").touch(0..FRAMES).fault(0);
    (latency, stages[Stage::UpdateMMU as usize])
}

fn latency_rows(g: &Golden, rows: &mut Vec<Row>) {
    let mut add = |item: &str, row: &str, printed: &str, ours: f64, origin, note: &str| {
        let unit = match printed.rsplit('_').next() {
            Some("percent") => "%",
            Some("walk") => "steps",
            _ => "us",
        };
        rows.push(Row::new(item, row, g.number(printed), ours, unit, origin).note(note));
    };
    let input = "a price of a stage is derived from this figure";
    let fig6 = "one fault on the engine, walk 2, with prices from figures 7 and 8";
    let sequential = |walk| clock_fault(CLOCK, "sequential", walk);
    let parallel = |walk| clock_fault(CLOCK, "parallel", walk);
    let (put_in, follows) = (Origin::PrintedInput, Origin::Identity);
    add("figure 6", "Clock, sequential", "fig6.clock_sequential_us", sequential(2), follows, fig6);
    add("figure 6", "Clock, parallel", "fig6.clock_parallel_us", parallel(2), follows, fig6);
    let fifo_sc = fifo_sc_fault;
    add("figure 6", "FIFO-SC, sequential", "fig6.fifo_sc_sequential_us", fifo_sc("sequential"), put_in, input);
    add("figure 6", "FIFO-SC, parallel", "fig6.fifo_sc_parallel_us", fifo_sc("parallel"), put_in, input);
    add("figure 7", "sequential, walk 1", "fig7.sequential_us.walk_1", sequential(1), put_in, input);
    add("figure 7", "sequential, walk 60", "fig7.sequential_us.walk_60", sequential(60), put_in, input);
    let constant = (1..=60).take_while(|w| (parallel(*w) - parallel(1)).abs() < 1e-9).count();
    let printed = "fig7.parallel_constant_until_walk";
    let until = "of 14 steps (20.22 us) the load hides all but the end of the last";
    add("figure 7", "parallel, constant until walk", printed, constant as f64, follows, until);
    let gain = |after: f64, before: f64| (1.0 - after / before) * 100.0;
    let at_13 = gain(parallel(13), sequential(13));
    add("figure 7", "gain at walk 13", "fig7.gain_at_walk_13_percent", at_13, follows, "printed as \"roughly 20%\"");
    add("figure 8", "Clock, walk 1", "fig8.clock_us.from", parallel(1), put_in, input);
    let last = "the text prints the range and not the last walk; figure 7's walk of 60 would give 117.93 us and make \
                the 13 a 14";
    add("figure 8", "Clock, walk 59", "fig8.clock_us.to", parallel(59), follows, last);
    let longest = (1..=60).map(|walk| clock_fault(PA_CLOCK, "parallel", walk)).fold(0.0, f64::max);
    add("figure 8", "PA-Clock, every walk", "fig8.pa_clock_us", longest, put_in, input);
    let (plain, plain_step) = false_fault("fifo-sc:valid=50%");
    let (delayed, delayed_step) = false_fault("pa-fifo-sc:valid=50%");
    add("figure 9", "FIFO-SC", "fig9.fifo_sc_us", plain, put_in, input);
    add("figure 9", "PA-FIFO-SC", "fig9.pa_fifo_sc_us", delayed, put_in, input);
    add("figure 9", "reference step, FIFO-SC", "fig9.reference_step_us.fifo_sc", plain_step, put_in, input);
    add("figure 9", "reference step, PA-FIFO-SC", "fig9.reference_step_us.pa_fifo_sc", delayed_step, put_in, input);
    let gained = "of the two latencies of this figure; a gain of Clock from 87 and 77 us is 11.49 %";
    let clock = gain(parallel(2), sequential(2));
    let fifo_sc = gain(fifo_sc("parallel"), fifo_sc("sequential"));
    add("figure 6", "gain, Clock", "fig6.clock_gain_percent", clock, follows, gained);
    add("figure 6", "gain, FIFO-SC", "fig6.fifo_sc_gain_percent", fifo_sc, follows, gained);
    add("figure 9", "gain of PA-FIFO-SC", "fig9.gain_percent", gain(delayed, plain), follows, gained);
}

fn swl_settings() -> Settings {
    Settings { system: Some("swl".into()), ..Settings::default() }
}

fn trace_rows(g: &Golden, name: &str, path: &Path, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    // A fault has as many delayed downgrades as the load hides.
    let fifo_sc = format!("fifo-sc:valid={VALID}");
    let pa_fifo_sc = format!("pa-fifo-sc:valid={VALID},max-downgrades={}", swl::HIDDEN_DOWNGRADES);
    // How far apart the arms are is not printed: as many frames as the load hides.
    const TWO_ARMS: &str = "two-handed-clock:spread=13,budget=13";
    let literal = format!("pa-fifo-sc:valid={VALID}");
    let policies =
        ["clock", "pa-clock:budget=13", &fifo_sc, &pa_fifo_sc, TWO_ARMS, &literal].map(String::from).to_vec();
    let sweep = Sweep { policies, rams: SIZES.map(|kb| format!("{kb}KiB")).to_vec(), ..Sweep::default() };
    let results = string::run(path, &sweep.expand(&swl_settings())?, &mut |_| {})?;
    let file = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    hit_ratio_row(g, name, file, &results[0], rows);
    let each: Vec<_> = results.chunks(SIZES.len()).collect();
    table4_rows(g, name, file, &each, rows);
    figure_rows(g, name, file, &each, rows);
    Ok(())
}

fn hit_ratio_row(g: &Golden, name: &str, file: &str, result: &RunResult, rows: &mut Vec<Row>) {
    let (f, paper) = (result.front_end, g.number(&format!("table3.icache_hit_ratio.{name}")));
    let ours = 1.0 - f.icache_misses as f64 / f.icache_lookups.max(1) as f64;
    let row = Row::new("table 3", format!("{name} | {file}: I-cache hit ratio"), paper, ours, "", Origin::Predicted);
    let note = format!("another program of the same kind; {} instructions", f.instructions);
    rows.push(row.to(1e-6).note(note));
}

fn table4_rows(g: &Golden, name: &str, file: &str, results: &[&[RunResult]], rows: &mut Vec<Row>) {
    // Where the program fits there are cold misses only, and nothing to compare.
    let evicts = |result: &RunResult| result.lane().is_some_and(|lane| lane.counts.evictions > 0);
    let n = results[0].iter().take_while(|clock| evicts(clock)).count();
    let fits = SIZES.get(n).map_or(String::new(), |kb| {
        format!("; {file}'s {} pages fit from {kb} KB on, so that there is nothing to compare", results[0][0].pages)
    });
    let note = format!("another program of the same kind{fits}");
    for (i, kb) in SIZES.iter().take(n).enumerate() {
        let printed: [f64; 2] = g.numbers(&format!("table4.{name}.{kb}"));
        let ratio = |policy: usize| results[policy][i].miss_ratio();
        for (policy, called, paper) in
            [(0, "Clock", printed[0]), (1, "PA-Clock", printed[1]), (4, "PA-Clock, two arms", printed[1])]
        {
            let row = format!("{name} | {file}, {kb} KB, {called}");
            // How far apart the arms are is not printed.
            let origin = if policy == 4 { Origin::Reading } else { Origin::Predicted };
            let row = Row::new("table 4", row, paper, ratio(policy), "misses/instr.", origin).to(1e-6);
            let row = if policy > 0 { row.compared_with("Clock's ratio", ratio(0)) } else { row };
            rows.push(row.note(&note));
        }
    }
}

fn figure_rows(g: &Golden, name: &str, file: &str, results: &[&[RunResult]], rows: &mut Vec<Row>) {
    let time = |r: &RunResult| r.time_per_instruction().unwrap_or(f64::NAN);
    let valid = "two lists of fixed size; the valid list's is not printed: ";
    // Section 3.3 delays all downgrades that wait to the next true fault; that at most as many are done as the load
    // hides is ours.
    let (ours, literal) = if name == "bzip2" { (FITTED, CARRIED) } else { (Origin::Predicted, Origin::Predicted) };
    for (of, delay, origin) in [(3, "", ours), (5, ", all downgrades that wait", literal)] {
        let reductions = results[2].iter().zip(results[of]).map(|(plain, pa)| (1.0 - time(pa) / time(plain)) * 100.0);
        let reductions: Vec<f64> = reductions.collect();
        let by_size = SIZES.iter().zip(&reductions).map(|(kb, percent)| format!("{percent:.1} % at {kb} KB"));
        let by_size: Vec<_> = by_size.collect();
        let note = format!("{valid}{VALID} frames; by size: {}", by_size.join(", "));
        let least = reductions.iter().copied().fold(f64::INFINITY, f64::min);
        let most = reductions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let [printed_least, printed_most] = g.numbers(&format!("fig10_12.{name}"));
        for (which, paper, ours) in [("least", printed_least, least), ("most", printed_most, most)] {
            let row = format!("{name} | {file}{delay}: {which} reduction");
            rows.push(Row::new(item(name), row, paper, ours, "%", origin).to(0.1).note(&note));
        }
    }
}

/// The figure with a program's fetch times.
fn item(name: &str) -> &'static str {
    match name {
        "crafty" => "figure 10",
        "eon" => "figure 11",
        _ => "figure 12",
    }
}

/// Figures 7 and 8, and 10 to 12 as the rows have them: our programs', by size, between the two printed ends.
fn plots(traces: &Path) -> Result<Vec<Plot>, ExperimentError> {
    let golden = golden();
    let mut plots = vec![walk_plot(&golden)];
    for (name, file) in TRACES {
        let mut rows = Vec::new();
        trace_rows(&golden, name, &traces.join(file), &mut rows)?;
        curve::rows(&golden, name, &mut rows);
        let kb = || SIZES.iter().map(|kb| kb.parse().expect("a number"));
        let [least, most]: [f64; 2] = golden.numbers(&format!("fig10_12.{name}"));
        let level = |called: &str, value| Series { name: called.into(), points: kb().map(|x| (x, value)).collect() };
        let ours = rows.iter().filter(|row| row.item == item(name) && row.row.ends_with("least reduction"));
        let ours = ours.map(|row| {
            let called = row.row.trim_end_matches(": least reduction").replace("all downgrades that wait", "all wait");
            Series { name: called, points: kb().zip(by_size(&row.note)).collect() }
        });
        plots.push(Plot {
            title: format!("F{}: PA-FIFO-SC fetches faster, {name}; the paper prints two ends", &item(name)[1..]),
            x: "KiB of page cache".into(),
            y: "% of FIFO-SC's time".into(),
            series: [level("paper, least", least), level("paper, most", most)].into_iter().chain(ours).collect(),
            log_x: true,
            log_y: false,
        });
    }
    Ok(plots)
}

/// The values by size at the end of a row's note.
fn by_size(note: &str) -> Vec<f64> {
    let values = note.rsplit_once("by size: ").map_or("", |(_, values)| values);
    values.split(", ").filter_map(|one| one.split(' ').next()?.parse().ok()).collect()
}

/// On our bzip2, with at most 3 downgrades.
const CARRIED: Origin = Origin::CarriedOver("17 frames of the valid list, fitted to figure 12 on bzip2.parquet");

#[cfg(test)]
mod tests {
    use super::*;

    /// What is put in comes out; what follows from it does, but for figure 8's end and for gains that the paper takes
    /// from rounded latencies.
    #[test]
    fn the_printed_latencies_come_out_of_the_engine() {
        let mut rows = Vec::new();
        latency_rows(&golden(), &mut rows);
        let near = |row: &&Row| row.reached.unwrap_or(row.distance_percent.unwrap().abs() < 1e-4);
        let missed: Vec<_> = rows.iter().filter(|row| !near(row)).map(|row| row.row.as_str()).collect();
        assert_eq!(missed, ["Clock, walk 59", "gain, Clock", "gain, FIFO-SC"]);
    }
}
