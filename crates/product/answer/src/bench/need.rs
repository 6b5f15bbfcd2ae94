//! The number that `check` compares with a limit: the least RAM for paged memory with which the program is at most so
//! much slower than with all that it needs.
//!
//! It counts pages, and not what was allocated: the heap pages that must be in RAM so that the others do not come back
//! too often. Memory that was allocated and not touched, freed memory that an allocator keeps, and files are not in it.
//! Three things make it steadier than the recommended size: it is compared with the run in all its RAM, so the
//! pager's own start cancels; it is on the line between two sizes of the curve; and the program's own time and the
//! costs of this machine, which load on the machine changes, can be those of a baseline.

use std::path::Path;

use crate::error::AnswerError;
use crate::SCHEMA_VERSION;
use coldframe_recording::span::PAGE;
use coldframe_sheet::Sheet;
use coldframe_store::ProcessFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Answer, Method, Point};

/// Growth by less than this part is taken to be noise: an aim, which has not been measured (`docs/book/src/check.md`).
pub const NOISE: f64 = 0.02;

/// What a program needs: the contents of a baseline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    /// Version of this object's form.
    pub schema_version: u32,
    /// `need`.
    pub kind: String,
    /// Version of coldframe.
    pub version: String,
    /// How the program was watched.
    #[serde(rename = "method")]
    pub method: Method,
    /// The program's name.
    pub program: String,
    /// Its command line.
    pub command: Option<String>,
    /// The least RAM for paged memory, in bytes.
    pub need_bytes: u64,
    /// The recorder's window hides whether less would do, too.
    pub at_most: bool,
    /// The longest extra time, in percent of the program's own.
    pub slowdown_percent: f64,
    /// The most paged memory of a process at a time.
    pub managed_bytes: u64,
    /// The most paged memory of all processes at one time.
    #[serde(default)]
    pub together_bytes: u64,
    /// The most RAM of memory that is not paged.
    pub not_paged_bytes: u64,
    /// Pages of heap that were touched, as bytes.
    pub touched_bytes: u64,
    /// The program's own time.
    pub program_seconds: f64,
    /// How far the recordings of a baseline were apart, as a part of the need.
    #[serde(default)]
    pub noise: f64,
    /// Processes that matter, the largest first.
    pub processes: Vec<Part>,
    /// The machine whose costs price a page that comes back.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub sheet: Option<Sheet>,
}

/// The memory of one process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Its program's name.
    pub program: String,
    /// The most paged memory at a time.
    pub managed_bytes: u64,
}

/// A number that is larger than in the baseline.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Grown {
    /// Its name, for people.
    pub what: String,
    /// Bytes in the baseline; 0: it was not there.
    pub before_bytes: u64,
    /// Bytes now.
    pub now_bytes: u64,
}

impl Need {
    /// A baseline.
    ///
    /// # Errors
    /// The file cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Need, AnswerError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| {
            AnswerError::new(5, format!("{shown}: cannot be read: {e}; write one with --write-baseline {shown}"))
        })?;
        let again = format!("write it anew with --write-baseline {shown}");
        let need: Need = serde_json::from_str(&text)
            .map_err(|e| AnswerError::new(3, format!("{shown}: is no baseline: {e}; {again}")))?;
        match need.kind == "need" {
            true => Ok(need),
            false => Err(AnswerError::new(3, format!("{shown}: is no baseline; {again}"))),
        }
    }

    /// Of an answer, and of the processes that it is about.
    pub fn new(answer: &Answer, group: &[ProcessFacts], sheet: Option<Sheet>) -> Need {
        let (need_bytes, at_most) = needed(answer, answer.slowdown_percent / 100.0 * answer.program_seconds);
        let mut matter: Vec<_> = group.iter().filter(|process| !process.left_out).collect();
        matter.sort_by_key(|process| std::cmp::Reverse(process.managed_bytes));
        let part = |process: &&ProcessFacts| Part {
            program: crate::predict::common::program(Some(&process.command)),
            managed_bytes: process.managed_bytes,
        };
        Need {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").into(),
            kind: "need".into(),
            method: answer.method(),
            program: answer.program.clone(),
            command: answer.command.clone(),
            need_bytes,
            at_most,
            slowdown_percent: answer.slowdown_percent,
            managed_bytes: answer.managed_bytes,
            together_bytes: answer.together_bytes,
            not_paged_bytes: answer.not_paged_bytes,
            touched_bytes: answer.curve.first().map_or(0, |full| full.zero_fills * PAGE),
            program_seconds: answer.program_seconds,
            noise: 0.0,
            processes: matter.iter().map(part).collect(),
            sheet,
        }
    }

    /// What grew by more than noise since the baseline, the largest growth in bytes first.
    pub fn grown_since(&self, before: &Need, noise: f64) -> Vec<Grown> {
        let row = |what: &str, before_bytes, now_bytes| Grown { what: what.into(), before_bytes, now_bytes };
        let mut rows = vec![
            row("least RAM", before.need_bytes, self.need_bytes),
            row("heap at its peak", before.managed_bytes, self.managed_bytes),
            row("heap touched in all", before.touched_bytes, self.touched_bytes),
            row("not paged", before.not_paged_bytes, self.not_paged_bytes),
        ];
        if self.processes.len() > 1 || before.processes.len() > 1 {
            let heap_of = |parts: &[Part], name: &str| {
                let named = parts.iter().filter(|part| part.program == name);
                named.map(|part| part.managed_bytes).sum::<u64>()
            };
            let mut names: Vec<&str> = self.processes.iter().map(|part| part.program.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let heap = |name: &&str| {
                row(&format!("heap of {name}"), heap_of(&before.processes, name), heap_of(&self.processes, name))
            };
            rows.extend(names.iter().map(heap));
        }
        rows.retain(|row| row.now_bytes as f64 > (1.0 + noise) * row.before_bytes as f64 + PAGE as f64);
        rows.sort_by_key(|row| std::cmp::Reverse(row.now_bytes - row.before_bytes));
        rows
    }
}

/// The least RAM with which paging takes at most `extra` seconds more than with all the RAM that the program needs, on
/// the line between two sizes. Below the recorder's window times are only lower bounds, so no size there counts; then
/// the second value is true.
fn needed(answer: &Answer, extra: f64) -> (u64, bool) {
    let full = answer.curve.first().map_or(0.0, |point| point.seconds);
    let more = |point: &Point| point.seconds - full;
    let mut needed = answer.curve.first().map_or(0, |point| point.ram_bytes);
    for pair in answer.curve.windows(2) {
        let (above, below) = (&pair[0], &pair[1]);
        needed = below.ram_bytes;
        if more(below) > extra {
            let part = (extra - more(above)) / (more(below) - more(above));
            needed = above.ram_bytes - (part * (above.ram_bytes - below.ram_bytes) as f64) as u64;
            break;
        }
    }
    let heap = answer.managed_bytes.max(answer.together_bytes);
    (needed.max(answer.covered_bytes).min(heap), needed < answer.covered_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A program of 1 s and 100 MiB whose curve goes through these points, in MiB and seconds.
    fn answer(points: &[(u64, f64)], covered_mib: u64) -> Answer {
        let point = |(ram, seconds): &(u64, f64)| Point { ram_bytes: ram * MIB, seconds: *seconds, ..Point::default() };
        let curve: Vec<Point> = points.iter().map(point).collect();
        let json = serde_json::json!({ "schema_version": 1, "version": "0", "kind": "advice", "device": "here",
            "program": "p",
            "command": null, "trace": "t", "program_seconds": 1.0, "not_paged_bytes": MIB, "managed_bytes": 100 * MIB,
            "needed_bytes": 101 * MIB, "ram_bytes": null, "slowdown_percent": 10.0, "curve": curve,
            "thrash_bytes": null, "method": "recorder", "recorded_seconds": 1.0, "memory_use": null,
                "covered_bytes": covered_mib * MIB, "policy": "fifo", "read_ahead": 0, "evict_batch": 1,
                "sampled": null,
            "window_pages": 1, "entries": 1, "processes": 1, "threads": 1, "exit": 0, "measured": "", "how_sure": [],
                "notes": [] });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_number_lies_on_the_line_between_two_sizes_and_the_pagers_start_cancels() {
        // 0.3 s of start for all sizes; 0.1 s more is reached half way between 60 and 40 MiB.
        let answer = answer(&[(101, 1.3), (60, 1.35), (40, 1.45), (20, 9.0)], 10);
        assert_eq!(needed(&answer, 0.1), (50 * MIB, false));
    }

    #[test]
    fn below_the_recorders_window_there_is_no_number_and_all_it_touched_is_enough() {
        let curve = [(101, 1.3), (60, 1.35), (40, 1.45), (20, 9.0)];
        assert_eq!(needed(&answer(&curve, 55), 0.1), (55 * MIB, true));
        assert_eq!(needed(&answer(&curve, 55), 0.0), (100 * MIB, false));
        // It never takes longer: the smallest size that was tried.
        assert_eq!(needed(&answer(&[(101, 1.3), (60, 1.3)], 10), 0.1), (60 * MIB, false));
    }

    #[test]
    fn what_grew_by_more_than_noise_is_named_with_its_process() {
        let answer = answer(&[(101, 1.3), (60, 1.3)], 10);
        let process = |name: &str, mib| ProcessFacts {
            command: name.into(),
            managed_bytes: mib * MIB,
            ..ProcessFacts::default()
        };
        let before = Need::new(&answer, &[process("/bin/cc1 x", 50), process("ld", 10)], None);
        let mut now = before.clone();
        now.need_bytes += before.need_bytes / 100;
        assert_eq!(now.grown_since(&before, NOISE), []);
        now.need_bytes = 2 * before.need_bytes;
        now.processes = vec![Part { program: "cc1".into(), managed_bytes: 61 * MIB }];
        let grown: Vec<_> = now.grown_since(&before, NOISE).into_iter().map(|row| row.what).collect();
        assert_eq!(grown, ["least RAM", "heap of cc1"]);
        assert_eq!(
            before.grown_since(&now, NOISE),
            [Grown { what: "heap of ld".into(), before_bytes: 0, now_bytes: 10 * MIB }]
        );
    }
}
