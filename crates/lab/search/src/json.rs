//! The answer as data: `advise --format json` writes it and `report` reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cost::{Cost, Range};
use crate::search::Searched;
use crate::{Advice, Candidate, Limits, Region};
use coldframe_experiment::section;
use coldframe_experiment::sim_result::{InForce, SimResult, Trace, SCHEMA_VERSION};

section! {
    /// The answer.
    Answer(advice: &Advice) {
        /// [`SCHEMA_VERSION`].
        schema_version: u32 = SCHEMA_VERSION;
        /// `advice`.
        kind: String = "advice".into();
        /// Of the program.
        version: String = env!("CARGO_PKG_VERSION").into();
        /// The trace.
        trace: Trace = advice.trace.clone();
        /// The limits asked for.
        limits: LimitsJson = LimitsJson::new(&advice.limits);
        /// Whether a configuration meets them.
        met: bool = advice.best.is_some();
        /// Bytes of all pages that the trace touches.
        footprint_bytes: u64 = advice.footprint.0;
        /// The smallest RAM that meets the limits.
        best: Option<Priced> = advice.best.as_ref().map(Priced::new);
        /// The next smaller RAM.
        next_smaller: Option<Priced> = advice.below.as_ref().map(Priced::new);
        /// The limits that bind, if no RAM meets them.
        binds: Vec<String> = advice.binds.clone();
        /// The least slowdown for each RAM.
        front: Vec<Priced> = advice.front.iter().map(Priced::new).collect();
        /// The regions that cost most under the best configuration.
        regions: Vec<Region> = advice.regions.clone();
        /// How the search was done.
        search: Search = Search::new(&advice.search);
        /// Everything that was tried on the whole trace.
        curves: Vec<Curve> = advice.curves.iter().map(|family| curve(family)).chain(opt(advice)).collect();
        /// The best configuration's run; `None` for several tasks.
        run: Option<SimResult> = advice.run.as_ref().map(SimResult::from);
        /// The assumptions of the answer.
        assumptions: Vec<String> = advice.assumptions.clone();
    }
}

section! {
    /// Limits with their units.
    #[derive(Copy)]
    LimitsJson(limits: &Limits) {
        /// Of slowdown.
        max_slowdown_percent: Option<f64> = limits.slowdown;
        /// Of a fault's 99th percentile.
        max_p99_ps: Option<u64> = limits.p99.map(|t| t.0);
        /// Of the device's life.
        min_life_years: Option<f64> = limits.life;
        /// Of the energy of paging.
        max_energy_pj: Option<u64> = limits.energy.map(|e| e.0);
        /// Of RAM.
        max_ram_bytes: Option<u64> = limits.ram.map(|b| b.0);
    }
}

section! {
    /// A configuration with its price.
    Priced(c: &Candidate) {
        /// RAM.
        ram_bytes: u64 = c.point.ram().0;
        /// Frames.
        frames: usize = c.point.frames;
        /// Every setting in force.
        config: InForce = c.point.config.clone();
        /// Faults that had to load.
        true_faults: u64 = c.point.true_faults;
        /// Faults on pages in RAM.
        false_faults: u64 = c.point.false_faults;
        /// Pages loaded.
        page_loads: u64 = c.point.loads;
        /// Pages written.
        page_writes: u64 = c.point.writes;
        /// The program's own time; `None`: it has no price.
        own_time_ps: Option<u64> = c.point.own.map(|t| t.0);
        /// Time of paging.
        paging_ps: u64 = c.point.paging.0;
        /// Slowdown, if it has a price.
        slowdown_percent: Option<Range> = c.cost.slowdown.as_ref().ok().copied();
        /// 99th percentile of a true fault, if it has a price.
        p99_ps: Option<u64> = c.cost.p99.as_ref().ok().map(|t| t.0);
        /// Longest true fault.
        longest_ps: u64 = c.point.longest.0;
        /// Energy of paging, if it has a price.
        energy_joules: Option<Range> = c.cost.energy.as_ref().ok().copied();
        /// Life of the device, if it has a price and pages are written.
        life_years: Option<Range> = c.cost.life.as_ref().ok().copied().flatten();
        /// The reasons for missing prices.
        not_priced: Vec<String> = not_priced(&c.cost);
        /// The limits it misses.
        misses: Vec<String> = c.misses.clone();
    }
}

section! {
    /// How the search was done.
    Search(s: &Searched) {
        /// Configurations without regard to RAM.
        families: usize = s.families;
        /// Runs.
        configurations: usize = s.configurations;
        /// Whether every family ran over the whole trace.
        exhaustive: bool = s.rounds.is_empty() && s.short.is_none();
        /// Otherwise: the families left after each part of the trace.
        rounds: Vec<Round> =
            s.rounds.iter().map(|(rows, families)| Round { rows: *rows, families: *families }).collect();
        /// If every family was tried on a shortened string instead: its references. The families near the answer, and
        /// the numbers of the answer, come from the whole trace.
        #[serde(default)]
        shortened_references: Option<u64> = s.short.map(|short| short.references);
        /// RAM with which not even OPT meets the slowdown.
        opt_bound_bytes: Option<u64> = s.bound.as_ref().ok().map(|b| b.ram.0);
        /// Why there is no such bound.
        no_bound: Option<String> = s.bound.as_ref().err().cloned();
    }
}

/// Families that were tried on the first rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Rows.
    pub rows: u64,
    /// Families.
    pub families: usize,
}

/// A family over the sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Policy.
    pub policy: String,
    /// Its full name.
    pub name: String,
    /// RAM in bytes, true faults, and the upper end of the slowdown in percent.
    pub points: Vec<(u64, u64, Option<f64>)>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("an answer is plain data")
    }

    pub fn candidates(&self) -> impl Iterator<Item = &Priced> {
        self.best.iter().chain(&self.next_smaller).chain(&self.front)
    }

    /// As JSON without its run, for callers that already have the run.
    pub fn without_run(&self) -> Value {
        let mut all = Answer { run: None, ..self.clone() }.json();
        all.as_object_mut().and_then(|answer| answer.remove("run"));
        all
    }
}

fn curve(family: &[Candidate]) -> Curve {
    let first = &family[0].point;
    let point =
        |c: &Candidate| (c.point.ram().0, c.point.true_faults, c.cost.slowdown.as_ref().ok().map(|range| range.high));
    Curve {
        policy: first.config.settings.policy.clone().unwrap_or_default(),
        name: first.family(),
        points: family.iter().map(point).collect(),
    }
}

/// OPT at the sizes of the grid.
fn opt(advice: &Advice) -> Option<Curve> {
    let faults = &advice.search.bound.as_ref().ok()?.faults;
    let points: Vec<_> = faults.iter().map(|(ram, faults)| (ram.0, *faults, None)).collect();
    (!points.is_empty()).then(|| Curve { policy: "opt".into(), name: "opt".into(), points })
}

fn not_priced(cost: &Cost) -> Vec<String> {
    let unknown = [cost.slowdown.as_ref().err(), cost.energy.as_ref().err(), cost.life.as_ref().err()];
    unknown.into_iter().flatten().cloned().collect()
}
