//! The answer from a recording, as data: the content of `advice.json`.

use coldframe_live::FRAMES_MIN;
use coldframe_recording::span::PAGE;
use coldframe_sheet::quantity::human_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::predict::common::{program, Common};
use crate::predict::curve::{round_limit, round_up, Curve, Point};
use crate::predict::memory_use::MemoryUse;
use crate::predict::question::Question;
use crate::predict::rows::Rows;
use crate::predict::swap::{with_swap, SwapAnswer};

/// The run time of a recorded program by RAM on this machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// What every answer has.
    #[serde(flatten)]
    pub common: Common,
    /// The trace.
    pub trace: String,
    /// The same with the kernel's swap; `None`: its costs are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<SwapAnswer>,
    /// Page replacement policy.
    pub policy: String,
    /// Most pages read ahead.
    pub read_ahead: u32,
    /// Pages that are evicted together.
    pub evict_batch: usize,
    /// For a trace of some of the pages.
    pub sampled: Option<Sampled>,
    /// Pages of the recorder's window.
    pub window_pages: u64,
    /// Where and when memory was used.
    pub memory_use: Option<MemoryUse>,
}

/// A sample of the pages, and its error.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// Share of all pages.
    pub share: f64,
    /// Largest standard error of the paging time, in percent of it.
    pub error_percent: f64,
}

impl Recorded {
    /// Of a curve that has been found.
    pub(crate) fn new(trace: String, rows: &Rows, question: &Question, curve: &Curve<'_>) -> Recorded {
        let points = curve.points();
        let livable = curve.livable();
        let thrash = curve.smallest(|point| point.seconds <= livable);
        let thrashes = points.iter().any(|point| point.seconds > livable);
        let sampled =
            (rows.sample < 1.0).then(|| Sampled { share: rows.sample, error_percent: 100.0 * curve.error_max() });
        let mut answer = Recorded {
            trace,
            kernel: with_swap(curve, &points, &question.swaps),
            policy: question.pager.policy.clone(),
            read_ahead: question.pager.read_ahead,
            evict_batch: question.pager.evict_batch,
            sampled,
            window_pages: rows.window,
            memory_use: None,
            common: Common {
                program: program(rows.command.as_deref()),
                command: rows.command.clone(),
                program_seconds: rows.facts.seconds,
                recorded_seconds: rows.facts.recorded_seconds,
                not_paged_bytes: rows.facts.not_paged_bytes,
                managed_bytes: rows.peak() * PAGE,
                together_bytes: rows.sum(),
                needed_bytes: curve.needed,
                ram_bytes: curve.recommended(),
                slowdown_percent: 100.0 * question.limits.slowdown,
                given_ram_bytes: question.limits.ram,
                thrash_bytes: thrash.filter(|_| thrashes).map(|point| point.ram_bytes),
                covered_bytes: curve.covered(),
                entries: rows.count(),
                processes: rows.processes.len() as u64,
                threads: rows.processes.iter().map(|process| process.threads as u64).sum(),
                exit: rows.facts.exit,
                measured: question.measured.clone(),
                how_sure: Vec::new(),
                notes: rows.remarks(),
                curve: points,
                ..Common::new()
            },
        };
        answer.common.how_sure = answer.rests_on(rows);
        answer
    }

    /// Of several processes: `coldframe run` gives all of them one `--ram`, and the curve was found with one for each.
    /// So its sizes become what all have together then.
    pub(crate) fn in_one_budget(&mut self, rows: &Rows) {
        if rows.processes.len() < 2 {
            return;
        }
        let common = &mut self.common;
        let margin = common.needed_bytes.saturating_sub(common.managed_bytes);
        // With less RAM, pages that are shared after a fork are counted twice.
        let needed = round_up(rows.together(common.needed_bytes, margin));
        let all = |ram: u64| round_up(rows.together(ram, margin)).clamp(FRAMES_MIN as u64 * PAGE, needed);
        common.curve.iter_mut().for_each(|point| point.ram_bytes = all(point.ram_bytes));
        common.curve.dedup_by_key(|point| point.ram_bytes);
        if let Some(kernel) = &mut self.kernel {
            kernel.curve.iter_mut().for_each(|size| size.ram_bytes = all(size.ram_bytes));
            kernel.curve.dedup_by_key(|size| size.ram_bytes);
        }
        common.needed_bytes = all(common.needed_bytes);
        common.ram_bytes = common.ram_bytes.map(all);
        common.thrash_bytes = common.thrash_bytes.map(all);
        common.covered_bytes = rows.together(common.covered_bytes, margin);
        // A given size costs at most what the next smaller one does.
        let smaller =
            common.given_ram_bytes.and_then(|ram| common.curve.iter().position(|point| point.ram_bytes <= ram));
        if let (Some(ram_bytes), Some(place)) = (common.given_ram_bytes, smaller) {
            common.curve.insert(place, Point { ram_bytes, ..common.curve[place] });
            common.curve.dedup_by_key(|point| point.ram_bytes);
        }
    }

    /// Its sizes as limits.
    pub(crate) fn into_limits(self) -> Recorded {
        let rest = self.common.not_paged_bytes;
        let kernel = self.kernel.map(|mut kernel| {
            kernel.curve.iter_mut().for_each(|size| size.ram_bytes = round_limit(size.ram_bytes + rest));
            kernel
        });
        Recorded { kernel, common: self.common.into_limits(), ..self }
    }

    /// The assumptions of the answer, the most important first.
    fn rests_on(&self, rows: &Rows) -> Vec<String> {
        let mut notes = Vec::from_iter(
            (!self.common.measured.is_empty()).then(|| format!("The costs of paging were {}", self.common.measured)),
        );
        let threads = rows.processes.iter().map(|process| process.threads).max().unwrap_or(1);
        if threads > 1 {
            notes.push(format!("{threads} threads: their waits can overlap, so it may be faster"));
        }
        if self.common.processes > 1 {
            let processes = self.common.processes;
            notes.push(format!(
                "{processes} processes share this RAM; predictions give each the same part, and add up their waits"
            ));
        }
        if let Some(Sampled { share, error_percent }) = self.sampled {
            let share = 100.0 * share;
            let decimals = usize::from(share < 9.95);
            notes.push(format!(
                "{share:.decimals$} % of the pages were recorded, so paging may take {error_percent:.0} % more or less"
            ));
        }
        if self.window_pages > 0 {
            notes.push(format!("Below {} it may take longer", human_size(self.common.covered_bytes)));
        }
        if let Some(inferred) = rows.inferred {
            notes.push(inferred.into());
        }
        notes.push("Pages that are loaded for reading and then written with the same bytes count as clean".into());
        notes
    }
}
