//! Where the time of a fault goes, as SWL's figure 6 shows it: the mean of each stage, all runs on one scale.

use std::fmt::Write;

use coldframe_core::Ps;

use crate::html::run::Run;
use crate::html::words::{note, section};
use crate::plot::{escape, COLOURS};
use crate::table::human_time;

/// Runs shown.
const SHOWN: usize = 40;
/// The stages in their order, as the JSON and as the paper names them.
const STAGES: [(&str, &str); 6] = [
    ("pre_process", "PreProcess"),
    ("get_freeframe", "GetFreeframe"),
    ("load_stopover", "LoadStopover"),
    ("trans_host_mem", "TransHostMem"),
    ("update_mmu", "UpdateMMU"),
    ("post_process", "PostProcess"),
];

/// The mean of each stage of a fault of any kind, in picoseconds; `None` without faults.
pub fn means(run: &Run<'_>) -> Option<[f64; 6]> {
    let stages = run.json.pointer("/time_ps/stages")?;
    let counts = &run.json["counts"];
    let kinds = ["true_faults", "false_faults", "write_faults"];
    let faults: u64 = kinds.iter().filter_map(|kind| counts[*kind].as_u64()).sum();
    (faults > 0).then(|| STAGES.map(|(key, _)| stages[key].as_f64().unwrap_or(0.0) / faults as f64))
}

/// The section; empty where no run has stages.
pub fn stages(runs: &[Run<'_>]) -> String {
    let all: Vec<_> = runs.iter().filter_map(|run| Some((run, means(run)?))).collect();
    let most = all.iter().map(|(_, means)| means.iter().sum::<f64>()).fold(0.0, f64::max);
    let rows: String = all.iter().take(SHOWN).map(|(run, means)| row(run, means, most)).collect();
    if rows.is_empty() {
        return rows;
    }
    let mut said =
        "Means over all faults, false ones too. What a stage does beside a load in flight is the load's time."
            .to_string();
    if all.len() > SHOWN {
        let _ = write!(said, " {SHOWN} of {} runs.", all.len());
    }
    section("Where the time of a fault goes", &format!("{}{rows}{}", legend(), note(&said)))
}

fn legend() -> String {
    let key = |(i, (_, name)): (usize, &(&str, &str))| {
        format!("<span class=\"key\"><i style=\"background:{}\"></i>{name}</span>", COLOURS[i])
    };
    format!("<p class=\"legend\">{}</p>", STAGES.iter().enumerate().map(key).collect::<String>())
}

fn row(run: &Run<'_>, means: &[f64; 6], most: f64) -> String {
    let sum: f64 = means.iter().sum();
    let (mut bar, mut numbers) = (String::new(), String::new());
    for (i, ((_, name), mean)) in STAGES.iter().zip(means).enumerate() {
        let shown = human_time(Ps(mean.round() as u64));
        let width = 100.0 * mean / most.max(1.0);
        let _ = write!(bar, "<i style=\"width:{width:.2}%;background:{}\" title=\"{name}: {shown}\"></i>", COLOURS[i]);
        let _ = write!(numbers, "<span>{name} {shown}</span> ");
    }
    format!(
        "<div class=\"strip\"{}><b>{}</b> {}<div class=\"bar\">{bar}</div><p class=\"numbers\">{numbers}</p></div>",
        run.at(),
        escape(&run.title()),
        human_time(Ps(sum.round() as u64)),
    )
}
