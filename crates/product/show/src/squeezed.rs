//! What squeezing a group has shown, in words: the curve, why it ended, and the lines to paste.

use coldframe_answer::service::squeeze::{End, Squeezed, Step};
use coldframe_sheet::quantity::{human_seconds, human_size};

use crate::export::{Column, Exported};
use crate::limits::{limits, mib};
use crate::table::styled;
use crate::text::paragraph;

fn percent(percent: f64) -> String {
    format!("{percent:.1} %")
}

fn limit(step: &Step) -> String {
    step.limit_bytes.map_or("as it is".into(), human_size)
}

/// A step in a few words.
pub fn step(step: &Step) -> String {
    format!("{}: some process waited {} of the time", limit(step), percent(step.stalled_percent))
}

/// All of it.
pub fn words(squeezed: &Squeezed) -> String {
    let what = format!(
        "{}: {} of {} ({} in use by {}, without cached files that nobody maps)",
        squeezed.name,
        squeezed.cgroup.file,
        squeezed.cgroup.folder,
        human_size(squeezed.in_use_bytes),
        if squeezed.processes == 1 { "one process".into() } else { format!("{} processes", squeezed.processes) },
    );
    let Some(end) = squeezed.end else {
        let (watch, stall, (steps, seconds)) =
            (human_seconds(squeezed.watch_seconds), percent(squeezed.max_stall_percent), squeezed.longest());
        let would = format!(
            "The limit would go down by a sixteenth every {watch} until some process waits for memory for more than \
             {stall} of the time; {steps} steps take {}. Then the old limit comes back. Nothing was changed; --yes \
             does it.",
            human_seconds(seconds)
        );
        return paragraph(&what, 0) + &paragraph(&would, 0) + &waits(squeezed);
    };
    let back = if squeezed.restored { "The old limit is back." } else { "The old limit is NOT back: see above." };
    let row = |step: &Step| {
        let back = format!("{:.0}", step.pages_back_per_second);
        let (ram, swap) = (human_size(step.in_ram_bytes), human_size(step.swapped_bytes));
        vec![limit(step), ram, swap, back, percent(step.stalled_percent)]
    };
    let headings = ["limit", "in use", "in swap", "pages back/s", "waited"];
    let table = styled(&headings, squeezed.steps.iter().map(row).collect(), 1);
    let mut text =
        format!("{}\n{table}\n\n{}", paragraph(&format!("{what}. {back}"), 0), paragraph(&why(squeezed, end), 0));
    text += &waits(squeezed);
    if squeezed.compressed_bytes > 0 {
        let size = human_size(squeezed.compressed_bytes);
        text += &paragraph(&format!("What left takes {size} of the machine's RAM, compressed."), 0);
    }
    text + &lines(squeezed)
}

/// Whose waits count, if not the group's own.
fn waits(squeezed: &Squeezed) -> String {
    squeezed.others.map_or(String::new(), |others| paragraph(&format!("Waits are those for {others}."), 0))
}

fn why(squeezed: &Squeezed, end: End) -> String {
    let last = squeezed.steps.last().and_then(|step| step.limit_bytes).map_or("its first step".into(), human_size);
    match end {
        End::Stall => {
            let stall = percent(squeezed.max_stall_percent);
            format!("Ended at {last}: some process waited more than {stall} of the time.")
        }
        End::Least => {
            format!("Ended: {} are locked or the kernel's own and cannot leave.", human_size(squeezed.least_bytes))
        }
        End::Stuck => format!("Ended: below {last} the kernel could not push out enough."),
        End::Killed => "Ended: the kernel has killed a process of it for lack of memory; add swap.".into(),
        End::Gone => format!("Ended at {last}: its last process has ended."),
        End::Stopped => format!("Stopped at {last}."),
    }
}

fn lines(squeezed: &Squeezed) -> String {
    let (Some(step), Some(advised)) = (squeezed.advised(), squeezed.advised_bytes) else {
        return "Its memory cannot be less than it is.\n".into();
    };
    let (advised_mib, before) = (mib(advised), mib(squeezed.before_bytes));
    let saved = 100.0 * (1.0 - advised_mib as f64 / before.max(1) as f64);
    let (stalled, peak) = (percent(step.stalled_percent), squeezed.peak_bytes.max(squeezed.before_bytes));
    let enough = format!(
        "It can do with a limit of {advised_mib} MiB, {saved:.0} % less, for what it did meanwhile ({stalled} waited). \
         Hard limits hold the {} that it was charged at most, files included, and a tenth more:",
        human_size(peak)
    );
    paragraph(&enough, 0) + &limits(advised, peak)
}

/// The columns of the curve.
const CURVE: [Column<Step>; 5] = [
    ("ram_bytes", |step| step.limit_bytes.unwrap_or(step.in_ram_bytes).into()),
    ("stalled_percent", |step| step.stalled_percent.into()),
    ("pages_back_per_second", |step| step.pages_back_per_second.into()),
    ("in_ram_bytes", |step| step.in_ram_bytes.into()),
    ("swapped_bytes", |step| step.swapped_bytes.into()),
];

/// For `--export`.
pub fn exported(squeezed: &Squeezed) -> Exported {
    Exported::new(&squeezed.name, words(squeezed), &CURVE, &squeezed.steps, squeezed)
}
