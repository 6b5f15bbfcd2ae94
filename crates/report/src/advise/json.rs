//! The answer for programs.

use serde_json::{json, Value};

use crate::advise::cost::Range;
use crate::advise::{Advice, Candidate};
use crate::result::{RunResult, SCHEMA_VERSION};

/// The JSON object of an answer.
pub fn json(advice: &Advice) -> Value {
    let s = &advice.search;
    let regions: Vec<Value> = advice
        .regions
        .iter()
        .map(|r| json!({ "name": r.name, "faults": r.faults, "time_ps": r.time.0, "share": r.share }))
        .collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "kind": "advice",
        "version": env!("CARGO_PKG_VERSION"),
        "trace": advice.trace.json(None),
        "limits": advice.limits.json(),
        "met": advice.best.is_some(),
        "footprint_bytes": advice.footprint.0,
        "best": advice.best.as_ref().map(candidate),
        "next_smaller": advice.below.as_ref().map(candidate),
        "binds": advice.binds,
        "front": advice.front.iter().map(candidate).collect::<Vec<_>>(),
        "regions": regions,
        "search": {
            "families": s.families, "configurations": s.configurations, "cached": s.cached, "exhaustive": s.rungs.is_empty(),
            "rungs": s.rungs.iter().map(|(rows, families)| json!({ "rows": rows, "families": families })).collect::<Vec<_>>(),
            "opt_bound_bytes": s.bound.as_ref().ok().map(|b| b.ram.0), "no_bound": s.bound.as_ref().err(),
        },
        "curves": advice.curves.iter().map(|family| curve(family)).chain(opt(advice)).collect::<Vec<_>>(),
        "run": advice.run.as_ref().map(RunResult::json),
        "assumptions": advice.assumptions,
    })
}

/// A family over the sizes: `[ram_bytes, true_faults, most percent of slowdown]` for each.
fn curve(family: &[Candidate]) -> Value {
    let point =
        |c: &Candidate| json!([c.point.ram().0, c.point.true_faults, c.cost.slowdown.as_ref().ok().map(|r| r.high)]);
    json!({
        "policy": family[0].point.setting("policy"), "name": family[0].point.family(),
        "points": family.iter().map(point).collect::<Vec<_>>(),
    })
}

/// OPT at the sizes that the bound needed.
fn opt(advice: &Advice) -> Option<Value> {
    let faults = &advice.search.bound.as_ref().ok()?.faults;
    let points: Vec<Value> = faults.iter().map(|(ram, faults)| json!([ram.0, faults, null])).collect();
    (!points.is_empty()).then(|| json!({ "policy": "opt", "name": "opt", "points": points }))
}

fn candidate(c: &Candidate) -> Value {
    let (cost, point) = (&c.cost, &c.point);
    let life = cost.life.as_ref().map(|life| life.map(range)).map_err(Clone::clone);
    let unknown = [cost.slowdown.as_ref().err(), cost.energy.as_ref().err(), cost.life.as_ref().err()];
    let unknown: Vec<&String> = unknown.into_iter().flatten().collect();
    json!({
        "ram_bytes": point.ram().0,
        "frames": point.frames,
        "config": point.config,
        "true_faults": point.true_faults,
        "false_faults": point.false_faults,
        "page_loads": point.loads,
        "page_writes": point.writes,
        "own_time_ps": point.own.map(|t| t.0),
        "paging_ps": point.paging.0,
        "slowdown_percent": cost.slowdown.as_ref().ok().copied().map(range),
        "p99_ps": cost.p99.as_ref().ok().map(|t| t.0),
        "longest_ps": point.longest.0,
        "energy_joules": cost.energy.as_ref().ok().copied().map(range),
        "life_years": life.as_ref().ok(),
        "not_priced": unknown,
        "misses": c.misses,
    })
}

fn range(range: Range) -> Value {
    json!({ "low": range.low, "high": range.high })
}
