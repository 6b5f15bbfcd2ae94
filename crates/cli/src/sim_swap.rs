//! `coldframe sim` of a swap trace: a swap area on flash, driven by what a kernel swapped.

use std::path::Path;
use std::process::ExitCode;

use coldframe_report::settings::Vary;
use coldframe_report::swap::{json, run as simulate, run_with_journal};
use coldframe_report::swap_table::{pictures, table};
use coldframe_report::systems::{self, System};
use coldframe_report::{ReportError, Settings, Sweep};

use crate::failure::Failure;
use crate::progress::Line;
use crate::{output, sim};

/// What only swap areas have.
#[derive(clap::Args)]
#[command(next_help_heading = "Swap areas")]
pub struct SwapArgs {
    /// Erase blocks of the swap area.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    blocks: Vec<String>,
    /// log (LOBI), linux (on bare flash) or linux-ftl (on a device with a translation layer).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    layout: Vec<String>,
    /// What is read with a page: none, block:N (LOBI), aligned:N (Linux) or pages:N (Linux since 4.14).
    #[arg(long, value_name = "NAME:N", value_delimiter = ',')]
    read_ahead: Vec<String>,
    /// greedy, cost-benefit, cost-age-times:VICTIMS or cost-benefit-age:VICTIMS.
    #[arg(long, value_name = "NAME[:N]", value_delimiter = ',')]
    collector: Vec<String>,
}

impl SwapArgs {
    /// For a run of the paging engine, which has one swap area: the settings' own words.
    pub fn apply(&self, settings: &mut Settings) -> Result<(), Failure> {
        let swap = &mut settings.swap;
        for (name, values, setting) in [
            ("--blocks", &self.blocks, &mut swap.blocks),
            ("--layout", &self.layout, &mut swap.layout),
            ("--read-ahead", &self.read_ahead, &mut swap.read_ahead),
            ("--collector", &self.collector, &mut swap.collector),
        ] {
            match values.as_slice() {
                [] => {}
                [one] => *setting = Some(one.clone()),
                _ => return Err(Failure::usage(format!("{name}: a list needs a swap trace; give one value"))),
            }
        }
        Ok(())
    }

    /// What a sweep of swap areas varies.
    fn varied(&self) -> Vec<Vary> {
        vec![
            (|s, v| s.swap.blocks = Some(v.into()), self.blocks.clone()),
            (|s, v| s.swap.layout = Some(v.into()), self.layout.clone()),
            (|s, v| s.swap.read_ahead = Some(v.into()), self.read_ahead.clone()),
            (|s, v| s.swap.collector = Some(v.into()), self.collector.clone()),
        ]
    }
}

/// Swap traces are CSV; references come as Parquet.
pub fn is_swap_trace(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let bare = [".zst", ".gz", ".xz"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    bare.ends_with(".csv")
}

pub fn run(args: &sim::Args, quiet: bool) -> Result<ExitCode, Failure> {
    let mut base = sim::base(args)?;
    if let [one] = args.system.as_slice() {
        base.system = Some(one.clone());
    }
    let named = base.system.get_or_insert_with(|| systems::of_log().0.name.into());
    if args.system.len() > 1 || !systems::find(named).is_some_and(System::has_log) {
        return Err(Failure::usage(format!(
            "a swap trace has no references, only a swap area can take it; give --system {}",
            systems::names(System::has_log)
        )));
    }
    args.fail(&mut base)?;
    if let [device] = args.device.as_slice() {
        base.device = Some(device.clone());
    }
    let sweep = Sweep { outer: args.swap.varied(), inner: args.foreground.outer(), ..Sweep::default() };
    let all = sweep.expand(&base)?;
    let mut line = Line::new(quiet);
    let mut progress = |done: usize, total: usize| line.show(done as u64, Some(total as u64), "");
    let outcomes = match &args.journal {
        None => simulate(&args.trace, &all, &mut progress)?,
        Some(path) => sim::into_file(path, &all, |one, sink| Ok(vec![run_with_journal(&args.trace, one, sink)?]))?,
    };
    drop(line);
    let text = match sim::format(args)? {
        "json" => output::json(&json(&args.trace, &outcomes)?),
        "table" => {
            let pictures = if args.plot { format!("\n{}", pictures(&outcomes)) } else { String::new() };
            let notes = outcomes.first().map(|o| o.notes.join("\n")).unwrap_or_default();
            let notes = if notes.is_empty() { notes } else { format!(": {notes}") };
            format!("{}: a swap trace{notes}\n{}{pictures}", args.trace.display(), table(&outcomes))
        }
        other => {
            let reason = format!("`{other}` is not there for a swap trace; give table or json");
            return Err(ReportError::setting("format", reason).into());
        }
    };
    output::write(args.output.as_deref(), &text)?;
    Ok(ExitCode::SUCCESS)
}
