//! `coldframe sim --system sap`: several tasks on one processor, with a scheduler that is asked who is next.

use std::process::ExitCode;

use coldframe_report::tasks::{expand, json, run as simulate, table};
use coldframe_report::{ReportError, Settings};

use crate::failure::Failure;
use crate::progress::Line;
use crate::{output, sim};

/// What only several tasks have.
#[derive(clap::Args)]
#[command(next_help_heading = "Several tasks (--system sap)")]
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
    /// For a run of one task, which has no use for them.
    pub fn refuse(&self) -> Result<(), Failure> {
        let given = [
            ("--scheduler", !self.scheduler.is_empty()),
            ("--prefetch", !self.prefetch.is_empty()),
            ("--list", self.list.is_some()),
            ("--follow", self.follow),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Failure::usage(format!("{name} is for several tasks; give --system sap"))),
            None => Ok(()),
        }
    }
}

/// Whether the run is one of several tasks.
pub fn is_of_tasks(args: &sim::Args, base: &Settings) -> bool {
    match args.system.as_slice() {
        [] => base.system.as_deref() == Some("sap"),
        systems => systems.iter().any(|system| system == "sap"),
    }
}

pub fn run(args: &sim::Args, quiet: bool) -> Result<ExitCode, Failure> {
    if args.system.len() > 1 {
        return Err(Failure::usage("sap simulates several tasks and the others one; give them in runs of their own"));
    }
    let mut all = sim::settings(args)?;
    for settings in &mut all {
        settings.tasks.list = args.tasks.list.or(settings.tasks.list);
        settings.tasks.follow = settings.tasks.follow.or(args.tasks.follow.then_some(true));
    }
    let all = expand(all, &args.tasks.scheduler, &args.tasks.prefetch);
    let mut line = Line::new(quiet);
    let mut progress = |done: usize, total: usize| {
        line.show(done as u64, Some(total as u64), "configurations");
        Ok(())
    };
    let outcomes = simulate(&args.trace, &all, &mut progress)?;
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
