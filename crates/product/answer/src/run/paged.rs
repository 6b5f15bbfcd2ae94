//! A program in the RAM that its user gives it, by our pager or by the kernel, and the result of such a run, which
//! `compare`, `coldframe -- PROGRAM` and `coldframe run` read.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::time::Instant;

use crate::run::rights::is_ram;
pub use coldframe_live::{Chosen, Snapshot, Times, PAGE};
use coldframe_live::{Options, StatsFile, STOPPED};
use coldframe_proc::Tree;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::awake::Awake;
use crate::run::by_kernel::{by_kernel, KernelRun};
use crate::run::child::{below_since, Care, LOOK};
use crate::run::choice::{choose, PagedBy};
use crate::run::disk::Counter;
use crate::run::looks::beside::{AllMemory, Beside, PAUSE_MIN};
pub use crate::run::order::{Order, Program};
use crate::run::program::{allowed, find_preload, manageable, with_pager};
use crate::SCHEMA_VERSION;

/// Bytes of an erase block, to convert written bytes to blocks. LOBI's flash (slide 4): 128 KiB.
const ERASE_BLOCK: u64 = 128 << 10;

/// A run that has ended.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a program makes one")]
pub enum PagedRun {
    /// By our pager.
    Pager(Box<PagerRun>),
    /// By the kernel.
    Kernel(KernelRun),
}

impl PagedRun {
    /// What became of the program.
    pub fn program(&self) -> Program {
        match self {
            PagedRun::Pager(run) => run.program,
            PagedRun::Kernel(run) => run.program,
        }
    }

    /// Bytes of memory that can leave and was in RAM at one time; meant for a run in which all of it had room.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            PagedRun::Pager(run) => run.stats.resident_max * PAGE as u64,
            // Files stay in the cache when the program has ended, so what else was charged at most was its data.
            PagedRun::Kernel(run) => run.memory.peak_bytes.unwrap_or(0).saturating_sub(run.memory.files_bytes),
        }
    }

    /// Whether the kernel has killed a process for lack of memory.
    pub fn killed(&self) -> bool {
        match self {
            PagedRun::Pager(run) => run.killed,
            PagedRun::Kernel(run) => run.counts.killed > 0,
        }
    }
}

/// A run by our pager.
#[derive(Serialize, JsonSchema)]
pub struct PagerRun {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The pager's options.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub config: Options,
    /// What the pager chose; null: none has started.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub chosen: Option<Chosen>,
    /// Events, by name; times of stages in nanoseconds.
    #[serde(serialize_with = "counts")]
    #[schemars(with = "BTreeMap<String, u64>", rename = "counts")]
    #[serde(rename = "counts")]
    pub stats: Snapshot,
    /// Times of events, by name.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, u64>>")]
    pub latency_ns: Latencies,
    /// What went to the device and came back.
    pub device: DeviceTraffic,
    /// The swap area of `--system`; null without one.
    pub swap_area: Option<SwapAreaRun>,
    /// All memory of the run; null: `--ram` is for each process.
    pub all_memory: Option<AllMemory>,
    /// For how many seconds the processors were kept awake, since faults came fast; null: without the right to do so.
    pub awake_seconds: Option<f64>,
    /// What became of the program.
    pub program: Program,
    /// Whether a pager has started.
    #[serde(skip)]
    pub started: bool,
    /// Whether the kernel has killed the program for lack of memory.
    #[serde(skip)]
    pub killed: bool,
}

fn counts<S: serde::Serializer>(stats: &Snapshot, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(stats.counters())
}

/// The times of a run's events.
pub struct Latencies(Vec<(&'static str, Times)>);

impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, times)| (name, times)))
    }
}

/// What went to the device and came back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeviceTraffic {
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes of an erase block.
    pub erase_block_bytes: u64,
    /// Erase blocks that were written, at least.
    pub erase_estimate: u64,
    /// Bytes that the disk wrote meanwhile for all programs, by its own counter; null: it has none.
    pub disk_bytes_written: Option<u64>,
}

/// The events of a swap area whose tables the engine keeps.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SwapAreaRun {
    /// Who chooses the blocks that are collected, and how many at a time.
    pub collector: String,
    /// PagedBy written to it.
    pub programs: u64,
    /// PagedBy moved within it.
    pub copies: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Collections.
    pub collections: u64,
    /// PagedBy for which it had no room.
    pub without_room: u64,
    /// PagedBy written and moved for each that was written.
    pub write_amplification: f64,
    /// How often a block was erased.
    pub block_erases: Erases,
}

/// How often a block was erased.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Erases {
    /// The block that was erased least.
    pub min: u64,
    /// And most.
    pub max: u64,
}

impl SwapAreaRun {
    fn measure(options: &Options, stats: &Snapshot) -> Option<SwapAreaRun> {
        let area = options.swap.as_ref()?;
        Some(SwapAreaRun {
            collector: format!("{}:{}", area.collector, area.victims),
            programs: stats.swap_programs,
            copies: stats.swap_copies,
            erases: stats.swap_erases,
            collections: stats.swap_collections,
            without_room: stats.swap_full,
            write_amplification: (stats.swap_programs + stats.swap_copies) as f64 / stats.swap_programs.max(1) as f64,
            block_erases: Erases { min: stats.block_erases_min, max: stats.block_erases_max },
        })
    }
}

/// Runs the program and waits for it.
pub fn run(order: &Order, listener: &dyn Listener) -> Result<PagedRun, AnswerError> {
    let pager = || {
        manageable(order.command)?;
        find_preload()?;
        allowed(&order.options.backing)
    };
    match choose(order.by, order.swap, order.pager_only, pager)? {
        PagedBy::Pager => Ok(PagedRun::Pager(Box::new(by_pager(order, listener)?))),
        PagedBy::Kernel(ready, why) => {
            if let Some(why) = why {
                listener.note(&format!("note: {why}. So the kernel pages it, as with --by kernel.\n"));
            }
            Ok(PagedRun::Kernel(by_kernel(ready, order, listener)?))
        }
    }
}

fn by_pager(order: &Order, listener: &dyn Listener) -> Result<PagerRun, AnswerError> {
    let mut options = order.options.clone();
    if is_ram(&options.backing) {
        let backing = options.backing.display();
        listener.note(&format!("warning: {backing} lies in RAM; give --backing a folder on a disk\n"));
    }
    let stats = StatsFile::create()?;
    options.stats_fd = Some(stats.fd());
    let disk = options.slow.is_none().then(|| Counter::from_now(&options.backing)).flatten();
    let command = with_pager(order.command, &options)?;
    let (mail, next) = (stats.mail(), std::sync::Mutex::new(0));
    // A pager without stderr has its words printed here.
    let awake = Awake::new(&stats, order.awake);
    let others = below_since();
    let beside = Beside::new(&stats, &options);
    let pause = beside.as_ref().map_or(LOOK, |_| PAUSE_MIN);
    let look = || {
        awake.look();
        if let Some(line) = beside.as_ref().and_then(|beside| beside.look(&others)) {
            listener.note(&line);
        }
        let mut next = next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while let Some(line) = mail.next(&mut next) {
            listener.warn(&line.to_string());
        }
    };
    // Of the machine, and of each memory group.
    let kills = || Tree::machine().vmstat(&["oom_kill"]);
    let (began, before) = (Instant::now(), kills());
    let child = order.start(command)?;
    let process = child.id();
    let ended = child.wait(&Care { look: &look, pause, reap: true, others: &others, ..order.care() })?;
    let killed = ended.why.is_none() && ended.status.signal() == Some(libc::SIGKILL) && kills() > before;
    let mut program = Program::ended(ended, began);
    if mail.has_stopped(process) {
        program.status = STOPPED as u8;
    }
    let (awake_seconds, all_memory) = (awake.seconds(), beside.as_ref().map(Beside::all));
    let disk_bytes_written = disk.and_then(|disk| disk.written());
    let started = stats.started();
    let chosen = if started { stats.chosen() } else { None };
    let stats = if started { stats.snapshot() } else { Snapshot::default() };
    Ok(PagerRun {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        chosen,
        latency_ns: Latencies(stats.histograms()),
        device: DeviceTraffic {
            bytes_written: stats.device_bytes_written,
            bytes_read: stats.device_bytes_read,
            erase_block_bytes: ERASE_BLOCK,
            erase_estimate: stats.device_bytes_written.div_ceil(ERASE_BLOCK),
            disk_bytes_written,
        },
        swap_area: SwapAreaRun::measure(&options, &stats),
        config: options,
        stats,
        awake_seconds,
        all_memory,
        program,
        started,
        killed,
    })
}
