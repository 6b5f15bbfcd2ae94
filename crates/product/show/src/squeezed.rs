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
pub fn words(of: &Squeezed) -> String {
    let what = format!(
        "{}: {} of {} ({} in use by {})",
        of.name,
        of.cgroup.file,
        of.cgroup.folder,
        human_size(of.in_use_bytes),
        if of.processes == 1 { "one process".into() } else { format!("{} processes", of.processes) },
    );
    let Some(end) = of.end else {
        let (watch, most, (steps, seconds)) =
            (human_seconds(of.watch_seconds), percent(of.max_stall_percent), of.longest());
        let would = format!(
            "The limit would go down by a sixteenth every {watch} until some process waits for memory for more than {most} of the \
             time; {steps} steps take {}. Then the old limit comes back. Nothing was changed; --yes does it.",
            human_seconds(seconds)
        );
        return paragraph(&what, 0) + &paragraph(&would, 0) + &waits(of);
    };
    let back = if of.restored { "The old limit is back." } else { "The old limit is NOT back: see above." };
    let row = |step: &Step| {
        let back = format!("{:.0}", step.pages_back_per_second);
        let (ram, swap) = (human_size(step.in_ram_bytes), human_size(step.swapped_bytes));
        vec![limit(step), ram, swap, back, percent(step.stalled_percent)]
    };
    let headings = ["limit", "in RAM", "in swap", "pages back/s", "waited"];
    let table = styled(&headings, of.steps.iter().map(row).collect(), 1);
    let mut text = format!("{}\n{table}\n\n{}", paragraph(&format!("{what}. {back}"), 0), paragraph(&why(of, end), 0));
    text += &waits(of);
    if of.compressed_bytes > 0 {
        let size = human_size(of.compressed_bytes);
        text += &paragraph(&format!("What left takes {size} of the machine's RAM, compressed."), 0);
    }
    text + &lines(of)
}

/// Whose waits count, if not the group's own.
fn waits(of: &Squeezed) -> String {
    of.others.map_or(String::new(), |others| paragraph(&format!("Waits are those for {others}."), 0))
}

fn why(of: &Squeezed, end: End) -> String {
    let last = of.steps.last().and_then(|step| step.limit_bytes).map_or("its first step".into(), human_size);
    match end {
        End::Stall => {
            let most = percent(of.max_stall_percent);
            format!("Ended at {last}: some process waited more than {most} of the time.")
        }
        End::Least => {
            format!("Ended: {} are locked or the kernel's own and cannot leave.", human_size(of.least_bytes))
        }
        End::Stuck => format!("Ended: below {last} the kernel could not push out enough."),
        End::Killed => "Ended: the kernel has killed a process of it for lack of memory; add swap.".into(),
        End::Gone => format!("Ended at {last}: its last process has ended."),
        End::Stopped => format!("Stopped at {last}."),
    }
}

fn lines(of: &Squeezed) -> String {
    let (Some(step), Some(advised)) = (of.advised(), of.advised_bytes) else {
        return "Its memory cannot be less than it is.\n".into();
    };
    let (least, before) = (mib(advised), mib(of.before_bytes));
    let saved = 100.0 * (1.0 - least as f64 / before.max(1) as f64);
    format!(
        "It can do with {least} MiB, {saved:.0} % less, for what it did meanwhile ({} waited).\n\
         Lines to paste; the first two where it can swap:\n{}",
        percent(step.stalled_percent),
        limits(advised, of.before_bytes.max(advised))
    )
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
pub fn exported(of: &Squeezed) -> Exported {
    Exported::of(&of.name, words(of), &CURVE, &of.steps, of)
}
