//! LOBI: log-structured swap-out, block-aligned swap-in (Ryu, NVRAMOS 2008, slides).
//!
//! Its parts are in the core (`swap`): the log, the block's window, the collectors. This file has its numbers:
//! geometry, and the cost formula.

use coldframe_core::{Bytes, Ps};
use coldframe_sheet::flash::Operations;
use coldframe_sheet::StagePrices;

use crate::systems::{swl, AreaKind, Defaults, Driver, LogDefaults, Part, System};

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "lobi",
    paper: "Ryu: LOBI: A swap scheme for flash memory storages, NVRAMOS 2008 (slides)",
    summary: "swap-outs go to a log of erase blocks, swap-ins read ahead within a block",
    defaults: Defaults::PLAIN,
    prices,
    driver: Driver::String,
    area: AreaKind::Log(&LogDefaults {
        slot: SLOT,
        slots_per_block: SLOTS_PER_BLOCK,
        blocks: BLOCKS,
        start: START,
        device: "LOBI-NAND",
        cost,
    }),
    front_end: None,
    live: None,
    parts: &[PART],
};

/// The log replaces Linux's map of slots on the same blocks. The window of a block replaces Linux's window, where the
/// machine has one.
const PART: Part = Part {
    name: "lobi",
    text: "LOBI: log and blocks",
    apply: |s| {
        let linux = s.swap.read_ahead.as_deref().and_then(|text| text.strip_prefix("aligned:"));
        s.swap.read_ahead = Some(format!("block:{}", linux.unwrap_or("8")));
        s.swap.layout = Some("log".into());
    },
    tasks_min: 1,
    needs_dma: false,
    idle: |run| match run.swap.as_ref().map(|done| done.counts.erases) {
        _ if run.counts.dirty_evictions == 0 => "no page that left RAM was written to, so that its log stayed empty",
        Some(0) => "no block had to be erased, and no other page of a block was missing",
        _ => "its blocks were erased as often, and no other page of a block was missing",
    },
};

/// A swap slot: 4 KB (main features).
pub const SLOT: Bytes = Bytes(4096);

/// Slots of an erase block: 1024 blocks are 128 MB (performance evaluation), so 128 KiB / 4 KiB.
pub const SLOTS_PER_BLOCK: u32 = 32;

/// Erase blocks of the largest swap area of the evaluation, 256 MB.
pub const BLOCKS: u32 = 2048;

/// A collection starts below this many blocks of erased slots. The slides do not print it. 6 is just enough for the
/// survivors of 4 victims and one open block for each stream.
pub const START: u32 = 6;

/// The slides' garbage collection cost: read_count + 10 * copy_count + 75 * erase_count, in reads.
pub fn cost(done: &Operations) -> u64 {
    done.reads + 10 * done.copies + 75 * done.erases
}

/// The slides have no times of a fault's stages. These are the prices of SWL's board, the only one measured stage by
/// stage, with the move of a page scaled from 1 KiB to 4 KiB.
pub fn prices(policy: &str) -> StagePrices {
    let board = swl::prices(policy);
    StagePrices { trans_host_mem: Ps(board.trans_host_mem.0 * SLOT.0 / swl::PAGE.0), ..board }
}
