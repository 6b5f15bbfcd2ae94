//! `coldframe -- PROGRAM`: records a program, runs it again in less RAM, and answers what that costs. `coldframe --pid
//! N` answers about a process that runs, and `coldframe --trace FILE` about a recording.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command};
use coldframe_answer::bench::measure::{measure, Answered, Kind};
use coldframe_answer::predict::{machine, watch};
use coldframe_answer::run::program::Executable;
use coldframe_answer::{Answer, AnswerError, Limits};
use coldframe_show::export::{self, ExportFile, Exported};
use coldframe_show::html::{Html, Page};
use coldframe_show::machine_answer::words;
use coldframe_show::text::paragraph;
use coldframe_show::{group, limit_answer};

use crate::failure::Failure;
use crate::flags::{percent, ram_size, time, Form};
use crate::output;
use coldframe_terminal::listener::Terminal;

/// A question about a program.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Answer about a running process: number or name.
    #[arg(long, value_name = "N", conflicts_with_all = ["program", "once", "open"])]
    pid: Option<String>,
    /// Answer about a recording of `coldframe record`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "pid", "time", "once", "open"])]
    trace: Option<PathBuf>,
    /// End after this time [default: 30s with --pid].
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Also say what this much RAM costs.
    #[arg(long, value_name = "SIZE", value_parser = ram_size)]
    ram: Option<u64>,
    /// Limit for the recommended size.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "10%")]
    max_slowdown: f64,
    /// Run it once: all times are predicted.
    #[arg(long)]
    once: bool,
    /// Open the report (PROGRAM.coldframe) in a browser.
    #[arg(long)]
    open: bool,
    /// Also write FILE.json, .csv, .md, .html or .prom.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
    /// The program and its arguments.
    #[arg(last = true, value_name = "PROGRAM", hide = true)]
    program: Vec<OsString>,
}

/// Whether any of it is given, which a verb does not take.
pub fn is_given(matches: &ArgMatches) -> bool {
    let given = |id: &clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    Args::augment_args(Command::default()).get_arguments().any(|argument| given(argument.get_id()))
}

/// The time for which a process is watched.
const WATCHED: Duration = Duration::from_secs(30);
/// Less shows nothing.
const WATCHED_MIN: Duration = Duration::from_millis(100);

impl Args {
    fn limits(&self) -> Limits {
        Limits { slowdown: self.max_slowdown / 100.0, ram: self.ram, time: self.time, once: self.once }
    }
}

pub fn run(args: &Args, quiet: bool) -> Result<ExitCode, Failure> {
    let exports = export::files(&args.export)?;
    let done = match (&args.pid, &args.trace) {
        (Some(process), _) => running(args, process, &exports, quiet),
        (None, Some(trace)) => recorded(args, trace, &exports, quiet),
        (None, None) => program(args, &exports, quiet),
    };
    match done {
        // An answer, too.
        Err(Failure::Answer(AnswerError::Nothing(nothing))) => {
            let words = || paragraph(&nothing.to_string(), 0);
            match args.program.is_empty() {
                true => args.form.print(&nothing, words)?,
                false => args.form.print_beside(&nothing, words)?,
            }
            Ok(ExitCode::from(nothing.exit.unwrap_or(0) as u8))
        }
        done => done,
    }
}

/// The answer about a process that runs.
fn running(args: &Args, process: &str, exports: &[ExportFile], quiet: bool) -> Result<ExitCode, Failure> {
    let time = args.time.unwrap_or(WATCHED);
    if time < WATCHED_MIN {
        return Err(Failure::usage(format!("--for: {time:?} is too short; give at least {WATCHED_MIN:?}")));
    }
    let limits = Limits { time: Some(time), ..args.limits() };
    shown(args, &Answer::ReferencedBits(watch::process(process, &limits, &Terminal::new(quiet))?), exports)
}

/// The answer about a recording.
fn recorded(args: &Args, trace: &Path, exports: &[ExportFile], quiet: bool) -> Result<ExitCode, Failure> {
    shown(args, &Answer::Recorder(machine::recorded(trace, &args.limits(), &Terminal::new(quiet))?), exports)
}

/// Prints the answer and writes its exports.
fn shown(args: &Args, answer: &Answer, exports: &[ExportFile]) -> Result<ExitCode, Failure> {
    args.form.print(answer, || words(answer, None, ""))?;
    Exported::here(answer).write(exports, &Page::new(answer))?;
    Ok(code(answer))
}

/// 0 if a size is recommended.
fn code(answer: &Answer) -> ExitCode {
    ExitCode::from(u8::from(answer.ram_bytes.is_none()))
}

/// The answer about a program, and the folder `PROGRAM.coldframe`.
fn program(args: &Args, exports: &[ExportFile], quiet: bool) -> Result<ExitCode, Failure> {
    let Some(name) = args.program.first().and_then(|path| Path::new(path).file_name()) else {
        return Err(Failure::usage("a program is missing: coldframe -- PROGRAM ARGUMENTS"));
    };
    // A program that is not there has no answer of any kind.
    let executable = Executable::find(&args.program)?;
    let mut folder = name.to_os_string();
    folder.push(".coldframe");
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).map_err(|e| {
        AnswerError::new(5, format!("{}: cannot be made: {e}; go to a folder that you may write to", folder.display()))
    })?;
    let done = answered(args, &executable, &folder, exports, quiet);
    if args.open && done.is_ok() {
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
    if !coldframe_answer::run::program::show(page) {
        let page = std::path::absolute(page).unwrap_or(page.to_owned());
        eprintln!("coldframe: xdg-open cannot show the report; open {} in a browser", page.display());
    }
}

/// The answer, and its files.
fn answered(
    args: &Args,
    program: &Executable,
    folder: &Path,
    exports: &[ExportFile],
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let terminal = Terminal::new(quiet);
    args.form.keep_apart()?;
    let measured = measure(program, folder, &args.limits(), &terminal)?;
    let page = page(&measured);
    let report = folder.join(REPORT);
    output::file(&report, &page.html()?)?;
    let report = (!quiet).then_some(report.as_path());
    let notes = |notes: &[String]| notes.iter().map(|note| paragraph(&format!("Note: {note}."), 0)).collect::<String>();
    let code = match &measured.answer {
        Kind::Measured(answer) => {
            output::file(&folder.join(ANSWER), &output::json(answer))?;
            args.form.print_beside(answer, || limit_answer::words(answer, report, &notes(&answer.notes)))?;
            Exported::limit(answer).write(exports, &page)?;
            ExitCode::from(if answer.limit.recommended_bytes.is_some() { 0 } else { CANNOT_TELL })
        }
        Kind::Estimated(answer) => {
            output::file(&folder.join(ANSWER), &output::json(answer))?;
            let more = group::words(&measured.group) + &notes(&measured.remarks);
            args.form.print_beside(answer, || words(answer, report, &more))?;
            Exported::here(answer).write(exports, &page)?;
            code(answer)
        }
    };
    Ok(if measured.status == 0 { code } else { ExitCode::from(measured.status) })
}

/// The answer as data.
const ANSWER: &str = "advice.json";
/// The exit code if not enough was seen for a recommendation.
const CANNOT_TELL: u8 = 6;

fn page(measured: &Answered) -> Page {
    let mut page = match &measured.answer {
        Kind::Measured(answer) => Page::limit(answer),
        Kind::Estimated(answer) => Page::new(answer),
    };
    measured.touched.iter().for_each(|touched| page.add_map(touched.clone()));
    page.add_group(&measured.group);
    page
}
