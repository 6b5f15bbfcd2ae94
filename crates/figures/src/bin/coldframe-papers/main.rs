//! The program `coldframe-papers`, which `coldframe papers`, `coldframe teach` and `coldframe generate` start. Each verb
//! has one file; verbs parse arguments and print.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(test)]
mod documents;
mod generate;
mod kept;
mod output;
mod papers;
mod teach;
mod together;

/// The papers behind the systems: their figures beside ours, lessons, and a generator of traces.
#[derive(Parser)]
#[command(name = "coldframe-papers", bin_name = "coldframe", version, propagate_version = true)]
#[command(override_usage = "coldframe <COMMAND>, or coldframe-papers <COMMAND>")]
struct Cli {
    /// No progress and no hints on stderr.
    #[arg(long, short, global = true)]
    quiet: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Generate(generate::Args),
    Teach(teach::Args),
    Papers(papers::Args),
}

fn main() -> ExitCode {
    coldframe_show::text::fit(output::width());
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Generate(args) => generate::run(args),
        Verb::Teach(args) => teach::run(args),
        Verb::Papers(args) => papers::run(args, cli.quiet),
    };
    done.unwrap_or_else(|failure| failure.report())
}
