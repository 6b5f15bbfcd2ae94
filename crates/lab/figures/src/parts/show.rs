//! Studies as a table and as bars.

use coldframe_core::{Bytes, Pj, Ps};
use coldframe_experiment::sim_result::Backed;
use coldframe_plots::tasks_table::count_of;
use coldframe_sheet::quantity::{human_count, human_energy, human_size, human_time, show_bytes};
use coldframe_show::table::styled;
use coldframe_show::text::folded;

use super::bars::Bars;
use super::{all, Combination, Study};

/// Columns of the text around a table.
const WIDTH: usize = 78;

pub const HEADINGS: [&str; 6] = ["part", "fault time", "change", "reads", "energy", "change"];

/// A line for no part, for each part alone, and for the best set if it has several parts; the least fault time first.
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
    [
        text(&one.parts),
        human_time(Ps(one.fault_time_ps)),
        percent(one.fault_time_ps, none.fault_time_ps),
        human_count(one.device_reads),
        one.energy_pj.map_or("-".into(), |energy| human_energy(Pj(energy))),
        one.energy_pj.zip(none.energy_pj).map_or("-".into(), |(energy, of)| percent(energy, of)),
    ]
}

fn text(parts: &[String]) -> String {
    match parts {
        [] => "none".into(),
        [one] => all().find(|part| part.name == one).map_or("", |part| part.text).into(),
        several if several.join("+").len() <= 20 => several.join("+"),
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

/// All of it for a person, in 80 columns.
pub fn table(studies: &[Study]) -> String {
    let one = |study: &Study| {
        let rows = rows(study).into_iter().map(|row| row.to_vec()).collect();
        let words: String = words(study).iter().map(|sentence| folded(sentence, WIDTH) + "\n").collect();
        format!("{}\n{}\n{}\n{words}", head(study), folded(&facts(study), WIDTH), styled(&HEADINGS, rows, 1))
    };
    studies.iter().map(one).collect::<Vec<_>>().join("\n")
}

pub fn markdown(studies: &[Study]) -> String {
    let one = |study: &Study| {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rows: String = rows(study).iter().map(|row| line(row)).collect();
        let words: String = words(study).iter().map(|sentence| format!("- {sentence}\n")).collect();
        let headings = line(&HEADINGS.map(String::from)) + "|---|--:|--:|--:|--:|--:|\n";
        format!("## {}\n\n{}\n\n{headings}{rows}\n{words}", head(study), facts(study))
    };
    studies.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn head(study: &Study) -> String {
    format!("{}: {}", study.trace, count_of(study.tasks))
}

/// How large it is, and on which machine it was tried.
pub fn facts(study: &Study) -> String {
    let moves = if study.dma { "the device moves pages by itself (DMA)" } else { "the processor moves pages" };
    format!(
        "{} pages of {}, {} of them written. {} of memory for each part, the mean of {} sizes from 90 to 110 % of \
         it. {}; {moves}.",
        human_count(study.pages as u64),
        show_bytes(Bytes(study.page_bytes)),
        human_count(study.written as u64),
        human_size(study.ram_bytes),
        study.frames.len(),
        study.device
    )
}

/// Text for what the table does not show: the parts of the best set and what each of them brings to it, the impossible
/// sets, and the parts that had no effect.
pub fn words(study: &Study) -> Vec<String> {
    let none = study.none();
    let alone: Vec<&Combination> = study.combinations.iter().filter(|one| one.parts.len() == 1).collect();
    let mut sentences = vec![FAULT_TIME.into()];
    match study.best() {
        Some(best) if best.fault_time_ps >= none.fault_time_ps => {
            sentences.push("No part, and no set of them, is faster.".into())
        }
        Some(best) if best.parts.len() == 1 => {
            sentences.push(format!("No set of parts is faster than {}.", best.parts[0]))
        }
        Some(best) => {
            let longer = |part: &String| {
                let rest = study.best_without(part)?;
                Some(format!("without {part} {}", percent(rest.fault_time_ps, best.fault_time_ps)))
            };
            let longer: Vec<String> = best.parts.iter().filter_map(longer).collect();
            sentences.push(format!("Together: {}; {}.", best.parts.join(", "), longer.join(", ")));
        }
        None => {}
    }
    for one in &alone {
        let (swap, frames) = (&one.config.swap, one.config.settings.frames.unwrap_or_default());
        if let Some(Backed { device, .. }) = &swap.backed {
            let (part, ram) = (&one.parts[0], frames * study.page_bytes);
            let area = human_size(study.ram_bytes.saturating_sub(ram));
            let empty = if one.dirty_evictions == 0 { ", which stays empty" } else { "" };
            sentences
                .push(format!("Equal bytes: {part} has {} of RAM and {area} of {device}{empty}.", human_size(ram)));
        }
        if let Some(why) = one.idle {
            sentences.push(format!("{} alone changes nothing: {why}.", one.parts[0]));
        }
    }
    sentences.extend(study.excluded.iter().map(|one| format!("Not {}: {}.", one.parts.join(" with "), one.why)));
    let sizes = |one: &&Combination| {
        let shorter = one.fault_times_ps.iter().zip(&none.fault_times_ps).filter(|(ours, of)| ours < of).count();
        format!("{} {shorter}", one.parts[0])
    };
    let sizes: Vec<String> = alone.iter().map(sizes).collect();
    sentences.push(format!("Faster than none at so many of the {} sizes: {}.", study.frames.len(), sizes.join(", ")));
    for one in &alone {
        if let Some(standby) = one.energy_terms_pj.get("area_standby").filter(|standby| **standby > 0) {
            sentences.push(format!(
                "Of {}'s energy {} is its chip's standby while the program runs.",
                one.parts[0],
                human_energy(Pj(*standby))
            ));
        }
    }
    sentences.extend(study.no_energy.iter().map(|why| format!("No energy: {why}.")));
    sentences
}

const FAULT_TIME: &str =
    "Fault time is all time not spent on references; it can fall while faults do not. Reads are pages that the \
     device loads.";

/// Fault time and energy of each part alone and of the best set, in percent of the run without any part: two charts, a
/// group for each trace. A part that cannot be tried has no bar.
pub fn bars(studies: &[Study]) -> Vec<Bars> {
    let members: Vec<_> = all().filter(|part| studies.iter().any(|study| study.of(&[part.name]).is_some())).collect();
    let names: Vec<String> = members.iter().map(|part| part.text.into()).chain(["best of all sets".into()]).collect();
    let chart = |title: &str, of: fn(&Combination) -> u64| {
        let group = |study: &Study| {
            let value =
                |one: Option<&Combination>| one.map(|one| 100.0 * of(one) as f64 / of(study.none()).max(1) as f64);
            let alone = members.iter().map(|part| value(study.of(&[part.name])));
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
