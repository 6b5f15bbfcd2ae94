//! `coldframe -- PROGRAM` where this machine's pager cannot record: an emulator records the program by page, and the
//! answer is for a board.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use coldframe_advise::board::json;
use coldframe_show::board_answer as words;
use coldframe_show::html::Page;
use coldframe_trace::heat::heat;

use crate::export::export_board;
use crate::failure::Failure;
use crate::{advise, output, record, report, Cli, Verb};

/// All of it, into the folder.
///
/// # Errors
/// There is no emulator either.
pub fn run(
    program: &[OsString],
    folder: &Path,
    why: &str,
    exports: &[PathBuf],
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let trace = folder.join("trace.parquet");
    record::emulated(&recording(&trace, program), Some(why), quiet)?;
    if !quiet {
        eprintln!(
            "coldframe: what it would take on this machine is not known without its pager: the answer is for a board with a NAND chip"
        );
    }
    let advice = advise::answer(&asked(&trace), quiet)?;
    advise::write_config(&folder.join("config.toml"), &advice)?;
    let json = output::json(&json::json(&advice));
    output::write(Some(&folder.join("advice.json")), &json)?;
    export_board(exports, json::json(&advice), words::words(&advice), None)?;
    let mut page = Page::default();
    page.add("advice", json.as_bytes())?;
    page.add_map(heat(&trace, report::MAP_ROWS, report::MAP_COLUMNS)?);
    output::write(Some(&folder.join("report.html")), &page.html()?)?;
    let files = format!("\nIn {}: trace.parquet, advice.json, config.toml, report.html\n", folder.display());
    output::write(None, &(words::words(&advice) + if quiet { "" } else { &files }))?;
    Ok(advise::code(&advice))
}

fn recording(trace: &Path, program: &[OsString]) -> record::Args {
    let start = ["coldframe", "record", "-o"].map(OsString::from).into_iter().chain([trace.into(), "--".into()]);
    match Cli::parse_from(start.chain(program.iter().cloned())).verb {
        Verb::Record(args) => args,
        _ => unreachable!("the words say record"),
    }
}

fn asked(trace: &Path) -> advise::Asked {
    match Cli::parse_from([OsString::from("coldframe"), "advise".into(), trace.into()]).verb {
        Verb::Advise(args) => args.asked,
        _ => unreachable!("the words say advise"),
    }
}
