//! A kernel's memory management besides faults, after Linux 2.6.24. All of it is off unless a run enables it.

use coldframe_core::Ps;

/// The kernel's parts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reclaim {
    /// A task that holds the swap token keeps its pages while it waits in a fault (`tasks/token.rs`).
    pub token: bool,
    /// A kernel task that frees frames before a fault needs them (`tasks/cpu/kswapd.rs`); `None`: only faults free
    /// frames.
    pub kswapd: Option<Watermarks>,
    /// When a page is written that leaves.
    pub page_out: PageOut,
    /// A task that has searched long for a page sleeps for this long, or until the device's queue of writes is short
    /// again. Zero: no task sleeps.
    pub nap: Ps,
    /// The order of transfers.
    pub queue: Queue,
    /// Pages of an aligned group of home slots that are read together, for a fault or a prefetch, if they are on the
    /// device (Linux's `page_cluster`). 1: only the page.
    pub cluster: u32,
}

impl Reclaim {
    /// None of the parts.
    pub const NONE: Reclaim = Reclaim {
        token: false,
        kswapd: None,
        page_out: PageOut::Waits,
        nap: Ps::ZERO,
        queue: Queue::DemandFirst,
        cluster: 1,
    };

    /// All parts of Linux 2.6.24: a nap of a tenth of a second, clusters of 8 pages.
    pub fn linux(frames: usize, page_bytes: u64) -> Reclaim {
        Reclaim {
            token: true,
            kswapd: Some(Watermarks::linux(frames, page_bytes)),
            page_out: PageOut::Behind,
            nap: Ps::from_us(100_000),
            queue: Queue::DemandFirst,
            cluster: CLUSTER,
        }
    }
}

impl Default for Reclaim {
    fn default() -> Reclaim {
        Reclaim::NONE
    }
}

/// Pages that Linux reads together: 2 to the power of `page_cluster`, 3 with more than 16 MiB of RAM (`swap_setup`,
/// `mm/swap.c`).
pub const CLUSTER: u32 = 8;

/// When a dirty page is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PageOut {
    /// Before the load that needs its frame.
    #[default]
    Waits,
    /// After all loads that a task waits for. The device's queue has room for [`WRITES_MAX`] such writes; while it is
    /// full, a write goes before the load. Bytes that wait in the queue take no frame.
    Behind,
}

/// The order in which the device takes transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Queue {
    /// Those that a task waits for go first.
    #[default]
    DemandFirst,
    /// In the order in which they were asked for.
    InOrder,
}

/// Requests of a queue (`BLKDEV_MAX_RQ`, `include/linux/blkdev.h`).
pub const WRITES_MAX: u32 = 128;
/// A queue with at least this many writes is congested: more than 7/8 (`blk_queue_congestion_threshold`,
/// `block/ll_rw_blk.c`).
pub const CONGESTED: u32 = WRITES_MAX - WRITES_MAX / 8 + 1;
/// With fewer writes than this, it is no longer congested: an eighth and a sixteenth less (same function).
pub const CLEARED: u32 = WRITES_MAX - WRITES_MAX / 8 - WRITES_MAX / 16 - 1;

/// Pages that one pass of a search wants (`SWAP_CLUSTER_MAX`, `include/linux/swap.h`).
pub(super) const PASS_PAGES: u32 = 32;

/// Whether a search sleeps that has examined this many pages since its pass began, and `more` now, with this many writes
/// in the device's queue. A pass examines 1/4096 of RAM, then twice as much each time. It sleeps after each step except
/// the first three, if it has come past more pages in transfer than a pass wants (`sc.nr_scanned && priority <
/// DEF_PRIORITY - 2 && sc.nr_io_pages > sc.swap_cluster_max`, `mm/vmscan.c` of 2.6.24; without the third part before).
pub(super) fn naps(frames: u64, looked: u64, more: u64, writes: u32) -> bool {
    let looks = |looked: u64| (looked * 4096 / frames.max(1) + 1).ilog2();
    writes > PASS_PAGES && looks(looked + more) >= 4 && looks(looked + more) > looks(looked)
}

/// Free frames at which kswapd wakes and goes back to sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watermarks {
    /// It wakes below.
    pub low: usize,
    /// It sleeps from here on.
    pub high: usize,
}

impl Watermarks {
    /// Linux's watermarks (`init_per_zone_pages_min`, `setup_per_zone_pages_min` in `mm/page_alloc.c`). The minimum is
    /// the square root of 16 times the RAM in KiB, from 128 KiB to 64 MiB; kswapd wakes at 5/4 of it and sleeps at 3/2.
    /// The kernel's bound of 128 KiB is for 1 MiB of RAM; with less RAM, the minimum is an eighth.
    pub fn linux(frames: usize, page_bytes: u64) -> Watermarks {
        let kib = frames as u64 * page_bytes / 1024;
        let least = (kib * 16).isqrt().clamp(128, 65_536).min(kib / 8) * 1024 / page_bytes;
        let least = least.max(1) as usize;
        Watermarks { low: least + least / 4, high: least + (least / 2).max(1) }
    }
}

/// Counts of the kernel's mechanisms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReclaimCounts {
    /// Pages that kswapd took out.
    pub pages: u64,
    /// Processor time of kswapd.
    pub time: Ps,
    /// Naps, of whomever.
    pub naps: u64,
    /// Times that the token went to a task that did not have it.
    pub token_moves: u64,
    /// Pages that were passed over for the token.
    pub token_spared: u64,
    /// Times that the token was taken away, since a search found nothing else.
    pub token_lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, 32 MiB: sqrt(32768 * 16) = 724.07 KiB are 181 pages of 4 KiB; a quarter of it is 45, half is 90.
    #[test]
    fn watermarks_of_32_mib() {
        assert_eq!(Watermarks::linux(8192, 4096), Watermarks { low: 226, high: 271 });
        assert_eq!(Watermarks::linux(4, 4096), Watermarks { low: 1, high: 2 });
    }

    /// The kernel's numbers: `nr = 128 - 16 + 1` and `nr = 128 - 16 - 8 - 1`.
    #[test]
    fn a_queue_is_congested_from_113_to_103_writes() {
        assert_eq!((CONGESTED, CLEARED), (113, 103));
    }

    /// Of 4,096 frames the looks end at 1, 3, 7, 15 and 31 pages: the first sleep is after the fourth.
    #[test]
    fn a_search_sleeps_after_the_fourth_look_and_each_one_after() {
        let sleeps = |looked, more| naps(4096, looked, more, 33);
        assert!(!sleeps(0, 14) && sleeps(0, 15) && sleeps(14, 1) && !sleeps(15, 15) && sleeps(15, 16));
        assert!(!naps(4096, 0, 15, 32), "it waits for writes only if there are some");
    }
}
