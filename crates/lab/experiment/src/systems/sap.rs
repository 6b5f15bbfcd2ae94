//! SAP: scheduler-assisted prefetching (Belogolov, Park, Park, Hong; 2008).
//!
//! Its parts are elsewhere. The prefetching lists and the recency rule are in the core (`prefetch`,
//! `Policy::insert_behind_slice`); tasks, schedulers and loads while tasks run are in the simulator. This file has
//! its numbers.

use coldframe_core::{Bytes, Ps};
use coldframe_sheet::StagePrices;

use crate::systems::{lobi, swl, AreaKind, Defaults, Driver, Part, System, TasksDefaults};

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "sap",
    paper: "Belogolov, Park, Park, Hong: Scheduler-Assisted Prefetching: Efficient Demand Paging for Embedded Systems",
    summary: "several tasks on one processor: the next task's pages are loaded before its turn",
    defaults: Defaults { policy: "second-chance", ..Defaults::PLAIN },
    prices,
    driver: Driver::Tasks(&TasksDefaults { reference: REFERENCE, tick: TICK, depth: DEPTH, ready_min: 2 }),
    area: AreaKind::Home,
    front_end: None,
    live: Some("coldframe turns --slice 2s A B C"),
    parts: &[PART],
};

/// Prefetching before the switch, at the paper's first moment (section 5.2, prefetch-75), on a device that moves pages
/// by itself (section 3).
const PART: Part = Part {
    name: "sap",
    text: "SAP: load ahead",
    apply: |s| s.tasks.prefetch = Some("75".into()),
    tasks_min: 2,
    needs_dma: true,
    idle: |run| match run.prefetch.activations {
        0 => "no list had pages at a tick late in a turn with two tasks ready",
        _ if run.prefetched().loads == 0 => "all pages on the lists were in RAM before the turn",
        _ => "no page that it loaded was used before it left RAM",
    },
};

/// The unit of demand paging (section 5.2).
pub const PAGE: Bytes = Bytes(4096);

/// The scheduler tick: 1000 Hz, the finest of Linux 2.6.24. With 250 Hz, a slice of 4 ms (five tasks) is one tick, so
/// no tick comes within it.
pub const TICK: Ps = Ps::from_us(1_000);

/// The time of a reference. The paper names no processor, only an emulated machine. We assume ten times the instruction
/// of SWL's board (10 ns), the only board of the papers that is measured.
pub const REFERENCE: Ps = Ps(10 * swl::INSTRUCTION.0);

/// A prefetcher's loads in flight. The paper queues the whole list at once; the engine needs a limit.
pub const DEPTH: u32 = 16;

/// The paper measures no stage of a fault. These are the prices of SWL's board without the move of a page, which DMA
/// does.
pub fn prices(policy: &str) -> StagePrices {
    StagePrices { trans_host_mem: Ps::ZERO, ..lobi::prices(policy) }
}
