//! `coldframe attach`: how little RAM a process needs that runs already, and its children.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::{watch, Answer, Question};
use coldframe_sheet::quantity;
use coldframe_show::export::{self, Exported};
use coldframe_show::html::Page;
use coldframe_show::machine_answer::words;

use crate::failure::Failure;
use crate::output;
use coldframe_terminal::listener::Terminal;

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
    let time = quantity::duration(&args.time).map_err(|e| Failure::usage(format!("--for: {e}")))?;
    if time < LEAST {
        return Err(Failure::usage(format!("--for: {} is too short; give at least 100ms", args.time)));
    }
    let answer = watch::process(args.process, time, Question::SLOWDOWN, &Terminal::new(quiet))?;
    let answer = Answer::ReferencedBits(answer);
    output::result(&args.format, &answer, || words(&answer, None, None, ""))?;
    Exported::here(&answer, None).write(&args.export, &Page::of(&answer))?;
    Ok(ExitCode::from(u8::from(answer.ram_bytes.is_none())))
}

/// Less shows nothing.
const LEAST: Duration = Duration::from_millis(100);
