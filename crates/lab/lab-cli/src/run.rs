//! `coldframe-lab run`: runs an unmodified program under our pager, with the options of the papers' systems.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use coldframe_answer::run::paged::{run as run_program, Order, PagedRun};
use coldframe_answer::run::pager::Pager;
use coldframe_answer::run::program::{default_backing, Executable};
use coldframe_answer::run::rented::{has_processors, rented};
use coldframe_answer::run::signals::Signals;
use coldframe_experiment::ExperimentError;
use coldframe_live::{Inject, Options, Wait, FRAMES_MIN, PAGE, READ_AHEAD, READ_AHEAD_MAX};
use coldframe_plots::priced::Price;
use coldframe_sheet::{quantity, sheet, swap_energy, Sheet};
use serde::Serialize;

use crate::area::LogAreaArgs;
use coldframe_terminal::verb::Verb;

use crate::failure::Failure;
use crate::output;
use coldframe_terminal::listener::Terminal;

/// Run a program under our pager with another policy, handler, swap area or memory, and keep its journal.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  coldframe-lab run --ram 8MiB --policy pa-clock --journal j -- sqlite3 db < queries.sql; coldframe-lab replay j
  coldframe-lab run --ram 8MiB --system lobi --collector cost-benefit --swap-size 64MiB --journal j -- sort file; \
coldframe-lab replay j
  coldframe-lab run --slow node:1 --ram 64MiB -- redis-server --save ''
  coldframe-lab run --ram 4MiB --device LOBI-NAND --swap-size 128MiB -- python3 script.py

It is `coldframe run --by pager` with the options of the five systems. --ram is for what can leave: the program's \
heap and its large private anonymous mappings. Statistics are printed on stderr when the program has ended.

--device prices the bytes that the run moved: their time, energy and life on that flash. Life is cycles * area / rate \
of writing. The area is --swap-size or the sheet's capacity, and wears evenly, as with a log. If the sheet lacks a \
number, the statistics say so and do not guess.

--slow node:N, a node without processors (CXL): the program lies there, with --ram of it on the first node. Pages \
that are written often change places with pages that are not; each stays mapped and writable, so nothing waits. \
--slow of another kind, or with a --device whose cells wear out, or with --policy, --handler, --evict-batch or \
--journal: pages that leave RAM go to slow memory and are read there as they lie; a write copies the page to RAM. \
With a sheet of such a memory, --device gives its energy by the copies and the time; reads in place are not seen. \
The kernel must not swap that memory out: it is locked, or the machine has no swap. A forked child gets a copy of all \
pages, in no budget, before its parent goes on. An io_uring and files with direct I/O (FUSE) are refused: the kernel \
writes past the page table there.

--system lobi lets the engine place each page in a log of erase blocks, collect the blocks and erase them, as \
`coldframe-lab sim --system lobi` does. The statistics then have programs, copies, erases and wear; the journal has \
all of these. --read-ahead still decides about read-ahead. A page that leaves RAM dirty is written even if its bytes \
have not changed, so no page is mapped writable before its first write.

Exit codes: as `coldframe run`.")]
pub struct Args {
    /// RAM for the program's heap and anonymous mappings: a size.
    #[arg(long)]
    ram: String,
    /// Page replacement policy. Without `budget` and `valid`, pa-clock and fifo-sc adapt to the device.
    #[arg(long)]
    policy: Option<String>,
    /// Page fault handler [default: parallel].
    #[arg(long)]
    handler: Option<String>,
    /// Folder (or block device, whose content is lost) for the swap file [default: the folder for temporary files, or
    /// /var/tmp if that is in RAM].
    #[arg(long)]
    backing: Option<PathBuf>,
    /// Slow memory in place of a swap file, in which pages are read where they lie and copied to RAM only when they are
    /// written (DR.Swap): a NUMA node (CXL, persistent memory), or a folder of a tmpfs as a stand-in.
    #[arg(
        long,
        value_name = "node:N|PATH",
        conflicts_with_all = ["backing", "swap_size", "encrypt", "read_ahead", "wait", "system"]
    )]
    slow: Option<String>,
    /// Largest size of the swap file; with --system, the size of the swap area [default there: a quarter more than
    /// --max-memory, at most 16GiB and three quarters of the free room; pages for which it has no room lie beside it].
    #[arg(long, value_name = "SIZE")]
    swap_size: Option<String>,
    /// Largest size of the program's paged memory.
    #[arg(long, default_value = "2046GiB")]
    max_memory: String,
    /// How to wait for the device.
    #[arg(long, value_parser = ["auto", "read", "brief"], default_value = "auto")]
    wait: String,
    /// Number of threads that handle faults.
    #[arg(long, default_value_t = 2)]
    handlers: usize,
    /// Most pages that are read ahead of a sequential stream, 0 to 31; or block:N, also up to N pages (2, 4, 8, 16 or
    /// 32) that left together with the one that is read, if they come back together [default: 16].
    #[arg(long, value_name = "N|block:N")]
    read_ahead: Option<String>,
    /// Pages that are evicted together, 1 to 32 [default: as many as one read of the device hides].
    #[arg(long)]
    evict_batch: Option<u32>,
    /// Encrypt and authenticate the pages in the swap file, with a key that is only in memory.
    #[arg(long)]
    encrypt: bool,
    /// Write the engine's events and commands to this file; `coldframe-lab replay` checks it.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Write the statistics as JSON to this file.
    #[arg(long)]
    stats: Option<PathBuf>,
    /// Device that prices what the run moved: a shipped sheet's name, or the path of a sheet.
    #[arg(long, value_name = "SHEET")]
    device: Option<String>,
    #[command(flatten)]
    area: LogAreaArgs,
    /// How to print the statistics on stderr.
    #[arg(long, value_parser = ["table", "json"], default_value = "table")]
    format: String,
    /// Faults of the device to act out, as JSON: for tests.
    #[arg(long, hide = true)]
    inject: Option<String>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// A run, and what it would have cost on the device of `--device`.
#[derive(Serialize)]
struct PricedRun<'a> {
    #[serde(flatten)]
    run: &'a PagedRun,
    #[serde(skip_serializing_if = "Option::is_none")]
    priced: Option<&'a Price>,
}

impl Verb<Failure> for Args {
    fn run(self, quiet: bool) -> Result<ExitCode, Failure> {
        let options = options(&self)?;
        let sheet = self.device.as_deref().map(sheet::find).transpose().map_err(ExperimentError::from)?;
        let slow = options.slow.as_ref().and(sheet.as_ref());
        slow.map(Sheet::bus_memory).transpose().map_err(ExperimentError::from)?;
        let (signals, program) = (Signals::catch()?, Executable::find(&self.command)?);
        let order = Order { by: Pager::Ours, ..Order::new(&program, options, &signals) };
        if let Some(node) = self.rents(sheet.as_ref()) {
            return self.move_pages(&order, node, sheet.as_ref(), quiet);
        }
        let run = run_program(&order, &Terminal::new(quiet))?;
        let priced =
            sheet.as_ref().map(|sheet| Price::of(sheet, &run)).transpose().map_err(ExperimentError::from)?.flatten();
        let data = PricedRun { run: &run, priced: priced.as_ref() };
        if let Some(path) = &self.stats {
            output::file(path, &output::json(&data))?;
        }
        let words = coldframe_show::run::words(&run);
        match (quiet || words.is_empty(), self.format.as_str()) {
            (true, _) => {}
            (false, "json") => eprint!("{}", output::json(&data)),
            (false, _) => output::tell(&(words + &priced.as_ref().map_or_else(String::new, Price::words))),
        }
        Ok(ExitCode::from(run.program().status))
    }
}

impl Args {
    /// The node of a program whose pages are moved there and stay writable: one without processors, whose memory does
    /// not wear out, and no option of the engine is given. Otherwise each write copies its page.
    fn rents(&self, sheet: Option<&Sheet>) -> Option<u32> {
        let wears = sheet.is_some_and(|sheet| sheet.endurance.cycles.is_some());
        let engine = self.policy.is_some() || self.handler.is_some() || self.journal.is_some();
        let engine = engine || self.evict_batch.is_some() || self.inject.is_some();
        let node = self.slow.as_deref()?.strip_prefix("node:")?.parse().ok()?;
        (!wears && !engine && has_processors(node) == Some(false)).then_some(node)
    }

    fn move_pages(&self, order: &Order, node: u32, sheet: Option<&Sheet>, quiet: bool) -> Result<ExitCode, Failure> {
        let sheet = sheet.map_or_else(|| coldframe_sheet::sheet::find(TABLE_II), |sheet| Ok(sheet.clone()));
        let memory = sheet.and_then(|sheet| sheet.bus_memory()).map_err(ExperimentError::from)?;
        let break_even = swap_energy::break_even(&memory);
        let run = rented(order, node, break_even, &Terminal::new(quiet))?;
        if let Some(path) = &self.stats {
            output::file(path, &output::json(&run))?;
        }
        match (quiet, self.format.as_str()) {
            (true, _) => {}
            (false, "json") => eprint!("{}", output::json(&run)),
            (false, _) => output::tell(&coldframe_show::run::rented(&run)),
        }
        Ok(ExitCode::from(run.program.status))
    }
}

/// The memory of DR.Swap's table II: what a move pays is by its sheet if no `--device` is given.
const TABLE_II: &str = "LPDDR2-PCM";
/// A folder also for programs that change theirs.
fn slow_place(place: String) -> String {
    match place.starts_with("node:") {
        true => place,
        false => std::path::absolute(&place).map_or(place, |path| path.to_string_lossy().into_owned()),
    }
}

/// Pages ahead of a stream, and slots of a block.
fn read_ahead(text: &str) -> Result<(u32, u32), Failure> {
    let blocks = (1..=5).map(|i| 1 << i);
    let parsed = match text.split_once(':') {
        None => text.parse().ok().filter(|pages| *pages <= READ_AHEAD_MAX).map(|pages| (pages, 0)),
        Some(("block", slots)) => blocks.into_iter().find(|n: &u32| n.to_string() == slots).map(|n| (READ_AHEAD, n)),
        Some(_) => None,
    };
    let remedy = || Failure::usage(format!("--read-ahead: `{text}`; give 0 to {READ_AHEAD_MAX} pages, or block:8"));
    parsed.ok_or_else(remedy)
}

fn options(args: &Args) -> Result<Options, Failure> {
    let bytes = |option: &str, text: &str| {
        quantity::bytes(text).map(|b| b.0).map_err(|e| Failure::usage(format!("{option}: {e}")))
    };
    let (read_ahead, block) = match args.read_ahead.as_deref() {
        None => (READ_AHEAD, 0),
        Some(text) => read_ahead(text)?,
    };
    let ram = bytes("--ram", &args.ram)?;
    if ram < (FRAMES_MIN * PAGE) as u64 {
        let least = FRAMES_MIN * PAGE / 1024;
        return Err(Failure::usage(format!("--ram: {} is too little; give at least {least}KiB", args.ram)));
    }
    let batches = 1..=32.min((ram / PAGE as u64 / 2) as u32);
    if args.evict_batch.is_some_and(|batch| !batches.contains(&batch)) {
        return Err(Failure::usage(format!("--evict-batch: give {} to {} pages", batches.start(), batches.end())));
    }
    if args.handlers == 0 || args.handlers > 16 {
        return Err(Failure::usage("--handlers: give 1 to 16 threads"));
    }
    let backing = args.backing.clone().unwrap_or_else(default_backing);
    let inject = args.inject.as_deref().map(serde_json::from_str::<Inject>).transpose();
    let usual = Options::new(ram);
    Ok(Options {
        policy: args.policy.clone(),
        handler: args.handler.clone().unwrap_or_else(|| "parallel".into()),
        backing: std::path::absolute(&backing).unwrap_or(backing),
        slow: args.slow.clone().map(slow_place),
        backing_max: args
            .swap_size
            .as_deref()
            .filter(|_| !args.area.given())
            .map(|text| bytes("--swap-size", text))
            .transpose()?,
        max_memory: bytes("--max-memory", &args.max_memory)?,
        wait: match args.wait.as_str() {
            "read" => Wait::Read,
            "brief" => Wait::Brief,
            _ => Wait::Auto,
        },
        swap: args.area.area(args.swap_size.as_deref())?,
        handlers: args.handlers,
        encrypt: args.encrypt,
        read_ahead,
        block,
        evict_batch: args.evict_batch,
        journal: args.journal.clone().map(|path| std::path::absolute(&path).unwrap_or(path)),
        inject: inject.map_err(|e| Failure::usage(format!("--inject: {e}")))?,
        ..usual
    })
}
