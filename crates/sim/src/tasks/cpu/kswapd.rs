//! kswapd, the kernel's task that frees frames before a fault needs them, and the naps of tasks that search for pages
//! (`balance_pgdat` and `congestion_wait` of Linux 2.6.24, `mm/vmscan.c`).
//!
//! ```text
//!   free frames below `low` ──► ready ──► one page a turn, in passes of 32 ──► free frames at `high` ──► asleep
//!                                 ▲                │ a pass has looked far, or the device's queue of writes is full
//!                                 └── nap's end, or queue short again ◄── nap
//! ```
//!
//! kswapd has priority 0, as in the kernel, and the scheduler treats it as any task. The engine chooses the page: a
//! turn of kswapd is one [`Event::Reclaim`].

use std::cmp::Reverse;

use coldframe_core::{Event, Ps};

use super::{Cpu, Step, TaskSpec, TasksConfig};
use crate::bus::Class;
use crate::front_end::PageRef;
use crate::tasks::reclaim::{naps, Reclaim, ReclaimCounts, CLEARED, CONGESTED, PASS_PAGES, WRITES_MAX};
use crate::tasks::token::SwapToken;
use crate::tasks::Program;

/// The kernel's parts at work, and the tasks that nap.
pub(super) struct Memory {
    parts: Reclaim,
    kswapd: Option<usize>,
    /// Whether kswapd has frames to free.
    wanted: bool,
    frames: u64,
    /// Frames that kswapd's pass has looked at, and pages that it has evicted.
    looked: u64,
    taken: u32,
    napping: Vec<usize>,
    /// Whether the device's queue of writes is long.
    congested: bool,
    counts: ReclaimCounts,
}

impl Memory {
    pub(super) fn new(config: &TasksConfig, kswapd: Option<usize>) -> Memory {
        Memory {
            parts: config.reclaim,
            kswapd,
            wanted: false,
            frames: config.frames as u64,
            looked: 0,
            taken: 0,
            napping: Vec::new(),
            congested: false,
            counts: ReclaimCounts::default(),
        }
    }

    pub(super) fn is_kswapd(&self, task: usize) -> bool {
        self.kswapd == Some(task)
    }

    /// The number of tasks with a program, of all tasks.
    pub(super) fn programs(&self, all: usize) -> usize {
        self.kswapd.unwrap_or(all)
    }

    /// Ends the task's nap, if it naps.
    pub(super) fn awake(&mut self, task: usize) {
        self.napping.retain(|napping| *napping != task);
    }

    /// Whether a task sleeps after a search of this length.
    pub(super) fn naps_after(&self, walked: u64, writes: u32) -> bool {
        self.parts.nap > Ps::ZERO && naps(self.frames, 0, walked, writes)
    }
}

/// kswapd as a task: it has no program and never ends.
pub(super) fn spec() -> TaskSpec {
    TaskSpec {
        program: Program::new(vec![Step { reference: PageRef::new(0, false, false), times: 1 }]),
        first_page: 0,
        rounds: None,
        pause: Ps::ZERO,
        turns: 1,
        fresh: false,
        begins: Ps::ZERO,
        nice: 0,
        job: None,
    }
}

/// The token, if there is one.
pub(super) fn token(config: &TasksConfig, specs: &[TaskSpec]) -> Option<Box<SwapToken>> {
    let pages = |spec: &TaskSpec| spec.first_page as usize..(spec.first_page + spec.program.pages) as usize;
    config.reclaim.token.then(|| Box::new(SwapToken::new(specs.iter().map(pages), config.frames)))
}

impl Cpu {
    /// kswapd's turn.
    pub(super) fn reclaim(&mut self, kswapd: usize) {
        let marks = self.memory.parts.kswapd.expect("there is a kswapd");
        if self.paging.free_frames() >= marks.high || !self.paging.may_reclaim() {
            self.memory.wanted = false;
            return self.sleep(kswapd);
        }
        if self.paging.world.bus.writes() >= WRITES_MAX {
            return self.nap(kswapd, false);
        }
        let (now, walked) = (self.now(), self.paging.walked());
        self.paging.search(None);
        self.paging.handle(Event::Reclaim, Class::Background);
        let (walked, writes) = (self.paging.walked() - walked, self.paging.world.bus.writes());
        let memory = &mut self.memory;
        memory.counts.pages += 1;
        memory.counts.time += self.paging.world.now - now;
        let tired = memory.parts.nap > Ps::ZERO && naps(memory.frames, memory.looked, walked, writes);
        (memory.looked, memory.taken) = (memory.looked + walked, memory.taken + 1);
        if memory.taken == PASS_PAGES {
            (memory.looked, memory.taken) = (0, 0);
        }
        if tired {
            self.nap(kswapd, true);
        }
    }

    /// kswapd wakes when few frames are free.
    pub(super) fn wake_kswapd(&mut self) {
        let (Some(kswapd), Some(marks)) = (self.memory.kswapd, self.memory.parts.kswapd) else { return };
        if !self.memory.wanted && self.paging.free_frames() < marks.low && self.paging.may_reclaim() {
            self.memory.wanted = true;
            (self.memory.looked, self.memory.taken) = (0, 0);
            self.wake(kswapd);
        }
    }

    /// The running task sleeps until the device's queue of writes is short again; if `timed`, at most for a nap.
    pub(super) fn nap(&mut self, running: usize, timed: bool) {
        self.memory.counts.naps += 1;
        self.memory.congested |= !timed;
        self.sleep(running);
        self.memory.napping.push(running);
        if timed {
            self.alarms.push(Reverse((self.now() + self.memory.parts.nap, running)));
        }
    }

    /// The queue of writes is short again: all naps end.
    pub(super) fn wake_from_naps(&mut self) {
        let writes = self.paging.world.bus.writes();
        if self.memory.congested && writes < CLEARED {
            self.memory.congested = false;
            let napping = std::mem::take(&mut self.memory.napping);
            self.alarms.retain(|Reverse((_, task))| !napping.contains(task));
            napping.into_iter().for_each(|task| self.wake(task));
        }
        self.memory.congested |= writes >= CONGESTED;
    }

    /// The counts of the parts.
    pub(super) fn reclaim_counts(&self) -> ReclaimCounts {
        let of_token = self.paging.world.token.as_ref().map(|token| token.counts).unwrap_or_default();
        let ReclaimCounts { pages, time, naps, .. } = self.memory.counts;
        ReclaimCounts { pages, time, naps, ..of_token }
    }
}
