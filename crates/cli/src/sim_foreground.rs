//! `coldframe sim --system drswap`: tasks that take turns in the foreground, with a swap area whose slots are rewritten in place.

use std::process::ExitCode;

use coldframe_report::foreground::{json, simulate, table};
use coldframe_report::table::human_count;
use coldframe_report::{ReportError, Settings};

use crate::failure::Failure;
use crate::progress::Line;
use crate::{output, sim};

/// What only such areas have.
#[derive(clap::Args)]
#[command(next_help_heading = "Swap areas in memory (--system drswap)")]
pub struct ForegroundArgs {
    /// Where the area lies: dram, emmc, nvm, nvm-dr (read where it lies; the default) or none.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    backing: Vec<String>,
    /// The area's size, or a percentage of the footprint (default 128MiB).
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_hyphen_values = true)]
    swap_size: Vec<String>,
}

impl ForegroundArgs {
    /// Every combination, backings outermost.
    fn expand(&self, all: &[Settings]) -> Vec<Settings> {
        let choices = |values: &[String]| match values {
            [] => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        };
        let mut out = Vec::new();
        for backing in choices(&self.backing) {
            for size in choices(&self.swap_size) {
                out.extend(all.iter().cloned().map(|mut one| {
                    one.swap.backing = backing.clone().or(one.swap.backing);
                    one.swap.size = size.clone().or(one.swap.size);
                    one
                }));
            }
        }
        out
    }

    /// For every other system.
    pub fn refuse(&self) -> Result<(), Failure> {
        for (name, given) in [("--backing", !self.backing.is_empty()), ("--swap-size", !self.swap_size.is_empty())] {
            if given {
                return Err(Failure::usage(format!("{name} is for tasks in the foreground; add --system drswap")));
            }
        }
        Ok(())
    }
}

/// Whether that is the system of all of them.
pub fn is_asked_for(all: &[Settings]) -> bool {
    all.iter().all(|settings| settings.system.as_deref() == Some("drswap"))
}

pub fn run(args: &sim::Args, all: &[Settings], quiet: bool) -> Result<ExitCode, Failure> {
    if args.journal.is_some() {
        return Err(Failure::usage("--journal: the system drswap keeps none; leave it out"));
    }
    let mut line = Line::new(quiet);
    let stored = simulate(&args.trace, &args.foreground.expand(all), &mut |p| {
        line.show(p.rows, Some(p.rows_total), &format!("{} rows", human_count(p.rows)));
    })?;
    drop(line);
    let text = match sim::format(args)? {
        "json" => output::json(&json(&stored)),
        "table" => {
            let (pages, tasks) = (human_count(stored.pages as u64), stored.tasks);
            format!("{}: {tasks} tasks, {pages} pages of 4KiB touched\n{}", args.trace.display(), table(&stored))
        }
        other => {
            let reason = format!("`{other}` is not there for the system drswap; give table or json");
            return Err(ReportError::setting("format", reason).into());
        }
    };
    output::write(args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}
