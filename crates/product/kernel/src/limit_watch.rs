//! Keeps a group's limit while its program runs, and notes what is gone when the program has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::group::processes::delay_ticks;
use crate::group::Group;
use crate::swap::{Pool, SwapSpace};
use crate::KernelError;
use coldframe_proc::{unmade, Tree};

mod budget;

use budget::Budget;

/// How often the compressed pages are read while they hardly change.
const LOOK: Duration = Duration::from_millis(20);
/// At the start, when a program grows fastest, and while it is near its limit.
const FIRST: Duration = Duration::from_millis(4);
/// While the compressed pages change by this much between two looks, and until it is known how well pages compress.
const MUCH: u64 = 256 << 10;
const SOON: Duration = Duration::from_millis(1);
/// Looks between two looks at the group's statistics and processes: at first every one, in the end one in this many, a
/// second or so. The kernel sums the statistics up to be read, and reclaim then works more (`guard/pin.rs`).
const RARELY: u32 = 50;

/// What the group used.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupUsage {
    /// The limit at the end, bytes.
    pub limit: u64,
    /// The most RAM that compressed pages took outside the group, bytes.
    pub compressed: u64,
    /// The most RAM at one time: the group's, and compressed pages outside, bytes.
    pub together: u64,
    /// Bytes of the group's pages that left for swap. Where the kernel does not count them for a group (v1): what came
    /// back and what was out at that time, at most.
    pub swapped_out: u64,
    /// Bytes that came back.
    pub swapped_in: u64,
    /// Time that the processes have waited for block devices, where the kernel counts it.
    pub delay: Duration,
}

/// The watching thread.
#[derive(Debug)]
pub struct LimitWatch {
    signs: Arc<Signs>,
    thread: JoinHandle<GroupUsage>,
}

/// What it hears, and what it says while it runs.
#[derive(Debug, Default)]
struct Signs {
    ended: AtomicBool,
    full: OnceLock<Pool>,
    /// A disk is there for further pages.
    disk: AtomicBool,
}

impl LimitWatch {
    /// Sets the group's limit and starts to watch. `ram`: for all memory of the group and its compressed pages.
    ///
    /// # Errors
    /// The kernel refuses the limit.
    pub fn start(tree: &Tree, group: &Group, space: &SwapSpace, ram: u64) -> Result<LimitWatch, KernelError> {
        let budget = Budget::new(ram);
        let file = group.file(group.version().limit_file());
        let set = if space.is_none() { Group::limit_without_swap } else { Group::limit };
        set(group, budget.limit())
            .map_err(|e| KernelError::file(&file, e, "give a larger --ram, or run it as root"))?;
        let signs = Arc::new(Signs::default());
        let mut looker = Looker {
            tree: tree.clone(),
            group: group.clone(),
            space: space.clone(),
            budget,
            usage: GroupUsage::default(),
            compressed: 0,
            swapped: 0,
            delays: BTreeMap::new(),
            signs: signs.clone(),
        };
        let watch = move || {
            let (mut looks, mut pause) = (0u32, FIRST);
            while !looker.signs.ended.load(Relaxed) {
                std::thread::park_timeout(if looks < 8 { FIRST } else { pause });
                looks += 1;
                pause = looker.look(looks.is_power_of_two() || looks.is_multiple_of(RARELY));
            }
            looker.end()
        };
        let thread = std::thread::Builder::new().spawn(watch);
        let thread =
            thread.map_err(|e| KernelError::Refused(format!("the limit cannot be watched: {}", unmade(&e))))?;
        Ok(LimitWatch { signs, thread })
    }

    /// The compressed pages, since compressing further ones does not pay: they had better go to a disk. `None`: it does
    /// pay so far.
    pub fn full(&self) -> Option<Pool> {
        self.signs.full.get().copied()
    }

    /// A disk is there for further pages: the limit falls by what compressed pages take.
    pub fn go_on(&self) {
        self.signs.disk.store(true, Relaxed);
    }

    /// Ends it.
    pub fn end(self) -> GroupUsage {
        self.signs.ended.store(true, Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

struct Looker {
    tree: Tree,
    group: Group,
    space: SwapSpace,
    budget: Budget,
    usage: GroupUsage,
    /// Bytes of RAM that compressed pages took at the last look.
    compressed: u64,
    /// Bytes of the group in swap, when some were last.
    swapped: u64,
    delays: BTreeMap<u32, u64>,
    signs: Arc<Signs>,
}

impl Looker {
    /// Returns when to look again.
    fn look(&mut self, all: bool) -> Duration {
        if all {
            let counted = self.group.counters();
            self.budget.set_fixed(counted.kernel.saturating_sub(counted.zswap) + counted.locked);
            self.usage.swapped_out = self.usage.swapped_out.max(counted.swapped_in() + counted.swapped);
            for process in self.group.processes() {
                self.delays.insert(process, delay_ticks(&self.tree, process));
            }
        }
        let swapped = self.group.swapped();
        self.swapped = swapped.filter(|bytes| *bytes > 0).unwrap_or(self.swapped);
        let pool = if self.space.is_none() { Pool::default() } else { self.space.compressed(swapped) };
        let compressed = pool.taken;
        let usage = self.group.usage();
        let at_limit = usage + usage / 8 > self.budget.limit() && !self.space.is_none();
        let much = compressed.abs_diff(self.compressed) > MUCH || (0 < pool.held && !self.budget.knows(pool.held));
        self.compressed = compressed;
        self.usage.compressed = self.usage.compressed.max(compressed);
        self.usage.together = self.usage.together.max(usage + compressed);
        if self.budget.is_full(pool.held, compressed) {
            let _ = self.signs.full.set(pool);
        }
        // Without a disk for them, pages that hardly compress would eat what a lower limit takes.
        let goes_on = !self.budget.is_vain(pool.held, compressed) || self.signs.disk.load(Relaxed);
        let began = Instant::now();
        while goes_on && began.elapsed() < LOOK {
            let before = self.budget.limit();
            let Some(limit) = self.budget.follow(compressed) else { break };
            // The kernel refuses if it cannot push out enough now; the next look asks again.
            if self.group.limit(limit).is_err() {
                self.budget.refused(before);
                break;
            }
        }
        match (much, at_limit) {
            (true, _) => SOON,
            (false, true) => FIRST,
            (false, false) => LOOK,
        }
    }

    fn end(self) -> GroupUsage {
        let (counted, ticks) = (self.group.counters(), self.delays.values().sum::<u64>());
        let swapped_in = counted.swapped_in();
        GroupUsage {
            limit: self.budget.limit(),
            swapped_in,
            swapped_out: counted.out.unwrap_or(self.usage.swapped_out.max(swapped_in + self.swapped)),
            delay: Duration::from_millis(ticks * 10),
            ..self.usage
        }
    }
}
