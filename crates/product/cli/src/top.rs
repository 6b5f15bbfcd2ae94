//! `coldframe top`: shows the work of a running pager.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use coldframe_answer::run::paged::Snapshot;
use coldframe_answer::run::signals::Signals;
use coldframe_answer::service::top::{Paged, Top};
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
  coldframe top redis-server --interval 5s
  coldframe top 4711 --once --format prometheus > /var/lib/node_exporter/coldframe.prom

NAME is any process of a run: its number or name. Without it all runs are listed, those with most page reads first; a \
single one is shown whole. Counts are sums over all processes of a run. The bars show the last 20 intervals; the \
highest bar \
is full. Ctrl-C ends it.")]
pub struct Args {
    /// A process, by its number or name [default: all].
    name: Option<String>,
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

/// A run, and the last looks at it.
struct Run {
    paged: Paged,
    looks: VecDeque<Top>,
}

impl Verb<Failure> for Args {
    fn run(self, _: bool) -> Result<ExitCode, Failure> {
        let interval = self.interval.max(Duration::from_millis(10));
        let once = self.once || self.format == "prometheus";
        let seconds = (!once).then_some(interval.as_secs_f64());
        let mut runs: Vec<Run> = Paged::find(self.name.as_deref())?
            .into_iter()
            .map(|paged| Run { looks: VecDeque::from([paged.look(seconds)]), paged })
            .collect();
        if once {
            for run in &mut runs {
                let mut none = run.paged.look(None);
                none.now = Snapshot::default();
                run.looks.push_front(none);
            }
            print(&self.format, &runs, None)?;
            return Ok(ExitCode::SUCCESS);
        }
        let signals = Signals::catch()?;
        let redraw = self.format == "text" && std::io::stdout().is_terminal();
        loop {
            std::thread::sleep(interval);
            runs.retain(|run| run.paged.runs());
            if signals.came() || runs.is_empty() {
                return Ok(ExitCode::SUCCESS);
            }
            for Run { paged, looks } in &mut runs {
                looks.push_back(paged.look(seconds));
                if looks.len() > LOOKS {
                    looks.pop_front();
                }
            }
            if redraw {
                output::exact(None, "\x1b[H\x1b[2J")?;
            }
            print(&self.format, &runs, Some(interval))?;
        }
    }
}

/// Each run has at least two looks, the newest last.
fn print(format: &str, runs: &[Run], interval: Option<Duration>) -> Result<(), Failure> {
    let now: Vec<&Top> = runs.iter().filter_map(|run| run.looks.back()).collect();
    match (format, runs) {
        ("json", _) => now.iter().try_for_each(|now| output::exact(None, &output::line(now)))?,
        ("prometheus", [_]) => output::exact(None, &top::prometheus(&now[0].now))?,
        ("prometheus", _) => {
            let all: Vec<_> = now.iter().map(|of| format!("{} ({})", of.process, of.program)).collect();
            return Err(Failure::usage(format!("several runs are under way; give one of {}", all.join(", "))));
        }
        (_, [run]) => output::text(&top::table(&run.looks, interval))?,
        _ => output::text(&top::list(&runs.iter().map(|run| &run.looks).collect::<Vec<_>>(), interval))?,
    }
    Ok(())
}
