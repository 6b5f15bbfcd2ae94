//! `coldframe-lab trace VERB`: traces of other tools, and traces made from traces. Each verb is a file of the folder.

use std::process::ExitCode;

use clap::Subcommand;

use crate::failure::Failure;

pub mod convert;
mod cut;
pub mod heatmap;
pub mod import;
pub mod info;
pub mod merge;

/// Import, show, cut, merge and convert traces.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Import(import::Args),
    Info(info::Args),
    Heatmap(heatmap::Args),
    Cut(cut::Args),
    Merge(merge::Args),
    Mix(merge::MixArgs),
    Convert(convert::Args),
}

/// Carries out the verb.
pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    match args.verb {
        Verb::Import(args) => import::run(args, quiet),
        Verb::Info(args) => info::run(args),
        Verb::Heatmap(args) => heatmap::run(args),
        Verb::Cut(args) => cut::run(args),
        Verb::Merge(args) => merge::run(args),
        Verb::Mix(args) => merge::mix(args),
        Verb::Convert(args) => convert::run(args),
    }
}
