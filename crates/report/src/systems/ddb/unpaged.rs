//! The paper's older architectures without paging (figure 1): computed from the accesses of a run, without another
//! simulation.

use coldframe_core::Ps;
use coldframe_device::energy::AccessCounts;

/// Code shadowing: the whole image is copied to main memory at the start, page by page, and everything is read there.
pub fn code_shadowing(run: &AccessCounts, image_pages: u64) -> AccessCounts {
    AccessCounts {
        page_loads: image_pages,
        page_moves: image_pages,
        page_moves_dual: 0,
        main_reads: run.main_reads + run.xip_reads,
        xip_reads: 0,
        main_writes: run.main_writes,
    }
}

/// NOR XIP: pages that would be paged are read in place from NOR, all others from main memory; nothing is loaded.
/// `paged_reads` are the reads of paged pages.
pub fn nor_xip(run: &AccessCounts, paged_reads: u64) -> AccessCounts {
    let reads = run.main_reads + run.xip_reads;
    AccessCounts { main_reads: reads - paged_reads, xip_reads: paged_reads, ..code_shadowing(run, 0) }
}

/// The time of NOR XIP's reads and of everything else, `nor_read` being NOR's time of one cache block.
pub fn nor_time(n: &AccessCounts, main_read: Ps, main_write: Ps, nor_read: Ps) -> Ps {
    main_read * n.main_reads + main_write * n.main_writes + nor_read * n.xip_reads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reads_stay_the_same_wherever_they_go() {
        let run = AccessCounts { main_reads: 70, xip_reads: 30, main_writes: 20, page_loads: 5, ..Default::default() };
        assert_eq!(
            code_shadowing(&run, 8),
            AccessCounts { page_loads: 8, page_moves: 8, main_reads: 100, main_writes: 20, ..Default::default() }
        );
        let nor = nor_xip(&run, 60);
        assert_eq!((nor.page_loads, nor.main_reads, nor.xip_reads), (0, 40, 60));
        assert_eq!(nor_time(&nor, Ps(4), Ps(4), Ps(22)), Ps(40 * 4 + 20 * 4 + 60 * 22));
    }
}
