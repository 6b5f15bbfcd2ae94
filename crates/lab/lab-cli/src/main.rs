//! The program `coldframe-lab`: traces, simulations, boards and papers. Each verb has one file and one row of
//! [`VERBS`]. Verbs parse arguments and print; other crates decide.
//!
//! To add a verb: copy `replay.rs`, and add its row.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{ArgAction, ArgMatches, Command};
use coldframe_terminal::verb::{self, Row};
use coldframe_terminal::{manual, output, progress};

mod advise;
mod area;
mod devices;
#[cfg(test)]
mod documents;
mod failure;
mod generate;
mod manuals;
mod papers;
mod picture;
mod policies;
mod record;
mod replay;
mod run;
#[cfg(test)]
mod schemas;
mod sim;
mod sim_args;
mod teach;
mod together;
mod trace;

use failure::Failure;

/// The verbs have one heading.
const VERB: Option<&str> = Some("Commands");

/// All verbs, in the order of the help.
const VERBS: &[Row<Failure>] = &[
    Row::of::<trace::Args>("trace", VERB),
    Row::of::<sim::Args>("sim", VERB),
    Row::of::<advise::Args>("advise", VERB),
    Row::of::<record::Args>("record", VERB),
    Row::of::<run::Args>("run", VERB),
    Row::of::<replay::Args>("replay", VERB),
    Row::of::<papers::Args>("papers", VERB),
    Row::of::<teach::Args>("teach", VERB),
    Row::of::<generate::Args>("generate", VERB),
    Row::of::<devices::Args>("devices", VERB),
    Row::of::<policies::Args>("policies", VERB),
    Row::of::<manual::Completions>("completions", VERB),
    Row::of::<manual::Man>("man", VERB),
];

const AFTER: &str = "\
Examples:
  coldframe-lab record --level exact -o bzip2.parquet -- bzip2 -9 -k file
  coldframe-lab trace import lackey:ls.txt -o ls.parquet
  coldframe-lab sim bzip2.parquet --policy clock,lru,opt --ram 10%,25%,50%,100% --plot
  coldframe-lab advise bzip2.parquet --device NAND01GW3B2B --max-slowdown 5% -o config.toml
  coldframe-lab papers swl

Exit codes: 0 done; 1 the answer is no; 2 usage or configuration; 3 bad input data; 4 this machine lacks a feature; 5 \
I/O or integrity error.";

/// The command line.
fn command() -> Command {
    let root = Command::new("coldframe-lab")
        .about("Traces, simulations, boards and papers: the laboratory beside `coldframe`")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .after_help(AFTER)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(clap::arg!(-q --quiet "No progress and no hints on stderr").global(true).action(ArgAction::SetTrue));
    verb::subcommands(root, VERBS)
}

fn main() -> ExitCode {
    coldframe_show::text::fit(output::width());
    run_given(&command().get_matches()).unwrap_or_else(|failure| failure.report())
}

fn run_given(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    verb::run_given(matches, VERBS, matches.get_flag("quiet")).expect("the parser wants a verb")
}
