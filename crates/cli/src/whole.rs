//! `coldframe -- PROGRAM ARGUMENTS`: records, advises and reports in one go.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use coldframe_report::advise::{json, words};
use coldframe_report::html::Page;
use coldframe_trace::heat::heat;

use crate::failure::Failure;
use crate::{advise, output, record, report, Cli, Verb};

/// All of it, into the folder `PROGRAM.coldframe`.
pub fn run(program: &[OsString]) -> Result<ExitCode, Failure> {
    let Some(name) = program.first().and_then(|path| Path::new(path).file_name()) else {
        return Err(Failure::usage("`coldframe --` needs a program: coldframe -- PROGRAM ARGUMENTS"));
    };
    let folder = PathBuf::from(name).with_extension("coldframe");
    let failed = |e: std::io::Error| Failure::Other { message: format!("{}: {e}", folder.display()), code: 5 };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let trace = folder.join("trace.parquet");
    let recorded = record::run(recording(&trace, program), false)?;
    if recorded != ExitCode::SUCCESS {
        return Ok(recorded);
    }
    let advice = advise::answer(&advise::Asked::of(trace.clone()), false)?;
    advise::write_config(&folder.join("config.toml"), &advice)?;
    let (rows, columns) = (report::MAP_ROWS, report::MAP_COLUMNS);
    let answer = json::json(&advice);
    output::write(Some(&folder.join("advice.json")), &output::json(&answer))?;
    let mut page = Page::default();
    page.add("advice", answer.to_string().as_bytes())?;
    page.add_heat(&advice.trace.path, &advice.trace.sha256, heat(&trace, rows, columns)?)?;
    output::write(Some(&folder.join("report.html")), &page.html()?)?;
    let files = format!("\nIn {}: trace.parquet, advice.json, config.toml, report.html\n", folder.display());
    output::write(None, &(words::words(&advice) + &files))?;
    Ok(advise::code(&advice))
}

/// As `coldframe record --level page --page 4KiB -o TRACE -- PROGRAM ARGUMENTS` would read it: what RAM a program needs is told by its pages, and
/// every single reference takes many times as long.
fn recording(trace: &Path, program: &[OsString]) -> record::Args {
    let words = ["coldframe", "record", "--level", "page", "--page", "4KiB", "-o"].map(OsString::from);
    let start = words.into_iter().chain([trace.into(), "--".into()]);
    match Cli::parse_from(start.chain(program.iter().cloned())).verb {
        Verb::Record(args) => args,
        _ => unreachable!("the words say record"),
    }
}
