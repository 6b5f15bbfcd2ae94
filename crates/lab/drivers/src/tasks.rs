//! Several tasks on one processor: a scheduler, one engine, and loads that run beside the tasks.
//!
//! ```text
//!   task runs ── hit: bits set ───────────────────────► until the next tick, device end or timer
//!      │ fault                                                  │ fraction xi of the slice used
//!      ▼                                                        ▼
//!   Engine::handle ── resumed at once (minor): goes on  Scheduler::next ─► PrefetchLists::of ─► Event::WillNeed ...
//!      │ page on its way                                        │ loads in the background, at most `depth` at a time
//!      ▼                                                        ▼
//!   task sleeps, the scheduler switches  Bus: demand before background, one transfer at a time
//! ```
//!
//! Faults are counted as Linux counts them. *Major*: the device had to load the page. *Minor*: the page was in RAM and
//! not mapped (it was prefetched: Linux's swap cache), or it was on its way for a prefetch, or it had never been
//! touched (a page of zeros, which the device does not have). One table maps the pages of all tasks. Tasks that share
//! pages use the same numbers.

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::{Below, Caps, Counts, Ps};

use crate::scheduler::Make;
use coldframe_lane::lane::SwapDone;
use coldframe_lane::latency::Latency;
use coldframe_lane::machine::MachineConfig;

mod cpu;
mod paging;
mod program;

pub use cpu::{Cpu, ForegroundResult, Switch, Turns};
pub use program::{Program, Step, TraceTasks};

pub use coldframe_lane::watch::Prefetched;

#[derive(Clone, Debug)]
pub struct TaskSpec {
    pub program: Program,
    /// The number of its first page. Tasks whose ranges overlap share the pages of the overlap.
    pub first_page: u32,
    /// How often it runs its program; `None`: again and again, until the other tasks have ended.
    pub rounds: Option<u32>,
    /// How long it sleeps after each turn; zero: it does not sleep.
    pub pause: Ps,
    /// Turns of a round, with the same number of steps each; at least 1.
    pub turns: u32,
    /// Whether it releases its memory after each round. The next round then begins in a new region, whose pages are
    /// zeros. Pages on their way stay, and so do pages that it shares with other tasks.
    pub fresh: bool,
}

impl TaskSpec {
    /// A task that runs its program this often, without a pause.
    pub fn new(program: Program, first_page: u32, rounds: u32) -> TaskSpec {
        TaskSpec { program, first_page, rounds: Some(rounds), pause: Ps::ZERO, turns: 1, fresh: false }
    }
}

/// What a full prefetching list does with one more page. The paper does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListRule {
    /// The page faulted longest ago leaves, and a page that faults again goes to the end.
    OldestLeaves,
    /// It takes no more, and keeps the order of first faults.
    TakesNoMore,
}

/// The moment when the next task's pages are prefetched.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Activation {
    Never,
    /// At the first scheduler tick after this part of the slice has been used (0 to 1; section 3.1's second approach,
    /// the paper's).
    Tick(f64),
    /// At a timer set for exactly then (the first approach).
    Timer(f64),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prefetching {
    pub activation: Activation,
    pub list_max: usize,
    pub list: ListRule,
    /// Whether prefetching stops where it costs more major faults than it spares. The paper has no such guard.
    pub guard: bool,
    /// The most background loads at a time.
    pub depth: u32,
    /// With fewer ready tasks than this, the running one included, nothing is prefetched. Algorithm 1 prints `nr_tasks
    /// > 2`.
    pub ready_min: usize,
    /// Whether the scheduler follows its prediction (section 3.2).
    pub follow: bool,
    /// Whether a task's list is worked through also while it runs itself. Otherwise it ends at the switch (section 5.3:
    /// the pages that are loaded "before a context switch happens").
    pub past_switch: bool,
    /// Whether a prefetched page is mapped, and where in the recency order it enters.
    pub arrival: Arrival,
}

impl Prefetching {
    pub const NEVER: Prefetching = Prefetching {
        activation: Activation::Never,
        list_max: 0,
        list: ListRule::OldestLeaves,
        guard: true,
        depth: 0,
        ready_min: 0,
        follow: false,
        past_switch: false,
        arrival: Arrival::Mapped,
    };
}

/// The use of the processor while a task waits for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFault {
    /// Other tasks run meanwhile (Linux).
    Sleeps,
    /// The processor waits with the task, as on the boards of SWL and DDB: no fault ends a turn. The wait does not
    /// count as processor time of the slice.
    Keeps,
}

/// A processor with reference and dirty bits, and one buffer more than there can be loads under way.
pub const CAPS: Caps = Caps { reference_bit: true, dirty_bit: true, buffers: 1, direct_read: false, places: false };

#[derive(Clone, Debug)]
pub struct TasksConfig {
    pub policy: PolicyChoice,
    pub handler: &'static Handler,
    pub frames: usize,
    pub evict_batch: usize,
    /// Processor time of the stages, and the routes of pages.
    pub machine: MachineConfig,
    /// The hardware sets reference and dirty bits. There is a buffer for each load that can be under way.
    pub caps: Caps,
    pub area: Below,
    /// The extra time of a reference in a buffer, over one in RAM.
    pub xip_surplus: Ps,
    pub reference: Ps,
    pub tick: Ps,
    pub scheduler: Make,
    /// Its parameter ([`Make`]); `None`: the kernel's value.
    pub slice: Option<Ps>,
    /// Whether a fault gives up the processor.
    pub on_fault: OnFault,
    pub prefetching: Prefetching,
    /// Pages outside any area on flash: the aligned group of so many that is read with a page (Linux's `page-cluster`);
    /// 1: the page alone. A group that a list's page stands in is prefetched whole, as `make_present` would.
    pub read_together: u32,
}

impl TasksConfig {
    /// Pages on the device, one victim at a time, a reference of 100 ns, a tick of 1 ms, and no prefetching.
    pub fn new(
        policy: PolicyChoice,
        handler: &'static Handler,
        frames: usize,
        machine: MachineConfig,
        scheduler: Make,
    ) -> TasksConfig {
        TasksConfig {
            policy,
            handler,
            frames,
            evict_batch: 1,
            machine,
            caps: CAPS,
            area: Below::default(),
            xip_surplus: Ps::ZERO,
            reference: Ps::from_ns(100),
            tick: Ps::from_us(1_000),
            scheduler,
            slice: None,
            on_fault: OnFault::Sleeps,
            prefetching: Prefetching::NEVER,
            read_together: 1,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct TaskResult {
    pub major: u64,
    pub minor: u64,
    /// Of these, faults on pages that were on their way. The task waited for the page.
    pub in_flight: u64,
    /// Pages that were prefetched for it, and their outcomes.
    pub prefetched: Prefetched,
    /// Processor time spent on references, without faults.
    pub useful: Ps,
    /// When it ended; `None`: it runs without end.
    pub ended: Option<Ps>,
    /// Time from awake to running.
    pub wait: Latency,
    /// Time from a fault to awake, for faults that waited for the device.
    pub stall: Latency,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefetchCounts {
    /// Lists that were worked through.
    pub activations: u64,
    /// Of these, lists of a task that did run next.
    pub predicted: u64,
    /// Of these, lists of another task than the one that ran next.
    pub mispredicted: u64,
}

#[derive(Clone, Debug)]
pub struct TasksResult {
    pub counts: Counts,
    pub tasks: Vec<TaskResult>,
    pub prefetch: PrefetchCounts,
    /// The time until the last task ended.
    pub time: Ps,
    /// Of this, the time while no task was ready.
    pub idle: Ps,
    /// Time in which the device transferred.
    pub device_busy: Ps,
    /// Pages that a device has loaded.
    pub device_reads: u64,
    pub device_writes: u64,
    pub switches: u64,
    pub references: u64,
    /// References answered from buffers.
    pub xip_reads: u64,
    /// References answered in slots of the swap area.
    pub reads_in_slots: u64,
    /// The result of the swap area on flash, if there is one.
    pub swap: Option<SwapDone>,
    /// Tasks that were stopped because the device failed and a page was lost.
    pub halted: u64,
    /// The result of turns, if the tasks took some.
    pub foreground: Option<ForegroundResult>,
}

impl TasksResult {
    pub fn major(&self) -> u64 {
        self.tasks.iter().map(|task| task.major).sum()
    }

    pub fn prefetched(&self) -> Prefetched {
        let mut sum = Prefetched::default();
        for of_task in self.tasks.iter().map(|task| task.prefetched) {
            sum.loads += of_task.loads;
            sum.used += of_task.used;
            sum.useless += of_task.useless;
        }
        sum
    }

    pub fn faults(&self) -> u64 {
        self.major() + self.tasks.iter().map(|task| task.minor).sum::<u64>()
    }
}
