//! The coldframe command. Each verb has one file and one row of [`VERBS`]. Verbs parse arguments and print; other
//! crates decide.
//!
//! To add a verb: copy `compare.rs`, and add its row.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use coldframe_terminal::verb::{self, Row};
use coldframe_terminal::{manual, output};

mod check;
mod compare;
mod device;
mod doctor;
mod failure;
mod fit;
mod flags;
mod hidden;
mod manuals;
mod moved;
mod park;
mod program;
#[cfg(test)]
mod promises;
mod record;
mod run;
mod squeeze;
mod top;
mod turns;

use failure::Failure;

const PROGRAM: Option<&str> = Some("Run a program");
const SERVICE: Option<&str> = Some("Take RAM from what runs already");
const MACHINE: Option<&str> = Some("This machine");

/// All verbs, in the order of the help.
const VERBS: &[Row<Failure>] = &[
    Row::of::<run::Args>("run", PROGRAM),
    Row::of::<check::Args>("check", PROGRAM),
    Row::of::<compare::Args>("compare", PROGRAM),
    Row::of::<fit::Args>("fit", PROGRAM),
    Row::of::<record::Args>("record", PROGRAM),
    Row::of::<top::Args>("top", PROGRAM),
    Row::of::<squeeze::Args>("squeeze", SERVICE),
    Row::of::<park::Args>("park", SERVICE),
    Row::of::<park::ResumeArgs>("resume", SERVICE),
    Row::of::<turns::Args>("turns", SERVICE),
    Row::of::<device::Args>("device", MACHINE),
    Row::of::<doctor::Args>("doctor", MACHINE),
    Row::of::<manual::Completions>("completions", MACHINE),
    Row::of::<manual::Man>("man", MACHINE),
    Row::of::<hidden::StartArgs>("kernel-start", None),
    Row::of::<hidden::GuardArgs>("kernel-guard", None),
    Row::of::<park::KeepArgs>("kernel-park", None),
];

const USAGE: &str = "coldframe [OPTIONS] -- PROGRAM...
       coldframe --pid N | --trace FILE | VERB [OPTIONS]";

const AFTER: &str = "\
Traces, boards, papers: `coldframe-lab`. Exit codes: 0 done; 1 no; 2 usage; 3 input; 4 machine; 5 I/O; 6 not seen; \
125 pager; 126, 127, 128 + n as in shells.";

/// The command line.
fn command() -> Command {
    let root = program::Args::augment_args(Command::default().name("coldframe"))
        .about("How little RAM can a program live with, and what does that cost?")
        .version(env!("CARGO_PKG_VERSION"))
        .long_version(version())
        .propagate_version(true)
        .override_usage(USAGE)
        .after_help(AFTER)
        .arg_required_else_help(true)
        .arg(clap::arg!(-q --quiet "No progress and no hints on stderr").global(true).action(ArgAction::SetTrue));
    verb::program(root, VERBS)
}

/// What `--version` says: how the program was built, and where its libraries are.
fn version() -> &'static str {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let text = format!(
        "{}\nbuild: {profile}, {}, {linked}\nlibraries: {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        coldframe_answer::run::bundle::place(),
    );
    text.leak()
}

fn main() -> ExitCode {
    coldframe_show::text::fit(output::width());
    let words: Vec<_> = std::env::args_os().collect();
    let done = match command().try_get_matches_from(&words) {
        Ok(matches) => run_given(&matches),
        Err(error) if error.use_stderr() => Err(moved::failure(&words, &error).unwrap_or_else(|| error.exit())),
        Err(error) => error.exit(),
    };
    done.unwrap_or_else(|failure| failure.report())
}

fn run_given(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let quiet = matches.get_flag("quiet");
    if matches.subcommand().is_some() && program::is_given(matches) {
        return Err(Failure::usage("options of `coldframe -- PROGRAM` do not go with a verb; write them after it"));
    }
    let args = program::Args::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    verb::run_given(matches, VERBS, quiet).unwrap_or_else(|| program::run(&args, quiet))
}
