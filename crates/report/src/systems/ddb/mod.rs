//! DDB: delayed dual buffering (Joo, Park, Chung, Chung, Chang; 2007).
//!
//! Its handler is in the core, its equations 1 to 3 are in `coldframe_device::energy`, and the prices of table 3 are
//! on the sheets KFG5616 and SRAM64K. This folder has the shape of its caches ([`mod@front_end`]), its comparisons
//! that page nothing ([`unpaged`]), the parts of its gain ([`effects`]) and its printed figures ([`golden`]).

use coldframe_core::{Bytes, Ps};
use coldframe_device::StagePrices;

use crate::papers::Claim;
use crate::systems::{Area, Defaults, Driver, Figures, Part, System};

pub mod effects;
pub mod figures;
pub mod front_end;
pub mod golden;
mod lessons;
pub mod unpaged;

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "ddb",
    paper: "Joo, Park, Chung, Chung, Chang: Delayed Dual Buffering: Reducing Page Fault Latency in Demand Paging for OneNAND Flash \
            Memory, 2007",
    summary: "run a page from OneNAND's buffer, move it to main memory beside the next load",
    defaults: || Defaults {
        policy: "clock",
        handler: DELAYED,
        page: PAGE,
        stream: "ID",
        front_end: front_end::L1.name,
        device: "KFG5616",
        load_stopover: None,
        trans_host_mem: None,
        main_memory: Some("SRAM64K"),
    },
    prices,
    driver: Driver::String,
    area: Area::Home,
    front_end: Some(&front_end::L1),
    lessons: lessons::ALL,
    figures: Some(Figures { plots: figures::plots, ..Figures::rows(figures::rows, &CLAIMS) }),
    part: Some(&PART),
};

/// The handler, with the present order of stages: with SWL's part, the frame is sought during the load.
const PART: Part = Part {
    text: "DDB: run in buffer",
    apply: |s| {
        let beside = s.handler.as_deref() == Some("parallel");
        s.handler = Some(if beside { DELAYED } else { SEARCH_FIRST }.into());
        // Table 3, t_rdmain: a cache block of main memory; blocks in a buffer are compared with it.
        s.time.main_read.get_or_insert_with(|| "0.04us".into());
    },
    tasks_min: 1,
};

/// The handler that finds the frame before the load starts.
const SEARCH_FIRST: &str = "delayed-dual-buffering-search-first";

/// The main claims of the paper, and the rows that answer them.
const CLAIMS: [Claim; 6] = [
    Claim {
        text: "jpeg, table's counts: paging before, ms",
        item: "table 5, from its counts",
        row: "before: t_paging",
    },
    Claim { text: "jpeg, table's counts: paging after, ms", item: "table 5, from its counts", row: "after: t_paging" },
    Claim {
        text: "time where memory is short, % of before",
        item: "table 7",
        row: "A, 0.3 to 0.7, first 100,000 accesses: t_total",
    },
    Claim {
        text: "energy where memory is short, % of before",
        item: "table 7",
        row: "A, 0.3 to 0.7, first 100,000 accesses: e_paging",
    },
    Claim {
        text: "time where memory is ample, % of before",
        item: "table 7",
        row: "B, 1.0 to 1.2, first 100,000 accesses: t_total",
    },
    Claim {
        text: "energy where memory is ample, % of before",
        item: "table 7",
        row: "B, 1.0 to 1.2, first 100,000 accesses: e_paging",
    },
];

/// The scheme's handler.
pub const DELAYED: &str = "delayed-dual-buffering";

/// The handler without the scheme, as on NAND: load, move, run (section II.2 and figure 3).
pub const PLAIN: &str = "sequential";

/// Unit of demand paging (section III.2).
pub const PAGE: Bytes = Bytes(1024);

/// One cycle of the processor, 400 MHz (section III.2).
pub const CYCLE: Ps = Ps(2_500);

/// Equation 1 has only loads, moves and accesses: the processor's own work on a fault costs nothing. The device gives
/// TransHostMem.
pub fn prices(_policy: &str) -> StagePrices {
    StagePrices::uniform(Ps::ZERO)
}

#[cfg(test)]
mod tests;
