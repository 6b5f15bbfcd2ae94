//! The front end of DDB's simulator (section III.2): instruction and data cache of the first level.

use coldframe_core::{Bytes, Ps};
use coldframe_sim::front_end::l1::{self, L1 as Caches};
use coldframe_sim::front_end::{self, Spaces, Stream};

use super::CYCLE;
use crate::resolve::FrontKey;
use crate::systems::front_end::{FrontEnd, Paged};

/// Instruction and data cache, each.
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
    let shape = l1::Shape { line_shift: 5, sets: 32, ways: 4, replacement: key.l1_replacement };
    Box::new(Caches::new(shape, key.stream, key.page_shift, spaces, key.paged.clone(), key.accesses))
}
