//! SAP: scheduler-assisted prefetching (Belogolov, Park, Park, Hong; 2008).
//!
//! Its parts are elsewhere. The prefetching lists and the recency rule are in the core (`prefetch`,
//! `Policy::insert_behind_slice`); tasks, schedulers and loads beside running tasks are in the simulator. This folder
//! has its numbers, its open questions and its printed figures ([`golden`]).

use coldframe_core::{Bytes, Ps};
use coldframe_device::StagePrices;

use crate::papers::Claim;
use crate::systems::{lobi, swl, Area, Defaults, Driver, Figures, Part, System, TasksDefaults};

pub mod figures;
pub mod golden;

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "sap",
    paper: "Belogolov, Park, Park, Hong: Scheduler-Assisted Prefetching: Efficient Demand Paging for Embedded Systems",
    summary: "several tasks on one processor: the next task's pages are loaded before its turn",
    defaults: || Defaults {
        policy: "second-chance",
        handler: "sequential",
        page: PAGE,
        stream: "ID",
        front_end: "none",
        device: "LOBI-NAND",
        load_stopover: None,
        trans_host_mem: None,
        main_memory: None,
    },
    prices,
    driver: Driver::Tasks(&TasksDefaults {
        reference: REFERENCE,
        tick: TICK,
        idle_max: IDLE_MAX,
        depth: DEPTH,
        ready_min: 2,
    }),
    area: Area::Home,
    front_end: None,
    lessons: &[],
    figures: Some(Figures::rows(figures::rows, &CLAIMS)),
    part: Some(&PART),
};

/// Prefetching before the switch, at the paper's first moment (section 5.2, prefetch-75).
const PART: Part =
    Part { text: "SAP: load before turn", apply: |s| s.tasks.prefetch = Some("75".into()), tasks_min: 2 };

/// The main claims of the paper, and the rows that answer them.
const CLAIMS: [Claim; 5] = [
    Claim { text: "prefetch-75: major faults, change in %", item: "table 1", row: "prefetch-75: major faults" },
    Claim { text: "prefetch-50: major faults, change in %", item: "table 1", row: "prefetch-50: major faults" },
    Claim { text: "prefetch-75: all faults, change in %", item: "table 1", row: "prefetch-75: all faults" },
    Claim { text: "prefetch-50: all faults, change in %", item: "table 1", row: "prefetch-50: all faults" },
    Claim {
        text: "all faults, 64 to 32 MB, change in %",
        item: "section 5.3",
        row: "vanilla: all faults, 64 to 32 MB",
    },
];

/// The unit of demand paging (section 5.2).
pub const PAGE: Bytes = Bytes(4096);

/// LoadStopover and transfer of a page by DMA: 20 us and 37.92 us of the sheet LOBI-NAND. The paper names no device
/// (only an emulated machine's disk). The scheme needs a device that transfers by itself (section 3).
pub const LOAD: Ps = Ps(57_920_000);

/// The time to program a page, by the same sheet.
pub const PROGRAM: Ps = Ps::from_us(180);

/// The scheduler tick: 1000 Hz, the finest of Linux 2.6.24. With 250 Hz, a slice of 4 ms (five tasks) is one tick, so
/// no tick comes within it.
pub const TICK: Ps = Ps::from_us(1_000);

/// The time of a reference. The paper names no processor, only an emulated machine. We assume ten times the instruction
/// of SWL's board (10 ns), the only board of the papers that is measured.
pub const REFERENCE: Ps = Ps(10 * swl::front_end::INSTRUCTION.0);

/// The time that a worker sleeps between two iterations ("accesses allocated memory periodically", section 5.2). The
/// paper does not print the period. Ours comes from our own run of the test on Linux 6.1: five workers, twelve
/// iterations each, 100 ms between them.
pub const PAUSE: Ps = Ps::from_us(100_000);

/// Iterations of a worker, from the same run.
pub const ITERATIONS: u32 = 12;

/// Algorithm 1 prints `nr_tasks > 2`.
pub const READY_MIN: usize = 3;

/// The paper does not say when a page leaves a list that is not full. We use two time units without use.
pub const IDLE_MAX: u32 = 2;

/// A prefetcher's loads in flight. The paper queues the whole list at once; the engine needs a limit.
pub const DEPTH: u32 = 16;

/// The paper measures no stage of a fault. These are the prices of SWL's board without the move of a page, which DMA
/// does.
pub fn prices(policy: &str) -> StagePrices {
    StagePrices { trans_host_mem: Ps::ZERO, ..lobi::prices(policy) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let printed = golden::read();
        assert_eq!(printed.page_bytes, PAGE.0);
        assert_eq!(printed.list_max, coldframe_core::prefetch::LIST_MAX);
    }
}
