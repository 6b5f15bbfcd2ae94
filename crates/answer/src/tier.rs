//! The same curve with a compressed tier: `run --tier lz4`.
//!
//! The program was recorded without a tier. Some of the pages that left the recorder's window were compressed as a
//! trial. Let R be the RAM. A pool of p bytes keeps n pages: p times the ratio, in pages. f = R - p is left for
//! frames. A share q of all pages is kept when it is compressed. So the n / q pages that left last are as good as in
//! RAM, except for the share 1 - q, which goes to the device as without a tier:
//!
//! ```text
//!   device loads  D = (1 - q) M(f) + q M(f + n / q)          M: loads by RAM, from the curve without a tier
//!   pool loads    H = q (M(f) - M(f + n / q))
//!   run time      program + paging of D + H x a page from compressed RAM (`pool_fault`, measured here)
//! ```
//! p is the one with the shortest run time, which the live tier looks for, too. This is an estimate: the pool is not
//! simulated here, and a pool that follows the faults reacts later than one that knows them.

use coldframe_core::tier::{PACK_EACH, PACK_HEAD, TABLE_BYTES};
use coldframe_plan::TIER_LEFT_PART;
use coldframe_recording::span::PAGE;
use coldframe_store::provenance::Compression;
use serde::{Deserialize, Serialize};

use crate::curve::{Curve, Point, THRASHES};

/// Parts of the RAM in which the pool's size is searched, and the most of them that it may have.
const PARTS: u64 = 16;
const PARTS_MAX: u64 = PARTS - PARTS / TIER_LEFT_PART as u64;
/// The part of the pool that is used: bins have room left (`core/src/tier/pool.rs`: a few hundredths).
const USED: f64 = 0.97;
/// The least number of tried pages for a result.
const TRIED_MIN: u64 = 32;

/// A size of RAM with a tier.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tiered {
    /// RAM in the form of `run --ram`, including the pool.
    pub ram_bytes: u64,
    /// The pool's part of it.
    pub pool_bytes: u64,
    /// Seconds of the whole run.
    pub seconds: f64,
    /// Whether the recorder's window gives a result for the remaining frames; otherwise the run takes at least about
    /// `seconds`.
    pub told: bool,
    /// Pages from the device.
    pub device_reads: u64,
    /// Pages from the pool.
    pub pool_loads: u64,
    /// Bytes written to the device.
    pub bytes_written: u64,
    /// The same without a tier.
    pub bytes_written_without: u64,
}

/// The effect of a compressed tier on the program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierAnswer {
    /// Pages that were tried.
    pub tried: u64,
    /// The share of them that is kept: those that take at most three quarters of a page.
    pub kept_share: f64,
    /// The compression ratio of those.
    pub ratio: f64,
    /// Seconds for a page in both directions, measured by the recorder.
    pub page_seconds: f64,
    /// By RAM, largest first, at the sizes of the curve without a tier.
    pub curve: Vec<Tiered>,
    /// The least RAM with which it takes at most twice as long as with all its RAM without a tier.
    pub thrash_bytes: Option<u64>,
}

/// The effect of the tier; `None`: too few pages were tried, or hardly one is kept.
pub(crate) fn with_tier(curve: &Curve<'_>, points: &[Point], compression: &Compression) -> Option<TierAnswer> {
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

/// The best pool for a size of RAM; no pool if none is better.
fn best(curve: &Curve<'_>, point: &Point, compression: &Compression) -> Tiered {
    let pools = (0..=PARTS_MAX).map(|part| point.ram_bytes / PARTS * part / PAGE * PAGE);
    let tried = pools.map(|pool| at(curve, point, pool, compression));
    tried.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("no pool is one of them")
}

fn at(curve: &Curve<'_>, point: &Point, pool: u64, compression: &Compression) -> Tiered {
    let share = compression.kept_share();
    let frames = (point.ram_bytes - pool).max(PAGE);
    // The tables of the pages that leave take their RAM from the pool.
    let tables = curve.needed.saturating_sub(frames) / PAGE * u64::from(TABLE_BYTES);
    let deep = (pool.saturating_sub(tables) as f64 * compression.ratio() * USED / share) as u64;
    let (near, far) = (curve.counts_at(frames), curve.counts_at((frames + deep).min(curve.needed)));
    let counts = near.with(&far, |near, far| (1.0 - share) * near + share * far);
    let loads = |counts: &crate::counts::Counts| counts.device_reads() + counts.memory_loads;
    let from_pool = (share * (loads(&near) - loads(&far))).max(0.0);
    let paging = curve.paging(&counts).mean + from_pool * curve.pool_price();
    Tiered {
        ram_bytes: point.ram_bytes,
        pool_bytes: pool,
        seconds: curve.alone() + paging,
        told: frames >= curve.told(),
        device_reads: counts.device_reads().round() as u64,
        pool_loads: from_pool.round() as u64,
        bytes_written: (counts.dirty() * written_each(share, compression.ratio())).round() as u64,
        bytes_written_without: point.dirty_evictions * PAGE,
    }
}

/// Bytes written for a page that leaves, on average: kept pages share slots, if more than one fits; the others have a
/// slot of their own.
fn written_each(share: f64, ratio: f64) -> f64 {
    let (slot, head, each) = (PAGE as f64, f64::from(PACK_HEAD), f64::from(PACK_EACH));
    let together = ((slot - head) / (slot / ratio + each)).floor().max(1.0);
    share * slot / together + (1.0 - share) * slot
}

impl TierAnswer {
    /// The size, if it is one of the curve.
    pub fn at(&self, ram_bytes: u64) -> Option<&Tiered> {
        self.curve.iter().find(|at| at.ram_bytes == ram_bytes)
    }
}
