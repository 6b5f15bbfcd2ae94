//! The swap area of a system, kept by the engine: LOBI's log of erase blocks with its collectors. The swap file
//! replaces the flash; each erase block has a segment of the file (`swap/log/blocks.rs`).

use std::sync::atomic::Ordering::Relaxed;

use coldframe_core::swap::{collect, AreaConfig, Swap, SwapAreas, SwapCounts};

use crate::stats::Stats;
use crate::swap::device::Device;
use crate::swap::log::{segments_of, BUFFERS, SEGMENT};
use crate::{LiveError, SwapArea, PAGE};

/// The swap area that was asked for, on a device, after `pages` home slots.
pub(crate) fn areas(
    asked: &SwapArea,
    device: &Device,
    pages: usize,
    bytes_max: Option<u64>,
) -> Result<SwapAreas, LiveError> {
    let refuse = |reason| LiveError::Setting { field: "swap", reason };
    let least = (2 * pages).div_ceil(SEGMENT) + BUFFERS;
    let segments = segments_of(device, least, bytes_max);
    let usual = (pages + pages / 4).min((SwapArea::MOST / PAGE as u64) as usize).div_ceil(SEGMENT);
    let blocks = match asked.bytes {
        Some(bytes) => (bytes / SwapArea::BLOCK) as usize,
        None => usual.max(2 * SwapArea::START as usize).min(segments / 4 * 3),
    };
    if blocks + 2 * BUFFERS > segments {
        let mib = |segments: usize| (segments as u64 * SwapArea::BLOCK) >> 20;
        let most = segments.saturating_sub(2 * BUFFERS);
        let (size, most) = (mib(blocks), mib(most));
        return Err(refuse(format!("an area of {size} MiB; the swap file has room for {most} MiB")));
    }
    let Some(collector) = collect::find(&asked.collector) else {
        let names: Vec<_> = collect::ALL.iter().map(|collector| collector.name).collect();
        return Err(refuse(format!("there is no collector `{}`; there are {}", asked.collector, names.join(", "))));
    };
    let (victims, start, stop) = (asked.victims, SwapArea::START, SwapArea::START);
    let area = AreaConfig { collector, victims, start, stop, ..AreaConfig::log(blocks as u32) };
    Ok(SwapAreas { slots_per_block: SEGMENT as u32, areas: vec![area] })
}
/// The part of an area's counts that the statistics have. A forked child continues with its parent's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported(SwapCounts);

impl Reported {
    /// Adds the counts since the last call.
    pub(crate) fn add_to(&mut self, swap: &Swap, stats: &Stats) {
        let (now, before) = (*swap.counts(), self.0);
        if now == before {
            return;
        }
        Stats::add(&stats.swap_programs, now.programs - before.programs);
        Stats::add(&stats.swap_copies, now.copies - before.copies);
        Stats::add(&stats.swap_erases, now.erases - before.erases);
        Stats::add(&stats.swap_collections, now.collections - before.collections);
        Stats::add(&stats.swap_full, now.areas_full - before.areas_full);
        if now.erases > before.erases {
            let (min, max) = swap.wear();
            stats.block_erases_min.store(min.into(), Relaxed);
            stats.block_erases_max.fetch_max(max.into(), Relaxed);
        }
        self.0 = now;
    }
}
