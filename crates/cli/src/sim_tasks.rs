//! `coldframe sim --system sap`: several tasks on one processor, with a scheduler that is asked who is next.

use std::process::ExitCode;

use coldframe_report::settings::Vary;
use coldframe_report::tasks::{json, run as simulate, run_with_journal, table};
use coldframe_report::{ReportError, Settings};

use crate::failure::Failure;
use crate::progress::Line;
use crate::{output, sim};

/// What only several tasks have.
#[derive(clap::Args)]
#[command(next_help_heading = "Several tasks on one processor (--scheduler, --prefetch, or --system sap)")]
pub struct TasksArgs {
    /// round-robin, cfs (Linux 2.6.24) or eevdf (Linux today); default cfs.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scheduler: Vec<String>,
    /// When the next task's pages are loaded: off, 75, 50, xi=0.6 (part of the slice), timer=0.6 or adaptive; default 75.
    #[arg(long, value_name = "WHEN", value_delimiter = ',')]
    prefetch: Vec<String>,
    /// Pages on a task's list of recent faults; default 1024.
    #[arg(long, value_name = "PAGES")]
    list: Option<usize>,
    /// The scheduler follows its prediction, whoever wakes up meanwhile.
    #[arg(long)]
    follow: bool,
}

impl TasksArgs {
    /// Whether one of them is given.
    fn any(&self) -> bool {
        !self.scheduler.is_empty() || !self.prefetch.is_empty() || self.list.is_some() || self.follow
    }

    /// For a run that has no use for them.
    pub fn refuse(&self) -> Result<(), Failure> {
        match self.any() {
            true => Err(Failure::usage(
                "--scheduler, --prefetch, --list and --follow are of several tasks; a swap trace has none, leave them out",
            )),
            false => Ok(()),
        }
    }

    /// What a sweep varies innermost.
    pub fn inner(&self) -> Vec<Vary> {
        vec![
            (|s, v| s.tasks.scheduler = Some(v.into()), self.scheduler.clone()),
            (|s, v| s.tasks.prefetch = Some(v.into()), self.prefetch.clone()),
        ]
    }

    pub fn apply(&self, settings: &mut Settings) {
        settings.tasks.list = self.list.or(settings.tasks.list);
        settings.tasks.follow = settings.tasks.follow.or(self.follow.then_some(true));
    }
}

pub fn run(args: &sim::Args, all: &[Settings], quiet: bool) -> Result<ExitCode, Failure> {
    sim::no_timeline(args)?;
    let mut line = Line::new(quiet);
    let mut progress = |done: usize, total: usize| {
        line.show(done as u64, Some(total as u64), "configurations");
        Ok(())
    };
    let outcomes = match &args.journal {
        None => simulate(&args.trace, all, &mut progress)?,
        Some(path) => sim::into_file(path, all, |one, sink| Ok(vec![run_with_journal(&args.trace, one, sink)?]))?,
    };
    drop(line);
    let text = match sim::format(args)? {
        "json" => output::json(&json(&outcomes)),
        "table" => table(&args.trace, &outcomes),
        other => {
            let reason = format!("`{other}` is not there for several tasks; give table or json");
            return Err(ReportError::setting("format", reason).into());
        }
    };
    output::write(args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}
