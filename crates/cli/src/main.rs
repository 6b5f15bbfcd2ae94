//! The coldframe command. One file per verb; what a verb does is decided elsewhere.
//!
//! To add a verb: copy `info.rs`, and add its row to [`Verb`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod completions;
mod convert;
mod cut;
mod devices;
mod doctor;
mod failure;
mod heatmap;
mod import;
mod info;
mod man;
mod merge;
mod output;
mod papers;
mod policies;
mod predict;
mod priced;
mod progress;
mod record;
mod replay;
mod run;
mod sim;
mod sim_swap;
mod top;
mod window;

const AFTER: &str = "\
Examples:
  coldframe record -o bzip2.parquet -- bzip2 -9 -k file
  coldframe sim bzip2.parquet --policy clock,lru,opt --ram 10%,25%,50%,100% --plot
  coldframe run --ram 64MiB -- redis-server
  coldframe papers swl

Exit codes: 0 done; 1 the answer is no; 2 usage or configuration; 3 bad input data; 4 this machine lacks a feature;
5 I/O or integrity error; 126, 127 as shells use them; `run` passes the program's own.";

/// How little RAM can a program or device live with, and what does that cost?
#[derive(Parser)]
#[command(name = "coldframe", version, after_help = AFTER, propagate_version = true)]
struct Cli {
    /// No progress and no hints on stderr.
    #[arg(long, short, global = true)]
    quiet: bool,
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
    Record(record::Args),
    Sim(Box<sim::Args>),
    Replay(replay::Args),
    Run(Box<run::Args>),
    Doctor(doctor::Args),
    Top(top::Args),
    Papers(papers::Args),
    Devices(devices::Args),
    Policies(policies::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let quiet = cli.quiet;
    let done = match cli.verb {
        Verb::Import(args) => import::run(args, quiet),
        Verb::Info(args) => info::run(args),
        Verb::Heatmap(args) => heatmap::run(args),
        Verb::Cut(args) => cut::run(args),
        Verb::Merge(args) => merge::run(args),
        Verb::Mix(args) => merge::mix(args),
        Verb::Convert(args) => convert::run(args),
        Verb::Record(args) => record::run(args, quiet),
        Verb::Sim(args) => sim::run(*args, quiet),
        Verb::Replay(args) => replay::run(args),
        Verb::Run(args) => run::run(*args, quiet),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Papers(args) => papers::run(args, quiet),
        Verb::Devices(args) => devices::run(args),
        Verb::Policies(args) => policies::run(args),
        Verb::Completions(args) => completions::run(args),
        Verb::Man(args) => man::run(args),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
