//! `coldframe-lab trace VERB`: traces of other tools, and traces made from traces. Each verb is a file of the folder
//! and a row of [`VERBS`].

use std::process::ExitCode;

use clap::{ArgMatches, Command, FromArgMatches};
use coldframe_terminal::verb::{self, Row, Verb};

use crate::failure::Failure;

pub mod convert;
mod cut;
pub mod heatmap;
pub mod import;
pub mod info;
pub mod merge;

/// The verbs have one heading.
const VERB: Option<&str> = Some("Commands");

const VERBS: &[Row<Failure>] = &[
    Row::of::<import::Args>("import", VERB),
    Row::of::<info::Args>("info", VERB),
    Row::of::<heatmap::Args>("heatmap", VERB),
    Row::of::<cut::Args>("cut", VERB),
    Row::of::<merge::Args>("merge", VERB),
    Row::of::<merge::MixArgs>("mix", VERB),
    Row::of::<convert::Args>("convert", VERB),
];

/// The verb that was given, with its arguments.
pub struct Args(ArgMatches);

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Args, clap::Error> {
        Ok(Args(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let command = command.about("Import, show, cut, merge and convert traces");
        verb::subcommands(command.subcommand_required(true).arg_required_else_help(true), VERBS)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Args::augment_args(command)
    }
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        verb::run_given(&self.0, VERBS, quiet).expect("the parser wants a verb")
    }
}
