//! The same curve with a compressed tier: `run --tier lz4`, and what corresponds to it in the kernel, zram and zswap.
//!
//! The program was recorded without a tier, and a part of the pages that left the recorder's window was compressed for a try. Of the RAM R a pool
//! of p bytes keeps n pages, p times the ratio; f = R - p is left for frames. Of all pages a share q is kept when it is compressed. So the pages
//! that left last, n / q of them, are as good as in RAM, but for the share 1 - q, which goes to the device as without a tier:
//!
//! ```text
//!   device loads  D = (1 - q) M(f) + q M(f + n / q)          M: loads by RAM, from the curve without a tier
//!   pool loads    H = q (M(f) - M(f + n / q))
//!   run time      program + paging of D + H x (a fault from RAM + an eviction + a page both ways)
//! ```
//! p is the one with the shortest run time, which is what the live tier looks for. It is an estimate: nothing simulates the pool here, and a
//! pool that follows the faults is later than one that knows them.

use coldframe_trace::provenance::Compression;
use coldframe_trace::span::PAGE;
use serde::{Deserialize, Serialize};

use super::curve::{Curve, Point, THRASHES};

/// Parts of the RAM in which the pool's size is sought, and the most that it may have of them (`live/src/tier.rs`, `LEFT_PART`).
const PARTS: u64 = 16;
const PARTS_MAX: u64 = 14;
/// Of the pool so much is used: bins have room left (`core/src/tier/pool.rs`: a few hundredths).
const USED: f64 = 0.97;
/// Pages that must have been tried before anything is said.
const TRIED_MIN: u64 = 32;

/// A size of RAM with a tier.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tiered {
    /// RAM as `run --ram` takes it, pool included.
    pub ram_bytes: u64,
    /// Of those, the pool.
    pub pool_bytes: u64,
    /// The whole run.
    pub seconds: f64,
    /// The recorder's window tells so much of the frames that are left; otherwise the run takes at least about `seconds`.
    pub told: bool,
    /// The most bytes of pages outside the frames: what a zram device for the same has to be large enough for.
    pub outside_bytes: u64,
    /// Pages that come from the device.
    pub device_reads: u64,
    /// Pages that come from the pool.
    pub pool_loads: u64,
    /// Bytes that go to the device.
    pub bytes_written: u64,
    /// The same without a tier.
    pub bytes_written_without: u64,
}

/// What a compressed tier does for the program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierAnswer {
    /// Pages that were tried.
    pub tried: u64,
    /// The part of them that is kept: at most three quarters of a page.
    pub kept_share: f64,
    /// How many times smaller those become.
    pub ratio: f64,
    /// Seconds for a page both ways, measured by the recorder.
    pub page_seconds: f64,
    /// By RAM, largest first, the sizes of the curve without a tier.
    pub curve: Vec<Tiered>,
    /// The least RAM that does not take twice as long as all its RAM without a tier.
    pub thrash_bytes: Option<u64>,
}

/// What the tier does; `None`: too few pages were tried, or hardly one is kept.
pub(super) fn with_tier(curve: &Curve<'_>, points: &[Point], compression: &Compression) -> Option<TierAnswer> {
    let kept_share = compression.kept_share();
    if compression.tried < TRIED_MIN || kept_share < 0.05 {
        return None;
    }
    let all: Vec<Tiered> = points.iter().map(|point| best(curve, point, compression)).collect();
    let livable = THRASHES * points.first().map_or(f64::INFINITY, |full| full.seconds);
    let least = all.iter().take_while(|at| at.seconds <= livable).last();
    Some(TierAnswer {
        tried: compression.tried,
        kept_share,
        ratio: compression.ratio(),
        page_seconds: compression.page_seconds,
        thrash_bytes: least.map(|at| at.ram_bytes),
        curve: all,
    })
}

/// The best pool for a size of RAM; none, where none is better.
fn best(curve: &Curve<'_>, point: &Point, compression: &Compression) -> Tiered {
    let pools = (0..=PARTS_MAX).map(|part| point.ram_bytes / PARTS * part / PAGE * PAGE);
    let tried = pools.map(|pool| at(curve, point, pool, compression));
    tried.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("no pool is one of them")
}

fn at(curve: &Curve<'_>, point: &Point, pool: u64, compression: &Compression) -> Tiered {
    let share = compression.kept_share();
    let frames = (point.ram_bytes - pool).max(PAGE);
    let deep = (pool as f64 * compression.ratio() * USED / share) as u64;
    let (near, far) = (curve.counts_at(frames), curve.counts_at((frames + deep).min(curve.needed)));
    let counts = near.with(&far, |near, far| (1.0 - share) * near + share * far);
    let loads = |counts: &super::machine::Counts| counts.device_reads() + counts.memory_loads;
    let from_pool = (share * (loads(&near) - loads(&far))).max(0.0);
    let paging = curve.paging(&counts).mean + from_pool * curve.pool_price(compression.page_seconds);
    Tiered {
        ram_bytes: point.ram_bytes,
        pool_bytes: pool,
        seconds: curve.alone() + paging,
        told: frames >= curve.told(),
        outside_bytes: curve.needed.saturating_sub(frames),
        device_reads: counts.device_reads().round() as u64,
        pool_loads: from_pool.round() as u64,
        bytes_written: counts.dirty().round() as u64 * PAGE,
        bytes_written_without: point.dirty_evictions * PAGE,
    }
}

impl Tiered {
    /// What one types for the kernel's own tiers. zram is as large as what does not fit into the frames, and may take as much RAM as the pool
    /// has. zswap takes a share of all RAM of the machine, which is taken to be this RAM.
    pub fn kernel(&self) -> String {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20).max(1);
        let (size, limit) = (mib(self.outside_bytes), mib(self.pool_bytes));
        let percent = (100 * self.pool_bytes).div_ceil(self.ram_bytes.max(1));
        format!("zramctl -f -a lz4 -s {size}M, mem_limit {limit}M; or zswap, max_pool_percent {percent}")
    }
}

impl TierAnswer {
    /// The size, if it is one of the curve.
    pub fn at(&self, ram_bytes: u64) -> Option<&Tiered> {
        self.curve.iter().find(|at| at.ram_bytes == ram_bytes)
    }
}
