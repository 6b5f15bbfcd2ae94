//! The run's result, as one line of JSON.

use crate::fault::Pager;
use crate::platform::instructions;
use crate::{heap, mmu, platform, println, start};

/// Prints it.
pub fn print(pager: &mut Pager) {
    pager.board.flush();
    pager.engine.check();
    let (total, [aborts, interrupts]) = (instructions(pager.board.clock.ticks()), start::stack_depths());
    let counts = pager.engine.counts();
    let (erases, copies) = pager.engine.swap().map_or((0, 0), |s| (s.erases().sum::<u32>(), s.counts().copies));
    println!(
        "{{\"board\":\"{}\",\"processor\":\"{:#010x}\",\"page\":{},\"pages\":{},\
         \"true_faults\":{},\"false_faults\":{},\"evictions\":{},\
         \"page_moves\":{},\"page_moves_dual\":{},\"walk_max\":{},\"prefetch_aborts\":{},\"data_aborts\":{},\
         \"fault_instructions\":{},\"fault_instructions_max\":{},\"waited_instructions\":{},\
         \"dirty_evictions\":{},\"direct_reads\":{},\
         \"blocks_erased\":{erases},\"slots_copied\":{copies},\
         \"switches\":{},\"start_faults\":{},\"lists_loaded\":{},\
         \"prefetches\":{},\"prefetches_present\":{},\"prefetches_dropped\":{},\"prefetch_waits\":{},\
         \"instructions\":{total},\
         \"heap_bytes\":{},\"stack_bytes\":{aborts},\"interrupt_stack_bytes\":{interrupts}}}",
        platform::NAME,
        mmu::processor(),
        pager.board.page(),
        pager.board.space.pages(),
        counts.true_faults,
        counts.false_faults,
        counts.evictions,
        counts.page_moves,
        counts.page_moves_dual,
        counts.walk_max.0,
        pager.prefetch_aborts,
        pager.data_aborts,
        instructions(pager.spent),
        instructions(pager.longest),
        instructions(pager.board.device.waited),
        counts.dirty_evictions,
        counts.direct_reads,
        pager.scheduler.switches,
        pager.start_faults,
        pager.prefetcher.activations,
        counts.prefetches,
        counts.prefetches_present,
        counts.prefetches_dropped,
        counts.prefetch_waits,
        heap::used(),
    );
}
