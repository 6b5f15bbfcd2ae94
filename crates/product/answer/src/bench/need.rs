//! What a program takes at its peak, and what grew since a baseline: what its memory group was charged, and the heap
//! that our pager has recorded. Both are counted, not estimated, so load on the machine changes nothing.

use std::path::Path;

use coldframe_sheet::quantity::human_size;
use coldframe_store::ProcessFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::AnswerError;
use crate::predict::common::program;
use crate::predict::question::Reading;
use crate::run::looks::group::GroupUse;
use crate::SCHEMA_VERSION;

/// Growth by less than this part, or by fewer bytes, is none: the kernel charges pages in batches.
pub const GROWTH: (f64, u64) = (0.02, 1 << 20);

/// What a program takes at its peak: the contents of a baseline.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    /// Version of this object's form.
    pub schema_version: u32,
    /// `baseline`.
    pub kind: String,
    /// Version of coldframe.
    pub version: String,
    /// The program's name.
    pub program: String,
    /// Its command line.
    pub command: String,
    /// The most that its memory group was charged, without a limit and with files that it maps read from the disk;
    /// null: no group could be made.
    pub peak_bytes: Option<u64>,
    /// The parts of that.
    pub parts: Option<GroupUse>,
    /// The most heap of all processes at one time; null: our pager does not serve it.
    pub heap_bytes: Option<u64>,
    /// Processes that matter, the largest heap first.
    pub processes: Vec<Part>,
}

/// The memory of one process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Its program's name.
    pub program: String,
    /// The most heap at a time.
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

impl Grown {
    /// By more than a number that is counted varies.
    fn is_real(&self) -> bool {
        is_more(self.before_bytes, self.now_bytes)
    }
}

/// Whether bytes grew.
pub fn is_more(before: u64, now: u64) -> bool {
    now > before + GROWTH.1 && now as f64 > (1.0 + GROWTH.0) * before as f64
}

/// The heap of one recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Heap {
    /// The most of all processes at one time.
    pub bytes: u64,
    /// Of each process.
    pub processes: Vec<Part>,
}

impl Heap {
    /// Of a recording.
    pub fn of(reading: &Reading) -> Heap {
        let mut matter: Vec<&ProcessFacts> =
            reading.provenance.group.iter().filter(|process| !process.left_out).collect();
        matter.sort_by_key(|process| std::cmp::Reverse(process.managed_bytes));
        let part = |process: &&ProcessFacts| Part {
            program: program(Some(&process.command)),
            managed_bytes: process.managed_bytes,
        };
        Heap { bytes: reading.rows.sum(), processes: matter.iter().map(part).collect() }
    }
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
        let no_baseline = |why: &str| {
            let again = format!("write it anew with --write-baseline {shown}");
            AnswerError::new(3, format!("{shown}: is no baseline of this version{why}; {again}"))
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| no_baseline(&format!(": {e}")))?;
        if value["kind"] != "baseline" {
            return Err(no_baseline(""));
        }
        serde_json::from_value(value).map_err(|e| no_baseline(&format!(": {e}")))
    }

    /// Of runs in groups without a limit, and of recordings: of the smallest or the largest of each.
    pub fn new(command: &str, groups: &[GroupUse], heaps: &[Heap], largest: bool) -> Need {
        fn one<T>(all: &[T], bytes: fn(&T) -> u64, largest: bool) -> Option<&T> {
            let (least, most) = (all.iter().min_by_key(|one| bytes(one)), all.iter().max_by_key(|one| bytes(one)));
            if largest {
                most
            } else {
                least
            }
        }
        let group = one(groups, |group| group.peak_bytes, largest);
        let heap = one(heaps, |heap| heap.bytes, largest);
        Need {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").into(),
            kind: "baseline".into(),
            program: program(Some(command)),
            command: command.into(),
            peak_bytes: group.map(|group| group.peak_bytes),
            parts: group.map(|group| GroupUse { worked_seconds: None, waited_seconds: None, others: 0.0, ..*group }),
            heap_bytes: heap.map(|heap| heap.bytes),
            processes: heap.map_or_else(Vec::new, |heap| heap.processes.clone()),
        }
    }

    /// Whether both know a number that can be compared.
    pub fn is_like(&self, other: &Need) -> bool {
        let known = |pair: (Option<u64>, Option<u64>)| pair.0.is_some() && pair.1.is_some();
        known((self.peak_bytes, other.peak_bytes)) || known((self.heap_bytes, other.heap_bytes))
    }

    /// The peaks that grew since the baseline, then what else did, the largest growth in bytes first. Empty: no peak
    /// grew.
    pub fn grown_since(&self, before: &Need) -> Vec<Grown> {
        let row = |what: &str, before_bytes, now_bytes| Grown { what: what.into(), before_bytes, now_bytes };
        let both = |what: &str, before: Option<u64>, now: Option<u64>| Some(row(what, before?, now?));
        let peaks = [
            both("peak of its group", before.peak_bytes, self.peak_bytes),
            both("heap at its peak", before.heap_bytes, self.heap_bytes),
        ];
        let mut grown: Vec<Grown> = peaks.into_iter().flatten().filter(Grown::is_real).collect();
        if grown.is_empty() {
            return grown;
        }
        let mut why = Vec::new();
        if let (Some(before), Some(now)) = (&before.parts, &self.parts) {
            why.push(row("anonymous memory", before.anonymous_bytes, now.anonymous_bytes));
            why.push(row("files", before.files_bytes, now.files_bytes));
            why.push(row("shared memory and tmpfs", before.shared_bytes, now.shared_bytes));
            why.push(row("the kernel's own", before.kernel_bytes, now.kernel_bytes));
        }
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
            why.extend(names.iter().map(heap));
        }
        why.retain(Grown::is_real);
        why.sort_by_key(|row| std::cmp::Reverse(row.now_bytes - row.before_bytes));
        grown.extend(why);
        grown
    }
}

/// What to know of peaks that varied by more than growth may be. `None`: they did not.
pub fn varied(groups: &[GroupUse]) -> Option<String> {
    let peaks = || groups.iter().map(|group| group.peak_bytes);
    let (low, high) = (peaks().min()?, peaks().max()?);
    let words = || {
        format!(
            "its peak varies by itself, {} to {} in {} runs: the smallest is held against the baseline, and the \
             largest is written",
            human_size(low),
            human_size(high),
            groups.len()
        )
    };
    is_more(low, high).then(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn need(peak: u64, heap: u64) -> Need {
        let group = GroupUse { peak_bytes: peak, anonymous_bytes: peak, ..GroupUse::default() };
        Need::new("app", &[group], &[Heap { bytes: heap, processes: Vec::new() }], false)
    }

    fn names(now: &Need, before: &Need) -> Vec<String> {
        now.grown_since(before).into_iter().map(|row| row.what).collect()
    }

    #[test]
    fn growth_beyond_two_percent_and_a_mebibyte_is_named_with_what_it_comes_from() {
        let before = need(100 * MIB, 80 * MIB);
        for (peak, heap, grown) in [
            (102 * MIB, 81 * MIB, &[][..]),
            (103 * MIB, 80 * MIB, &["peak of its group", "anonymous memory"]),
            (100 * MIB, 83 * MIB, &["heap at its peak"]),
            (50 * MIB, 40 * MIB, &[]),
            (300 * MIB, 240 * MIB, &["peak of its group", "heap at its peak", "anonymous memory"]),
        ] {
            assert_eq!(names(&need(peak, heap), &before), grown, "{peak} {heap}");
        }
        // Of a small program a mebibyte is noise, however large a part of it that is.
        assert_eq!(names(&need(5 * MIB, 2 * MIB), &need(4 * MIB, MIB)), [""; 0]);
    }

    #[test]
    fn of_processes_the_one_that_grew_is_named() {
        let parts = |sizes: &[(&str, u64)]| -> Vec<Part> {
            sizes.iter().map(|(name, mib)| Part { program: (*name).into(), managed_bytes: mib * MIB }).collect()
        };
        let before = Need { processes: parts(&[("cc1", 50), ("ld", 10)]), ..need(70 * MIB, 60 * MIB) };
        let now = Need { processes: parts(&[("cc1", 61), ("ld", 10)]), ..need(82 * MIB, 71 * MIB) };
        assert_eq!(names(&now, &before), ["peak of its group", "heap at its peak", "anonymous memory", "heap of cc1"]);
    }

    #[test]
    fn where_peaks_vary_the_smallest_is_held_against_the_largest_of_before() {
        let group = |mib: u64| GroupUse { peak_bytes: mib * MIB, ..GroupUse::default() };
        let runs = [group(60), group(75)];
        let of = |largest| Need::new("app", &runs, &[], largest).peak_bytes.unwrap() / MIB;
        assert_eq!((of(false), of(true)), (60, 75));
        assert!(varied(&runs).unwrap().contains("60 MiB to 75 MiB in 2 runs") && varied(&runs[..1]).is_none());
    }

    #[test]
    fn what_only_one_of_both_knows_is_not_compared() {
        let (group, heap) = (Need { heap_bytes: None, ..need(9, 9) }, Need { peak_bytes: None, ..need(9, 9) });
        assert!(!group.is_like(&heap) && group.is_like(&need(9, 9)) && heap.is_like(&need(9, 9)));
        assert!(need(900 * MIB, 9).grown_since(&heap).is_empty());
    }

    #[test]
    fn a_file_of_another_form_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("need.json");
        for old in ["{\"kind\": \"need\", \"need_bytes\": 5}", "{\"kind\": \"baseline\"}", "[]", "no"] {
            std::fs::write(&file, old).unwrap();
            let message = Need::read(&file).unwrap_err().to_string();
            assert!(
                message.contains("is no baseline of this version") && message.contains("write it anew"),
                "{message}"
            );
        }
        let written = need(1, 2);
        std::fs::write(&file, serde_json::to_string(&written).unwrap()).unwrap();
        assert_eq!(Need::read(&file).unwrap(), written);
    }
}
