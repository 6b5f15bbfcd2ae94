//! `coldframe-lab advise`: how little RAM a program can live with, and what that costs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use coldframe_answer::machine::Machine;
use coldframe_answer::{Answer, Reading, Recorded, DEVICE};
use coldframe_experiment::drive::is_swap_trace;
use coldframe_experiment::settings::policies;
use coldframe_experiment::Settings;
use coldframe_plots::html::Page as BoardPage;
use coldframe_plots::{board_answer as words, board_export};
use coldframe_search::limits::{percent, years};
use coldframe_search::{advise, json, Advice, Cache, Limits, Question};
use coldframe_sheet::quantity::{self, human_count};
use coldframe_show::export::{self, Exported};
use coldframe_show::html::Page;
use coldframe_show::machine_answer;
use coldframe_store::{Fidelity, Reader};

use crate::failure::Failure;
use crate::output;
use crate::progress::Line;
use coldframe_terminal::listener::Terminal;

/// Find the smallest RAM that a program can live with, its price, and how sure the answer is.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe record -o sort.parquet -- sort file; coldframe-lab advise sort.parquet
  coldframe-lab advise bzip2.parquet --max-slowdown 5% --max-p99 1ms --min-life 5y --swap-size 64MiB -o config.toml
  coldframe-lab advise chess.parquet --system swl --max-slowdown 20% --format json
  coldframe-lab advise mix.parquet --system sap --max-slowdown 20%

A recording by this machine's pager (coldframe record) is answered for this machine (--device here): the run time \
under `coldframe run` for each size of RAM. Without a limit, the recommended size is at most 10 % slower.
Other recordings are answered for a board (--device NAME). The search tries all policies and handlers, with and \
without read-ahead, over sizes from 1 % to 100 % of what the trace touches, then finer steps. A limit must hold at the \
bad end of its range. Without a limit, the slowdown is at most 5 %. `coldframe-lab sim TRACE -c config.toml` simulates the \
advised configuration.

Exit code 1: no configuration meets the limits.")]
pub struct Args {
    #[command(flatten)]
    pub asked: Asked,
    /// Write the advised settings to this file, for `sim -c` and `run -c`.
    #[arg(short, value_name = "CONFIG.toml")]
    output: Option<PathBuf>,
    /// Write the answer to this file, too; its suffix says the form: json, csv, md, html or prom. May repeat.
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// How to print the answer.
    #[arg(long, value_parser = ["text", "json"], default_value = "text")]
    format: String,
}

/// The question.
#[derive(clap::Args)]
pub struct Asked {
    /// The trace (Parquet; see `coldframe-lab trace import` and `coldframe record`).
    pub trace: PathBuf,
    #[command(flatten)]
    pub how: How,
}

/// Limits, and what the search may use.
#[derive(clap::Args)]
pub struct How {
    /// Largest slowdown, in percent of the program's own time [default without a limit: 5%].
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub max_slowdown: Option<String>,
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
    pub max_ram: Option<String>,
    /// The program's run time without paging, for the whole trace [default: 10 ns an instruction].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub program_time: Option<String>,
    /// A paper's system; its front end, prices and device are used.
    #[arg(long, value_name = "NAME")]
    pub system: Option<String>,
    /// Devices: `here` for this machine, shipped sheets' names, or paths of sheets [default: here for a recording of this machine's
    /// pager, else the system's, else NAND01GW3B2B].
    #[arg(long, value_name = "SHEET", value_delimiter = ',')]
    pub device: Vec<String>,
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
    /// The folder where results are kept [default: ~/.cache/coldframe].
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Do not use kept results, and keep none.
    #[arg(long)]
    no_cache: bool,
}

impl How {
    /// The longest extra run time, as a part of the stand-alone time.
    pub fn slowdown(&self) -> Result<Option<f64>, Failure> {
        let percent = Failure::option("--max-slowdown", self.max_slowdown.as_deref(), quantity::percent)?;
        Ok(percent.map(|percent| percent / 100.0))
    }

    /// The stand-alone time, in seconds.
    pub fn program_seconds(&self) -> Result<Option<f64>, Failure> {
        let time = Failure::option("--program-time", self.program_time.as_deref(), quantity::time)?;
        Ok(time.map(|time| time.0 as f64 / 1e12))
    }

    /// The first given option that only has a meaning for a board.
    pub fn of_boards(&self) -> Option<&'static str> {
        let given = [
            ("--max-p99", self.max_p99.is_some()),
            ("--min-life", self.min_life.is_some()),
            ("--max-energy", self.max_energy.is_some()),
            ("--system", self.system.is_some()),
            ("a second --device", self.device.len() > 1),
            ("--policy", !self.policy.is_empty()),
            ("--handler", !self.handler.is_empty()),
            ("--read-ahead", !self.read_ahead.is_empty()),
            ("--swap-size", self.swap_size.is_some()),
            ("--collector", !self.collector.is_empty()),
            ("--scheduler", !self.scheduler.is_empty()),
            ("--prefetch", !self.prefetch.is_empty()),
            ("--set", !self.set.is_empty()),
            ("-c", self.config.is_some()),
            ("--work", self.work.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

pub fn run(args: Args, quiet: bool) -> Result<ExitCode, Failure> {
    export::known(&args.export)?;
    if is_here(&args.asked) {
        return here(&args);
    }
    let advice = answer(&args.asked, quiet)?;
    if let (Some(path), Some(_)) = (&args.output, &advice.best) {
        write_config(path, &advice)?;
    }
    let data = json::Answer::from(&advice);
    output::result(&args.format, &data, || words::words(&advice))?;
    board_export::exported(&data, words::words(&advice)).write(&args.export, &BoardPage::of(&data))?;
    Ok(code(&advice))
}

/// The answer for this machine.
fn here(args: &Args) -> Result<ExitCode, Failure> {
    let recorded = answer_here(&args.asked)?;
    let config = recorded.config();
    let answer = Answer::Recorder(recorded);
    if let (Some(path), Some(config)) = (&args.output, &config) {
        output::file(path, config)?;
    }
    let fits = fits(&answer, &args.asked)?;
    let written = args.output.as_ref().filter(|_| config.is_some()).map(|path| path.display().to_string());
    output::result(&args.format, &answer, || machine_answer::words(&answer, written.as_deref(), None, ""))?;
    Exported::here(&answer).write(&args.export, &Page::of(&answer))?;
    Ok(ExitCode::from(u8::from(!fits)))
}

/// Whether the question is about this machine: its recorder made the trace, the program's own time is known, and no
/// other device is named.
pub fn is_here(asked: &Asked) -> bool {
    let recorded = |path: &Path| {
        let provenance = Reader::open(path).ok().map(|reader| reader.provenance().clone());
        provenance.is_some_and(|p| {
            p.fidelity == Fidelity::Window && (p.program.is_some() || asked.how.program_time.is_some())
        })
    };
    match asked.how.device.as_slice() {
        [] => asked.how.system.is_none() && recorded(&asked.trace),
        // For other traces, the sheet prices the times of a board.
        devices => devices.iter().all(|device| device == DEVICE) && recorded(&asked.trace),
    }
}

/// The answer for this machine.
///
/// # Errors
/// Options without a meaning here, and as [`answer`].
pub fn answer_here(asked: &Asked) -> Result<Recorded, Failure> {
    if let Some(option) = asked.how.of_boards() {
        return Err(Failure::usage(format!(
            "{option} is for a board; give one with --device NAME, or leave {option} out and ask about this machine"
        )));
    }
    let machine = Machine::known(&Terminal::new(false))?;
    let reading = Reading::read(&asked.trace, asked.how.program_seconds()?, None)?;
    Ok(machine.about(&reading, &coldframe_answer::Limits::slower(asked.how.slowdown()?))?)
}

/// Whether there is a size to advise, and --max-ram allows it.
pub fn fits(found: &Answer, asked: &Asked) -> Result<bool, Failure> {
    let most = max_ram(&asked.how)?;
    Ok(found.ram_bytes.is_some_and(|ram| most.is_none_or(|most| ram <= most)))
}

/// The limit in bytes, if it was given.
pub fn max_ram(how: &How) -> Result<Option<u64>, Failure> {
    Ok(Failure::option("--max-ram", how.max_ram.as_deref(), quantity::bytes)?.map(|most| most.0))
}

/// 1: the answer is no.
pub fn code(advice: &Advice) -> ExitCode {
    ExitCode::from(u8::from(advice.best.is_none()))
}

/// The answer, from the cache or by simulation.
pub fn answer(asked: &Asked, quiet: bool) -> Result<Advice, Failure> {
    if is_swap_trace(&asked.trace) {
        let message = format!(
            "{}: a swap trace holds what left RAM of one size; what other sizes would do needs the references: record the program, \
             or compare swap areas with `coldframe-lab sim`",
            asked.trace.display()
        );
        return Err(Failure::Other { message, code: 3 });
    }
    let question = question(asked)?;
    let mut cache = cache(asked);
    let mut line = Line::new(quiet);
    let mut progress = |p: coldframe_experiment::Progress| {
        line.show(p.done, Some(p.total), &format!("{} {} of a round", human_count(p.done), p.unit.name()));
    };
    Ok(advise(&asked.trace, &question, &mut cache, &mut progress)?)
}

fn question(asked: &Asked) -> Result<Question, Failure> {
    let mut base = Settings::of(asked.how.config.as_deref(), &asked.how.set)?;
    base.system = asked.how.system.clone().or(base.system);
    let size = |option, text: &Option<String>| Failure::option(option, text.as_deref(), quantity::bytes);
    let time = |option, text: &Option<String>| Failure::option(option, text.as_deref(), quantity::time);
    let limits = Limits {
        slowdown: asked.how.max_slowdown.as_deref().map(|text| percent("max-slowdown", text)).transpose()?,
        p99: time("--max-p99", &asked.how.max_p99)?,
        life: asked.how.min_life.as_deref().map(|text| years("min-life", text)).transpose()?,
        energy: Failure::option("--max-energy", asked.how.max_energy.as_deref(), quantity::energy)?,
        ram: size("--max-ram", &asked.how.max_ram)?,
    };
    Ok(Question {
        base,
        limits,
        devices: asked.how.device.clone(),
        policies: asked.how.policy.iter().flat_map(|text| policies(text)).collect(),
        handlers: asked.how.handler.clone(),
        read_aheads: asked.how.read_ahead.clone(),
        collectors: asked.how.collector.clone(),
        schedulers: asked.how.scheduler.clone(),
        prefetches: asked.how.prefetch.clone(),
        swap_area: size("--swap-size", &asked.how.swap_size)?,
        program_time: time("--program-time", &asked.how.program_time)?,
        work_max: asked.how.work,
    })
}

/// The folder of kept results; without a home folder there is none.
fn cache(asked: &Asked) -> Cache {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = match (&asked.how.cache, asked.how.no_cache) {
        (_, true) => None,
        (Some(folder), _) => Some(folder.clone()),
        (None, _) => of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache"))).map(|p| p.join("coldframe")),
    };
    folder.map_or_else(Cache::none, |folder| Cache::in_folder(folder, build()))
}

/// Identifies this build: two builds that find different results may have the same version.
fn build() -> String {
    let meta = std::env::current_exe().and_then(std::fs::metadata).ok();
    let made = meta.as_ref().and_then(|m| m.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok());
    let (size, made) = (meta.as_ref().map_or(0, std::fs::Metadata::len), made.map_or(0, |t| t.as_nanos()));
    format!("{}-{size:x}-{made:x}", env!("CARGO_PKG_VERSION"))
}

/// Writes the advised settings, with a note on their origin.
pub fn write_config(path: &Path, advice: &Advice) -> Result<(), Failure> {
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
