//! Studies as a table and as bars.

use coldframe_core::{Bytes, Pj, Ps};
use coldframe_device::quantity::{human_count, human_time, show_bytes};
use coldframe_show::table::{folded, styled};
use coldframe_show::tasks_table::count_of;

use super::bars::Bars;
use super::{all, Combination, Study};

/// Columns of the text around a table.
const WIDTH: usize = 78;

/// Headings of [`rows`].
pub const HEADINGS: [&str; 6] = ["part", "faults", "change", "energy", "change", "without"];

/// A line for no part, for each part alone, and for the best set if it has several parts; the least fault time first.
/// `without`: how much longer the best set's fault time becomes without the part.
pub fn rows(study: &Study) -> Vec<[String; 6]> {
    shown(study).into_iter().map(|one| row(study, one)).collect()
}

/// The combinations of [`rows`], in their order.
pub fn shown(study: &Study) -> Vec<&Combination> {
    let best = study.best();
    let singles = study.combinations.iter().filter(|one| one.parts.len() < 2);
    let mut shown: Vec<&Combination> = singles.chain(best.filter(|best| best.parts.len() > 1)).collect();
    shown.sort_by_key(|one| one.fault_time_ps);
    shown
}

fn row(study: &Study, one: &Combination) -> [String; 6] {
    let none = study.none();
    let without = match (one.parts.as_slice(), study.best()) {
        ([part], Some(best)) if best.parts.contains(part) => study.best_without(part).map(|rest| (rest, best)),
        _ => None,
    };
    [
        text(&one.parts),
        human_time(Ps(one.fault_time_ps)),
        percent(one.fault_time_ps, none.fault_time_ps),
        one.energy_pj.map_or("-".into(), |energy| human_energy(Pj(energy))),
        one.energy_pj.zip(none.energy_pj).map_or("-".into(), |(energy, of)| percent(energy, of)),
        without.map_or(String::new(), |(rest, best)| percent(rest.fault_time_ps, best.fault_time_ps)),
    ]
}

/// The name of a set.
fn text(parts: &[String]) -> String {
    match parts {
        [] => "none".into(),
        [one] => all().iter().find(|(system, _)| system.name == one).map_or("", |(_, part)| part.text).into(),
        several => format!("together: {} parts", several.len()),
    }
}

/// By how much `ours` is more or less than `of`.
fn percent(ours: u64, of: u64) -> String {
    match of {
        0 => "-".into(),
        _ => format!("{:+.1} %", 100.0 * (ours as f64 / of as f64 - 1.0)),
    }
}

/// An energy with three digits and its unit.
fn human_energy(energy: Pj) -> String {
    let pj = energy.0 as f64;
    let (value, unit) = match energy.0 {
        0 => return "0".into(),
        1..=999_999 => (pj / 1e3, "nJ"),
        1_000_000..=999_999_999 => (pj / 1e6, "uJ"),
        1_000_000_000..=999_999_999_999 => (pj / 1e9, "mJ"),
        _ => (pj / 1e12, "J"),
    };
    format!("{value:.*} {unit}", if value >= 100.0 { 0 } else { 2 })
}

/// All of it for a person, in 80 columns.
pub fn table(studies: &[Study]) -> String {
    studies.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// How large it is, and on which machine it was tried.
pub fn facts(study: &Study) -> String {
    format!(
        "{} pages of {}, {} of them written; {} of RAM, the mean of {} sizes from 90 to 110 % of it; {}.",
        human_count(study.pages as u64),
        show_bytes(Bytes(study.page_bytes)),
        human_count(study.written as u64),
        show_bytes(Bytes(study.ram_bytes)),
        study.frames.len(),
        study.device
    )
}

fn one(study: &Study) -> String {
    let tasks = count_of(study.tasks);
    let mut out = format!("{}: {tasks}\n{}\n", study.trace, folded(&facts(study), WIDTH));
    let rows = rows(study).into_iter().map(|row| row.to_vec()).collect();
    out += &format!("{}\n", styled(&HEADINGS, rows, 1));
    for said in words(study) {
        out += &(folded(&said, WIDTH) + "\n");
    }
    out
}

/// Text for what the table does not show: the parts of the best set, the impossible sets, and the parts that had no
/// effect.
pub fn words(study: &Study) -> Vec<String> {
    let mut said = Vec::new();
    let none = study.none();
    match study.best() {
        Some(best) if best.fault_time_ps >= none.fault_time_ps => {
            said.push("No part, and no set of them, is faster.".into())
        }
        Some(best) if best.parts.len() == 1 => said.push(format!("No set of parts is faster than {}.", best.parts[0])),
        Some(best) => said.push(format!("Together: {}.", best.parts.join(", "))),
        None => {}
    }
    for one in &study.excluded {
        said.push(format!("Not {}: {}.", one.parts.join(" with "), one.why));
    }
    for one in study.combinations.iter().filter(|one| one.parts.len() == 1) {
        if (one.fault_time_ps, one.device_reads) == (none.fault_time_ps, none.device_reads) {
            said.push(format!("{} alone changes nothing: {}.", one.parts[0], idle(one, none)));
        }
    }
    let sizes = |one: &Combination| {
        let shorter = one.fault_times_ps.iter().zip(&none.fault_times_ps).filter(|(ours, of)| ours < of).count();
        format!("{} {shorter}", one.parts.join("+"))
    };
    let alone: Vec<String> = study.combinations.iter().filter(|one| one.parts.len() == 1).map(sizes).collect();
    said.push(format!("Faster than none at so many of the {} sizes: {}.", study.frames.len(), alone.join(", ")));
    for one in study.combinations.iter().filter(|one| one.parts.len() == 1) {
        if let Some(standby) = one.energy_terms_pj.get("area_standby").filter(|standby| **standby > 0) {
            said.push(format!(
                "Of {}'s energy {} is its chip's standby while the program runs.",
                one.parts[0],
                human_energy(Pj(*standby))
            ));
        }
    }
    said.extend(study.no_energy.iter().map(|why| format!("No energy: {why}.")));
    said
}

/// Why a part that is there did nothing.
fn idle(one: &Combination, none: &Combination) -> &'static str {
    let collects = |one: &Combination| ["copies", "erases"].iter().any(|term| one.energy_terms_pj.contains_key(*term));
    match one.dirty_evictions {
        0 => "no page that leaves RAM was written to, so that the swap area stays empty",
        _ if !collects(one) && !collects(none) => "the swap area never filled, so that no block was erased",
        _ if one.energy_pj == none.energy_pj => {
            "its blocks were erased as often and nothing was copied, with or without it"
        }
        _ => "it moves pages within the device only, beside the tasks",
    }
}

/// Fault time and energy of each part alone and of the best set, in percent of the run without any part: two charts, a
/// group for each trace. Impossible sets are shown as 100.
pub fn bars(studies: &[Study]) -> Vec<Bars> {
    let members = all();
    let names: Vec<String> =
        members.iter().map(|(_, part)| part.text.to_string()).chain(["best of all sets".into()]).collect();
    let chart = |title: &str, of: fn(&Combination) -> u64| {
        let group = |study: &Study| {
            let value = |one: Option<&Combination>| {
                one.map_or(100.0, |one| 100.0 * of(one) as f64 / of(study.none()).max(1) as f64)
            };
            let alone = members.iter().map(|(system, _)| value(study.of(&[system.name])));
            (short(&study.trace), alone.chain([value(study.best())]).collect())
        };
        let measure = "percent of that without parts".to_string();
        Bars { title: title.into(), measure, names: names.clone(), groups: studies.iter().map(group).collect() }
    };
    let mut charts = vec![chart("Fault time", |one| one.fault_time_ps)];
    if studies.iter().all(|study| study.no_energy.is_none()) {
        charts.push(chart("Energy of the devices that hold the pages", |one| one.energy_pj.unwrap_or_default()));
    }
    charts
}

/// A file's name without folder and suffix.
fn short(trace: &str) -> String {
    std::path::Path::new(trace).file_stem().map_or_else(|| trace.into(), |stem| stem.to_string_lossy().into_owned())
}
