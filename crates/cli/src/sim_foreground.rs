//! `coldframe sim --system drswap`: tasks that take turns in the foreground, with a swap area whose slots are rewritten in place.

use std::process::ExitCode;

use coldframe_report::foreground::{json, simulate, simulate_with_journal, table};
use coldframe_report::settings::Vary;
use coldframe_report::table::human_count;
use coldframe_report::{ReportError, Settings};

use crate::failure::Failure;
use crate::progress::Line;
use crate::{output, sim};

/// What only such areas have.
#[derive(clap::Args)]
#[command(next_help_heading = "Swap areas with a backing")]
pub struct ForegroundArgs {
    /// Where the area lies: dram, emmc, nvm, nvm-dr (read where it lies; the default) or none.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    backing: Vec<String>,
    /// The area's size, or a percentage of the footprint (default 128MiB).
    #[arg(long, visible_alias = "swap-area", value_name = "SIZE", value_delimiter = ',', allow_hyphen_values = true)]
    swap_size: Vec<String>,
}

impl ForegroundArgs {
    /// What a sweep varies outermost.
    pub fn outer(&self) -> Vec<Vary> {
        vec![
            (|s, v| s.swap.backing = Some(v.into()), self.backing.clone()),
            (|s, v| s.swap.size = Some(v.into()), self.swap_size.clone()),
        ]
    }
}

pub fn run(args: &sim::Args, all: &[Settings], quiet: bool) -> Result<ExitCode, Failure> {
    sim::no_timeline(args)?;
    let mut line = Line::new(quiet);
    let mut progress = |p: coldframe_report::Progress| {
        line.show(p.rows, Some(p.rows_total), &format!("{} rows", human_count(p.rows)));
    };
    let stored = match &args.journal {
        None => simulate(&args.trace, all, &mut progress)?,
        Some(path) => {
            sim::into_file(path, all, |one, sink| simulate_with_journal(&args.trace, one, sink, &mut progress))?
        }
    };
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
