//! Memory that the pager needs besides the RAM for pages: a fixed part, and a part for each page in use.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use coldframe_core::swap::Swap;

use super::Inner;
use crate::stats::Stats;
use crate::sys::{self, Signals};
use crate::PAGE;

/// Bytes that can be in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Overhead {
    /// Buffers, stacks, rings, and the engine's tables for each frame, if all of them have been used.
    pub fixed: u64,
    /// For each page that has been used.
    pub per_page: u64,
}

/// A ring in whole pages: 128 submission entries of 64 bytes, 256 completion entries of 16, their indices and heads.
const RING: usize = 4 * PAGE;
/// The part of a handler's stack that the fault path touches (12 KiB with encryption), its
/// thread-local block, and its kernel stack of 16 KiB.
const HANDLER: usize = 12 * 1024 + PAGE + 16 * 1024;
/// The engine's bytes for each frame: itself 8, two links of each list it is on 16, the policy's notes 16
/// (`core/src/frames.rs`, `policy`).
const FRAME: usize = 40;

/// The policy's bytes for each page: the tables of `core/src/policy/*.rs` with an entry for each page.
fn policy(name: &str) -> u64 {
    match name.split(':').next().unwrap_or_default() {
        "multi-queue" => 4,
        "s3-fifo" => 8 + 1,
        "clock-pro" => 8 + 1 + 1 + 8,
        _ => 0,
    }
}

/// The bytes of engine and log for each erase block (`core/src/swap/blocks.rs`: 40, links 8, its place among the free
/// ones 8; its segment 4, and 1).
const BLOCK: usize = 61;
/// And for each page with a slot: its place 4, in both; the page of the slot 4, and since when 8.
const IN_AREA: u64 = 20;

/// And, with a tier, for each slot with several pages: how many it still has. The other tables of the tier are inside
/// the RAM for pages.
const IN_TIER: u64 = 1;

impl Inner {
    /// Erase blocks of the engine's swap area, if it has one.
    fn blocks(&self) -> Option<usize> {
        let _signals = Signals::block();
        self.faults.gate.lock().engine().swap().map(Swap::block_count)
    }

    /// The pager's overhead now.
    fn overhead(&self) -> Overhead {
        let memory: usize = self.faults.work.plaintext().map(|range| range.len()).sum();
        let rings = if self.faults.work.tasks().have_rings() { self.faults.work.tasks().len() * RING } else { 0 };
        // The writer and the reclaimer are threads like the handlers.
        let threads = self.options.handlers + 1 + usize::from(self.faults.reclaimer.is_wanted());
        let (blocks, in_area) = self.blocks().map_or((0, 0), |blocks| (blocks * BLOCK, IN_AREA));
        let fixed = memory + rings + threads * HANDLER + self.frames() * FRAME + Stats::BYTES + 2 * PAGE + blocks;
        let forked = self.stats.forks.load(Relaxed) > 0;
        let engine = 4 + policy(self.options.policy.as_deref().unwrap_or_default());
        let per_page = self.faults.memory().pages.bytes_per_page(self.options.encrypt, forked)
            + self.faults.work.log().bytes_per_slot(forked)
            + engine
            + if self.faults.work.pool.range().is_empty() { 0 } else { IN_TIER }
            + in_area;
        Overhead { fixed: fixed as u64, per_page }
    }

    /// Puts it into the statistics. Values of several processes are not added up: the last one stays.
    pub(super) fn note_overhead(&self) {
        let Overhead { fixed, per_page } = self.overhead();
        self.stats.overhead_fixed.store(fixed, Relaxed);
        self.stats.overhead_per_page.store(per_page, Relaxed);
    }

    /// At the end: the same, and the part of the tables that is in RAM.
    pub(super) fn note_tables(&self) {
        self.note_overhead();
        // Entries that are only read are in RAM, too, as the kernel's one page of zeros. Without forks that is all of
        // these two tables.
        let forked = self.stats.forks.load(Relaxed) > 0;
        let ([state, slot, epoch, sum, seal, nonce], [used, birth, free, deferred]) =
            (self.faults.memory().pages.tables(), self.faults.work.log().tables());
        let epochs = [epoch, birth].into_iter().filter(|_| forked);
        let tables = [state, slot, sum, seal, nonce, used, free, deferred].into_iter().chain(epochs);
        self.stats.tables_resident.store(tables.map(resident).sum(), Relaxed);
    }
}

/// Bytes of a range that are in RAM.
fn resident(range: Range<usize>) -> u64 {
    /// Pages that one call reports on.
    const STEP: usize = 4096;
    let mut told = [0u8; STEP];
    let mut pages = 0;
    for start in range.clone().step_by(STEP * PAGE) {
        let len = (range.end - start).min(STEP * PAGE);
        // SAFETY: room for a byte for each page.
        let known = unsafe { sys::call(libc::SYS_mincore, [start, len, told.as_mut_ptr() as usize, 0, 0, 0]) }.is_ok();
        pages += told[..len.div_ceil(PAGE)].iter().filter(|page| known && **page & 1 != 0).count();
    }
    (pages * PAGE) as u64
}

#[cfg(test)]
mod tests {
    use crate::{Options, Pager, PAGE};

    #[test]
    fn the_tables_take_what_they_are_said_to_take() {
        for encrypt in [false, true] {
            let pages = 16384;
            let pager = Pager::start(Options { max_memory: 1 << 27, encrypt, ..Options::new(1 << 20) }).unwrap();
            let mut region = pager.anonymous(pages * PAGE).unwrap();
            (0..pages).for_each(|page| region.as_mut_slice()[page * PAGE] = 1 + page as u8 / 2);
            pager.inner().note_tables();
            let stats = pager.stats();
            // The engine's part of the cost of a page is not in these tables, and some pages have never left RAM.
            let said = (stats.overhead_per_page - 8) * pages as u64;
            let there = stats.tables_resident;
            assert!(there <= said + 16 * PAGE as u64 && there > said * 9 / 10, "{there} bytes, said to be {said}");
            assert!(stats.overhead_fixed < 12 << 20, "{}", stats.overhead_fixed);
        }
    }
}
