//! `coldframe squeeze`: takes memory from a group that runs, step by step, says what each step costs, and puts the old
//! limit back.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::service::squeeze::{squeeze, SqueezeOrder};
use coldframe_show::html::Page;
use coldframe_show::{export, squeezed};

use crate::failure::Failure;
use crate::flags::{percent, time, Form};
use coldframe_terminal::listener::Terminal;
use coldframe_terminal::verb::Verb;

/// Take RAM from it step by step, measure the stalls, give it back.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe squeeze nginx.service
  sudo coldframe squeeze --yes nginx.service
  sudo coldframe squeeze --yes --max-stall 2% --for 30s --export squeezed.md web-1
  sudo coldframe squeeze --yes --swap zram 4711

Memory is taken from a running unit, container, group or process. The limit of the group goes down by a sixteenth at \
a time (cgroup v2: memory.high; v1: memory.limit_in_bytes, with the \
killer turned off meanwhile). After each step coldframe watches how many pages come back, and how long some process \
waits \
for memory. It stops at --max-stall, at Ctrl-C, or when nothing more can leave. Then the old limit is put back: a \
guard \
process does this, also if coldframe is killed. Pages in swap come back when they are needed. The result holds for \
what \
the group did meanwhile, so squeeze it while it works. Without --yes nothing is changed, and coldframe says what it \
would \
do.

A process stands for its group, with all processes there. Swap must have room for all of the group's data.

Exit codes: 0 done; 1 the first step stalled more than --max-stall, or could not be made; 2 usage; 4 this group \
cannot be \
squeezed; 5 the old limit could not be put back (the guard says how to).")]
pub struct Args {
    /// A systemd unit, a docker or podman container, a folder of the cgroup tree (/...), or a process: its number or
    /// name.
    name: String,
    /// Stop when some process waits for memory for more than this part of the time.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%")]
    max_stall: f64,
    /// How long each step is watched.
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "10s")]
    time: Duration,
    /// Change the limit.
    #[arg(long)]
    yes: bool,
    /// Say what would be done, as without --yes.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Swap for the squeeze, made now and taken away at the end (root) [default: the swap that is on].
    #[arg(long, value_name = "zram|FILE|zswap:FILE")]
    swap: Option<String>,
    #[command(flatten)]
    form: Form,
    /// Write the curve to this file, too; its suffix says the form: json, csv, md or prom. Can be given more than once.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let order = SqueezeOrder {
            name: &self.name,
            max_stall_percent: self.max_stall,
            watch: self.time,
            swap: self.swap.as_deref(),
            yes: self.yes,
        };
        let exports = export::tables(&self.export)?;
        let done = squeeze(&order, &Terminal::new(quiet), squeezed::step)?;
        self.form.print(&done, || squeezed::words(&done))?;
        squeezed::exported(&done).write(&exports, &Page::default())?;
        Ok(ExitCode::from(match (done.restored, self.yes && done.advised_bytes.is_none()) {
            (false, _) => 5,
            (true, none) => u8::from(none),
        }))
    }
}
