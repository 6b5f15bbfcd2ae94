//! The program `coldframe-lab`: traces, simulations, boards and papers. Each verb has one file. Verbs parse arguments
//! and print; other crates decide.
//!
//! To add a verb: copy `replay.rs`, and add its row to [`Verb`] and its arm to `main`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use coldframe_terminal::{manual, output, progress};

mod advise;
mod area;
mod devices;
#[cfg(test)]
mod documents;
mod failure;
mod generate;
mod papers;
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

const AFTER: &str = "\
Examples:
  coldframe-lab record --level exact -o bzip2.parquet -- bzip2 -9 -k file
  coldframe-lab trace import lackey:ls.txt -o ls.parquet
  coldframe-lab sim bzip2.parquet --policy clock,lru,opt --ram 10%,25%,50%,100% --plot
  coldframe-lab advise bzip2.parquet --device NAND01GW3B2B --max-slowdown 5% -o config.toml
  coldframe-lab papers swl

Exit codes: 0 done; 1 the answer is no; 2 usage or configuration; 3 bad input data; 4 this machine lacks a feature; 5 \
I/O or integrity error.";

/// Traces, simulations, boards and papers: the laboratory beside `coldframe`.
#[derive(Parser)]
#[command(name = "coldframe-lab", version, after_help = AFTER, propagate_version = true)]
struct Cli {
    /// No progress and no hints on stderr.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Trace(trace::Args),
    Sim(Box<sim::Args>),
    Advise(Box<advise::Args>),
    Record(record::Args),
    Run(Box<run::Args>),
    Replay(replay::Args),
    Papers(papers::Args),
    Teach(teach::Args),
    Generate(generate::Args),
    Devices(devices::Args),
    Policies(policies::Args),
    Completions(manual::Completions),
    Man(manual::Man),
}

fn main() -> ExitCode {
    coldframe_show::text::fit(output::width());
    let cli = Cli::parse();
    let quiet = cli.quiet;
    let done = match cli.verb {
        Verb::Trace(args) => trace::run(args, quiet),
        Verb::Sim(args) => sim::run(*args, quiet),
        Verb::Advise(args) => advise::run(*args, quiet),
        Verb::Record(args) => record::run(args, quiet),
        Verb::Run(args) => run::run(*args, quiet),
        Verb::Replay(args) => replay::run(args),
        Verb::Papers(args) => papers::run(args, quiet),
        Verb::Teach(args) => teach::run(args),
        Verb::Generate(args) => generate::run(args),
        Verb::Devices(args) => devices::run(args),
        Verb::Policies(args) => policies::run(args),
        Verb::Completions(args) => printed(args.print(Cli::command())),
        Verb::Man(args) => printed(args.print(Cli::command())),
    };
    done.unwrap_or_else(|failure| failure.report())
}

fn printed(done: Result<(), output::OutputError>) -> Result<ExitCode, failure::Failure> {
    Ok(done.map(|()| ExitCode::SUCCESS)?)
}
