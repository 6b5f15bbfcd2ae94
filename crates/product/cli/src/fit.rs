//! `coldframe fit`: how many jobs, workers or copies at a time fit into so much RAM.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::bench::jobs::fit::{fit, FitOrder};
use coldframe_show::compared::fit as shown;
use coldframe_show::export;
use coldframe_show::html::Page;

use crate::failure::Failure;
use crate::flags::{ram_size, time, Form, Program};
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// Say how many jobs, workers or copies fit into so much RAM.
// clap breaks a line at `{n}`, so a style that does nothing is in it.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe fit --ram 2GiB --prepare 'make clean' -- make -j{\x1b[0mn}
  coldframe fit --ram 1GiB --for 20s -- gunicorn -w {\x1b[0mn} app:app
  coldframe fit --ram 512MiB -- python3 job.py

The program runs with 1, 2, 4 ... in place of {\x1b[0mn}, in a memory group of that RAM, until one is killed; then \
with numbers between. Without {\x1b[0mn}, so many copies run at a time; each has its number in COLDFRAME_COPY, and no \
input. A number is called slower only if it was measured as slower: short runs and near ones are repeated.
With --for it is a server: it lives if nothing of it was killed in that time, and no number is the fastest. It needs \
its load meanwhile.
Each run must do the same work. --prepare runs in a shell before each run, outside of the group and of the time; \
without it, a make that is up to date is refused.
RAM in the answer is what cannot leave without swap: all but files. Nobody sees the output of the runs. Groups need \
root, or a group of this user (`systemd-run --user --scope`).

Exit codes: 0 done; 1 not even one lives; 2 usage; 3 the program or --prepare failed; 4 no group or swap can be made \
here; 6 cannot tell: there was nothing left to do; 126, 127 as in shells.")]
pub struct Args {
    /// RAM for all of them together.
    #[arg(long, value_name = "SIZE", value_parser = ram_size)]
    ram: u64,
    /// Swap beside it, as for `run` [default: none, as in most containers].
    #[arg(long, value_name = "none|zram|FILE|zswap:FILE")]
    swap: Option<String>,
    /// It is a server, and is watched for this time.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// A command that undoes the work, run before each run.
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Largest number to try [default: 4 for each processor; with --for 64].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    up_to: Option<u32>,
    /// Also write FILE.json, .csv, .md or .prom.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    program: Program,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let exports = export::tables(&self.export)?;
        let order = FitOrder {
            command: &self.program.words,
            ram_bytes: self.ram,
            swap: self.swap.as_deref(),
            served: self.time,
            prepare: self.prepare.as_deref(),
            up_to: self.up_to,
        };
        let done = fit(&order, &Terminal::new(quiet))?;
        self.form.print(&done, || shown::words(&done))?;
        shown::exported(&done).write(&exports, &Page::default())?;
        Ok(ExitCode::from(u8::from(done.largest.is_none())))
    }
}
