//! The front end of SWL's simulator (table 2): an instruction cache and a TLB.

use coldframe_core::{Bytes, Ps};
use coldframe_sim::front_end::instruction::{Instruction, Reading, Shape};
use coldframe_sim::front_end::{self, Spaces, Stream};

use crate::resolve::FrontKey;
use crate::systems::front_end::{FrontEnd, Paged};

/// Table 2.
pub const FRONT_END: FrontEnd = FrontEnd {
    name: "swl",
    aliases: &[],
    line: Bytes(32),
    sees: Stream::Instructions,
    readings: &[Reading::A, Reading::C, Reading::D],
    data_cache: false,
    paged: Paged::Code,
    // Each instruction: one word from the cache.
    instruction: INSTRUCTION,
    // Each cache miss: TLB look-up 5 ns, line refill from the page cache 200 ns.
    icache_miss: Ps(205_000),
    build,
};

/// An instruction on SWL's board, table 2.
pub const INSTRUCTION: Ps = Ps(10_000);

/// A line of 8 words; 8 KiB / (4 ways * 32 bytes) sets; a TLB of 32 entries in 2 ways.
const SHAPE: Shape = Shape { line_shift: 5, sets: 64, ways: 4, tlb_sets: 16, tlb_ways: 2 };

fn build(key: &FrontKey, spaces: Spaces) -> Box<dyn front_end::FrontEnd> {
    let reading = key.reading.unwrap_or(Reading::A);
    Box::new(Instruction::new(SHAPE, reading, key.page_shift, spaces, key.paged.clone(), key.accesses))
}
