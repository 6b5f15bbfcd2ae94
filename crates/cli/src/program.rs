//! `coldframe -- PROGRAM ARGUMENTS`: records, advises and reports in one go. `coldframe --verify -- ...` runs the program with less RAM, too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_answer::measure::{measure, Measured};
use coldframe_answer::verify::verify;
use coldframe_answer::{Answer, AnswerError, Recorded};
use coldframe_show::export::{self, Exported};
use coldframe_show::html::{Html, Page};
use coldframe_show::machine_answer::words;
use coldframe_show::text::paragraph;
use coldframe_show::{group, verified};

use crate::failure::Failure;
use crate::output;
use coldframe_terminal::listener::Terminal;

/// What is asked about a program.
#[derive(clap::Args, Debug, Default)]
pub struct Asked {
    /// Also run the program with less RAM, and print measured beside predicted run times.
    #[arg(long)]
    verify: bool,
    /// Show the report in a browser.
    #[arg(long)]
    open: bool,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html, prom. May repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// How to print the answer.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
    /// The program and its arguments.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Asked {
    /// Whether any of it is given, which a verb does not take.
    pub fn is_given(&self) -> bool {
        self.verify || self.open || !self.export.is_empty() || !self.program.is_empty()
    }
}

/// Does all of it, into the folder `PROGRAM.coldframe`.
pub fn run(asked: &Asked, quiet: bool) -> Result<ExitCode, Failure> {
    let program = &asked.program;
    let Some(name) = program.first().and_then(|path| Path::new(path).file_name()) else {
        return Err(Failure::usage("`coldframe --` needs a program: coldframe -- PROGRAM ARGUMENTS"));
    };
    export::known(&asked.export)?;
    // A program that is not there has no answer of any kind.
    coldframe_answer::program::binary(program)?;
    let mut folder = name.to_os_string();
    folder.push(".coldframe");
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).map_err(|e| {
        AnswerError::new(5, format!("{}: cannot be made: {e}; go to a folder that you may write to", folder.display()))
    })?;
    let done = into(asked, &folder, quiet);
    if asked.open && done.is_ok() {
        open(&folder.join(REPORT));
    }
    if done.is_err() {
        // Only if the folder is empty.
        let _ = std::fs::remove_dir(&folder);
    }
    done
}

/// The page with the answer.
const REPORT: &str = "report.html";

/// Shows the page, or says where it is.
fn open(page: &Path) {
    if !coldframe_answer::program::show(page) {
        let page = std::path::absolute(page).unwrap_or(page.to_owned());
        eprintln!("coldframe: xdg-open cannot show the report; open {} in a browser", page.display());
    }
}

/// The answer, and its files.
fn into(asked: &Asked, folder: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let terminal = Terminal::new(quiet);
    let paged = asked.verify.then_some("--verify runs the program with less RAM");
    let mut found = measure(&asked.program, folder, paged, &terminal)?;
    write(folder, &found, &asked.export)?;
    let config = found.answer.recorded().and_then(Recorded::config);
    let config = config.map(|_| folder.join("config.toml").display().to_string());
    let remarks: String = found.remarks.iter().map(|remark| paragraph(&format!("Note: {remark}."), 0)).collect();
    let (more, report) = (group::words(&found.group) + &remarks, folder.join(REPORT));
    let text = words(&found.answer, config.as_deref(), (!quiet).then_some(report.as_path()), &more);
    output::result(&asked.format, &found.answer, || text)?;
    if let (true, Answer::Recorder(answer)) = (asked.verify, &mut found.answer) {
        let runs = verify(answer, &asked.program, &terminal)?;
        output::text(&verified::words(&runs))?;
        answer.verified = runs.iter().filter_map(|run| run.verified()).collect();
        write(folder, &found, &asked.export)?;
    }
    Ok(ExitCode::from(u8::from(found.answer.ram_bytes.is_none())))
}

/// Writes the files to keep.
fn write(folder: &Path, found: &Measured, exports: &[PathBuf]) -> Result<(), Failure> {
    output::file(&folder.join("advice.json"), &output::json(&found.answer))?;
    if let Some(config) = found.answer.recorded().and_then(Recorded::config) {
        output::file(&folder.join("config.toml"), &config)?;
    }
    let mut page = Page::of(&found.answer);
    found.heat.iter().for_each(|heat| page.add_map(heat.clone()));
    page.add_group(&found.group);
    output::file(&folder.join(REPORT), &page.html()?)?;
    Ok(Exported::here(&found.answer, None).write(exports, &page)?)
}
