//! `coldframe top`: shows the work of a running pager.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::child::Signals;
use coldframe_answer::run::Snapshot;
use coldframe_answer::top::{Paged, Top};
use coldframe_sheet::quantity;
use coldframe_show::top;

use crate::failure::Failure;
use crate::output;

/// Show what a paged program does while it runs: faults, latency, RAM, bytes to and from the device.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe top
  coldframe top 4711 --interval 5s
  coldframe top 4711 --once --format prometheus > /var/lib/node_exporter/coldframe.prom

PID is any process of the run. Without it, the only running program is shown. Counts are sums over all processes of \
the run. The bars show the last 20 intervals; the highest bar is full. Ctrl-C ends it.")]
pub struct Args {
    /// Process.
    pid: Option<u32>,
    /// Time between two looks.
    #[arg(long, default_value = "1s")]
    interval: String,
    /// Print the totals once, and end.
    #[arg(long)]
    once: bool,
    /// How to print it.
    #[arg(long, value_parser = ["table", "json", "prometheus"], default_value = "table")]
    format: String,
}

/// Samples that are kept: 20 intervals.
const LOOKS: usize = 21;

pub fn run(args: Args) -> Result<ExitCode, Failure> {
    let interval = quantity::duration(&args.interval).map_err(|e| Failure::usage(format!("--interval: {e}")))?;
    let interval = interval.max(Duration::from_millis(10));
    let paged = Paged::find(args.pid)?;
    if args.once || args.format == "prometheus" {
        print(&args.format, &VecDeque::from([Snapshot::default(), paged.look()]), None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let signals = Signals::catch()?;
    let redraw = args.format == "table" && std::io::stdout().is_terminal();
    let mut looks = VecDeque::from([paged.look()]);
    while !signals.came() && paged.runs() {
        std::thread::sleep(interval);
        looks.push_back(paged.look());
        if looks.len() > LOOKS {
            looks.pop_front();
        }
        if redraw {
            output::exact(None, "\x1b[H\x1b[2J")?;
        }
        print(&args.format, &looks, Some(interval))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `looks`: at least two, the newest last.
fn print(format: &str, looks: &VecDeque<Snapshot>, interval: Option<Duration>) -> Result<(), Failure> {
    let now = looks.back().cloned().unwrap_or_default();
    let seconds = interval.map(|interval| interval.as_secs_f64());
    match format {
        "json" => output::exact(None, &output::line(&Top { seconds, now }))?,
        "prometheus" => output::exact(None, &top::prometheus(&now))?,
        _ => output::text(&top::table(looks, interval))?,
    }
    Ok(())
}
