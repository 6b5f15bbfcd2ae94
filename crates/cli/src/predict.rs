//! `coldframe run --predict`: simulates the run that has just been measured. The program runs a second time under the
//! recorder, without paging and with its heap at the same addresses. The recording then goes through an engine with
//! the configuration of the live run.
//!
//! Both runs get an environment in which the C library and the allocator make no choice by processor or clock.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use coldframe_advise::predict::{predict, Prediction};
use coldframe_experiment::ExperimentError;
use coldframe_journal::{self as journal, Head};
use coldframe_live::{Options, Snapshot};
use coldframe_record::{record, Level, Outcome, Recording, Via, PLUGIN};
use coldframe_recording::span::{Span, BASE_RECORDED, PAGE};
use coldframe_sheet::quantity::human_count;
use coldframe_show::table::styled;
use serde_json::{json, Value};

use crate::bundle;
use crate::failure::Failure;
use crate::progress::Line;

/// glibc chooses its copying routines by the processor, and how they copy large blocks by its caches. The recorded
/// program's processor is QEMU's. So both runs use the routines that every x86-64 processor has (names: glibc manual,
/// "Hardware Capability Tunables"), without the one that copies four pages at a time.
#[cfg(target_arch = "x86_64")]
const TUNABLES: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-SSSE3,-SSE4_1,-SSE4_2,-ERMS,\
-FSRM,-BMI1,-BMI2,-LZCNT,-MOVBE,-POPCNT,-RTM,-Fast_Rep_String,-Fast_Unaligned_Load,-Fast_Unaligned_Copy,-Prefer_PMINUB_for_stringop:glibc.cpu.x86_non_temporal_threshold=0x0fffffffffffffff";
#[cfg(not(target_arch = "x86_64"))]
const TUNABLES: &str = "glibc.cpu.name=generic";

/// Usually the heap returns free memory after 10 ms, but time passes differently under a recorder. So here the heap
/// keeps it. Returning it at once would also be the same in every run, but is less like a usual run.
const PURGE_DELAY: (&str, &str) = ("COLDFRAME_PURGE_DELAY", "-1");

/// Two runs of one program.
pub struct Twice {
    /// Journal, standard input, recording; deleted at the end.
    folder: tempfile::TempDir,
    /// Standard input, if it is not a terminal.
    input: Option<PathBuf>,
    journal: PathBuf,
    /// What was asked for and neither run does.
    left_out: Option<String>,
}

impl Twice {
    /// Before the first run: keeps a copy of the standard input, and makes the live run write its configuration to a
    /// journal. `asked` is the user's read-ahead, if any. The files are in `temporary` if the swap file has no
    /// folder.
    ///
    /// # Errors
    /// No files can be written to the folder of the swap file.
    pub fn prepare(options: &mut Options, asked: Option<&str>, temporary: PathBuf) -> Result<Twice, Failure> {
        let place = if options.backing.is_dir() { options.backing.clone() } else { temporary };
        let io = |e: std::io::Error| {
            Failure::from(ExperimentError::Io { path: place.display().to_string(), reason: e.to_string() })
        };
        let folder = tempfile::Builder::new().prefix(".coldframe-predict").tempdir_in(&place).map_err(io)?;
        let input = (!std::io::stdin().is_terminal()).then(|| folder.path().join("stdin"));
        if let Some(path) = &input {
            std::io::copy(&mut std::io::stdin().lock(), &mut File::create(path).map_err(io)?).map_err(io)?;
        }
        // Read-ahead depends on which of two threads is first.
        (options.read_ahead, options.block) = (0, 0);
        // Both runs use the same addresses, and the recorder needs special ones.
        options.base = Some(BASE_RECORDED);
        let journal = options.journal.get_or_insert_with(|| folder.path().join("journal")).clone();
        Ok(Twice { folder, input, journal, left_out: left_out(asked) })
    }

    /// Gives the live run its input and environment.
    ///
    /// # Errors
    /// The copy of the input is gone.
    pub fn surround(&self, command: &mut Command) -> Result<(), Failure> {
        command.envs(environment("0"));
        if let Some(path) = &self.input {
            let io =
                |e: std::io::Error| ExperimentError::Io { path: path.display().to_string(), reason: e.to_string() };
            command.stdin(File::open(path).map_err(io)?);
        }
        Ok(())
    }

    /// After the live run: records the program and simulates the recording.
    ///
    /// # Errors
    /// No recorder here, a recording that was stopped, a configuration that cannot be read.
    pub fn predict(
        &self,
        command: &[OsString],
        options: &Options,
        preload: &OsStr,
        quiet: bool,
    ) -> Result<Predicted, Failure> {
        let head = self.head()?;
        let trace = self.folder.path().join("recording.parquet");
        // The live run may have got fewer addresses than it asked for.
        let options = Options { max_memory: head.config.pages as u64 * PAGE, ..options.clone() };
        let outcome = self.record(command, &options, preload, &trace, quiet)?;
        let span = Span { start: BASE_RECORDED, len: options.max_memory };
        let prediction = predict(&trace, &head, span)?;
        Ok(Predicted { prediction, outcome, head, left_out: self.left_out.clone() })
    }

    fn head(&self) -> Result<Head, Failure> {
        let bad = |reason: String| ExperimentError::Unfit { path: self.journal.display().to_string(), reason };
        let mut text = Vec::new();
        let file = File::open(&self.journal).map_err(|e| bad(e.to_string()))?;
        file.take(4096).read_to_end(&mut text).map_err(|e| bad(e.to_string()))?;
        Ok(journal::open(&text).map_err(|e| bad(e.to_string()))?.0)
    }

    fn record(
        &self,
        command: &[OsString],
        options: &Options,
        preload: &OsStr,
        trace: &Path,
        quiet: bool,
    ) -> Result<Outcome, Failure> {
        let mut order = Recording::new(command[0].clone(), command[1..].to_vec(), trace);
        order.plugin = bundle::library(PLUGIN)?;
        (order.via, order.level, order.system_calls) = (Via::Qemu, Level::Pages(PAGE), true);
        (order.input, order.silent) = (self.input.clone(), true);
        order.environment = environment("1").into_iter().map(|(name, value)| (name.into(), value)).collect();
        order.environment.push(("LD_PRELOAD".into(), preload.to_owned()));
        order.environment.push(("COLDFRAME_OPTIONS".into(), options.encode().into()));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&order.stop))
                .map_err(|e| Failure::Other { message: format!("cannot catch signal {signal}: {e}"), code: 5 })?;
        }
        let mut line = Line::new(quiet);
        let outcome = record(&order, &mut |p| {
            line.show(p.references, None, &format!("recording: {} references", human_count(p.references)));
        })?;
        match outcome.limit {
            None => Ok(outcome),
            Some(limit) => {
                let message = format!("the recording was ended ({limit}), so there is no prediction");
                Err(Failure::Other { message, code: 1 })
            }
        }
    }
}

/// A note on read-ahead that was asked for.
fn left_out(asked: Option<&str>) -> Option<String> {
    let pages = asked.filter(|pages| *pages != "0")?;
    Some(format!(
        "--read-ahead {pages} was left out of the measured run, too: it depends on which of two threads is first, so it \
         cannot be predicted"
    ))
}

/// The environment of both runs. `layout_only` is the only difference; its value has the same length in both.
fn environment(layout_only: &str) -> Vec<(&'static str, OsString)> {
    let mut tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    if !tunables.is_empty() {
        tunables.push(":");
    }
    tunables.push(TUNABLES);
    vec![
        ("GLIBC_TUNABLES", tunables),
        (PURGE_DELAY.0, PURGE_DELAY.1.into()),
        ("COLDFRAME_LAYOUT_ONLY", layout_only.into()),
    ]
}

/// A prediction and its origin.
pub struct Predicted {
    prediction: Prediction,
    outcome: Outcome,
    head: Head,
    left_out: Option<String>,
}

/// A count: name, measured, predicted.
type Row = (&'static str, u64, u64);

impl Predicted {
    fn rows(&self, measured: &Snapshot) -> [Row; 5] {
        let (m, p) = (measured, &self.prediction);
        [
            ("true_faults", m.true_faults, p.true_faults),
            ("swap_loads", m.device_reads + m.log_hits, p.swap_loads),
            ("zero_fills", m.cold_faults, p.zero_fills),
            ("false_faults", m.false_faults, p.false_faults),
            ("pages_written", m.pages_written, p.pages_written),
        ]
    }

    /// Visible reasons why the prediction is not exact.
    fn notes(&self, measured: &Snapshot, status: ExitStatus) -> Vec<String> {
        let p = &self.prediction;
        let mut notes = Vec::from_iter(self.left_out.clone());
        if self.outcome.status != status {
            notes.push(format!(
                "the program ended otherwise in the second run ({}, then {}): it does not do the same twice",
                status, self.outcome.status
            ));
        }
        if p.threads > p.processes {
            notes.push(format!("{} threads: their order differs from run to run", p.threads));
        }
        if p.processes > 1 {
            notes.push(format!("{} processes: what one inherits from another is not simulated", p.processes));
        }
        if measured.writes_saved > 0 {
            let saved = human_count(measured.writes_saved);
            notes.push(format!(
                "{saved} pages were not written, their bytes being the old ones or zeros; the recording has no bytes, so pages \
                 written and swap loads are predicted too high"
            ));
        }
        notes.extend(self.outcome.not_recorded.iter().cloned());
        notes
    }

    /// For `--stats` and `--format json`.
    pub fn json(&self, measured: &Snapshot, status: ExitStatus) -> Value {
        let p = &self.prediction;
        let counts = self.rows(measured).map(|(name, measured, predicted)| {
            let deviation = deviation(measured, predicted);
            (name.to_string(), json!({ "measured": measured, "predicted": predicted, "deviation_percent": deviation }))
        });
        json!({
            "counts": serde_json::Map::from_iter(counts),
            "recording": {
                "references": self.outcome.references,
                "instructions": self.outcome.instructions,
                "managed_references": p.references,
                "managed_runs": p.runs,
                "managed_pages": p.pages,
                "threads": p.threads,
                "processes": p.processes,
                "seconds": self.outcome.seconds,
            },
            "config": {
                "policy": self.head.policy,
                "handler": self.head.handler,
                "frames": self.head.config.frames,
                "evict_batch": self.head.config.evict_batch,
                "reference_bit": self.head.config.caps.reference_bit,
            },
            "notes": self.notes(measured, status),
        })
    }

    /// For people.
    pub fn table(&self, measured: &Snapshot, status: ExitStatus) -> String {
        let p = &self.prediction;
        let rows = self.rows(measured).map(|(name, measured, predicted)| {
            let deviation = deviation(measured, predicted).map_or("-".into(), |d| format!("{d:+.2} %"));
            vec![name.replace('_', " "), human_count(measured), human_count(predicted), deviation]
        });
        let mut text = format!(
            "{}\n{} with {}, {} frames; recorded: {} references, {} of them to {} managed pages\n",
            styled(&["count", "measured", "predicted", "deviation"], rows.to_vec(), 1),
            self.head.policy,
            self.head.handler,
            self.head.config.frames,
            human_count(self.outcome.references),
            human_count(p.references),
            human_count(p.pages),
        );
        for note in self.notes(measured, status) {
            text += &format!("note: {note}\n");
        }
        text
    }
}

/// The error of the prediction, in percent of the measured value; `None` if only the measured value is 0.
fn deviation(measured: u64, predicted: u64) -> Option<f64> {
    match (measured, predicted) {
        (0, 0) => Some(0.0),
        (0, _) => None,
        _ => Some(100.0 * (predicted as f64 - measured as f64) / measured as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_is_a_share_of_what_was_measured() {
        assert_eq!([deviation(0, 0), deviation(0, 3), deviation(200, 201)], [Some(0.0), None, Some(0.5)]);
        assert_eq!(deviation(4, 3), Some(-25.0));
    }

    #[test]
    fn read_ahead_that_was_asked_for_and_left_out_is_said() {
        assert_eq!([left_out(None), left_out(Some("0"))], [None, None]);
        assert!(left_out(Some("block:8")).unwrap().contains("--read-ahead block:8 was left out"));
    }

    #[test]
    fn both_runs_have_the_same_surroundings_but_for_who_pages() {
        let (live, recorded) = (environment("0"), environment("1"));
        assert_eq!(live[..2], recorded[..2]);
        let length = |all: &[(&str, OsString)]| all.iter().map(|(n, v)| n.len() + v.len()).sum::<usize>();
        assert_eq!(length(&live), length(&recorded));
    }
}
