//! `coldframe check`: yes or no, by the exit code. It is asked about a trace, or about a program, which it records.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_answer::check::{check, Check};
use coldframe_answer::{Answer, Need, DEVICE};
use coldframe_plots::board_answer as words;
use coldframe_search::json;
use coldframe_show::export::{self, Exported};
use coldframe_show::html::Page;
use coldframe_show::{machine_answer, verdict_answer};

use crate::advise::{self, Asked, How};
use crate::export::export_board;
use crate::failure::Failure;
use crate::output;
use crate::terminal::Terminal;

/// Say yes or no: does a program keep within so much RAM, or is there a size that meets the limits? For pipelines.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe check --max-ram 64MiB --max-slowdown 10% -- python3 script.py
  coldframe check --write-baseline need.json -- ./tests
  coldframe check --baseline need.json --export check.md --export check.xml -- ./tests
  coldframe check bzip2.parquet --device NAND01GW3B2B --max-ram 512KiB --max-slowdown 5%

With a program: it is recorded as `coldframe -- PROGRAM` records it. The number that is compared with --max-ram is the \
least RAM for its heap with which it is at most --max-slowdown (10 %) slower than with all it needs. It counts pages \
that must be in RAM: not memory that was allocated and not touched, not what an allocator keeps, no page cache, no code. \
If the answer is no, the program is recorded twice more, and the median counts.
Where the pager cannot record it, its pages' referenced bits are watched: coarser, and the answer says so.
--baseline also takes the program's own time and the costs of paging from that file, so that a slower or busier machine \
changes nothing. Without --max-ram, the limit is then the baseline's number and 2 %.

Exit codes: 0 within the limit; 1 over it; 2 usage; 3 the program failed, or touched no heap; 4 the program \
cannot be watched, or not as for the baseline; 5 a file cannot be read or written; 126, 127 as in shells.")]
pub struct Args {
    /// A trace (Parquet), instead of a program. If its configuration (-c) has a RAM size, only that size is tried.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    how: How,
    /// What the program needed earlier: say what grew since then, and measure with that machine's costs.
    #[arg(long, value_name = "NEED.json", requires = "command")]
    baseline: Option<PathBuf>,
    /// Write what the program needs to this file, as the median of three recordings.
    #[arg(long, value_name = "NEED.json", requires = "command")]
    write_baseline: Option<PathBuf>,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html, prom, or xml (JUnit). May
    /// repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// How to print the answer.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
    /// The program and its arguments.
    #[arg(last = true)]
    command: Vec<OsString>,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    export::known(&args.export)?;
    let Args { trace: Some(trace), how, export, format, .. } = args else { return program(&args, quiet) };
    let asked = Asked { trace, how };
    if advise::is_here(&asked) {
        return of_trace(&asked, &export, &format);
    }
    let advice = advise::answer(&asked, quiet)?;
    let (within, sentence) = (advice.best.is_some(), words::sentence(&advice));
    let sentence = format!("{}: {sentence}", if within { "yes" } else { "no" });
    let data = json::json(&advice);
    let text = if format == "json" { output::json(&data) } else { sentence.clone() };
    output::write(None, &text)?;
    export_board(&export, data, sentence, Some(within))?;
    Ok(ExitCode::from(u8::from(!within)))
}

/// A trace of this machine's recorder.
fn of_trace(asked: &Asked, files: &[PathBuf], format: &str) -> Result<ExitCode, Failure> {
    let answer = Answer::Recorder(advise::answer_here(asked)?);
    let fits = advise::fits(&answer, asked)?;
    let yes = if fits { "yes" } else { "no" };
    output::result(format, &answer, || format!("{yes}: {}", machine_answer::sentence(&answer)))?;
    Exported::here(&answer, Some(fits)).write(files, &Page::of(&answer))?;
    Ok(ExitCode::from(u8::from(!fits)))
}

/// A program, which is recorded.
fn program(args: &Args, quiet: bool) -> Result<ExitCode, Failure> {
    let how = &args.how;
    let other = how.device.iter().any(|device| device != DEVICE);
    if let Some(option) = other.then_some("--device").or(how.of_boards()) {
        return Err(Failure::usage(format!(
            "{option} is for a board, and a program is recorded for this machine; record it first, and check the trace"
        )));
    }
    let before = args.baseline.as_deref().map(Need::read).transpose()?;
    let name = args.baseline.as_deref().map(Path::display).map(|name| name.to_string());
    let question = Check {
        command: &args.command,
        max_ram: advise::max_ram(how)?,
        slowdown: how.slowdown()?,
        seconds: how.program_seconds()?,
        baseline: name.as_deref().zip(before.as_ref()),
        whole: args.write_baseline.is_some(),
    };
    let done = check(&question, &Terminal::new(quiet))?;
    if let Some(file) = &args.write_baseline {
        output::file(file, &output::json(&done.need))?;
    }
    output::result(&args.format, &done.verdict, || verdict_answer::words(&done.verdict))?;
    Exported::verdict(&done.verdict).write(&args.export, &Page::of(&done.answer))?;
    Ok(ExitCode::from(u8::from(!done.verdict.within)))
}
