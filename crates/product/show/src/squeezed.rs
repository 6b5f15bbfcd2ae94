//! What squeezing a group has shown, in words: the curve, why it ended, and the lines to paste.

use coldframe_answer::service::squeeze::{End, Squeezed, Step};
use coldframe_sheet::quantity::{human_seconds, human_size, things};

use crate::export::{names, Column, Exported};
use crate::paste::settings::{limits, mib, thresholds};
use crate::table::styled;
use crate::text::paragraph;

pub mod held;

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
    all(squeezed, None)
}

/// What `--hold` would do. `latency`: by how many percent the service's latency may grow, if it tells one.
pub fn would_hold(squeezed: &Squeezed, latency: Option<f64>) -> String {
    all(squeezed, Some(latency))
}

fn all(squeezed: &Squeezed, held: Option<Option<f64>>) -> String {
    let what = format!(
        "{}: {} of {} ({} in use by {}, besides cached files)",
        squeezed.name,
        squeezed.cgroup.file,
        squeezed.cgroup.folder,
        human_size(squeezed.in_use_bytes),
        things(squeezed.processes as u64, "process"),
    );
    let Some(end) = squeezed.end else {
        let (watch, stall, (steps, seconds)) =
            (human_seconds(squeezed.watch_seconds), percent(squeezed.max_stall_percent), squeezed.longest());
        let would = match held {
            Some(rule) => held::would(squeezed, rule),
            None => format!(
                "The limit would go down by a sixteenth every {watch} until some process waits for memory for more \
                 than {stall} of the time, or the rest cannot leave: at most {}, {}. Then the old limit comes back. \
                 Nothing was changed; --yes does it.",
                things(steps, "step"),
                human_seconds(seconds)
            ),
        };
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
    paragraph(&enough, 0) + &limits(advised, peak) + &thresholds(&squeezed.killers, false)
}

/// The columns of the curve.
const CURVE: [Column<Step>; 5] = [
    (names("ram_bytes", "limit", "Limit of RAM"), |step| step.limit_bytes.unwrap_or(step.in_ram_bytes).into()),
    (names("stalled_percent", "waited", "Time in which some process waited"), |step| step.stalled_percent.into()),
    (names("pages_back_per_second", "pages back/s", "Pages that came back in a second"), |step| {
        step.pages_back_per_second.into()
    }),
    (names("in_ram_bytes", "in RAM", "Memory in RAM"), |step| step.in_ram_bytes.into()),
    (names("swapped_bytes", "in swap", "Memory in swap"), |step| step.swapped_bytes.into()),
];

/// For `--export`.
pub fn exported(squeezed: &Squeezed) -> Exported {
    Exported::new(&squeezed.name, words(squeezed), &CURVE, &squeezed.steps, squeezed)
}

#[cfg(test)]
mod tests {
    use coldframe_answer::machine::killers::Killer;
    use coldframe_answer::service::squeeze::Cgroup;

    use super::*;

    #[test]
    fn a_hard_limit_holds_what_the_group_was_charged_at_most_and_a_tenth_more() {
        let step = |limit_bytes, mib: u64| Step {
            limit_bytes,
            in_ram_bytes: mib << 20,
            swapped_bytes: 0,
            pages_back_per_second: 0.0,
            stalled_percent: 0.1,
        };
        let squeezed = Squeezed {
            schema_version: 1,
            version: "0",
            name: "a.service".into(),
            cgroup: Cgroup { version: 2, folder: "/sys/fs/cgroup/a.service".into(), file: "memory.high" },
            processes: 3,
            in_use_bytes: 60 << 20,
            peak_bytes: 200 << 20,
            least_bytes: 1 << 20,
            max_stall_percent: 5.0,
            watch_seconds: 10.0,
            stall_of_others: false,
            steps: vec![step(None, 60), step(Some(40 << 20), 40)],
            end: Some(End::Stall),
            compressed_bytes: 0,
            restored: true,
            advised_bytes: Some(40 << 20),
            before_bytes: 60 << 20,
            killers: vec![],
            others: None,
        };
        let text = words(&squeezed);
        assert!(text.contains("mem_limit: 220m · mem_reservation: 40m"), "{text}");
        assert!(text.contains("MemoryMax=220M · MemoryHigh=40M"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let earlyoom = Killer {
            name: "earlyoom",
            present: true,
            settings: vec![("/etc/default/earlyoom", "EARLYOOM_ARGS=\"-m 7 -s 9\"".into())],
            reason: "in ordinary work 160 MiB of RAM is spare".into(),
        };
        let killed = words(&Squeezed { killers: vec![earlyoom], ..squeezed.clone() });
        assert!(killed.contains("EARLYOOM_ARGS=\"-m 7 -s 9\"") && !text.contains("EARLYOOM"), "{killed}");
        let unknown = words(&Squeezed { peak_bytes: 0, ..squeezed.clone() });
        assert!(unknown.contains("limits: {memory: 66Mi}"), "{unknown}");
        let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let dry = Squeezed { end: None, steps: vec![], processes: 1, ..squeezed };
        let would = flat(words(&dry));
        assert!(would.contains("by 1 process,") && would.contains("at most 64 steps, 10.7 min. Then"), "{would}");
        let (would, asked) = (flat(would_hold(&dry, None)), flat(would_hold(&dry, Some(10.0))));
        assert!(would.contains("after each calm 10.0 s, until Ctrl-C, and back to the old limit at once"), "{would}");
        assert!(!would.contains("steps") && !would.contains("latency") && would.contains("--yes does it"), "{would}");
        assert!(asked.contains("latency grows by more than 10 %"), "{asked}");
    }
}
