//! `coldframe park` and `coldframe resume`: programs that take turns in less RAM than they need together. And the
//! hidden verb that keeps one of them.

use std::process::ExitCode;

use coldframe_answer::run::guards;
use coldframe_answer::service::park::{self, Parked};
use coldframe_show::parked;

use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::flags::Form;
use crate::output;

/// Stop a program that runs, and push its pages out to swap.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo coldframe park jupyter-a.service
  coldframe park 4711
  sudo coldframe park --swap zram redis-server
  coldframe park --list

The program is a process, unit, container or group. It stands still (cgroup.freeze, or SIGSTOP for each process) \
until `coldframe resume`. Which pages it used is seen \
in its page tables: those that were in swap when it was last resumed and are in RAM now. A process stands for itself \
and \
its descendants. Two processes of coldframe hold a parked program; if one of them is killed, the program runs on. \
One of \
them keeps the list until the program ends.

Pages are pushed out with CAP_SYS_NICE (root), or by memory.reclaim of a group that you may write to. Without either \
the \
program only stands still, and its pages leave when the kernel needs RAM.

Exit codes: 0 done; 2 usage; 4 it cannot be parked: it goes on as before.")]
pub struct Args {
    /// A process (its number or name), a systemd unit, a docker or podman container, or a folder of the cgroup tree
    /// (/...).
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the programs that are or were parked.
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Swap for it, made when it is parked for the first time, and taken away when it ends (root) [default: the swap
    /// that is on].
    #[arg(long, value_name = "zram|FILE|zswap:FILE", conflicts_with = "list")]
    swap: Option<String>,
    #[command(flatten)]
    form: Form,
}

/// Let a parked program run on, with the pages that it used in RAM.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe resume 4711
  coldframe resume --soon jupyter-b.service; coldframe park jupyter-a.service; coldframe resume jupyter-b.service

`--soon` only fetches, while another program still runs (scheduler-assisted prefetching, SAP): `resume` then starts it \
with its pages in RAM. The list is what it used between its last resume and its last park, so the first resume has \
that of the program's last start, or none. \
Without `--soon` the list is fetched beside the program if swap is on a disk; if swap is compressed RAM, that would \
only \
take the program's time.

Exit codes: 0 done; 2 usage; 4 it is not parked, has ended, or is in a group that another has frozen.")]
pub struct ResumeArgs {
    /// The name that it was parked by.
    name: String,
    /// Fetch its pages now, and do not start it yet.
    #[arg(long)]
    soon: bool,
}

/// Keeps a parked program: `park` starts it.
#[derive(clap::Args)]
pub struct KeepArgs {
    #[arg(long)]
    swap: Option<String>,
    name: String,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        guards::warn(&Terminal::new(quiet));
        let Some(name) = self.name else {
            let all = park::list()?;
            self.form.print(&all, || parked::table(&all))?;
            return Ok(ExitCode::SUCCESS);
        };
        let all = Parked { programs: vec![park::park(&name, self.swap.as_deref())?] };
        self.form.print(&all, || parked::parked(&all.programs[0]))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Verb<Failure> for ResumeArgs {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        guards::warn(&Terminal::new(quiet));
        let done = park::resume(&self.name, self.soon)?;
        output::text(&parked::resumed(&self.name, &done, self.soon))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Verb<Failure> for KeepArgs {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        park::keep(&self.name, self.swap.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }
}
