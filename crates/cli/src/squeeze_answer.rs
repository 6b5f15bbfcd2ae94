//! The answer of `coldframe squeeze`: the curve, why it ended, and the lines to paste.

use std::time::Duration;

use coldframe_kernel::{End, Squeeze, Step, Version};
use coldframe_sheet::quantity::{human_seconds, human_size};
use coldframe_show::export::Exported;
use coldframe_show::table::styled;
use coldframe_show::text::wrap;
use serde_json::{json, Value};

use crate::failure::Failure;

/// Columns of a line.
const WIDTH: usize = 80;
/// The columns of the curve: with their units, as in JSON.
const COLUMNS: [&str; 5] = ["ram_bytes", "stalled_percent", "pages_back_per_second", "in_ram_bytes", "swapped_bytes"];

/// What was squeezed, and what came of it.
pub struct Squeezed {
    name: String,
    folder: String,
    file: &'static str,
    version: Version,
    processes: usize,
    in_use: u64,
    least: u64,
    others: Option<&'static str>,
    /// The part of the time that some process may wait.
    pub most: f64,
    /// How long a step is watched.
    pub watch: Duration,
    /// The curve; the first step is without a new limit.
    pub steps: Vec<Step>,
    /// Why no more was taken; `None`: nothing was changed.
    pub end: Option<End>,
    /// Bytes of RAM that compressed pages took beside the group, of the whole machine.
    pub compressed: u64,
    /// The old limit is back.
    pub restored: bool,
}

/// A size that a unit or container can be given: whole MiB, rounded up.
fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// A step in a few words.
pub fn waited(step: &Step) -> String {
    let limit = step.limit.map_or("as it is".into(), human_size);
    format!("{limit}: some process waited {} of the time", percent(step.stalled))
}

impl Squeezed {
    /// Before the first step.
    pub fn new(name: &str, squeeze: &Squeeze, most: f64, watch: Duration) -> Squeezed {
        let group = squeeze.group();
        Squeezed {
            name: name.into(),
            folder: group.folder().display().to_string(),
            file: group.version().squeeze_file(),
            version: group.version(),
            processes: group.processes().len(),
            in_use: squeeze.limit(),
            least: squeeze.least(),
            others: squeeze.others(),
            most,
            watch,
            steps: Vec::new(),
            end: None,
            compressed: 0,
            restored: true,
        }
    }

    /// An error if nothing was measured.
    ///
    /// # Errors
    /// The group has ended, or it has too little memory as it is.
    pub fn usable(&self) -> Result<(), Failure> {
        let name = &self.name;
        let message = match (self.end, self.steps.as_slice()) {
            (Some(End::Gone), [] | [_]) => {
                format!("{name} has ended meanwhile; start it again, and squeeze it while it works")
            }
            (Some(End::Stall), [only]) => format!(
                "{name}: some process waits for {} {} of the time as it is ({} in swap); give it more memory first, or a \
                 larger --max-stall",
                self.others.unwrap_or("its memory"),
                percent(only.stalled),
                human_size(only.swapped)
            ),
            _ => return Ok(()),
        };
        Err(Failure::Other { message, code: 4 })
    }

    /// The last step that did not stall too long.
    pub fn advised(&self) -> Option<&Step> {
        self.steps.iter().rev().find(|step| step.limit.is_some() && step.stalled <= self.most)
    }

    /// Bytes in use before, with those in swap.
    fn before(&self) -> u64 {
        self.steps.first().map_or(self.in_use, |step| step.in_ram + step.swapped)
    }

    /// As text.
    pub fn words(&self) -> String {
        let what = format!(
            "{}: {} of {} ({} in use by {})",
            self.name,
            self.file,
            self.folder,
            human_size(self.in_use),
            if self.processes == 1 { "one process".into() } else { format!("{} processes", self.processes) },
        );
        let said = |text: &str| wrap("", text, 0, WIDTH).join("\n") + "\n";
        let Some(end) = self.end else {
            let watch = human_seconds(self.watch.as_secs_f64());
            return said(&what)
                + &said(&format!(
                    "Would be lowered by a sixteenth every {watch}, until some process waits for {} for more than {} of the \
                     time, and then put back. Nothing was changed; --yes does it.",
                    self.others.unwrap_or("memory"),
                    percent(self.most)
                ));
        };
        let back = if self.restored { "The old limit is back." } else { "The old limit is NOT back: see above." };
        let row = |step: &Step| {
            let limit = step.limit.map_or("as it is".into(), human_size);
            let back = format!("{:.0}", step.back);
            vec![limit, human_size(step.in_ram), human_size(step.swapped), back, percent(step.stalled)]
        };
        let headings = ["limit", "in RAM", "in swap", "pages back/s", "waited"];
        let table = styled(&headings, self.steps.iter().map(row).collect(), 1);
        let mut text = format!("{}\n{table}\n\n{}", said(&format!("{what}. {back}")), said(&self.why(end)));
        if let Some(others) = self.others {
            text += &said(&format!("Waited: for {others}."));
        }
        if self.compressed > 0 {
            text +=
                &said(&format!("What left takes {} of the machine's RAM, compressed.", human_size(self.compressed)));
        }
        text + &self.lines()
    }

    fn why(&self, end: End) -> String {
        let last = self.steps.last().and_then(|step| step.limit).map_or("its first step".into(), human_size);
        match end {
            End::Stall => format!("Ended at {last}: some process waited more than {} of the time.", percent(self.most)),
            End::Least => format!("Ended: {} are locked or the kernel's own and cannot leave.", human_size(self.least)),
            End::Stuck => format!("Ended: below {last} the kernel could not push out enough."),
            End::Killed => "Ended: the kernel has killed a process of it for lack of memory; add swap.".into(),
            End::Gone => format!("Ended at {last}: its last process has ended."),
            End::Stopped => format!("Stopped at {last}."),
        }
    }

    fn lines(&self) -> String {
        let Some(step) = self.advised() else {
            return "Its memory cannot be less than it is.\n".into();
        };
        let (least, before) = (mib(step.limit.unwrap_or(self.in_use)), mib(self.before()));
        let saved = 100.0 * (1.0 - least as f64 / before.max(1) as f64);
        format!(
            "It can do with {least} MiB, {saved:.0} % less, for what it did meanwhile ({} waited).\n\
             Lines to paste; the first two where it can swap:\n  systemd     MemoryHigh={least}M\n  compose     mem_limit: \
             {least}m\n              memswap_limit: -1\n  Kubernetes  resources:\n                requests: {{memory: \
             {least}Mi}}\n                limits: {{memory: {}Mi}}\n",
            percent(step.stalled),
            before.max(least)
        )
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let step = |step: &Step| {
            json!({ "limit_bytes": step.limit, "in_ram_bytes": step.in_ram, "swapped_bytes": step.swapped,
                    "pages_back_per_second": step.back, "stalled_percent": 100.0 * step.stalled })
        };
        let end = self.end.map(|end| match end {
            End::Stall => "stall",
            End::Least => "least",
            End::Stuck => "stuck",
            End::Killed => "killed",
            End::Gone => "gone",
            End::Stopped => "stopped",
        });
        json!({
            "schema_version": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "name": self.name,
            "cgroup": { "version": if self.version == Version::One { 1 } else { 2 }, "folder": self.folder, "file": self.file },
            "processes": self.processes,
            "in_use_bytes": self.in_use,
            "least_bytes": self.least,
            "max_stall_percent": 100.0 * self.most,
            "watch_seconds": self.watch.as_secs_f64(),
            "stall_of_others": self.others.is_some(),
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "end": end,
            "compressed_bytes": self.compressed,
            "restored": self.restored,
            "advised_bytes": self.advised().and_then(|step| step.limit),
            "before_bytes": self.before(),
        })
    }

    /// For `--export`.
    pub fn exported(&self) -> Exported {
        let row = |step: &Step| {
            let ram = step.limit.unwrap_or(step.in_ram);
            vec![json!(ram), json!(100.0 * step.stalled), json!(step.back), json!(step.in_ram), json!(step.swapped)]
        };
        Exported {
            program: self.name.clone(),
            within: None,
            words: self.words(),
            columns: COLUMNS.to_vec(),
            rows: self.steps.iter().map(row).collect(),
            seconds: 0.0,
            json: self.json(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(stalls: &[f64], end: End) -> Squeezed {
        let step = |(i, stalled): (usize, &f64)| {
            let limit = (60 - 4 * i as u64) << 20;
            Step { limit: (i > 0).then_some(limit), in_ram: limit, swapped: 8 << 20, back: 1e6, stalled: *stalled }
        };
        Squeezed {
            name: "a-container-with-a-very-long-name-that-its-orchestrator-has-made-0123456789".into(),
            folder: "/sys/fs/cgroup/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef.scope".into(),
            file: "memory.high",
            version: Version::Two,
            processes: 3,
            in_use: 60 << 20,
            least: 1 << 20,
            others: None,
            most: 0.05,
            watch: Duration::from_secs(10),
            steps: stalls.iter().enumerate().map(step).collect(),
            end: Some(end),
            compressed: 1 << 20,
            restored: true,
        }
    }

    #[test]
    fn the_last_step_that_did_not_stall_is_what_can_be_pasted() {
        let found = squeezed(&[0.0, 0.01, 0.02, 0.3], End::Stall);
        let text = found.words();
        // 52 MiB was the last good limit, and 60 MiB in RAM with 8 in swap were in use before.
        for line in ["MemoryHigh=52M", "mem_limit: 52m", "requests: {memory: 52Mi}", "limits: {memory: 68Mi}"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let wide = |line: &&str| line.chars().count() > WIDTH && line.trim().contains(' ');
        assert_eq!(text.lines().find(wide), None, "{text}");
        assert!(found.usable().is_ok());
        let (early, text) = (squeezed(&[0.0, 0.3], End::Stall), squeezed(&[0.0, 0.3], End::Stall).words());
        assert!(early.advised().is_none() && text.contains("cannot be less") && !text.contains("MemoryHigh"), "{text}");
    }

    #[test]
    fn a_group_that_waits_for_its_memory_already_needs_more() {
        let failure = squeezed(&[0.2], End::Stall).usable().unwrap_err().to_string();
        assert!(
            failure.contains("20.0 %") && failure.contains("8 MiB in swap") && failure.contains("more memory first"),
            "{failure}"
        );
        assert!(squeezed(&[0.0], End::Gone).usable().unwrap_err().to_string().contains("ended"));
        assert!(squeezed(&[0.0], End::Stopped).usable().is_ok());
    }
}
