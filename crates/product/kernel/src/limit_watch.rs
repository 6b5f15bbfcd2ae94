//! Keeps a group's limit while its program runs, and notes what is gone when the program has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::group::processes::{delay_ticks, outside_heap};
use crate::group::Group;
use crate::swap::SwapSpace;
use crate::KernelError;
use coldframe_proc::Tree;

mod budget;

use budget::Budget;

/// How often the compressed pages are read: they grow by at most some 500 MiB/s.
const LOOK: Duration = Duration::from_millis(20);
/// The first looks come sooner: a program grows fastest at its start.
const FIRST: Duration = Duration::from_millis(5);
/// Looks between two looks at all mappings, which take milliseconds for a large process: at first every one, in the end
/// one in this many, a second or so.
const RARELY: u32 = 50;

/// What the group used.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupUsage {
    /// The limit at the end, bytes.
    pub limit: u64,
    /// The most memory outside the heap, bytes.
    pub outside_heap: u64,
    /// The most RAM that compressed pages took outside the group, bytes.
    pub compressed: u64,
    /// The most RAM at one time of what counts in the budget: data in the group, and compressed pages outside, bytes.
    pub together: u64,
    /// Time that the processes have waited for block devices, where the kernel counts it.
    pub delay: Duration,
}

/// The watching thread.
#[derive(Debug)]
pub struct LimitWatch {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<GroupUsage>,
}

impl LimitWatch {
    /// Sets the group's limit and starts to watch. `total`: the RAM is for all memory, code and mapped files, too.
    ///
    /// # Errors
    /// The kernel refuses the limit.
    pub fn start(
        tree: &Tree,
        group: &Group,
        space: &SwapSpace,
        (ram, total): (u64, bool),
    ) -> Result<LimitWatch, KernelError> {
        let budget = Budget::new(ram, total);
        let file = group.file(group.version().limit_file());
        let set = if space.is_none() { Group::limit_without_swap } else { Group::limit };
        set(group, budget.limit())
            .map_err(|e| KernelError::file(&file, e, "give a larger --ram, or run it as root"))?;
        let ended = Arc::new(AtomicBool::new(false));
        let mut looker = Looker {
            tree: tree.clone(),
            group: group.clone(),
            space: space.clone(),
            budget,
            usage: GroupUsage::default(),
            delays: BTreeMap::new(),
            cached: 0,
        };
        let stop = ended.clone();
        let thread = std::thread::spawn(move || {
            let mut looks: u32 = 0;
            while !stop.load(Relaxed) {
                std::thread::park_timeout(if looks < 8 { FIRST } else { LOOK });
                looks += 1;
                looker.look(looks.is_power_of_two() || looks.is_multiple_of(RARELY));
            }
            looker.end()
        });
        Ok(LimitWatch { ended, thread })
    }

    /// Ends it.
    pub fn end(self) -> GroupUsage {
        self.ended.store(true, Relaxed);
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
    delays: BTreeMap<u32, u64>,
    /// Bytes of files that nobody has mapped, when all was looked at last.
    cached: u64,
}

impl Looker {
    fn look(&mut self, mappings: bool) {
        if mappings {
            let processes = self.group.processes();
            let counted = self.group.counters();
            let private: u64 = processes.iter().map(|process| outside_heap(&self.tree, *process)).sum();
            self.budget.observe(private + counted.kernel.saturating_sub(counted.zswap) + counted.mapped);
            self.cached = counted.files.saturating_sub(counted.mapped);
            for process in processes {
                self.delays.insert(process, delay_ticks(&self.tree, process));
            }
        }
        let compressed = self.space.compressed();
        self.usage.compressed = self.usage.compressed.max(compressed);
        let data = self.group.usage().saturating_sub(self.budget.outside_heap() + self.cached);
        self.usage.together = self.usage.together.max(data + compressed);
        let began = Instant::now();
        while began.elapsed() < LOOK {
            let before = self.budget.limit();
            let Some(limit) = self.budget.follow(compressed) else { return };
            // The kernel refuses if it cannot push out enough now; the next look asks again.
            if self.group.limit(limit).is_err() {
                return self.budget.refused(before);
            }
        }
    }

    fn end(self) -> GroupUsage {
        let ticks: u64 = self.delays.values().sum();
        GroupUsage {
            limit: self.budget.limit(),
            outside_heap: self.budget.outside_heap(),
            delay: Duration::from_millis(ticks * 10),
            ..self.usage
        }
    }
}
