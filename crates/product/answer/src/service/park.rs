//! Programs that take turns in less RAM than they need together; and the process of coldframe that keeps one of them.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;

pub use coldframe_kernel::{Bytes, Program};
use coldframe_kernel::{Guard, KernelError, Parking, SwapKind, Tree};
use coldframe_sheet::sheet::stored;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::run::by_kernel::swappable;
use crate::run::guards::{folder, guard, this};

/// Programs that are or were parked.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Parked {
    /// The programs.
    pub programs: Vec<Program>,
}

fn parking() -> Result<Parking, AnswerError> {
    let message = "XDG_RUNTIME_DIR is not set; set it to a folder of your own, for the sockets of parked programs";
    let folder = folder().ok_or_else(|| AnswerError::new(4, message))?;
    Ok(Parking::new(folder, lists(), env!("CARGO_PKG_VERSION")))
}

/// The folder for what programs used, for their next start.
pub(crate) fn lists() -> PathBuf {
    // Without a folder no list can be written.
    stored::folder().unwrap_or("/dev/null".into()).join("lists")
}

/// All programs that are or were parked.
///
/// # Errors
/// There is no folder for their sockets.
pub fn list() -> Result<Parked, AnswerError> {
    Ok(Parked { programs: parking()?.programs() })
}

/// Stops a program and pushes its pages out. `swap`: what is made for it when it is parked for the first time, and
/// stays until it ends.
///
/// # Errors
/// It cannot be parked: it continues as before.
pub fn park(name: &str, swap: Option<&str>) -> Result<Program, AnswerError> {
    let parking = parking()?;
    if let Some(done) = parking.ask(name, "park")? {
        return Ok(done);
    }
    let kind = swap.map(SwapKind::parse);
    kind.as_ref().map_or(Ok(()), |kind| swappable(&Tree::machine(), kind))?;
    // The parking process has another folder.
    start(name, kind.map(|kind| kind.to_string()))?;
    parking.ask(name, "park")?.ok_or_else(|| lost(name))
}

/// Lets a parked program run; `soon`: only fetches its pages.
///
/// # Errors
/// It is not parked, has ended, or is in a group that another has frozen.
pub fn resume(name: &str, soon: bool) -> Result<Program, AnswerError> {
    let verb = if soon { "soon" } else { "resume" };
    parking()?.ask(name, verb)?.ok_or_else(|| lost(name))
}

fn lost(name: &str) -> AnswerError {
    let message = format!("{name} is not parked: it never was, or has ended; `coldframe park --list` lists what is");
    AnswerError::new(4, message)
}

/// Starts the program's parking process, which outlives this process.
fn start(name: &str, swap: Option<String>) -> Result<(), AnswerError> {
    let failed = |e: std::io::Error| KernelError::Refused(format!("the parking process cannot be started: {e}"));
    let mut command = this("kernel-park")?;
    command.args(swap.map(|swap| format!("--swap={swap}")));
    command.arg("--").arg(name).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).current_dir("/");
    let mut parking_process = command.spawn().map_err(failed)?;
    let mut reply = String::new();
    let stdout = parking_process.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut reply).map_err(failed)?;
    match reply.trim() {
        "ready" => Ok(()),
        why => Err(KernelError::Refused(why.into()).into()),
    }
}

/// The parking process, in a session of its own.
///
/// # Errors
/// There is no folder for its socket.
pub fn keep(name: &str, swap: Option<&str>) -> Result<(), AnswerError> {
    let _ = rustix::process::setsid();
    let reply = |line: &str| {
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    };
    let parking = parking()?;
    let held = hold(swap).and_then(|held| {
        parking.keep(&Tree::machine(), name, &guard, || reply("ready"))?;
        Ok(held)
    });
    match held {
        Ok(held) => _ = held.map(Guard::end),
        Err(error) => reply(&error.to_string()),
    }
    Ok(())
}

/// Makes swap; it goes with the guard.
pub(crate) fn hold(swap: Option<&str>) -> Result<Option<Guard>, KernelError> {
    let Some(kind) = swap.map(SwapKind::parse) else { return Ok(None) };
    let mut guard = guard()?;
    guard.swap(&kind, kind.size(&Tree::machine(), None))?;
    Ok(Some(guard))
}
