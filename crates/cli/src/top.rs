//! `coldframe top`: shows the work of a running pager.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::child::Signals;
use coldframe_answer::run::Snapshot;
use coldframe_answer::top::{Paged, Top};
use coldframe_show::top;

use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::flags::time;
use crate::output;

/// Show faults, latency and RAM of a paged program that runs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe top
  coldframe top 4711 --interval 5s
  coldframe top 4711 --once --format prometheus > /var/lib/node_exporter/coldframe.prom

It also shows the bytes to and from the device. PID is any process of the run. Without it, the only running program is shown. Counts are sums over all processes of \
the run. The bars show the last 20 intervals; the highest bar is full. Ctrl-C ends it.")]
pub struct Args {
    /// Process.
    pid: Option<u32>,
    /// Time between two looks.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    interval: Duration,
    /// Print the totals once, and end.
    #[arg(long)]
    once: bool,
    /// How to print it.
    #[arg(long, value_parser = ["text", "json", "prometheus"], default_value = "text")]
    format: String,
}

/// Samples that are kept: 20 intervals.
const LOOKS: usize = 21;

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let interval = self.interval.max(Duration::from_millis(10));
        let paged = Paged::find(self.pid)?;
        if self.once || self.format == "prometheus" {
            print(&self.format, &VecDeque::from([Snapshot::default(), paged.look()]), None)?;
            return Ok(ExitCode::SUCCESS);
        }
        let signals = Signals::catch()?;
        let redraw = self.format == "text" && std::io::stdout().is_terminal();
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
            print(&self.format, &looks, Some(interval))?;
        }
        Ok(ExitCode::SUCCESS)
    }
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
