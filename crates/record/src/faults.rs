//! The page faults of a program on the stock kernel, sampled by `perf record -e page-faults` and read from `perf
//! script`.
//!
//! There is no emulation: the program runs at its own speed, apart from one record for each fault. Only faults are
//! recorded, not references: the first touch of each page, and each page that comes back from swap. It is possible to
//! attach to a running program.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use coldframe_formats::{import, parse_spec};
use coldframe_store::{Summary, TraceError};

use crate::error::RecordError;
use crate::program;

/// The program to record.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A program, from its start to its end.
    Program(OsString, Vec<OsString>),
    /// A running process with all its threads, for this time.
    Process(u32, Duration),
}

/// The result.
#[derive(Debug, Clone)]
pub struct Faults {
    /// The trace's totals.
    pub summary: Summary,
    /// From the start to the end of the program, or of the time attached.
    pub seconds: f64,
    /// The program's run time without the recorder, if this was asked for.
    pub native_seconds: Option<f64>,
    /// The program's status; perf's own when attached.
    pub status: ExitStatus,
}

const PACKAGE: &str = "linux-perf";

/// Records the faults of `subject` as a trace at `out`. With `overhead`, the program first runs alone, without input
/// and output.
///
/// # Errors
/// [`RecordError::MissingTool`] without perf; [`RecordError::Usage`] if perf refuses, with its own words;
/// [`RecordError::Trace`] if there was no fault, or the trace cannot be written.
pub fn record_faults(
    subject: &Subject,
    out: &Path,
    search_path: &OsString,
    overhead: bool,
) -> Result<Faults, RecordError> {
    let perf = program::tool("perf", search_path)
        .ok_or_else(|| RecordError::MissingTool { tool: "perf".into(), package: PACKAGE })?;
    let (data, text) = (beside(out, "perf.data"), beside(out, "perf.txt"));
    let done = run(&perf, subject, &data, &text, out, search_path, overhead);
    // The two files are not needed any more; the trace has their content.
    let _ = (std::fs::remove_file(&data), std::fs::remove_file(&text));
    done
}

fn beside(out: &Path, suffix: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn run(
    perf: &Path,
    subject: &Subject,
    data: &Path,
    text: &Path,
    out: &Path,
    search_path: &OsString,
    overhead: bool,
) -> Result<Faults, RecordError> {
    let mut command = Command::new(perf);
    // -c 1: every fault; -d: the address touched; --sample-cpu: what the reader needs to find the columns.
    command.args(["record", "-q", "-e", "page-faults", "-c", "1", "-d", "--sample-cpu", "-o"]).arg(data);
    let mut native_seconds = None;
    match subject {
        Subject::Program(name, arguments) => {
            let target = program::resolve(name, arguments, search_path)?;
            native_seconds = if overhead { Some(crate::native(&target)?) } else { None };
            command.arg("--").arg(&target.binary).args(target.arguments.iter().skip(1));
        }
        Subject::Process(pid, time) => {
            command.args(["-p", &pid.to_string(), "--", "sleep", &time.as_secs_f64().to_string()]);
        }
    }
    let start = Instant::now();
    let status = command.status().map_err(RecordError::io("start perf"))?;
    let seconds = start.elapsed().as_secs_f64();
    if !data.exists() {
        return Err(refused("perf record", &status));
    }
    print(perf, data, text)?;
    let spec = parse_spec(&format!("perf:{}", text.display()))?;
    let summary = import(&spec, out, &mut |_| ()).map_err(|error| match error {
        TraceError::Empty { .. } => no_fault(),
        error => error.into(),
    })?;
    Ok(Faults { summary, seconds, native_seconds, status })
}

fn no_fault() -> RecordError {
    RecordError::Usage {
        what: "page faults".into(),
        found: "there was none while perf looked".into(),
        remedy: "attach for longer, or when the program touches new memory".into(),
    }
}

/// perf's own message is on stderr.
fn refused(what: &str, status: &ExitStatus) -> RecordError {
    RecordError::Usage {
        what: what.into(),
        found: format!("{status}; its own message is above"),
        remedy: "as an ordinary user, allow it with sysctl kernel.perf_event_paranoid=1, or check the process number"
            .into(),
    }
}

fn print(perf: &Path, data: &Path, text: &Path) -> Result<(), RecordError> {
    let file = File::create(text).map_err(RecordError::io(format!("create {}", text.display())))?;
    let mut script = Command::new(perf);
    script.args(["script", "-F", "comm,pid,tid,cpu,time,event,addr,ip", "--ns", "-i"]).arg(data);
    let status = script.stdout(file).stdin(Stdio::null()).status().map_err(RecordError::io("start perf"))?;
    if status.success() {
        Ok(())
    } else {
        Err(refused("perf script", &status))
    }
}
