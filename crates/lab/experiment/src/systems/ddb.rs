//! DDB: delayed dual buffering (Joo, Park, Chung, Chung, Chang; 2007).
//!
//! Its handler is in the core, its equations 1 to 3 are in `coldframe_sheet::paging`, and the prices of table 3 are
//! on the sheets KFG5616 and SRAM64K. This file has the shape of its caches ([`L1`]).

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::front_end::l1::{self, L1 as Caches};
use coldframe_drivers::front_end::{self, Spaces, Stream};
use coldframe_sheet::StagePrices;

use crate::systems::front_end::{FrontEnd, FrontKey, Paged};
use crate::systems::{AreaKind, Defaults, Driver, Part, System};

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "ddb",
    paper: "Joo, Park, Chung, Chung, Chang: Delayed Dual Buffering: Reducing Page Fault Latency in Demand Paging for \
            OneNAND Flash \
            Memory, 2007",
    summary: "run a page from OneNAND's buffer, move it to main memory beside the next load",
    defaults: Defaults {
        policy: "clock",
        handler: DELAYED,
        page: PAGE,
        stream: "ID",
        front_end: L1.name,
        device: "KFG5616",
        main_memory: Some("SRAM64K"),
        ..Defaults::PLAIN
    },
    prices,
    driver: Driver::String,
    area: AreaKind::Home,
    front_end: Some(&L1),
    live: None,
    parts: &[PART],
};

/// The handler, with the present order of stages: with SWL's part, the frame is sought during the load.
const PART: Part = Part {
    name: "ddb",
    text: "DDB: run in buffer",
    apply: |s| {
        let parallel = s.handler.as_deref() == Some("parallel");
        s.handler = Some(if parallel { DELAYED } else { SEARCH_FIRST }.into());
        // Table 3, t_rdmain: a cache block of main memory; blocks in a buffer are compared with it.
        s.time.main_read.get_or_insert_with(|| "0.04us".into());
    },
    tasks_min: 1,
    needs_dma: false,
    idle: |_| "no page was read in a buffer",
};

/// The handler that finds the frame before the load starts.
const SEARCH_FIRST: &str = "delayed-dual-buffering-search-first";

/// The scheme's handler.
pub const DELAYED: &str = "delayed-dual-buffering";

/// Unit of demand paging (section III.2).
pub const PAGE: Bytes = Bytes(1024);

/// One cycle of the processor, 400 MHz (section III.2).
pub const CYCLE: Ps = Ps(2_500);

/// Equation 1 has only loads, moves and accesses: the processor's own work on a fault costs nothing. The device gives
/// TransHostMem.
pub fn prices(_policy: &str) -> StagePrices {
    StagePrices::uniform(Ps::ZERO)
}

/// The front end of its simulator (section III.2): instruction and data cache of the first level.
pub const L1: FrontEnd = FrontEnd {
    name: "l1",
    // The name of the paper with these caches.
    aliases: &["ddb"],
    // 8 words of 4 bytes. The printed 0.22 us of a block from OneNAND's 16-bit bus at 50 MHz are 11 cycles, too few
    // for 16 half-words; they fit a block of 8 half-words. We use the processor's word.
    line: Bytes(32),
    sees: Stream::Both,
    readings: &[],
    data_cache: true,
    paged: Paged::ReadOnly,
    // The time of each instruction whose references hit. The paper prints `t_idle` but not how it is computed; one
    // cycle is our reading.
    instruction: CYCLE,
    icache_miss: Ps::ZERO,
    build,
};

fn build(key: &FrontKey, spaces: Spaces) -> Box<dyn front_end::FrontEnd> {
    // 4 KiB / (4 ways * 32 bytes) sets.
    let shape = l1::L1Shape { line_shift: 5, sets: 32, ways: 4 };
    Box::new(Caches::new(shape, key.stream, key.page_shift, spaces, key.paged.clone(), key.accesses))
}
