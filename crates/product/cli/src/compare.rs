//! `coldframe compare`: one program in less RAM, each way that this machine can give.

use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::bench::compare::{compare, Comparison, WAYS};
use coldframe_answer::run::program::Executable;
use coldframe_show::compared;

use crate::failure::Failure;
use crate::flags::{size_or_share, time, Backing, Form, Program};
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// Run a program in less RAM in each way, and say which is fastest.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe compare --ram 50%,33% -- sort -o sorted numbers.txt
  coldframe compare --ram 64MiB --runs 5 --ways zram,pager --format json -- python3 script.py

A size is a limit of all that the kernel charges to the program's memory group, and a percentage is of the most that \
it is charged without a limit. The ways are: no swap, swap in zram, on a disk, behind zswap, and our pager. \
The program runs once, to see what it takes, and then --runs times \
without a limit and --runs times for each size and each way, in turn. All that it does happens each time. Files that \
it maps are read from the disk each time. Ways that this \
machine cannot give are left out, and the reason is printed: groups and swap need root. If the \
standard input is a file, each run reads it from its start; otherwise it is empty. The standard output of each run is \
compared with that of the first run, unless the plain runs differ themselves. Where no group can be made, a \
percentage is of what its processes had in RAM.

Exit codes: 0 a way was fastest; 1 no way gave the plain run's output; 2 usage; 4 nobody can page the program here; \
126 and \
127 as in shells.")]
pub struct Args {
    /// Limits: of the program's peak, or absolute.
    #[arg(long, value_delimiter = ',', value_parser = size_or_share, default_value = "50%,33%")]
    ram: Vec<String>,
    /// Only these ways [default: all that this machine can give].
    #[arg(long, value_delimiter = ',', value_parser = WAYS)]
    ways: Vec<String>,
    /// Runs of each kind.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// A run that takes longer is ended, and that way is not tried again at that size and smaller ones [default: 10 s
    /// and 10 times the plain run].
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_time: Option<Duration>,
    #[command(flatten)]
    backing: Backing,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    program: Program,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let comparison = Comparison {
            command: &Executable::find(&self.program.words)?,
            ram: &self.ram,
            ways: &self.ways,
            runs: self.runs,
            max_time: self.max_time,
            backing: self.backing.backing.as_deref(),
        };
        let done = compare(&comparison, &Terminal::new(quiet))?;
        self.form.print(&done, || compared::words(&done))?;
        Ok(ExitCode::from(u8::from(done.fastest.is_none())))
    }
}
