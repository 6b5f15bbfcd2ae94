//! `coldframe turns`: programs that take turns by themselves, each with its pages in RAM when its turn begins.

use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::service::turns::{turns, TurnsOrder};
use coldframe_show::parked;

use crate::failure::Failure;
use crate::flags::{time, Form};
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// Have programs take turns, each with its pages fetched before.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo coldframe turns --slice 2s a.service b.service c.service
  coldframe turns --slice 30s --until-idle 4711 4712
  sudo coldframe turns --swap zram redis-server node

One of the programs runs, and the others are parked, as `coldframe park` does it. Shortly before a turn ends, the \
pages that \
the next program used are fetched; at its end the one program stops, the other runs, and the pages of the first are \
pushed out. What \
programs used is kept in coldframe's cache folder, so that it serves a program that is started again.

Ctrl-C lets all of them run. So does the end of coldframe, however it ends. The turns end when fewer than two \
programs are \
left. A program is idle when it waits for no device and uses less than 1 % of a processor for a tenth of the slice; \
its turn \
may come although it has nothing to do.

It takes what `coldframe park` takes. Exit codes: 0 done; 2 usage; 4 a program cannot be stopped: all of them run.")]
pub struct Args {
    /// Two or more processes (numbers or names), systemd units, docker or podman containers, or folders of the cgroup
    /// tree (/...).
    #[arg(required = true, num_args = 2.., value_name = "NAME")]
    names: Vec<String>,
    /// The time of a turn.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "2s")]
    slice: Duration,
    /// Swap for the turns, made now and taken away at the end (root) [default: the swap that is on].
    #[arg(long, value_name = "zram|FILE|zswap:FILE")]
    swap: Option<String>,
    /// End a turn early when its program is idle.
    #[arg(long)]
    until_idle: bool,
    #[command(flatten)]
    form: Form,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let order = TurnsOrder {
            names: &self.names,
            slice: self.slice,
            until_idle: self.until_idle,
            swap: self.swap.as_deref(),
        };
        let done = turns(&order, &Terminal::new(quiet))?;
        self.form.print(&done, || parked::turns(&done))?;
        Ok(ExitCode::SUCCESS)
    }
}
