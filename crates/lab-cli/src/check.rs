//! `coldframe-lab check`: yes or no about a trace, by the exit code.

use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::Answer;
use coldframe_plots::board_answer as words;
use coldframe_search::json;
use coldframe_show::export::{self, Exported};
use coldframe_show::html::Page;
use coldframe_show::machine_answer;

use crate::advise::{self, Asked};
use crate::export::export_board;
use crate::failure::Failure;
use crate::output;

/// Say yes or no about a trace: is there a size of RAM that meets the limits? For pipelines.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab check bzip2.parquet --device NAND01GW3B2B --max-ram 512KiB --max-slowdown 5%
  coldframe-lab check sort.parquet --max-ram 64MiB

The answer is that of `coldframe-lab advise`. `coldframe check -- PROGRAM` records the program itself.

Exit codes: 0 within the limits; 1 not; 2 usage; 3 bad input data; 5 a file cannot be read or written.")]
pub struct Args {
    /// The question. If its configuration (-c) has a RAM size, only that size is tried.
    #[command(flatten)]
    asked: Asked,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html, prom, or xml (JUnit). May
    /// repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// How to print the answer.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    export::known(&args.export)?;
    let Args { asked, export, format } = args;
    if advise::is_here(&asked) {
        return of_trace(&asked, &export, &format);
    }
    let advice = advise::answer(&asked, quiet)?;
    let (within, sentence) = (advice.best.is_some(), words::sentence(&advice));
    let sentence = format!("{}: {sentence}", if within { "yes" } else { "no" });
    let data = json::Answer::from(&advice);
    output::result(&format, &data, || sentence.clone())?;
    export_board(&export, &data, sentence, Some(within))?;
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
