//! A program in slow memory (a NUMA node without processors), with so much of it in DRAM: its pages move between the
//! nodes and stay mapped writable, so that none of its accesses waits for us. `rented/places` decides.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coldframe_proc::{mappings, move_pages, prefer_node, scan, Process, Tree, Writes, PAGE};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::child::Care;
use crate::run::order::{Order, Program};
use crate::run::program::{manageable, plain, preloading};
use crate::SCHEMA_VERSION;

mod places;

use places::{break_even_window, next_window, part_pages, Moves, Places};

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// The part of the time that faults of protected pages may take, and that moves may take.
const FAULTS: f64 = 0.02;
const MOVES: f64 = 0.02;
/// Pairs that are worth a call, how long fewer of them wait, and how many wait at most.
const PAIRS: usize = 256;
const PATIENCE: Duration = Duration::from_secs(2);
const PAIRS_MAX: usize = 4096;
/// Where pages are is read again after this many times what reading took.
const READS: u32 = 50;
/// The preload library then notes writes, and pages nothing.
const VARIABLE: &str = "COLDFRAME_WRITES";

/// A run in slow memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RentedRun {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// The slow node.
    pub node: u32,
    /// The DRAM for its pages.
    pub ram_bytes: u64,
    /// Bytes of its private memory without a file, when they were most; and of these in DRAM then.
    pub heap_bytes: u64,
    /// See `heap_bytes`.
    pub in_dram_bytes: u64,
    /// Pages that moved to DRAM into free room.
    pub filled_pages: u64,
    /// Pairs of pages that changed places, since one was written in two windows and the other in none.
    pub swapped_pages: u64,
    /// Parts that were watched.
    pub parts: u64,
    /// Microseconds that a page took to move, on average.
    pub move_us: f64,
    /// Why its writes are not seen, so that pages stay where they came; null: they are.
    pub unseen: Option<String>,
    /// What became of the program.
    pub program: Program,
}

/// Runs the program and waits for it. `node`: the slow one; `break_even`: uses that pay for a move.
///
/// # Errors
/// It cannot be started, or the kernel knows no nodes.
pub fn rented(order: &Order, node: u32, break_even: f64, listener: &dyn Listener) -> Result<RentedRun, AnswerError> {
    let ram = order.options.ram;
    let preloaded = manageable(order.command).and_then(|()| preloading(order.command));
    let (mut command, unseen) = match preloaded {
        Ok(command) => (command, None),
        Err(why) => (plain(order.command), Some(why.to_string())),
    };
    command.env(VARIABLE, "1");
    // SAFETY: two system calls.
    unsafe { command.pre_exec(move || prefer_node(node)) };
    let began = Instant::now();
    let child = order.start(command)?;
    let watch = Watch {
        process: child.id(),
        node,
        break_even,
        began,
        fault: first_touch(),
        places: Places::new((ram / PAGE) as usize),
        writes: None,
        unseen,
        read_at: began,
        window: None,
        length: Duration::ZERO,
        after: 0,
        written: 1.0,
        peak: [0; 2],
        filled: 0,
        swapped: 0,
        parts: 0,
        moving: Duration::ZERO,
        swapping: Duration::ZERO,
        pending: Moves::default(),
        swapped_at: began,
    };
    let watch = Mutex::new(watch);
    let look = || watch.lock().unwrap_or_else(PoisonError::into_inner).look();
    let ended = child.wait(&Care { look: &look, pause: LOOK, ..order.care() })?;
    let watch = watch.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = &watch.unseen {
        listener.note(&format!("note: which pages are written is not seen: {why}. They stay where they came.\n"));
    }
    Ok(RentedRun {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        node,
        ram_bytes: ram,
        heap_bytes: watch.peak[1],
        in_dram_bytes: watch.peak[0],
        filled_pages: watch.filled,
        swapped_pages: watch.swapped,
        parts: watch.parts,
        move_us: 1e6 * watch.moving.as_secs_f64() / (watch.filled + 2 * watch.swapped).max(1) as f64,
        unseen: watch.unseen,
        program: Program::ended(ended, began),
    })
}

/// Whether a node of this machine has processors; `None`: there is no such node.
pub fn has_processors(node: u32) -> Option<bool> {
    coldframe_proc::has_processors(&Tree::machine(), node)
}

/// A first touch of new memory, on average over 4 MiB: the first write to a protected page takes about as long.
fn first_touch() -> Duration {
    let pages = 1024;
    let mut memory = vec![0u8; pages * PAGE as usize];
    let began = Instant::now();
    memory.iter_mut().step_by(PAGE as usize).for_each(|byte| *std::hint::black_box(byte) = 1);
    began.elapsed() / pages as u32
}

/// Ranges of addresses that were written.
type Written = Vec<std::ops::Range<u64>>;

struct Watch {
    process: u32,
    node: u32,
    break_even: f64,
    began: Instant,
    /// What the first write to a protected page takes.
    fault: Duration,
    places: Places,
    writes: Option<Writes>,
    unseen: Option<String>,
    /// When it is read next where pages are.
    read_at: Instant,
    window: Option<WatchedPart>,
    /// How long the last one was.
    length: Duration,
    /// The end of the part that was watched last.
    after: u64,
    /// The part of its pages that was written in a window.
    written: f64,
    peak: [u64; 2],
    filled: u64,
    swapped: u64,
    parts: u64,
    moving: Duration,
    swapping: Duration,
    pending: Moves,
    swapped_at: Instant,
}

/// A part that is protected.
struct WatchedPart {
    part: std::ops::Range<u64>,
    length: Duration,
    since: Instant,
    first: Option<Written>,
}

impl Watch {
    /// A program that has just ended, or has not begun, has nothing to look at.
    fn look(&mut self) {
        let now = Instant::now();
        if now >= self.read_at {
            self.read();
            self.read_at = Instant::now() + READS * now.elapsed();
        }
        self.fill();
        if self.unseen.is_none() && self.places.is_full() {
            match self.watch(now) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    self.unseen = Some("it takes Linux 6.7 or newer".into());
                }
                Err(_) => (self.writes, self.window) = (None, None),
            }
        }
    }

    fn read(&mut self) {
        let Ok(present) = scan(self.process, coldframe_proc::Place::Ram) else { return };
        self.places.now(&present);
        let bytes = self.places.bytes();
        self.peak = if bytes[1] >= self.peak[1] { bytes } else { self.peak };
    }

    fn fill(&mut self) {
        let up = self.places.fill();
        self.filled += self.moved(&up, true);
    }

    /// How many moved.
    fn moved(&mut self, pages: &[u64], up: bool) -> u64 {
        let began = Instant::now();
        // Node 0 has the processors, as on all machines with memory of another kind; the kernel refuses otherwise.
        let node = if up { 0 } else { self.node };
        let Ok(gone) = move_pages(self.process, pages, node) else { return 0 };
        self.places.moved(pages, &gone, up);
        self.moving += began.elapsed();
        gone.iter().filter(|gone| **gone).count() as u64
    }

    fn watch(&mut self, now: Instant) -> std::io::Result<()> {
        let Some(writes) = &self.writes else {
            self.writes = Some(Writes::of(self.process)?);
            return Ok(());
        };
        match self.window.take() {
            None => {
                let longest = break_even_window(self.began.elapsed(), self.break_even);
                let length = next_window(self.length, self.written, self.places.share(), longest);
                self.length = length;
                let part = self.places.part(self.after, part_pages(length, self.fault, self.written, FAULTS));
                let maps = Process::of(self.process).maps();
                let areas =
                    mappings(&maps).into_iter().filter(|area| area.rights.starts_with("rw") && area.start < part.end);
                for mapping in areas.filter(|area| area.end > part.start) {
                    writes.cover(&(mapping.start..mapping.end))?;
                }
                writes.since_last(&part)?;
                self.window = Some(WatchedPart { part, length, since: Instant::now(), first: None });
            }
            Some(window) if now < window.since + window.length => self.window = Some(window),
            Some(WatchedPart { part, length, first: None, .. }) => {
                let first = writes.since_last(&part)?;
                let pages = |ranges: &Written| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
                self.written = pages(&first) as f64 / (part.end - part.start).max(PAGE) as f64;
                self.window = Some(WatchedPart { part, length, since: Instant::now(), first: Some(first) });
            }
            Some(WatchedPart { part, first: Some(first), .. }) => {
                let second = writes.since_last(&part)?;
                (self.after, self.parts) = (part.end, self.parts + 1);
                self.swap(&part, &first, &second);
            }
        }
        Ok(())
    }

    /// Pairs move together, since each call first empties lists of all processors.
    fn swap(&mut self, part: &std::ops::Range<u64>, first: &Written, second: &Written) {
        let found = self.places.swap(part, [first, second], PAIRS_MAX - self.pending.up.len());
        self.pending.up.extend(found.up);
        self.pending.down.extend(found.down);
        let due = self.pending.up.len() >= PAIRS || self.swapped_at.elapsed() > PATIENCE;
        if !due || self.pending.up.is_empty() || self.swapping > self.began.elapsed().mul_f64(MOVES) {
            return;
        }
        let (began, moves) = (Instant::now(), std::mem::take(&mut self.pending));
        self.moved(&moves.down, false);
        self.swapped += self.moved(&moves.up, true);
        self.swapped_at = Instant::now();
        self.swapping += began.elapsed();
    }
}
