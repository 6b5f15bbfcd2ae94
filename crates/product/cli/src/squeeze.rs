//! `coldframe squeeze`: takes memory from a group that runs, step by step, says what each step costs, and puts the old
//! limit back.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::service::holding::{hold, suggest, write_whole, HoldOrder};
use coldframe_answer::service::squeeze::{squeeze, SqueezeOrder};
use coldframe_show::html::Page;
use coldframe_show::squeezed::held;
use coldframe_show::{export, squeezed};
use coldframe_terminal::output;

use coldframe_answer::AnswerError;

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
  sudo coldframe squeeze --hold --yes --check 'curl -sf http://localhost/' nginx.service
  coldframe squeeze --suggest nginx.service

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

With --hold it goes on until Ctrl-C: down by a step after each calm time of --for, up to the old limit at once when \
the group waits, when what was taken comes back, or when --check or --latency-file shows it; what failed is tried \
again after a pause, which doubles up to an hour. A line of output for each change. --export FILE.prom is kept up to \
date for Prometheus. If somebody else sets the limit, theirs stays and the hold ends. coldframe-hold@NAME.service runs \
it for NAME.service. A pod of Kubernetes is named as POD or NAMESPACE/POD.

A process stands for its group, with all processes there. Swap must have room for all of the group's data.

Exit codes: 0 done; 1 the first step stalled more than --max-stall, or could not be made; 2 usage; 3 the check fails \
at the start, or there is no history; 4 this group cannot be squeezed, or another coldframe holds it; 5 \
the old limit could not be put back (the guard says how to).")]
pub struct Args {
    /// A systemd unit, a docker or podman container, a pod, a folder of the cgroup tree (/...), or a process: its
    /// number or name.
    name: String,
    /// Stop when some process waits for memory for more than this part of the time [default: 5%; with --hold 0.5%].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_stall: Option<f64>,
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
    /// Keep the limit low from now on: down while it is calm, up at once when it waits.
    #[arg(long)]
    hold: bool,
    /// A command that asks the service; its time is the service's latency, and a failure puts the limit up.
    #[arg(long, value_name = "CMD", requires = "hold", conflicts_with = "latency_file")]
    check: Option<String>,
    /// A file to which the service appends its latencies, in milliseconds, a line each.
    #[arg(long, value_name = "FILE", requires = "hold")]
    latency_file: Option<PathBuf>,
    /// How much the 99th percentile of the latencies may grow.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "10%")]
    within: f64,
    /// What is remembered of a hold [default: NAME.hold.json in /var/lib/coldframe, or in your folder for states].
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Print requests and limits from what a hold has seen, and change nothing.
    #[arg(long, conflicts_with_all = ["hold", "yes"])]
    suggest: bool,
    #[command(flatten)]
    form: Form,
    /// Write the curve to this file, too; its suffix says the form: json, csv, md or prom. Can be given more than once.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        if self.suggest {
            let suggested = suggest(&self.name, self.state.as_deref())?;
            self.form.print(&suggested, || held::suggested(&suggested))?;
            return Ok(ExitCode::SUCCESS);
        }
        let order = SqueezeOrder {
            name: &self.name,
            max_stall_percent: self.max_stall.unwrap_or(if self.hold { 0.5 } else { 5.0 }),
            watch: self.time,
            swap: self.swap.as_deref(),
            yes: self.yes,
        };
        let exports = export::tables(&self.export)?;
        if self.hold && self.yes {
            return self.hold(order, quiet);
        }
        let done = squeeze(&order, &Terminal::new(quiet), squeezed::step)?;
        if self.hold {
            let latency = (self.check.is_some() || self.latency_file.is_some()).then_some(self.within);
            self.form.print(&done, || squeezed::would_hold(&done, latency))?;
            return Ok(ExitCode::SUCCESS);
        }
        self.form.print(&done, || squeezed::words(&done))?;
        squeezed::exported(&done).write(&exports, &Page::default())?;
        Ok(ExitCode::from(match (done.restored, self.yes && done.advised_bytes.is_none()) {
            (false, _) => 5,
            (true, none) => u8::from(none),
        }))
    }
}

impl Args {
    fn hold(&self, squeeze: SqueezeOrder, quiet: bool) -> Result<ExitCode, Failure> {
        let order = HoldOrder {
            squeeze,
            check: self.check.as_deref(),
            latency_file: self.latency_file.as_deref(),
            within_percent: self.within,
            state: self.state.as_deref(),
        };
        if let Some(other) = self.export.iter().find(|file| file.extension().is_none_or(|end| end != "prom")) {
            return Err(Failure::usage(format!("--export {}: a hold writes .prom", other.display())));
        }
        let changed = |change: &_| {
            let line = if self.form.is_json() { output::line(change) } else { held::line(change) };
            output::exact(None, &line).map_err(|e| AnswerError::new(5, e.to_string()))
        };
        let standing = |it: &_| self.export.iter().try_for_each(|file| write_whole(file, &held::metrics(it)));
        let back = hold(&order, &Terminal::new(quiet), &changed, &standing)?;
        Ok(ExitCode::from(if back { 0 } else { 5 }))
    }
}
