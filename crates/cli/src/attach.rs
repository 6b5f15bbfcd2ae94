//! `coldframe attach`: how little RAM a process needs that runs already, and its children.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::{AskedOfBits, Question};
use coldframe_proc::Watch;
use coldframe_sheet::quantity;
use coldframe_show::export::Exported;

use crate::failure::Failure;
use crate::progress::Line;
use crate::recording_end::Signals;
use crate::watched::{answer, code, prices, said, show};
use crate::{export, output};

/// Watch a process that runs, and print how long its work takes with less RAM on this machine.
///
/// It needs no restart, and no right for a process of one's own. Which of its pages the process references is read from
/// the bits that the processor sets. Its children are watched, too, and share the RAM. The result is approximate, and
/// holds for what the process did meanwhile. Ctrl-C ends the watching, and the answer is about the time until then; the
/// process goes on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe attach 4711
  coldframe attach 4711 --for 300s --export answer.md

Exit codes: 0 a size is recommended; 1 none is, or there is nothing to save; 2 no such process; 4 the process cannot be \
watched (another user's, in swap, in huge pages).")]
pub struct Args {
    /// The number of the process.
    #[arg(value_name = "PID")]
    process: u32,
    /// How long to watch.
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    time: String,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html, prom. May repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    export::known(&args.export)?;
    let time = quantity::time(&args.time).map_err(|e| Failure::usage(format!("--for: {e}")))?;
    let time = Duration::from_nanos(time.0 / 1000);
    if time < LEAST {
        return Err(Failure::usage(format!("--for: {} is too short; give at least 100ms", args.time)));
    }
    let watch = Watch::of(args.process, false)?;
    let command = command(args.process);
    let signals = Signals::catch()?;
    let mut line = Line::new(quiet);
    let watched = watch.run(&mut |progress| {
        show(&mut line, progress, Some(time));
        progress.elapsed < time && !signals.came()
    });
    drop(line);
    let slowdown = Question::SLOWDOWN;
    let (process, why) = (Some(args.process), String::new());
    let asked = AskedOfBits { command, process, exit: Some(0), prices: prices()?, why, slowdown };
    let answer = answer(&watched, &asked)?;
    let text = if args.format == "json" { output::json(&answer.json()) } else { said(&answer, None) };
    output::write(None, &text)?;
    export::export_here(&args.export, &answer, &Exported::here(&answer, None))?;
    Ok(code(&answer))
}

/// Less shows nothing.
const LEAST: Duration = Duration::from_millis(100);

/// The command line of a process, as a shell reads it.
fn command(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = words.trim_end_matches('\0').split('\0').collect();
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
}
