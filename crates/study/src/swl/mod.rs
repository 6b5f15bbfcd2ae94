//! SWL: figures 6 to 9 by micro-experiments on the engine, table 4 and figures 10 to 12 on recorded programs of the
//! same kind.

use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Caps, Ps, Stage};
use coldframe_experiment::resolve::{Engine, Plan};
use coldframe_experiment::result::RunResult;
use coldframe_experiment::settings::{Settings, Sweep};
use coldframe_experiment::string;
use coldframe_experiment::systems::swl;
use coldframe_experiment::ExperimentError;
use coldframe_show::plot::{Plot, Series};
use coldframe_sim::front_end::plain::Plain;
use coldframe_sim::front_end::Spaces;
use coldframe_sim::run::IdlePrices;
use coldframe_sim::{DeviceTimes, LaneBelow, LaneConfig, LaneResult, PageRef, Run, Stream};

use crate::figure::{Claim, Paper, Reached, Row};
use crate::golden::Golden;

#[cfg(test)]
mod claims;

/// The paper.
pub const PAPER: Paper = Paper { name: "swl", rows, plots: |_| Ok(vec![walk_plot()]), claims: CLAIMS };

const CLAIMS: &[Claim] = &[
    ("search beside the load: a fault takes less, %", "figure 7", "gain at walk 13"),
    ("PA-Clock: every fault, us", "figure 8", "PA-Clock, every walk"),
    ("Clock: a fault after a walk of 60, us", "figure 8", "Clock, walk 60"),
    ("PA-FIFO-SC: a false fault, us", "figure 9", "PA-FIFO-SC"),
    (
        "instruction fetches faster by up to, eon, %",
        "figure 11",
        "eon | render, valid=50%, at most 4 downgrades a fault: most reduction over 64 to 512 KB",
    ),
    ("PA-Clock misses as Clock does, eon, 64 KB", "table 4", "eon | render, 64 KB, PA-Clock"),
];

/// The paper's traces and ours of the same kind.
pub const TRACES: [(&str, &str); 3] =
    [("crafty", "chess.parquet"), ("eon", "render.parquet"), ("bzip2", "bzip2.parquet")];

/// Page cache sizes of table 4 and figures 10 to 12.
const SIZES: [&str; 4] = ["64", "128", "256", "512"];

/// Capacity of the valid list. The paper does not print its own, and figures 10 to 12 depend on it.
const VALID: [&str; 3] = ["25%", "50%", "75%"];

/// Frames of the micro-experiments: enough for a walk of 60.
const FRAMES: u32 = 64;

/// A printed latency in microseconds has at most two digits after the point; further digits are rounding.
const TOLERANCE: f64 = 0.006;

fn golden() -> Golden {
    Golden::read(include_str!("golden.toml"))
}

fn rows(traces: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, ExperimentError> {
    let golden = golden();
    let mut rows = Vec::new();
    latency_rows(&golden, &mut rows);
    for (name, file) in TRACES {
        progress(file);
        trace_rows(&golden, name, &traces.join(file), &mut rows)?;
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
        let config = LaneConfig {
            evict_batch: 1,
            prices: swl::prices(policy.spec.name),
            policy,
            handler: handler::find(handler).expect("our own text"),
            frames: FRAMES as usize,
            caps: Caps { reference_bit: true, dirty_bit: true, buffers: 2, direct_read: false, places: false },
            device: DeviceTimes { load: swl::LOAD_STOPOVER, program: None },
            failures: None,
            below: LaneBelow::Homes,
        };
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
pub fn walk_plot() -> Plot {
    let curve = |name: &str, policy, handler| Series {
        name: name.into(),
        points: (1..=60).map(|walk| (f64::from(walk), clock_fault(policy, handler, walk))).collect(),
    };
    Plot {
        title: "Latency of a true fault by walk count (figures 7 and 8, ours)".into(),
        x: "frames examined".into(),
        y: "us".into(),
        series: vec![
            curve("Clock, sequential", CLOCK, "sequential"),
            curve("Clock, parallel", CLOCK, "parallel"),
            curve("PA-Clock, parallel", PA_CLOCK, "parallel"),
        ],
        log_x: false,
        log_y: false,
    }
}

const CLOCK: &str = "clock:insert-bit=clear";
const PA_CLOCK: &str = "pa-clock:budget=13,insert-bit=clear";

fn fifo_sc_fault(handler: &str) -> f64 {
    Bench::new("fifo-sc:valid=50%", handler).touch(0..FRAMES).fault(FRAMES).0
}

/// Latency of a false fault and of its reference step: page 0 is on the invalid list.
fn false_fault(policy: &str) -> (f64, f64) {
    let (latency, stages, _) = Bench::new(policy, "parallel").touch(0..FRAMES).fault(0);
    (latency, stages[Stage::UpdateMMU as usize])
}

fn latency_rows(g: &Golden, rows: &mut Vec<Row>) {
    let mut add = |item: &str, row: &str, printed: &str, ours: f64, unit: &'static str, note: &str| {
        let paper = g.number(printed);
        rows.push(Row::new(item, row, paper, ours, unit, Reached::within(paper, ours, TOLERANCE)).noted(note));
    };
    let calibrated = "the prices are derived from the figures' end points; what lies between is the engine's";
    let fig6 = "one fault on the engine, walk 2";
    add("figure 6", "Clock, sequential", "fig6.clock_sequential_us", clock_fault(CLOCK, "sequential", 2), "us", fig6);
    add("figure 6", "Clock, parallel", "fig6.clock_parallel_us", clock_fault(CLOCK, "parallel", 2), "us", fig6);
    let fifo_sc = "one fault on the engine";
    add("figure 6", "FIFO-SC, sequential", "fig6.fifo_sc_sequential_us", fifo_sc_fault("sequential"), "us", fifo_sc);
    add("figure 6", "FIFO-SC, parallel", "fig6.fifo_sc_parallel_us", fifo_sc_fault("parallel"), "us", fifo_sc);
    let sequential = |walk| clock_fault(CLOCK, "sequential", walk);
    let parallel = |walk| clock_fault(CLOCK, "parallel", walk);
    add("figure 7", "sequential, walk 1", "fig7.sequential_us.walk_1", sequential(1), "us", calibrated);
    add("figure 7", "sequential, walk 60", "fig7.sequential_us.walk_60", sequential(60), "us", calibrated);
    let constant = (1..=60).take_while(|w| (parallel(*w) - parallel(1)).abs() < 1e-9).count();
    add(
        "figure 7",
        "parallel, constant until walk",
        "fig7.parallel_constant_until_walk",
        constant as f64,
        "steps",
        "figure 8's end point makes LoadStopover 20.64 us, which hides 14 steps (20.22 us); the text says 13. \
         Both cannot be met; the budget of PA-Clock is the text's",
    );
    let gain = (1.0 - parallel(13) / sequential(13)) * 100.0;
    add("figure 7", "gain at walk 13", "fig7.gain_at_walk_13_percent", gain, "%", "printed as \"roughly 20%\"");
    add("figure 8", "Clock, walk 1", "fig8.clock_us.from", parallel(1), "us", calibrated);
    add("figure 8", "Clock, walk 60", "fig8.clock_us.to", parallel(60), "us", calibrated);
    let longest = (1..=60).map(|walk| clock_fault(PA_CLOCK, "parallel", walk)).fold(0.0, f64::max);
    let pa = "longest over walks 1 to 60; what the check of the budget itself costs (0.2 us) is not priced";
    add("figure 8", "PA-Clock, every walk", "fig8.pa_clock_us", longest, "us", pa);
    let (plain, plain_step) = false_fault("fifo-sc:valid=50%");
    let (delayed, delayed_step) = false_fault("pa-fifo-sc:valid=50%");
    let fig9 = "one false fault on the engine; the prices are this figure's";
    add("figure 9", "FIFO-SC", "fig9.fifo_sc_us", plain, "us", fig9);
    add("figure 9", "PA-FIFO-SC", "fig9.pa_fifo_sc_us", delayed, "us", fig9);
    add("figure 9", "reference step, FIFO-SC", "fig9.reference_step_us.fifo_sc", plain_step, "us", fig9);
    add("figure 9", "reference step, PA-FIFO-SC", "fig9.reference_step_us.pa_fifo_sc", delayed_step, "us", fig9);
}

fn swl_settings() -> Settings {
    Settings { system: Some("swl".into()), ..Settings::default() }
}

fn sizes() -> Vec<String> {
    SIZES.iter().map(|kb| format!("{kb}KiB")).collect()
}

fn trace_rows(g: &Golden, name: &str, path: &Path, rows: &mut Vec<Row>) -> Result<(), ExperimentError> {
    let policies = ["clock".to_string(), "pa-clock:budget=13".to_string()];
    let sweep = Sweep { policies: policies.to_vec(), rams: sizes(), ..Sweep::default() };
    let mut all = sweep.expand(&swl_settings())?;
    let of_table4 = all.len();
    // For each valid list: FIFO-SC, then PA-FIFO-SC in its three readings.
    for valid in VALID {
        let policies = vec![
            format!("fifo-sc:valid={valid}"),
            format!("pa-fifo-sc:valid={valid}"),
            format!("pa-fifo-sc:valid={valid}"),
            format!("pa-fifo-sc:valid={valid},max-downgrades={}", swl::HIDDEN_DOWNGRADES),
        ];
        let sweep = Sweep { policies, rams: sizes(), ..Sweep::default() };
        all.extend(sweep.expand(&swl_settings())?);
    }
    // The first reading of each list: downgrades are free.
    let free = |i: usize, plan: &mut Plan| match &mut plan.engine {
        Engine::Lane(lane) if i >= of_table4 && (i - of_table4) / SIZES.len() % 4 == 1 => {
            lane.prices.delayed_downgrade = Ps::ZERO;
        }
        _ => {}
    };
    let results = string::run_adjusted(path, &all, &free, &mut |_| {})?;
    let file = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    hit_ratio_row(g, name, file, &results[0], rows);
    table4_rows(g, name, file, &results[..of_table4], rows);
    figure_rows(g, name, file, &results[of_table4..], rows);
    Ok(())
}

fn hit_ratio_row(g: &Golden, name: &str, file: &str, result: &RunResult, rows: &mut Vec<Row>) {
    let (f, paper) = (result.front_end, g.number(&format!("table3.icache_hit_ratio.{name}")));
    let ours = 1.0 - f.icache_misses as f64 / f.icache_lookups.max(1) as f64;
    let row = Row::new("table 3", format!("{name} | {file}: I-cache hit ratio"), paper, ours, "", Reached::NoClaim);
    rows.push(row.noted(format!("another program of the same kind; {} instructions", f.instructions)));
}

fn table4_rows(g: &Golden, name: &str, file: &str, results: &[RunResult], rows: &mut Vec<Row>) {
    let (clock, pa_clock) = results.split_at(SIZES.len());
    let mut before = f64::INFINITY;
    for (i, kb) in SIZES.iter().enumerate() {
        let printed: [f64; 2] = g.numbers(&format!("table4.{name}.{kb}"));
        let ours = [clock[i].miss_ratio(), pa_clock[i].miss_ratio()];
        let change = (ours[1] / ours[0] - 1.0) * 100.0;
        for (j, policy) in ["Clock", "PA-Clock"].into_iter().enumerate() {
            let falls = j == 1 || ours[0] <= before;
            let same = change.abs() <= 5.0 || ours[1] < ours[0];
            let pages = clock[i].lane().is_some_and(|lane| lane.counts.evictions > 0);
            let note = match j {
                _ if !pages => {
                    format!("our program's {} pages fit: cold misses only, nothing to compare", clock[i].pages)
                }
                0 => "shape: falls with the size of the page cache".into(),
                _ => format!(
                    "shape: follows Clock; {change:+.1} % here, {:+.1} % in the paper",
                    (printed[1] / printed[0] - 1.0) * 100.0
                ),
            };
            let reached = Reached::shape_if(pages && falls && same);
            let row = format!("{name} | {file}, {kb} KB, {policy}");
            rows.push(Row::new("table 4", row, printed[j], ours[j], "misses/instr.", reached).noted(note));
        }
        before = ours[0];
    }
}

fn figure_rows(g: &Golden, name: &str, file: &str, results: &[RunResult], rows: &mut Vec<Row>) {
    let item = match name {
        "crafty" => "figure 10",
        "eon" => "figure 11",
        _ => "figure 12",
    };
    let printed: [f64; 2] = g.numbers(&format!("fig10_12.{name}"));
    let time = |r: &RunResult| r.time_per_instruction().unwrap_or(f64::NAN);
    let n = SIZES.len();
    for (valid, results) in VALID.iter().zip(results.chunks(4 * n)) {
        let readings = [
            "literal, downgrades free as printed",
            "literal, downgrades beyond the load charged",
            "at most 4 downgrades a fault",
        ];
        for (k, reading) in readings.into_iter().enumerate() {
            let reductions: Vec<f64> =
                (0..n).map(|i| (1.0 - time(&results[(k + 1) * n + i]) / time(&results[i])) * 100.0).collect();
            let (least, most) = (
                reductions.iter().copied().fold(f64::INFINITY, f64::min),
                reductions.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            );
            for (which, paper, ours) in [("least", printed[0], least), ("most", printed[1], most)] {
                let row = format!("{name} | {file}, valid={valid}, {reading}: {which} reduction over 64 to 512 KB");
                // The paper claims a gain at every size.
                let reached = Reached::shape_if(least >= 0.0 && most > 0.0);
                let note = format!(
                    "by size: {} %; the valid list's capacity is not printed in the paper and decides this figure; \
                     below 0 the longer valid list costs more true faults than shorter false faults save",
                    reductions.iter().map(|r| format!("{r:.1}")).collect::<Vec<_>>().join(", ")
                );
                let row = Row::new(item, row, paper, ours, "%", reached).noted(note);
                rows.push(Row { deviation_percent: None, ..row });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine gives every printed latency within rounding, except the two that contradict figure 8's end point.
    #[test]
    fn the_printed_latencies_come_out_of_the_engine() {
        let mut rows = Vec::new();
        latency_rows(&golden(), &mut rows);
        let missed: Vec<_> = rows.iter().filter(|r| r.reached != Reached::Yes).map(|r| r.row.as_str()).collect();
        assert_eq!(missed, ["parallel, constant until walk"]);
    }

    /// Equations 1 and 2 of section 3.1 on the derived prices, without simulation.
    #[test]
    fn the_derived_prices_give_the_printed_latencies() {
        let golden = golden();
        let latency = |policy: &str, walk: u64, parallel: bool| {
            let (p, load) = (swl::prices(policy), swl::LOAD_STOPOVER);
            let other = p.pre_process + p.trans_host_mem + p.update_mmu + p.post_process;
            let search = p.get_freeframe + p.walk_step * walk;
            (other + if parallel { load.max(search) } else { load + search }).0 as f64 / 1e6
        };
        for (policy, walk, parallel, printed, by) in [
            ("clock", 1, false, "fig7.sequential_us.walk_1", 0.005),
            ("clock", 60, false, "fig7.sequential_us.walk_60", 0.005),
            ("clock", 1, true, "fig8.clock_us.from", 0.005),
            ("clock", 60, true, "fig8.clock_us.to", 0.005),
            ("clock", 2, false, "fig6.clock_sequential_us", 0.05),
            ("fifo-sc", 1, false, "fig6.fifo_sc_sequential_us", 0.05),
            ("fifo-sc", 1, true, "fig6.fifo_sc_parallel_us", 0.05),
        ] {
            let (ours, paper) = (latency(policy, walk, parallel), golden.number(printed));
            assert!((ours - paper).abs() <= by, "{printed}: {ours} is not {paper}");
        }
    }

    #[test]
    fn the_walk_of_the_micro_experiment_is_the_one_asked_for() {
        for walk in [1, 2, 13, 14, 60] {
            let mut bench = Bench::new(CLOCK, "parallel");
            bench.touch(0..FRAMES).touch(0..walk - 1);
            assert_eq!(bench.fault(FRAMES).2, u64::from(walk));
        }
    }
}
