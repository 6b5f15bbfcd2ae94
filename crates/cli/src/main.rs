//! The coldframe command. Each verb has one file. Verbs parse arguments and print; other crates decide.
//!
//! To add a verb: copy `info.rs`, and add its row to [`Verb`] and its arm to `main`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use coldframe_terminal::{manual, output};

mod attach;
mod calibrate;
mod check;
mod compare;
mod doctor;
#[cfg(test)]
mod documents;
mod failure;
mod hidden;
mod park;
mod program;
mod record;
mod run;
mod setup;
mod squeeze;
mod top;

const USAGE: &str = "coldframe [OPTIONS] -- PROGRAM [ARGUMENTS]...\n       coldframe [OPTIONS] COMMAND";

const AFTER: &str = "\
Examples:
  coldframe -- bzip2 -9 -k file
  coldframe --verify -- python3 script.py
  coldframe run --ram 64MiB -- redis-server
  coldframe check --max-ram 64MiB --max-slowdown 10% -- ./tests

`coldframe -- PROGRAM` records the program, prints its run time by RAM, and writes a report into PROGRAM.coldframe. Traces, \
boards and papers: `coldframe-lab --help`.
Exit codes: 0 done; 1 the answer is no; 2 usage; 3 bad input; 4 this machine lacks a feature; 5 I/O; 126, 127 as in shells; \
`run` ends with the program's own code.";

/// How little RAM can a program live with, and what does that cost?
#[derive(Parser)]
#[command(name = "coldframe", version, long_version = version(), after_help = AFTER, propagate_version = true)]
#[command(override_usage = USAGE, arg_required_else_help = true)]
struct Cli {
    /// No progress and no hints on stderr.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(flatten)]
    asked: program::Asked,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    Record(record::Args),
    Check(Box<check::Args>),
    Run(Box<run::Args>),
    Compare(compare::Args),
    Attach(attach::Args),
    Squeeze(squeeze::Args),
    Park(park::Args),
    Resume(park::ResumeArgs),
    Doctor(doctor::Args),
    Setup(setup::Args),
    Calibrate(calibrate::Args),
    Top(top::Args),
    Completions(manual::Completions),
    Man(manual::Man),
    /// Joins groups and becomes a program: `run --by kernel` starts it.
    #[command(hide = true)]
    KernelStart(hidden::StartArgs),
    /// Takes groups and swap away when its input ends: `run --by kernel`, `squeeze` and `park` start it.
    #[command(hide = true)]
    KernelGuard,
    /// Keeps a parked program: `park` starts it.
    #[command(hide = true)]
    KernelPark(park::KeepArgs),
}

/// What `--version` says: how the program was built, where its libraries are, what it knows.
fn version() -> &'static str {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let text = format!(
        "{}\nbuild: {profile}, {}, {linked}\nlibraries: {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        coldframe_answer::bundle::place(),
    );
    text.leak()
}

fn main() -> ExitCode {
    coldframe_show::text::fit(output::width());
    let cli = Cli::parse();
    let quiet = cli.quiet;
    let Some(verb) = cli.verb else {
        return program::run(&cli.asked, quiet).unwrap_or_else(|failure| failure.report());
    };
    if cli.asked.is_given() {
        return failure::Failure::usage("options of `coldframe -- PROGRAM` do not go with a command").report();
    }
    let done = match verb {
        Verb::Record(args) => record::run(args, quiet),
        Verb::Check(args) => check::run(*args, quiet),
        Verb::Run(args) => run::run(*args, quiet),
        Verb::Compare(args) => compare::run(args, quiet),
        Verb::Attach(args) => attach::run(args, quiet),
        Verb::Squeeze(args) => squeeze::run(args, quiet),
        Verb::Park(args) => park::run(args),
        Verb::Resume(args) => park::resume(args),
        Verb::Setup(args) => setup::run(args, quiet),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Calibrate(args) => calibrate::run(args, quiet),
        Verb::Top(args) => top::run(args),
        Verb::Completions(args) => printed(args.print(Cli::command())),
        Verb::Man(args) => printed(args.print(Cli::command())),
        Verb::KernelStart(args) => hidden::start(args),
        Verb::KernelGuard => hidden::guard(),
        Verb::KernelPark(args) => park::keep(args),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn printed(done: Result<(), output::OutputError>) -> Result<ExitCode, failure::Failure> {
    Ok(done.map(|()| ExitCode::SUCCESS)?)
}
