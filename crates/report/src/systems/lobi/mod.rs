//! LOBI: log-structured swap-out, block-aligned swap-in (Ryu, NVRAMOS 2008, slides).
//!
//! Its parts are in the core (`swap`): the log, the block's window, the collectors. This folder has its numbers:
//! geometry, the sizes and methods of its experiment, the cost formula, and its printed figures ([`golden`]).

use coldframe_core::{Bytes, Ps};
use coldframe_device::flash::Operations;
use coldframe_device::StagePrices;

use crate::papers::Claim;
use crate::systems::{swl, Area, Defaults, Driver, Figures, LogDefaults, Part, System};

pub mod figures;
pub mod golden;

/// The entry of the table of systems.
pub const SYSTEM: System = System {
    name: "lobi",
    paper: "Ryu: LOBI: A swap scheme for flash memory storages, NVRAMOS 2008 (slides)",
    summary: "swap-outs go to a log of erase blocks, swap-ins read ahead within a block",
    defaults: || Defaults {
        policy: "clock",
        handler: "sequential",
        page: SLOT,
        stream: "ID",
        front_end: "none",
        device: "LOBI-NAND",
        load_stopover: None,
        trans_host_mem: None,
        main_memory: None,
    },
    prices,
    driver: Driver::String,
    area: Area::Log(&LogDefaults {
        slot: SLOT,
        slots_per_block: SLOTS_PER_BLOCK,
        blocks: AREA_BLOCKS[3],
        start: START,
        device: "LOBI-NAND",
        cost,
    }),
    front_end: None,
    lessons: &[],
    figures: Some(Figures { bars: figures::bars, ..Figures::rows(figures::rows, &CLAIMS) }),
    part: Some(&PART),
};

/// The log replaces Linux's map of slots on the same blocks. The window of a block replaces Linux's window, where the
/// machine has one.
const PART: Part = Part {
    text: "LOBI: log, read blocks",
    apply: |s| {
        let linux = s.swap.read_ahead.as_deref().and_then(|text| text.strip_prefix("aligned:"));
        s.swap.read_ahead = Some(format!("block:{}", linux.unwrap_or("8")));
        s.swap.layout = Some("log".into());
    },
    tasks_min: 1,
};

/// The main claims of the paper, and the rows that answer them.
const CLAIMS: [Claim; 7] = [
    Claim {
        text: "Linux (8): least cost of the collectors",
        item: "GC cost, 1024 blocks",
        row: "generated, linux aligned:8: least of 10 collectors",
    },
    Claim {
        text: "Linux (8): most",
        item: "GC cost, 1024 blocks",
        row: "generated, linux aligned:8: most of 10 collectors",
    },
    Claim { text: "LOBI (8)", item: "GC cost, 1024 blocks", row: "generated, log block:8: least of 10 collectors" },
    Claim { text: "LOBI (16)", item: "GC cost, 1024 blocks", row: "generated, log block:16: least of 10 collectors" },
    Claim { text: "LOBI (32)", item: "GC cost, 1024 blocks", row: "generated, log block:32: least of 10 collectors" },
    Claim {
        text: "Linux costs so many times LOBI (8)",
        item: "factor of two",
        row: "generated: Linux's least cost to LOBI (8)'s",
    },
    Claim {
        text: "the same with a swap cache, as a user has it",
        item: "factor of two",
        row: "generated, swap cache: Linux's least cost to LOBI (8)'s",
    },
];

/// A swap slot: 4 KB (main features).
pub const SLOT: Bytes = Bytes(4096);

/// Slots of an erase block: 1024 blocks are 128 MB (performance evaluation), so 128 KiB / 4 KiB.
pub const SLOTS_PER_BLOCK: u32 = 32;

/// Swap area sizes of the evaluation, in blocks.
pub const AREA_BLOCKS: [u32; 4] = [1024, 1536, 1792, 2048];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_slides() {
        let printed = golden::read();
        assert_eq!(printed.slot_bytes, SLOT.0);
        assert_eq!(printed.slots_per_erase_block, SLOTS_PER_BLOCK);
        assert_eq!(printed.swap_area_blocks, AREA_BLOCKS);
        assert_eq!(printed.max_swap_areas, coldframe_core::swap::AREAS_MAX);
        assert_eq!(printed.linux.cluster_slots, coldframe_core::swap::linux::CLUSTER);
        assert_eq!(printed.gc.len(), coldframe_core::swap::collect::ALL.len());
        let done = Operations { reads: 1, programs: 1000, copies: 1, erases: 1 };
        assert_eq!((printed.cost.as_str(), cost(&done)), ("read_count + 10 * copy_count + 75 * erase_count", 86));
    }
}
