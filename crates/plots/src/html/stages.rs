//! Where the time of a fault goes, as SWL's figure 6 shows it: the mean of each stage, all runs on one scale.

use std::fmt::Write;

use coldframe_core::Ps;
use coldframe_sheet::quantity::fine_time;

use crate::html::run::Run;
use coldframe_show::html::words::{folded, note};
use coldframe_show::plot::{escape, COLOURS};

const SHOWN: usize = 40;

/// Stages by the paper's names.
type Means = [(&'static str, f64); 6];

/// The mean of each stage of a fault of any kind, in picoseconds; `None` without faults.
fn means(run: &Run<'_>) -> Option<Means> {
    let string = run.string()?;
    let (stages, faults) = (string.time_ps?.stages.named(), string.counts.faults());
    (faults > 0).then(|| stages.map(|(name, time)| (name, time as f64 / faults as f64)))
}

/// The section; empty where no run has stages.
pub fn stages(runs: &[Run<'_>]) -> String {
    let all: Vec<_> = runs.iter().filter_map(|run| Some((run, means(run)?))).collect();
    let most = all.iter().map(|(_, means)| sum(means)).fold(0.0, f64::max);
    let alike = all.len() > 1 && all.iter().all(|(_, means)| shown(means) == shown(&all[0].1));
    let rows: String = match alike {
        true => row(("", format!("all {} runs", all.len())), &all[0].1, most),
        false => all.iter().take(SHOWN).map(|(run, means)| row((&run.at(), run.title()), means, most)).collect(),
    };
    if rows.is_empty() {
        return rows;
    }
    let mut label =
        "Means over all faults, false ones too. What a stage does beside a load in flight is the load's time."
            .to_string();
    if all.len() > SHOWN && !alike {
        let _ = write!(label, " {SHOWN} of {} runs.", all.len());
    }
    folded("Where the time of a fault goes", &format!("{}{rows}{}", legend(&all[0].1), note(&label)))
}

fn sum(means: &Means) -> f64 {
    means.iter().map(|(_, mean)| mean).sum()
}

fn legend(stages: &Means) -> String {
    let key = |(i, (name, _)): (usize, &(&str, f64))| {
        format!("<span class=\"key\"><i style=\"background:{}\"></i>{name}</span>", COLOURS[i])
    };
    format!("<p class=\"legend\">{}</p>", stages.iter().enumerate().map(key).collect::<String>())
}

fn shown(means: &Means) -> Vec<String> {
    means.iter().map(|(_, mean)| fine_time(Ps(mean.round() as u64))).collect()
}

fn row((at, title): (&str, String), means: &Means, most: f64) -> String {
    let (mut bar, mut numbers) = (String::new(), String::new());
    for (i, (name, mean)) in means.iter().enumerate() {
        let shown = fine_time(Ps(mean.round() as u64));
        let width = 100.0 * mean / most.max(1.0);
        let _ = write!(bar, "<i style=\"width:{width:.2}%;background:{}\" title=\"{name}: {shown}\"></i>", COLOURS[i]);
        let _ = write!(numbers, "<span>{name} {shown}</span> ");
    }
    format!(
        "<div class=\"strip\"{}><b>{}</b> {}<div class=\"bar\">{bar}</div><p class=\"numbers\">{numbers}</p></div>",
        at,
        escape(&title),
        fine_time(Ps(sum(means).round() as u64)),
    )
}
