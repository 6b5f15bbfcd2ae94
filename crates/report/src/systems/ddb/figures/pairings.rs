//! The handler with every policy, in both orders of search and load, at half of the working set: the best
//! combination.
//!
//! DDB's equations have no price for a search. Here a search costs as much as on SWL's board; otherwise the order of
//! search and load would not matter.

use crate::systems::{ddb, swl};
use coldframe_core::policy::{ParamKind, PolicySpec, ALL};
use coldframe_core::Ps;
use coldframe_device::quantity::show_time;

use super::experiments::{energy, frames, percent, settings, Program};
use super::{shape_row, Row, NO_CLAIM};
use crate::error::ReportError;
use crate::experiment;
use crate::result::RunResult;
use crate::settings::{Settings, Time};

const HANDLERS: [(&str, &str); 4] = [
    ("sequential", "plain"),
    ("parallel", "plain, search while load"),
    ("delayed-dual-buffering-search-first", "delayed"),
    (ddb::DELAYED, "delayed, search while load"),
];

/// Pairings with a row each; the best is searched among all.
const SHOWN: [&str; 4] = ["clock", "pa-clock", "fifo-sc", "pa-fifo-sc"];

/// Every policy, with the papers' parameters where it needs some.
fn policies() -> Vec<(&'static PolicySpec, String)> {
    let given = |kind: ParamKind| match kind {
        ParamKind::Count { default: None, .. } => Some(swl::BUDGET.to_string()),
        ParamKind::Frames { default_percent: None } => Some("50%".into()),
        _ => None,
    };
    let text = |spec: &&'static PolicySpec| {
        let parts: Vec<_> = spec.params.iter().filter_map(|p| Some(format!("{}={}", p.name, given(p.kind)?))).collect();
        let colon = if parts.is_empty() { "" } else { ":" };
        (*spec, format!("{}{colon}{}", spec.name, parts.join(",")))
    };
    ALL.iter().map(text).collect()
}

fn searching(policy: &str) -> Time {
    let p = swl::prices(policy);
    let some = |time: Ps| Some(show_time(time));
    Time {
        get_freeframe: some(p.get_freeframe),
        walk_step: some(p.walk_step),
        delayed_downgrade: some(p.delayed_downgrade),
        false_fault_reference: some(p.false_fault_reference),
        false_fault_rest: some(p.false_fault_rest),
        ..Time::default()
    }
}

struct Pairing {
    policy: &'static str,
    text: String,
    handler: &'static str,
    result: RunResult,
}

impl Pairing {
    fn name(&self) -> String {
        format!("{}, {}", self.text, self.handler)
    }

    fn time(&self) -> f64 {
        self.result.time().map_or(f64::NAN, |t| t.0 as f64)
    }

    fn energy(&self) -> f64 {
        energy(&self.result)
    }
}

fn run(program: &Program) -> Result<Vec<Pairing>, ReportError> {
    let half = frames(program.working_set, 5);
    let (mut all, mut names) = (Vec::new(), Vec::new());
    for (spec, text) in policies() {
        for (handler, shown) in HANDLERS {
            let base = settings(handler, half, program.accesses);
            all.push(Settings { policy: Some(text.clone()), time: searching(spec.name), ..base });
            names.push((spec.name, text.clone(), shown));
        }
    }
    let results = experiment::run(&program.path, &all, &mut |_| {})?;
    let pairing = |((policy, text, handler), result)| Pairing { policy, text, handler, result };
    Ok(names.into_iter().zip(results).map(pairing).collect())
}

/// The pairings of a program.
pub fn rows(program: &Program, rows: &mut Vec<Row>) -> Result<(), ReportError> {
    let pairings = run(program)?;
    let base = pairings.iter().find(|p| p.policy == "clock").expect("clock is a policy");
    let note = "percent of Clock without the scheme; a search costs what it does on SWL's board";
    let mut add = |row: String, ours: f64| {
        let row = format!("{}: {row}", program.name);
        rows.push(shape_row("pairings", row, None, ours, "%", NO_CLAIM, note.into()));
    };
    for pairing in pairings.iter().filter(|p| SHOWN.contains(&p.policy)) {
        add(format!("{}, time", pairing.name()), percent(pairing.time(), base.time()));
        if pairing.handler == "delayed, search while load" {
            add(format!("{}, delayed, energy", pairing.text), percent(pairing.energy(), base.energy()));
        }
    }
    let best =
        |of: fn(&Pairing) -> f64| pairings.iter().min_by(|a, b| of(a).total_cmp(&of(b))).expect("there are some");
    let (time, energy) = (best(Pairing::time), best(Pairing::energy));
    let n = pairings.len();
    add(format!("best time of {n} pairings: {}", time.name()), percent(time.time(), base.time()));
    add(format!("least energy of {n} pairings: {}", energy.name()), percent(energy.energy(), base.energy()));
    Ok(())
}
