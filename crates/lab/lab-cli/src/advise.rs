//! `coldframe-lab advise`: how little RAM of a board a program can live with, and what that costs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_experiment::drive::is_swap_trace;
use coldframe_experiment::settings::policies;
use coldframe_experiment::Settings;
use coldframe_plots::html::Page;
use coldframe_plots::{board_answer as words, board_export};
use coldframe_search::limits::{percent, years};
use coldframe_search::{advise, after, json, Advice, Limits, Question};
use coldframe_sheet::quantity::{self, human_count};
use coldframe_show::export;
use coldframe_terminal::suffix;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use crate::progress::Line;

/// Find the smallest RAM of a board that a program can live with, its price, and how sure the answer is.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab advise bzip2.parquet --device NAND01GW3B2B --max-slowdown 5%
  coldframe-lab advise bzip2.parquet --max-slowdown 5% --max-p99 1ms --min-life 5y --swap-size 64MiB -o config.toml
  coldframe-lab advise chess.parquet --system swl --max-slowdown 20% --format json
  coldframe-lab advise mix.parquet --system sap --max-slowdown 20%
  coldframe-lab advise firmware.parquet --device W25Q16BV --after main

The search tries all policies and handlers, with and without read-ahead, over sizes from 1 % to 100 % of what the \
trace touches, then finer steps. A limit must hold at the bad end of its range. Without a limit, the slowdown is at \
most 5 %. `coldframe-lab sim TRACE -c config.toml` simulates the advised configuration.

A recording by this machine's pager (coldframe record) is about this machine: `coldframe --trace FILE` answers.

Exit code 1: no configuration meets the limits.")]
pub struct Args {
    /// The trace (Parquet; see `coldframe-lab record` and `coldframe-lab trace import`).
    trace: PathBuf,
    /// Largest slowdown, in percent of the program's own time [default without a limit: 5%].
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    max_slowdown: Option<String>,
    /// Longest 99th percentile of a fault.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_p99: Option<String>,
    /// Shortest life of the flash. Needs the sheet's endurance, and its size or --swap-size.
    #[arg(long, value_name = "YEARS", allow_hyphen_values = true)]
    min_life: Option<String>,
    /// Largest energy of paging for the whole run. Needs a sheet with energies.
    #[arg(long, value_name = "ENERGY", allow_hyphen_values = true)]
    max_energy: Option<String>,
    /// Largest RAM.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    max_ram: Option<String>,
    /// The program's run time without paging, for the whole trace [default: 10 ns an instruction].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    program_time: Option<String>,
    /// Leave out the start, in which libraries are loaded: until the first fetch of a function, such as main, of entry
    /// (where the loader hands over) or of 0xADDRESS, or until a time of the trace's clock.
    #[arg(long, value_name = "FUNCTION")]
    after: Option<String>,
    /// A paper's system; its front end, prices and device are used.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Devices: shipped sheets' names, `here` for this machine's measured one, or paths of sheets [default: the
    /// system's, else NAND01GW3B2B].
    #[arg(long, value_name = "SHEET", value_delimiter = ',')]
    device: Vec<String>,
    /// Policies; may repeat [default: all that need no parameter, and pa-clock:budget=13].
    #[arg(long, value_name = "NAME[:key=value,...]")]
    policy: Vec<String>,
    /// Handlers [default: parallel, sequential].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    handler: Vec<String>,
    /// Most pages of a sequential stream that a fault reads ahead [default: 0, 16].
    #[arg(long, value_name = "PAGES", value_delimiter = ',')]
    read_ahead: Vec<u32>,
    /// Size of the swap area on the flash.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    swap_size: Option<String>,
    /// Simulate the swap area as a log with these collectors [default with --swap-size: all, and Linux's slots].
    #[arg(long, value_name = "NAME[:VICTIMS]", value_delimiter = ',')]
    collector: Vec<String>,
    /// The scheduler, with --system sap: round-robin, cfs or eevdf [default: cfs].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scheduler: Vec<String>,
    /// When to load the next task's pages, with --system sap [default: off, 75, 50].
    #[arg(long, value_name = "WHEN", value_delimiter = ',')]
    prefetch: Vec<String>,
    /// Any setting by its path, as in the configuration file; may repeat.
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Configuration file. The search does not vary what the file sets.
    #[arg(short, value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Limit of work: trace rows times configurations. Above it, the search uses a shortened trace first.
    #[arg(long, value_name = "N")]
    work: Option<u64>,
    /// Write the advised settings to this file, for `sim -c`.
    #[arg(short, value_name = "CONFIG.toml", value_parser = suffix::settings)]
    output: Option<PathBuf>,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html or prom. May repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// How to print the answer.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let exports = export::files(&self.export)?;
        let advice = answer(&self, quiet)?;
        if let (Some(path), Some(_)) = (&self.output, &advice.best) {
            write_config(path, &advice)?;
        }
        let data = json::Answer::new(&advice);
        output::result(&self.format, &data, || words::words(&advice))?;
        board_export::exported(&data, words::words(&advice)).write(&exports, &Page(&data))?;
        // 1: the answer is no.
        Ok(ExitCode::from(u8::from(advice.best.is_none())))
    }
}

/// The answer, by simulation.
fn answer(args: &Args, quiet: bool) -> Result<Advice, Failure> {
    if is_swap_trace(&args.trace) {
        let message = format!(
            "{}: a swap trace holds what left RAM of one size; what other sizes would do needs the references: record \
                the program, or compare swap areas with `coldframe-lab sim`",
            args.trace.display()
        );
        return Err(Failure::Other { message, code: 3 });
    }
    let question = question(args)?;
    let mut line = Line::new(quiet);
    let mut progress = |p: coldframe_experiment::Progress| {
        line.show(p.done, Some(p.total), &format!("{} {} of a round", human_count(p.done), p.unit.name()));
    };
    Ok(advise(&args.trace, &question, &mut progress)?)
}

fn question(args: &Args) -> Result<Question, Failure> {
    let mut base = Settings::of(args.config.as_deref(), &args.set)?;
    base.system = args.system.clone().or(base.system);
    if let Some(after) = &args.after {
        base.limit.skip = Some(after::row(&args.trace, after)?);
    }
    let size = |option, text: &Option<String>| Failure::option(option, text.as_deref(), quantity::bytes);
    let time = |option, text: &Option<String>| Failure::option(option, text.as_deref(), quantity::time);
    let limits = Limits {
        slowdown: args.max_slowdown.as_deref().map(|text| percent("max-slowdown", text)).transpose()?,
        p99: time("--max-p99", &args.max_p99)?,
        life: args.min_life.as_deref().map(|text| years("min-life", text)).transpose()?,
        energy: Failure::option("--max-energy", args.max_energy.as_deref(), quantity::energy)?,
        ram: size("--max-ram", &args.max_ram)?,
    };
    Ok(Question {
        base,
        limits,
        devices: args.device.clone(),
        policies: args.policy.iter().flat_map(|text| policies(text)).collect(),
        handlers: args.handler.clone(),
        read_aheads: args.read_ahead.clone(),
        collectors: args.collector.clone(),
        schedulers: args.scheduler.clone(),
        prefetches: args.prefetch.clone(),
        swap_area: size("--swap-size", &args.swap_size)?,
        program_time: time("--program-time", &args.program_time)?,
        work_max: args.work,
    })
}

/// Writes the advised settings, with a note on their origin.
fn write_config(path: &Path, advice: &Advice) -> Result<(), Failure> {
    let Some(best) = &advice.best else { return Ok(()) };
    let settings = best.point.config.settings()?.to_toml()?;
    let text = format!(
        "# Advised by coldframe {} for {} (sha256 {}).\n# {}\n{settings}",
        env!("CARGO_PKG_VERSION"),
        advice.trace.path,
        advice.trace.sha256,
        words::sentence(advice).trim_end(),
    );
    Ok(output::file(path, &text)?)
}
