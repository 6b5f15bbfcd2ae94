//! `coldframe-lab sim`: what a trace would cost with less RAM.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_experiment::drive::{self, Drive, Outcomes};
use coldframe_experiment::settings::{policies, SIZES_DEFAULT};
use coldframe_experiment::{ExperimentError, Progress, Settings, Sweep};
use coldframe_plots::results_csv::csv;
use coldframe_plots::results_plot::plots;
use coldframe_plots::sim::words;
use coldframe_sheet::quantity::human_count;
use coldframe_show::plot::{stack, Plot};
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use crate::picture;
use crate::progress::Line;
use crate::sim_args;

/// Simulate demand paging of a trace with some RAM, policy and handler.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab sim bzip2.parquet --ram 10%,25%,50% --policy clock,sieve,lru,opt --plot
  coldframe-lab sim chess.parquet --system swl --ram 64KiB,128KiB --policy clock --policy pa-clock:budget=13
  coldframe-lab sim chess.parquet --system swl --ram 128KiB --set front_end.reading=C --format json
  coldframe-lab sim cjpeg.parquet --system ddb --ram 16KiB --handler sequential,delayed-dual-buffering --format json
  coldframe-lab sim mix.parquet --system sap --ram 30%,50% --scheduler round-robin,cfs --prefetch off,75,50
  coldframe-lab sim mix.parquet --scheduler eevdf --prefetch 75 --swap-device nvm-dr --swap-size 64MiB --collector cba
  coldframe-lab sim swap.csv.zst --system lobi --blocks 1024,2048 --swap-window block:8,block:32 --plot
  coldframe-lab sim phone.parquet --system drswap --ram 400MB --swap-device dram,emmc,nvm,nvm-dr,none --swap-size 128MiB

Lists make a sweep: policy outermost, then handler, then frames. The trace is decoded once. `coldframe-lab policies` \
lists names and parameters; `coldframe-lab devices` lists devices. A trace whose name ends in .csv (.zst, .gz, .xz) \
is a swap trace.")]
pub struct Args {
    /// The trace (Parquet; see `coldframe-lab trace import` and `coldframe record`).
    trace: PathBuf,
    /// A paper's system; its defaults are used; may repeat.
    #[arg(long, value_name = "NAME")]
    system: Vec<String>,
    /// Policy or oracle with its parameters; may repeat. Plain names may be a list with commas.
    #[arg(long, value_name = "NAME[:key=value,...]")]
    policy: Vec<String>,
    /// sequential, parallel, delayed-dual-buffering, ...; may repeat.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    handler: Vec<String>,
    /// RAM: sizes such as 64KiB, or percentages of the footprint.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_hyphen_values = true)]
    ram: Vec<String>,
    /// RAM in frames.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    frames: Vec<u64>,
    /// Page size.
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    page: Vec<String>,
    /// References to simulate: I (instructions), D (data) or ID.
    #[arg(long, value_parser = ["I", "D", "ID"])]
    stream: Option<String>,
    /// Device: a shipped sheet's name, or the path of a sheet.
    #[arg(long, value_name = "SHEET", value_delimiter = ',')]
    device: Vec<String>,
    /// Simulate a share of the pages only, such as 1%, chosen by a hash of each: for huge traces. Misses are estimates,
    /// each with its error (SHARDS).
    #[arg(long, value_name = "SHARE")]
    sample: Option<String>,
    /// Front end: none, swl, or l1 (also called ddb).
    #[arg(long, value_name = "NAME")]
    front_end: Option<String>,
    /// Any setting by its path, as in the configuration file; may repeat.
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Configuration file.
    #[arg(short, value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// How to print the results.
    #[arg(long, value_parser = ["table", "json", "csv"])]
    format: Option<String>,
    /// Write the results to a file. The suffix (json, csv, svg, png, txt) decides the format, if --format does not.
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw miss ratio and fault latency against RAM below the table.
    #[arg(long)]
    plot: bool,
    #[command(flatten)]
    area: sim_args::AreaArgs,
    #[command(flatten)]
    tasks: sim_args::TasksArgs,
    /// Rate of device failures, and their seed (default 1): 0.001, 0.1%, 0.1%:7.
    #[arg(long, value_name = "RATE[:SEED]")]
    fail: Option<String>,
    /// Write the engine's journal (one configuration only); `coldframe-lab replay` checks it.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

impl Args {
    /// What `--fail` says.
    fn fail(&self, settings: &mut Settings) -> Result<(), Failure> {
        let Some(fail) = &self.fail else { return Ok(()) };
        let (rate, seed) = fail.split_once(':').unwrap_or((fail, "1"));
        let seed = seed
            .parse()
            .map_err(|_| Failure::usage(format!("--fail {fail}: give RATE or RATE:SEED, such as 0.1%:7")))?;
        (settings.fail.rate, settings.fail.seed) = (Some(rate.into()), Some(seed));
        Ok(())
    }
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        simulate(&self, quiet).map_err(|failure| match failure {
            Failure::Experiment(error) => error.in_file(self.config.as_deref()).into(),
            other => other,
        })
    }
}

fn simulate(args: &Args, quiet: bool) -> Result<ExitCode, Failure> {
    let all = settings(args)?;
    let drive = drive::of(&args.trace, &all);
    let format = format(args)?;
    if drive != Drive::String && !matches!(format, "json" | "table") {
        let reason = format!("`{format}` is there for one string of references only; give table or json");
        return Err(ExperimentError::setting("format", reason).into());
    }
    let mut line = Line::new(quiet);
    let mut progress = |p: Progress| {
        line.show(p.done, Some(p.total), &format!("{} {}", human_count(p.done), p.unit.name()));
    };
    let outcomes = match &args.journal {
        None => drive::run(&args.trace, &all, None, &mut progress)?,
        Some(journal) => with_journal(&args.trace, &all, journal, &mut progress)?,
    };
    drop(line);
    let text = match (format, &outcomes) {
        ("json", _) => json(args, &outcomes)?,
        ("csv", Outcomes::String(results)) => csv(results),
        ("svg" | "png", Outcomes::String(results)) => stack(&plots(results).iter().map(Plot::svg).collect::<Vec<_>>()),
        _ => words(&args.trace, &outcomes, args.plot),
    };
    match (format, &args.output) {
        ("table", None) => output::text(&text)?,
        ("svg" | "png", Some(path)) => picture::write(path, &text)?,
        _ => output::exact(args.output.as_deref(), &text)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &Args) -> Result<Vec<Settings>, Failure> {
    let mut base = Settings::of(args.config.as_deref(), &args.set)?;
    if let Some(stream) = &args.stream {
        base.stream = Some(stream.clone());
    }
    if let Some(front_end) = &args.front_end {
        base.front_end.name = Some(front_end.clone());
    }
    base.limit.sample = args.sample.clone().or(base.limit.sample);
    if !args.ram.is_empty() || !args.frames.is_empty() {
        (base.ram, base.frames) = (None, None);
    }
    args.tasks.apply(&mut base);
    args.fail(&mut base)?;
    let mut sweep = Sweep {
        outer: args.area.varied(),
        inner: args.tasks.varied(),
        systems: args.system.clone(),
        pages: args.page.clone(),
        devices: args.device.clone(),
        policies: args.policy.iter().flat_map(|text| policies(text)).collect(),
        handlers: args.handler.clone(),
        rams: args.ram.clone(),
        frames: args.frames.clone(),
    };
    let sized = base.ram.is_some() || base.frames.is_some() || drive::is_swap_trace(&args.trace);
    if sweep.rams.is_empty() && sweep.frames.is_empty() && !sized {
        sweep.rams = SIZES_DEFAULT.map(Into::into).to_vec();
    }
    Ok(sweep.expand(&base)?)
}

/// Runs one configuration, with its journal in a file.
fn with_journal(
    trace: &Path,
    all: &[Settings],
    journal: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcomes, Failure> {
    if all.len() != 1 {
        return Err(Failure::usage(format!(
            "--journal is of one configuration, but {} are given; give one policy and one --ram",
            all.len()
        )));
    }
    let refused =
        |e: std::io::Error| ExperimentError::Io { path: journal.display().to_string(), reason: e.to_string() };
    let mut file = BufWriter::new(File::create(journal).map_err(refused)?);
    let mut sink = |bytes: &[u8]| file.write_all(bytes).map_err(refused);
    let outcomes = drive::run(trace, all, Some(&mut sink), progress)?;
    file.flush().map_err(refused)?;
    Ok(outcomes)
}

fn format(args: &Args) -> Result<&str, Failure> {
    let suffix = args.output.as_deref().and_then(|p| p.extension()).and_then(|s| s.to_str());
    match (args.format.as_deref(), args.output.is_some(), suffix) {
        (Some(format), _, Some(suffix)) if ["json", "csv", "svg", "png"].contains(&suffix) && suffix != format => Err(
            Failure::usage(format!("-o: its name asks for {suffix}, and --format for {format}; leave one of them out")),
        ),
        (Some(format), _, _) => Ok(format),
        (None, false, _) => Ok("table"),
        (None, true, Some(suffix @ ("json" | "csv" | "svg" | "png"))) => Ok(suffix),
        (None, true, Some("txt")) => Ok("table"),
        (None, true, other) => {
            let other = other.unwrap_or("none");
            Err(Failure::usage(format!(
                "-o: the suffix `{other}` names no format; give json, csv, svg, png or txt, or --format"
            )))
        }
    }
}

/// One object for one configuration of a string or a swap trace; an array for a sweep and for tasks.
fn json(args: &Args, outcomes: &Outcomes) -> Result<String, ExperimentError> {
    let lists =
        [args.policy.len(), args.ram.len(), args.frames.len(), args.handler.len(), args.page.len(), args.device.len()];
    let array = match outcomes {
        Outcomes::String(_) => lists.iter().any(|n| *n > 1),
        Outcomes::SwapTrace(_) => false,
        Outcomes::Tasks(_) => true,
    };
    Ok(match outcomes.results(&args.trace)?.as_slice() {
        [one] if !array => output::json(one),
        all => output::json(&all),
    })
}
