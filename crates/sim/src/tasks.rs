//! Several tasks on one processor: a scheduler, one engine, and loads that run beside the tasks.
//!
//! ```text
//!   task runs ── hit: bits set ─────────────────────────────► until the next tick, device end or timer
//!      │ fault                                                        │ fraction xi of the slice used
//!      ▼                                                              ▼
//!   Engine::handle ── resumed at once (minor): goes on        Scheduler::next ─► PrefetchLists::of ─► Event::WillNeed ...
//!      │ page on its way                                              │ loads in the background, at most `depth` at a time
//!      ▼                                                              ▼
//!   task sleeps, the scheduler switches        Bus: demand before background, one transfer at a time
//! ```
//!
//! Faults are counted as Linux counts them. *Major*: the device had to load the page. *Minor*: the page was in RAM and not mapped (it was
//! prefetched: Linux's swap cache), or on its way for a prefetch, or had never been touched (a page of zeros, which the device has not).
//! One table maps the pages of all tasks; tasks that share pages name the same numbers.

use coldframe_core::fault::handler::Handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::prefetch::Arrival;
use coldframe_core::{Caps, Counts, Ps, SlotsConfig};
use coldframe_trace::journal::SwapHead;

use crate::lane::SwapDone;
use crate::latency::Latency;
use crate::machine::MachineConfig;
use crate::scheduler::{Make, Nice};

mod adaptive;
pub mod bound;
mod cpu;
mod paging;
mod program;
pub mod reclaim;
pub(crate) mod token;

pub use adaptive::Rule;
pub use cpu::Cpu;
pub use program::{Program, Step, TraceTasks};
pub use reclaim::{PageOut, Queue, Reclaim, ReclaimCounts, Watermarks};

/// One task.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// What it does.
    pub program: Program,
    /// The number of its first page; pages of tasks whose ranges meet are shared.
    pub first_page: u32,
    /// How often it goes through its program; `None`: again and again, until the others have ended.
    pub rounds: Option<u32>,
    /// How long it sleeps after each turn; zero: it goes on at once.
    pub pause: Ps,
    /// Turns of a round, of as many steps each; at least 1.
    pub turns: u32,
    /// It gives its memory back after each round: the next one begins in a new region, whose pages are zeros again. Pages on their way then
    /// stay, and so does what other tasks share with it.
    pub fresh: bool,
    /// When it begins.
    pub begins: Ps,
    /// Its priority.
    pub nice: Nice,
    /// Useful processor time of one job (Interbench's deadline), whose surplus is recorded; `None`: no jobs.
    pub job: Option<Ps>,
}

/// When the next task's pages are prefetched.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Activation {
    /// Never.
    Never,
    /// At the first scheduler tick after this part of the slice has been used (0 to 1; section 3.1's second approach, the paper's).
    Tick(f64),
    /// At a timer set for exactly then (the first approach).
    Timer(f64),
    /// At the first tick at which what is left of the slice is just enough for as many of the list's absent pages as are likely to be used,
    /// by what the last transfers took (`tasks/adaptive.rs`).
    Adaptive(Rule),
}

/// The prefetcher.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prefetching {
    /// When.
    pub activation: Activation,
    /// Pages on a list at most.
    pub list_max: usize,
    /// Idle slices after which a page leaves its list; `None`: never.
    pub idle_max: Option<u32>,
    /// Loads in the background at the same time.
    pub depth: u32,
    /// Ready tasks, the running one included, below which nothing is prefetched. Algorithm 1 prints `nr_tasks > 2`.
    pub ready_min: usize,
    /// The scheduler follows its prediction (section 3.2).
    pub follow: bool,
    /// Listed pages that are in RAM are made recent, too; otherwise they are left where they are.
    pub renew: bool,
    /// Whether a prefetched page is mapped, and where in the recency order it enters.
    pub arrival: Arrival,
}

/// What becomes of the processor when a task must wait for a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFault {
    /// Others run meanwhile (Linux).
    Sleeps,
    /// It waits with the task, as the boards of SWL and DDB do: no fault breaks a turn. The wait is no processor time of the slice.
    Keeps,
}

/// A processor with reference and dirty bits, and a buffer more than there are loads under way.
pub const CAPS: Caps = Caps { reference_bit: true, dirty_bit: true, buffers: 1, direct_read: false, places: false };

/// Where pages go that leave RAM.
#[derive(Clone, Debug, Default)]
pub enum Area {
    /// To their home slots.
    #[default]
    None,
    /// To a log on flash, or Linux's map of slots there.
    Flash(SwapHead),
    /// To slots that are rewritten in place.
    InPlace(SlotsConfig),
}

/// A machine with several tasks.
#[derive(Clone, Debug)]
pub struct TasksConfig {
    /// Policy.
    pub policy: PolicyChoice,
    /// Handler.
    pub handler: &'static Handler,
    /// Frames.
    pub frames: usize,
    /// Victims that leave together.
    pub evict_batch: usize,
    /// What stages cost the processor, and where pages lie.
    pub machine: MachineConfig,
    /// The hardware sets reference and dirty bits; buffers beside one for each load that can be under way.
    pub caps: Caps,
    /// The swap area, if there is one.
    pub area: Area,
    /// What a reference answered in a buffer takes beyond one in RAM.
    pub xip_surplus: Ps,
    /// What a reference costs.
    pub reference: Ps,
    /// Period of the scheduler tick.
    pub tick: Ps,
    /// Makes the scheduler.
    pub scheduler: Make,
    /// Its knob ([`Make`]); `None`: the kernel's.
    pub slice: Option<Ps>,
    /// Whether a fault gives up the processor.
    pub on_fault: OnFault,
    /// The prefetcher.
    pub prefetching: Prefetching,
    /// What the kernel does about memory beside the faults.
    pub reclaim: Reclaim,
}

/// What became of a task.
#[derive(Clone, Debug)]
pub struct TaskResult {
    /// Major faults.
    pub major: u64,
    /// Minor faults.
    pub minor: u64,
    /// Of those, faults on pages that were on their way, for which the task waited.
    pub in_flight: u64,
    /// Pages that were prefetched for it, and what became of them.
    pub prefetched: Prefetched,
    /// Processor time spent on references, without faults.
    pub useful: Ps,
    /// When it ended; `None`: it runs for ever.
    pub ended: Option<Ps>,
    /// From awake to running.
    pub wait: Latency,
    /// From a fault to awake, of faults that waited for the device.
    pub stall: Latency,
    /// What each job took beyond its processor time.
    pub jobs: Vec<Ps>,
}

/// Prefetched pages of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prefetched {
    /// Loads that were started.
    pub loads: u64,
    /// Pages that were touched.
    pub used: u64,
    /// Pages that left untouched. What is in neither of both was in RAM or on its way at the end.
    pub useless: u64,
    /// Of those, pages that the task had to load itself afterwards: they came too early, or too many came.
    pub early: u64,
    /// Major faults, of any task, on pages that would still have been in RAM had prefetched ones that nobody had touched not been there.
    pub displaced: u64,
}

/// What the prefetcher did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefetchCounts {
    /// Lists that were worked through.
    pub activations: u64,
    /// Of those, for a task that did run next.
    pub predicted: u64,
    /// For another one than ran next.
    pub mispredicted: u64,
    /// Faults that waited for a page on its way to the device; Linux would take it back from the swap cache.
    pub write_waits: u64,
}

/// What was found out.
#[derive(Clone, Debug)]
pub struct TasksResult {
    /// The engine's counts.
    pub counts: Counts,
    /// By task.
    pub tasks: Vec<TaskResult>,
    /// The prefetcher's.
    pub prefetch: PrefetchCounts,
    /// The kernel's.
    pub reclaim: ReclaimCounts,
    /// Until the last task ended.
    pub time: Ps,
    /// Of it, while nobody was ready.
    pub idle: Ps,
    /// Time in which the device transferred.
    pub device_busy: Ps,
    /// Pages that a device has loaded.
    pub device_reads: u64,
    /// Pages written to a device.
    pub device_writes: u64,
    /// Switches from one task to another.
    pub switches: u64,
    /// References.
    pub references: u64,
    /// References answered from buffers.
    pub xip_reads: u64,
    /// References answered in slots of the swap area.
    pub reads_in_slots: u64,
    /// What the swap area on flash did, if there is one.
    pub swap: Option<SwapDone>,
    /// Tasks that were stopped because the device had failed and a page was lost.
    pub halted: u64,
}

impl TasksResult {
    /// Major faults of all tasks.
    pub fn major(&self) -> u64 {
        self.tasks.iter().map(|task| task.major).sum()
    }

    /// Prefetched pages of all tasks.
    pub fn prefetched(&self) -> Prefetched {
        let mut sum = Prefetched::default();
        for of_task in self.tasks.iter().map(|task| task.prefetched) {
            sum.loads += of_task.loads;
            sum.used += of_task.used;
            sum.useless += of_task.useless;
            sum.early += of_task.early;
            sum.displaced += of_task.displaced;
        }
        sum
    }

    /// Major and minor faults of all tasks.
    pub fn faults(&self) -> u64 {
        self.major() + self.tasks.iter().map(|task| task.minor).sum::<u64>()
    }
}
