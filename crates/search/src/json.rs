//! The answer as data: `advise --format json` writes it and `report` reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cost::Range;
use crate::{Advice, Candidate, Limits, Region};
use coldframe_experiment::sim_result::{InForce, SimResult, Trace, SCHEMA_VERSION};

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `advice`.
    pub kind: String,
    /// Of the program.
    pub version: String,
    /// The trace.
    pub trace: Trace,
    /// The limits asked for.
    pub limits: LimitsJson,
    /// Whether a configuration meets them.
    pub met: bool,
    /// Bytes of all pages that the trace touches.
    pub footprint_bytes: u64,
    /// The smallest RAM that meets the limits.
    pub best: Option<Priced>,
    /// The next smaller RAM.
    pub next_smaller: Option<Priced>,
    /// The limits that bind, if no RAM meets them.
    pub binds: Vec<String>,
    /// The least slowdown for each RAM.
    pub front: Vec<Priced>,
    /// The regions that cost most under the best configuration.
    pub regions: Vec<Region>,
    /// How the search was done.
    pub search: Search,
    /// Everything that was tried on the whole trace.
    pub curves: Vec<Curve>,
    /// The best configuration's run; `None` for several tasks.
    pub run: Option<SimResult>,
    /// The assumptions of the answer.
    pub assumptions: Vec<String>,
}

/// Limits with their units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsJson {
    /// Of slowdown.
    pub max_slowdown_percent: Option<f64>,
    /// Of a fault's 99th percentile.
    pub max_p99_ps: Option<u64>,
    /// Of the device's life.
    pub min_life_years: Option<f64>,
    /// Of the energy of paging.
    pub max_energy_pj: Option<u64>,
    /// Of RAM.
    pub max_ram_bytes: Option<u64>,
}

/// A configuration with its price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Priced {
    /// RAM.
    pub ram_bytes: u64,
    /// Frames.
    pub frames: usize,
    /// Every setting in force.
    pub config: InForce,
    /// Faults that had to load.
    pub true_faults: u64,
    /// Faults on pages in RAM.
    pub false_faults: u64,
    /// Pages loaded.
    pub page_loads: u64,
    /// Pages written.
    pub page_writes: u64,
    /// The program's own time; `None`: it has no price.
    pub own_time_ps: Option<u64>,
    /// Time of paging.
    pub paging_ps: u64,
    /// Slowdown, if it has a price.
    pub slowdown_percent: Option<Range>,
    /// 99th percentile of a true fault, if it has a price.
    pub p99_ps: Option<u64>,
    /// Longest true fault.
    pub longest_ps: u64,
    /// Energy of paging, if it has a price.
    pub energy_joules: Option<Range>,
    /// Life of the device, if it has a price and pages are written.
    pub life_years: Option<Range>,
    /// The reasons for missing prices.
    pub not_priced: Vec<String>,
    /// The limits it misses.
    pub misses: Vec<String>,
}

/// How the search was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// Configurations without regard to RAM.
    pub families: usize,
    /// Runs.
    pub configurations: usize,
    /// Whether every family ran over the whole trace.
    pub exhaustive: bool,
    /// Otherwise: the families left after each part of the trace.
    pub rounds: Vec<Round>,
    /// If every family was tried on a shortened string instead: its references. The families near the answer, and the
    /// numbers of the answer, come from the whole trace.
    #[serde(default)]
    pub shortened_references: Option<u64>,
    /// RAM with which not even OPT meets the slowdown.
    pub opt_bound_bytes: Option<u64>,
    /// Why there is no such bound.
    pub no_bound: Option<String>,
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

impl From<&Advice> for Answer {
    fn from(advice: &Advice) -> Answer {
        Answer {
            schema_version: SCHEMA_VERSION,
            kind: "advice".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            trace: advice.trace.clone(),
            limits: (&advice.limits).into(),
            met: advice.best.is_some(),
            footprint_bytes: advice.footprint.0,
            best: advice.best.as_ref().map(Priced::from),
            next_smaller: advice.below.as_ref().map(Priced::from),
            binds: advice.binds.clone(),
            front: advice.front.iter().map(Priced::from).collect(),
            regions: advice.regions.clone(),
            search: search(advice),
            curves: advice.curves.iter().map(|family| curve(family)).chain(opt(advice)).collect(),
            run: advice.run.as_ref().map(SimResult::from),
            assumptions: advice.assumptions.clone(),
        }
    }
}

impl From<&Limits> for LimitsJson {
    fn from(limits: &Limits) -> LimitsJson {
        LimitsJson {
            max_slowdown_percent: limits.slowdown,
            max_p99_ps: limits.p99.map(|t| t.0),
            min_life_years: limits.life,
            max_energy_pj: limits.energy.map(|e| e.0),
            max_ram_bytes: limits.ram.map(|b| b.0),
        }
    }
}

fn search(advice: &Advice) -> Search {
    let s = &advice.search;
    Search {
        families: s.families,
        configurations: s.configurations,
        exhaustive: s.rounds.is_empty() && s.short.is_none(),
        rounds: s.rounds.iter().map(|(rows, families)| Round { rows: *rows, families: *families }).collect(),
        shortened_references: s.short.map(|short| short.references),
        opt_bound_bytes: s.bound.as_ref().ok().map(|b| b.ram.0),
        no_bound: s.bound.as_ref().err().cloned(),
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

impl From<&Candidate> for Priced {
    fn from(c: &Candidate) -> Priced {
        let (cost, point) = (&c.cost, &c.point);
        let unknown = [cost.slowdown.as_ref().err(), cost.energy.as_ref().err(), cost.life.as_ref().err()];
        Priced {
            ram_bytes: point.ram().0,
            frames: point.frames,
            config: point.config.clone(),
            true_faults: point.true_faults,
            false_faults: point.false_faults,
            page_loads: point.loads,
            page_writes: point.writes,
            own_time_ps: point.own.map(|t| t.0),
            paging_ps: point.paging.0,
            slowdown_percent: cost.slowdown.as_ref().ok().copied(),
            p99_ps: cost.p99.as_ref().ok().map(|t| t.0),
            longest_ps: point.longest.0,
            energy_joules: cost.energy.as_ref().ok().copied(),
            life_years: cost.life.as_ref().ok().copied().flatten(),
            not_priced: unknown.into_iter().flatten().cloned().collect(),
            misses: c.misses.clone(),
        }
    }
}
