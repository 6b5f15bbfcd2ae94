//! Mixes of recorded programs under heavy memory load: fixed activation moments and the adaptive one, and the renewal
//! of the list.
//!
//! RAM is two fixed shares of the pages that each mix touches, so no mix has its own size. The adaptive moment's rule
//! is learnt on one half of the mixes ([`LEARN`]) and judged on the other half ([`JUDGE`]). The rule was made before
//! any result of the judging half was known.

use std::path::Path;

use crate::systems::sap;
use coldframe_core::Bytes;
use coldframe_sim::tasks::{Activation, Program, Rule, TaskSpec, TasksResult};
use rayon::prelude::*;

use super::experiments::{self, kernel, Kernel, KERNELS};
use super::{change, holds, row};
use crate::error::ReportError;
use crate::papers::{Reached, Row};

/// A program of a mix: its trace, the number of its tasks, and the number of rounds of each task, chosen so that all
/// tasks of a mix run for about as long.
type Part = (&'static str, u32, u32);

/// The mixes for learning; the rule's form was found on them.
const LEARN: [(&str, &[Part]); 7] = [
    ("4 databases", &[("sqlite", 4, 1)]),
    ("4 shops", &[("shop", 4, 1)]),
    ("5 games", &[("game", 5, 6)]),
    ("2 waves, 4 pictures", &[("fft", 2, 8), ("cjpeg", 2, 8), ("djpeg", 2, 24)]),
    ("code: 3 chess, 3 render, 3 bzip2", &[("chess", 3, 4), ("render", 3, 4), ("bzip2", 3, 4)]),
    ("2 databases, 2 shops, 2 games", &[("sqlite", 2, 1), ("shop", 2, 1), ("game", 2, 3)]),
    ("2 workers, 3 games", &[("worker", 2, 6), ("game", 3, 3)]),
];

/// The mixes for judging.
const JUDGE: [(&str, &[Part]); 7] = [
    ("3 databases, 3 games", &[("sqlite", 3, 1), ("game", 3, 3)]),
    ("6 shops", &[("shop", 6, 1)]),
    ("2 chess, 3 databases", &[("chess", 2, 4), ("sqlite", 3, 1)]),
    ("2 waves, 2 shops, 2 pictures", &[("fft", 2, 8), ("shop", 2, 1), ("djpeg", 2, 24)]),
    ("5 pictures", &[("cjpeg", 5, 8)]),
    ("3 workers, 2 databases", &[("worker", 3, 4), ("sqlite", 2, 1)]),
    ("code: 2 chess, 2 bzip2; 2 games", &[("chess", 2, 4), ("bzip2", 2, 4), ("game", 2, 3)]),
];

/// The candidate rules.
fn rules() -> impl Iterator<Item = Rule> {
    let loss = |ahead_percent, earliest_percent| [2, 4].map(|loss| Rule { ahead_percent, loss, earliest_percent });
    [200, 400, 800].into_iter().flat_map(move |ahead| [0, 50].into_iter().flat_map(move |first| loss(ahead, first)))
}

/// RAM in percent of the pages that a mix touches.
const RAM_PERCENT: [u64; 2] = [25, 40];

/// A smaller change of the whole mix's time counts as none. A mere shift of slices (a prefetcher at xi = 1, which
/// prefetches nothing) changes the time of these mixes by up to 0.4 %.
const NOISE_PERCENT: f64 = 0.5;

/// A difference of major faults within this many percentage points counts as none.
const NOISE_POINTS: f64 = 1.0;

const ADAPTIVE: Kernel = kernel("adaptive", Activation::Adaptive(Rule::LEARNT));

/// A mix with one size of RAM.
struct Load {
    name: String,
    specs: Vec<TaskSpec>,
    ram: Bytes,
}

impl Load {
    fn run(&self, kernel: &Kernel) -> Result<TasksResult, ReportError> {
        experiments::run(kernel, self.ram, &self.specs)
    }
}

/// The results of the kernels on one load: vanilla, prefetch-75, prefetch-50, adaptive.
struct Found {
    name: String,
    results: Vec<TasksResult>,
}

impl Found {
    fn major(&self, kernel: usize) -> f64 {
        change(self.results[0].major(), self.results[kernel].major())
    }

    fn time(&self, kernel: usize) -> f64 {
        change(self.results[0].time.0, self.results[kernel].time.0)
    }
}

/// All rows.
pub(super) fn rows(traces: &Path, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let learning = loads(traces, &LEARN)?;
    learnt_row(&learning, rows)?;
    let loads = loads(traces, &JUDGE)?;
    let kernels = [&KERNELS[..], &[ADAPTIVE]].concat();
    let found = |load: &Load| {
        let results = kernels.iter().map(|kernel| load.run(kernel)).collect::<Result<_, _>>()?;
        Ok::<_, ReportError>(Found { name: load.name.clone(), results })
    };
    let found = loads.par_iter().map(found).collect::<Result<Vec<_>, _>>()?;
    for mix in &found {
        for (i, kernel) in kernels.iter().enumerate().skip(1) {
            rows.push(mix_row(mix, i, kernel.name));
        }
    }
    verdict_rows(&found, rows);
    hindsight_row(&loads, &found, rows)?;
    renewal_rows(&learning, rows)
}

/// The harm of a rule on a load: how far it misses the requirements, in percentage points of major faults and tenths of
/// a percent of time, and how much worse it is than the better fixed moment.
fn harm(load: &Load, fixed: &[TasksResult], rule: Rule) -> Result<f64, ReportError> {
    let ours = load.run(&kernel("adaptive", Activation::Adaptive(rule)))?;
    let major = |result: &TasksResult| change(fixed[0].major(), result.major());
    let over = major(&ours) - major(&fixed[1]).min(major(&fixed[2]));
    let longer = change(fixed[0].time.0, ours.time.0) - NOISE_PERCENT;
    Ok(over + 10.0 * (over - NOISE_POINTS).max(0.0) + 100.0 * longer.max(0.0))
}

/// The rule with the least harm on the learning mixes, and whether it is the one in use.
fn learnt_row(loads: &[Load], rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let fixed = |load: &Load| KERNELS.iter().map(|kernel| load.run(kernel)).collect::<Result<Vec<_>, _>>();
    let fixed = loads.par_iter().map(fixed).collect::<Result<Vec<_>, _>>()?;
    let of = |rule: Rule| {
        let harms = loads.par_iter().zip(&fixed).filter(|(_, fixed)| fixed[0].major() > 0);
        Ok((rule, harms.map(|(load, fixed)| harm(load, fixed, rule)).collect::<Result<Vec<_>, _>>()?.iter().sum()))
    };
    let harms = rules().map(of).collect::<Result<Vec<(Rule, f64)>, ReportError>>()?;
    let (best, least) = harms.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are rules");
    let all: Vec<String> = harms.iter().map(|(rule, harm)| format!("{}: {harm:.0}", shown(*rule))).collect();
    let name = format!("least harm on {} loads to learn on: {}", loads.len(), shown(best));
    let note = format!("harm by rule: {}", all.join("; "));
    rows.push(row("adaptive", name, None, least, "", holds(best == Rule::LEARNT), &note));
    Ok(())
}

fn shown(rule: Rule) -> String {
    format!("ahead {} %, loss x {}, from {} %", rule.ahead_percent, rule.loss, rule.earliest_percent)
}

fn loads(traces: &Path, mixes: &[(&str, &[Part])]) -> Result<Vec<Load>, ReportError> {
    let mut loads = Vec::new();
    for (name, parts) in mixes {
        let (mut specs, mut pages) = (Vec::new(), 0);
        for (trace, copies, rounds) in *parts {
            let program: Program = experiments::program(&traces.join(format!("{trace}.parquet")))?;
            for _ in 0..*copies {
                specs.push(experiments::task(&program, pages, Some(*rounds)));
                pages += program.pages;
            }
        }
        for percent in RAM_PERCENT {
            let ram = Bytes(u64::from(pages) * percent / 100 * sap::PAGE.0);
            loads.push(Load { name: format!("{name}, RAM {percent} %"), specs: specs.clone(), ram });
        }
    }
    Ok(loads)
}

fn mix_row(mix: &Found, i: usize, kernel: &str) -> Row {
    let p = mix.results[i].prefetched();
    let note = format!(
        "of {}; time {:+.1} % of {:.1} s; {} loads, {} used, {} needed after they had left, {} faults on pages that they pushed out",
        mix.results[0].major(),
        mix.time(i),
        mix.results[0].time.0 as f64 / 1e12,
        p.loads,
        p.used,
        p.early,
        p.displaced
    );
    let note = match (mix.time(i) > NOISE_PERCENT, mix.major(i) > NOISE_POINTS) {
        (_, true) => format!(
            "harm: {} pages came too early and {} faults were on pages pushed out, which outweighs what was spared; {note}",
            p.early, p.displaced
        ),
        (true, false) => format!(
            "harm: fewer faults, and longer, since each demand load may wait for a prefetch on the device; {note}"
        ),
        (false, false) => note,
    };
    let name = format!("{}: {kernel}: major faults", mix.name);
    row(
        "mixes",
        name,
        None,
        mix.major(i),
        "%",
        holds(mix.time(i) <= NOISE_PERCENT && mix.major(i) <= NOISE_POINTS),
        &note,
    )
}

/// Moments besides the paper's two, for [`hindsight_row`].
const MOMENTS: [f64; 3] = [0.0, 0.25, 0.625];

/// How many mixes leave room for an adaptive moment: on each mix, the best of all moments and rules is taken after the
/// fact. No rule that decides before the run can know which one that is.
fn hindsight_row(loads: &[Load], found: &[Found], rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let moments = MOMENTS.map(|xi| kernel("a moment", Activation::Tick(xi)));
    let kernels: Vec<Kernel> = moments
        .into_iter()
        .chain(
            rules()
                .filter(|rule| rule.loss == Rule::LEARNT.loss)
                .map(|rule| kernel("a rule", Activation::Adaptive(rule))),
        )
        .collect();
    let faulting: Vec<(&Load, &Found)> =
        loads.iter().zip(found).filter(|(_, mix)| mix.results[0].major() > 0).collect();
    let least = |(load, mix): &(&Load, &Found)| {
        let majors =
            kernels.iter().map(|kernel| load.run(kernel).map(|result| change(mix.results[0].major(), result.major())));
        majors.collect::<Result<Vec<f64>, _>>().map(|all| all.into_iter().fold(f64::INFINITY, f64::min))
    };
    let best = faulting.par_iter().map(least).collect::<Result<Vec<f64>, ReportError>>()?;
    let gains = |((_, mix), best): (&(&Load, &Found), f64)| (mix.name.clone(), mix.major(1).min(mix.major(2)) - best);
    let room: Vec<(String, f64)> =
        faulting.iter().zip(best).map(gains).filter(|(_, gain)| *gain > NOISE_POINTS).collect();
    let shown: Vec<String> = room.iter().map(|(name, gain)| format!("{name} by {gain:.1}")).collect();
    let name = format!(
        "of {} mixes that fault: the best of {} moments and rules, known after the run, is better than both fixed ones",
        faulting.len(),
        kernels.len()
    );
    let note = if shown.is_empty() { "none".to_string() } else { shown.join("; ") };
    rows.push(row("adaptive", name, None, room.len() as f64, "", Reached::NoClaim, &note));
    Ok(())
}

/// The requirements for an adaptive moment: no harm on any mix, and better than both fixed moments on a third of the
/// mixes that fault at all.
fn verdict_rows(found: &[Found], rows: &mut Vec<Row>) {
    let faulting: Vec<&Found> = found.iter().filter(|mix| mix.results[0].major() > 0).collect();
    let mut count = |what: &str, is: &dyn Fn(&Found) -> bool, good: Option<&dyn Fn(usize, usize) -> bool>| {
        let names: Vec<&str> = faulting.iter().filter(|mix| is(mix)).map(|mix| mix.name.as_str()).collect();
        let note = if names.is_empty() { "none".to_string() } else { names.join("; ") };
        let name = format!("of {} mixes that fault: {what}", faulting.len());
        let reached = good.map_or(Reached::NoClaim, |good| holds(good(names.len(), faulting.len())));
        rows.push(row("adaptive", name, None, names.len() as f64, "", reached, &note));
    };
    let (none, third) = (|n: usize, _: usize| n == 0, |n: usize, all: usize| 3 * n >= all);
    let adaptive = 3;
    let best = |mix: &Found| mix.major(1).min(mix.major(2));
    count(
        &format!("over {NOISE_PERCENT} % longer than vanilla"),
        &|mix| mix.time(adaptive) > NOISE_PERCENT,
        Some(&none),
    );
    count("more major faults than vanilla by over a point", &|mix| mix.major(adaptive) > NOISE_POINTS, Some(&none));
    count(
        "fewer than both fixed ones by over a point",
        &|mix| mix.major(adaptive) < best(mix) - NOISE_POINTS,
        Some(&third),
    );
    count(
        "within a point of the better fixed one",
        &|mix| (mix.major(adaptive) - best(mix)).abs() <= NOISE_POINTS,
        None,
    );
    count(
        "more than the better fixed one by over a point",
        &|mix| mix.major(adaptive) > best(mix) + NOISE_POINTS,
        Some(&none),
    );
}

/// The renewal of the list, over the sum of all mixes.
fn renewal_rows(loads: &[Load], rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let sum = |kernel: &Kernel| {
        let majors = loads.par_iter().map(|load| Ok(load.run(kernel)?.major()));
        majors.collect::<Result<Vec<u64>, ReportError>>()
    };
    let vanilla = sum(&KERNELS[0])?;
    for (idle_max, name) in [(Some(1), "1"), (Some(2), "2"), (Some(4), "4"), (Some(8), "8"), (None, "never")] {
        let mut kernel = KERNELS[1];
        kernel.prefetching.idle_max = idle_max;
        let majors = sum(&kernel)?;
        // The mean over the mixes, all with equal weight.
        let mean = vanilla.iter().zip(&majors).map(|(of, ours)| change(*of, *ours)).sum::<f64>() / loads.len() as f64;
        let more = vanilla.iter().zip(&majors).filter(|(of, ours)| ours > of).count();
        let note = format!("mean over the mixes; {more} of {} mixes have more than vanilla", loads.len());
        let name = format!("prefetch-75, pages leave after idle time units: {name}");
        rows.push(row("renewal", name, None, mean, "%", holds(mean < 0.0), &note));
    }
    Ok(())
}
