//! What every answer about a program has.

use coldframe_live::FRAMES_MIN;
use coldframe_proc::Tree;
use coldframe_recording::span::PAGE;
use coldframe_sheet::quantity::human_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::asker::Asker;
use crate::predict::curve::{round_limit, Point};
use crate::predict::measured::Measurements;
use crate::predict::not_paged::NotPaged;
use crate::run::runs::{By, Runs};
use crate::SCHEMA_VERSION;

/// The name of this machine as a device.
pub const DEVICE: &str = "here";

/// If a larger part of the heap than this was in RAM when the program ran alone, the difference is not that of read
/// pages alone: the C library's heap is another one than the pager's, and looks at a program that runs miss some of it.
const MOST_READ: f64 = 0.8;

/// What every answer has.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: String,
    /// `advice`.
    pub kind: String,
    /// `here`: this machine.
    pub device: String,
    /// When, on which host and kernel it was measured; empty: not known.
    #[serde(default)]
    pub origin: String,
    /// The program's name.
    pub program: String,
    /// Its command line.
    pub command: Option<String>,
    /// The stand-alone time: of the program alone, if that was run; else as the recording shows it.
    pub program_seconds: f64,
    /// How long it took while it was recorded or watched.
    pub recorded_seconds: f64,
    /// The most RAM of memory that is not paged: code, stacks, files, the C library's own.
    pub not_paged_bytes: u64,
    /// The kinds of it, of the largest process; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_paged: Option<NotPaged>,
    /// The most managed memory of a process at a time; of all processes, if they share a limit.
    pub managed_bytes: u64,
    /// The most managed memory of all processes at one time. What a forked child only reads is there once.
    #[serde(default)]
    pub together_bytes: u64,
    /// The limit with which no page is evicted. All sizes but those of kinds of memory are limits: of all its memory.
    pub needed_bytes: u64,
    /// The advised limit.
    pub ram_bytes: Option<u64>,
    /// A size of RAM whose cost was wanted (`--ram`): the curve has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_ram_bytes: Option<u64>,
    /// The longest extra time of a run with it, in percent of the stand-alone time.
    pub slowdown_percent: f64,
    /// Who pages the recommended run: the faster one that was measured; `None`: it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// Measured runs: the program alone, then in less RAM.
    #[serde(default)]
    pub runs: Vec<Runs>,
    /// Predicted run time by RAM, largest first.
    pub curve: Vec<Point>,
    /// With less RAM than this it takes more than twice as long as with all its RAM; `None`: at no size that was tried.
    pub thrash_bytes: Option<u64>,
    /// The covered size: for less RAM, the measurement only gives a lower bound of the run time.
    pub covered_bytes: u64,
    /// Rows of the trace, or looks at the bits.
    pub entries: u64,
    /// Processes with managed memory.
    pub processes: u64,
    /// Threads that touched it.
    pub threads: u64,
    /// The program's exit code; `None`: a signal ended it.
    pub exit: Option<i32>,
    /// The source of the costs.
    pub measured: String,
    /// The assumptions of the answer, and its uncertainties.
    pub how_sure: Vec<String>,
    /// What the reader should know of the measurement.
    pub notes: Vec<String>,
    /// Who has it: a line to paste may need `sudo`.
    #[serde(default)]
    pub asker: Asker,
}

impl Common {
    /// Of this version, and empty.
    pub(crate) fn new() -> Common {
        Common {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").into(),
            kind: "advice".into(),
            device: DEVICE.into(),
            origin: origin(),
            asker: Asker::now(),
            ..Common::default()
        }
    }

    /// Leaves out pages that were read and never written, if there are many: without a pager the kernel maps one page
    /// of zeros for all of them. `peak`: the most anonymous memory that the program's one process has had when it ran
    /// alone.
    pub(crate) fn only_read(&mut self, peak: u64) {
        let part = peak as f64 / self.managed_bytes.max(1) as f64;
        if self.processes != 1 || part > MOST_READ {
            return;
        }
        let size = human_size(self.managed_bytes - peak);
        self.notes.push(format!("{size} of heap were read and never written, which takes no RAM without a pager"));
        let heap = self.needed_bytes.saturating_sub(self.not_paged_bytes) as f64;
        let needed = round_limit((heap * part) as u64 + self.not_paged_bytes).max(FRAMES_MIN as u64 * PAGE);
        (self.managed_bytes, self.together_bytes, self.needed_bytes) = (peak, peak, needed);
        self.ram_bytes = self.ram_bytes.filter(|ram| *ram <= needed);
    }

    /// Sizes for the heap become limits: memory that is not paged is in them, too.
    pub(crate) fn into_limits(self) -> Common {
        let rest = self.not_paged_bytes;
        let limit = |heap: u64| round_limit(heap + rest);
        let mut curve = self.curve;
        for point in &mut curve {
            (point.ram_bytes, point.together_bytes) = (limit(point.ram_bytes), limit(point.together_bytes));
        }
        curve.dedup_by_key(|point| point.ram_bytes);
        Common {
            needed_bytes: limit(self.needed_bytes),
            ram_bytes: self.ram_bytes.map(limit),
            given_ram_bytes: self.given_ram_bytes.map(limit),
            thrash_bytes: self.thrash_bytes.map(limit),
            covered_bytes: limit(self.covered_bytes),
            curve,
            ..self
        }
    }

    /// From a prediction and from measured runs.
    pub(crate) fn measured(self, measurements: Measurements) -> Common {
        let Measurements { plain, less_ram, size } = measurements;
        let recommended = size.map(|size| size.recommended(self.ram_bytes, self.needed_bytes));
        Common {
            program_seconds: plain.seconds,
            ram_bytes: recommended.map_or(self.ram_bytes, |(ram, _)| Some(ram)),
            by: recommended.map_or(self.by, |(_, by)| by),
            runs: [plain].into_iter().chain(less_ram).collect(),
            ..self
        }
    }

    /// The point of a size on the curve.
    pub fn at(&self, ram: u64) -> Option<&Point> {
        self.curve.iter().find(|point| point.ram_bytes == ram)
    }

    /// The program alone, if it was run.
    pub fn plain(&self) -> Option<&Runs> {
        self.runs.iter().find(|one| one.by == By::Plain)
    }

    /// Runs in this RAM.
    pub fn run(&self, by: By, ram: u64) -> Option<&Runs> {
        self.runs.iter().find(|one| one.by == by && one.ram_bytes == Some(ram))
    }

    /// What all processes have together with this size for each: in the ratio of the nearest point of the curve.
    fn together(&self, ram: u64) -> u64 {
        let near = self.curve.iter().min_by_key(|point| point.ram_bytes.abs_diff(ram));
        near.map_or(ram, |near| (near.together_bytes as f64 / near.ram_bytes.max(1) as f64 * ram as f64) as u64)
    }

    /// What is known of a size with the recommended pager, or else with the other one: measured, or else predicted.
    pub fn known(&self, ram: u64) -> Option<Known> {
        let count = |run: &&Runs| run.failed.is_none();
        // All of its RAM, without a pager.
        let alone = self.plain().filter(|_| self.by == Some(By::Plain) && ram == self.needed_bytes);
        let first = if self.by == Some(By::Kernel) { By::Kernel } else { By::Pager };
        let other = if first == By::Kernel { By::Pager } else { By::Kernel };
        let paged = || self.run(first, ram).filter(count).or_else(|| self.run(other, ram).filter(count));
        let run = alone.or_else(paged);
        let measured = run.map(|run| Known {
            ram_bytes: ram,
            by_kernel: run.by == By::Kernel,
            together_bytes: self.together(ram),
            seconds: run.seconds,
            range: run.range().map(|(low, high)| (low, Some(high))),
            page_reads: run.page_reads,
            runs: run.runs.len(),
            more: run.more,
        });
        measured.or_else(|| self.at(ram).map(Known::predicted))
    }
}

/// `2026-11-27, host web-1, Linux 6.18.44, 2 CPUs`.
pub(crate) fn origin() -> String {
    let tree = Tree::machine();
    let (host, kernel) = (tree.text("/proc/sys/kernel/hostname"), tree.kernel_release());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, host {}, Linux {kernel}, {processors} CPUs", crate::machine::costs::today(), host.trim())
}

/// What is known of a size of RAM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Known {
    /// `--ram`.
    pub ram_bytes: u64,
    /// The run time.
    pub seconds: f64,
    /// Its range, whose end may not be known; `None`: of one run.
    pub range: Option<(f64, Option<f64>)>,
    /// Pages that come back from the device.
    pub page_reads: u64,
    /// What all processes have together at one time, with so much RAM for each.
    pub together_bytes: u64,
    /// Whether the kernel paged it.
    pub by_kernel: bool,
    /// Runs that were measured; 0: it is predicted.
    pub runs: usize,
    /// It takes longer than `seconds`.
    pub more: bool,
}

impl Known {
    /// A point of the curve.
    pub fn predicted(point: &Point) -> Known {
        Known {
            ram_bytes: point.ram_bytes,
            seconds: point.seconds,
            range: Some((point.seconds_low.max(0.0), point.seconds_high)),
            page_reads: point.device_reads,
            together_bytes: point.together_bytes,
            by_kernel: false,
            runs: 0,
            more: point.seconds_high.is_none(),
        }
    }
}

/// The name of a command line's program.
pub(crate) fn program(command: Option<&str>) -> String {
    let words = command.and_then(shlex::split).unwrap_or_default();
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    match &words[..] {
        // What a shell runs is the program.
        [shell, option, script, ..] if option == "-c" && ["sh", "bash", "dash"].contains(&name(shell).as_str()) => {
            name(script.split_whitespace().next().unwrap_or(shell))
        }
        [first, ..] => name(first),
        [] => "the program".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_only_read_count_as_no_memory_of_one_process() {
        let mib = 1 << 20;
        let of = |processes| Common {
            processes,
            managed_bytes: 48 * mib,
            needed_bytes: 50 * mib,
            ram_bytes: Some(37 * mib),
            ..Common::new()
        };
        let mut one = of(1);
        one.only_read(24 * mib);
        assert_eq!((one.managed_bytes, one.needed_bytes, one.ram_bytes), (24 * mib, 25 * mib, None));
        assert!(one.notes[0].starts_with("24 MiB of heap were read and never written"));
        // Looks miss a little, and say nothing of several processes.
        for (mut other, peak) in [(of(1), 40 * mib), (of(2), 24 * mib)] {
            let before = other.clone();
            other.only_read(peak);
            assert_eq!(other, before);
        }
    }
}
