//! The coldframe command. Each verb has one file. Verbs parse arguments and print; other crates decide.
//!
//! To add a verb: copy `info.rs`, and add its row to [`Verb`] and its arm to `main`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod advise;
mod advise_here;
mod area;
mod attach;
mod bundle;
mod calibrate;
mod check;
mod compare;
mod compare_table;
mod completions;
mod configured;
mod convert;
mod cut;
mod devices;
mod disk;
mod doctor;
#[cfg(test)]
mod documents;
mod export;
mod failure;
mod group;
mod heatmap;
mod here_sheet;
mod import;
mod info;
mod kernel_summary;
mod man;
mod merge;
mod one_go;
mod output;
mod park;
mod pick_recorder;
mod policies;
mod priced;
mod progress;
mod raw;
mod record;
mod recording_end;
mod reduce;
mod replay;
mod report;
mod run;
mod run_by;
mod run_kernel;
mod running;
mod setup;
mod sim;
mod sim_args;
mod squeeze;
mod squeeze_answer;
mod started;
mod summary;
mod top;
mod verify;
mod watched;
mod window;

const AFTER: &str = "\
Examples:
  coldframe -- bzip2 -9 -k file
  coldframe --verify -- python3 script.py
  coldframe record -o bzip2.parquet -- bzip2 -9 -k file
  coldframe sim bzip2.parquet --policy clock,lru,opt --ram 10%,25%,50%,100% --plot
  coldframe run --ram 64MiB -- redis-server
  coldframe advise bzip2.parquet --max-slowdown 5% -o config.toml
  coldframe check --max-ram 64MiB --max-slowdown 10% -- ./tests
  coldframe papers swl

`coldframe -- PROGRAM ARGUMENTS` records the program, advises, and writes a report into the folder PROGRAM.coldframe. \
It prints the program's run time on this machine for each size of RAM. `coldframe --export FILE -- PROGRAM ARGUMENTS` \
also writes the answer to FILE; its suffix says the form: json, csv, md, html or prom.
`coldframe --verify -- PROGRAM ARGUMENTS` then runs the program three times more, with less RAM, and prints measured \
beside predicted run times.
If this machine's pager cannot record the program (a static program, Go, musl, no userfaultfd), it runs as it is, and \
the answer is from the referenced bits of its pages: less exact, and it says so. Ctrl-C ends the program; the answer then holds for the time until then. The program's exit code \
is printed with the answer; it is not coldframe's exit code.

Exit codes: 0 done; 1 the answer is no; 2 usage or configuration; 3 bad input data; 4 this machine lacks a feature; 5 \
I/O or integrity error; 126, 127 as in shells; `run` ends with the program's own code.";

/// How little RAM can a program or device live with, and what does that cost?
#[derive(Parser)]
#[command(name = "coldframe", version, long_version = bundle::of_this_build(), after_help = AFTER, propagate_version = true)]
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
    Reduce(reduce::Args),
    Merge(merge::Args),
    Mix(merge::MixArgs),
    Convert(convert::Args),
    /// Generate a trace of applications on a phone that take turns in the foreground.
    Generate(started::Args),
    Record(record::Args),
    Sim(Box<sim::Args>),
    Advise(Box<advise::Args>),
    Check(Box<check::Args>),
    Report(report::Args),
    Replay(replay::Args),
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
    /// Step through a small lesson: Belady's anomaly, second chance, the parallel handler, PA-Clock, dual buffering.
    Teach(started::Args),
    /// Print a paper's figures beside ours.
    Papers(started::Args),
    Devices(devices::Args),
    Policies(policies::Args),
    Completions(completions::Args),
    Man(man::Args),
    /// Joins groups and becomes a program: `run --by kernel` starts it.
    #[command(hide = true)]
    KernelStart(run_kernel::StartArgs),
    /// Takes groups and swap away when its input ends: `run --by kernel`, `squeeze` and `park` start it.
    #[command(hide = true)]
    KernelGuard,
    /// Keeps a parked program: `park` starts it.
    #[command(hide = true)]
    KernelPark(park::KeepArgs),
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    coldframe_show::text::fit(output::width());
    if let Some(asked) = one_go::Asked::read(&words) {
        return one_go::run(&asked).unwrap_or_else(|failure| failure.report());
    }
    let cli = Cli::parse();
    let quiet = cli.quiet;
    let done = match cli.verb {
        Verb::Import(args) => import::run(args, quiet),
        Verb::Info(args) => info::run(args),
        Verb::Heatmap(args) => heatmap::run(args),
        Verb::Cut(args) => cut::run(args),
        Verb::Reduce(args) => reduce::run(args),
        Verb::Merge(args) => merge::run(args),
        Verb::Mix(args) => merge::mix(args),
        Verb::Convert(args) => convert::run(args),
        Verb::Generate(args) => started::run("generate", args, quiet),
        Verb::Record(args) => record::run(args, quiet),
        Verb::Sim(args) => sim::run(*args, quiet),
        Verb::Advise(args) => advise::run(*args, quiet),
        Verb::Check(args) => check::run(*args, quiet),
        Verb::Report(args) => report::run(args),
        Verb::Replay(args) => replay::run(args),
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
        Verb::Teach(args) => started::run("teach", args, quiet),
        Verb::Papers(args) => started::run("papers", args, quiet),
        Verb::Devices(args) => devices::run(args),
        Verb::Policies(args) => policies::run(args),
        Verb::Completions(args) => completions::run(args),
        Verb::Man(args) => man::run(args),
        Verb::KernelStart(args) => run_kernel::become_program(args),
        Verb::KernelGuard => run_kernel::guard(),
        Verb::KernelPark(args) => park::keep(args),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
