//! The statistics: a page of atomic counters in a memfd. Another process (`coldframe run`, `coldframe top`) can read
//! them while the program runs and after it has ended. A program's children add to the same counters.

pub mod file;
pub mod shares;

use std::sync::atomic::{AtomicU64, AtomicU8, Ordering::Relaxed};

use coldframe_core::Stage;
use coldframe_recording::plan::Measured;
use serde::{Deserialize, Serialize};

use crate::sys::fatal::Mail;
use crate::Wait;
use shares::Shares;

/// Buckets of a histogram: 8 for each power of two of nanoseconds, up to about 16 s.
const BUCKETS: usize = 256;

/// A histogram of times in nanoseconds. A value is known to within 12.5 %.
#[repr(C)]
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

/// Times below 8 ns have one bucket each. Above, the three bits after the leading one choose among 8.
fn bucket(ns: u64) -> usize {
    if ns < 8 {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros() as usize;
    let fine = (ns >> (power - 3)) as usize & 7;
    ((power - 2) * 8 + fine).min(BUCKETS - 1)
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let (power, fine) = (bucket / 8 + 2, bucket as u64 % 8);
    ((8 + fine) << (power - 3)) + (1 << (power - 3)) / 2
}

impl Histogram {
    /// Counts one time.
    pub fn record(&self, ns: u64) {
        self.buckets[bucket(ns)].fetch_add(1, Relaxed);
        self.sum.fetch_add(ns, Relaxed);
        self.max.fetch_max(ns, Relaxed);
    }

    /// The present content, in short.
    pub fn summary(&self) -> Times {
        let buckets: Vec<u64> = self.buckets.iter().map(read).collect();
        let count: u64 = buckets.iter().sum();
        let quantile = |q: f64| {
            let rank = ((count as f64 * q).ceil() as u64).max(1);
            let mut count = 0;
            let bucket = buckets.iter().position(|n| {
                count += n;
                count >= rank
            });
            bucket.map_or(0, middle)
        };
        Times {
            count,
            mean_ns: read(&self.sum).checked_div(count).unwrap_or(0),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: read(&self.max),
        }
    }
}

/// A counter's value. Any program of a run may write to the counters; with no value does a sum or product overflow.
fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed).min(1 << 50)
}

/// A histogram in short. All zero if nothing was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Times {
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Median, to within 12.5 %.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The longest, exactly.
    pub max_ns: u64,
}

macro_rules! statistics {
    (counters { $($(#[$cdoc:meta])* $counter:ident,)* } histograms { $($(#[$hdoc:meta])* $histogram:ident,)* }) => {
        /// The counters. Sums over all processes of a run.
        #[repr(C)]
        #[derive(Debug)]
        pub struct Stats {
            /// [`Stats::MAGIC`] when the page is in use.
            pub magic: AtomicU64,
            /// Not 0 while who has started the run keeps the processors awake.
            pub awake: AtomicU64,
            $($(#[$cdoc])* pub $counter: AtomicU64,)*
            $($(#[$hdoc])* pub $histogram: Histogram,)*
            /// What was measured and decided at the start: a [`Chosen`] as JSON, with zeros behind it.
            pub chosen: [AtomicU8; 512],
            /// From processes without stderr.
            pub mail: Mail,
            /// The frames of each process, where all have one budget.
            pub shares: Shares,
        }

        /// The statistics at one moment.
        #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
        pub struct Snapshot {
            $($(#[$cdoc])* pub $counter: u64,)*
            $($(#[$hdoc])* pub $histogram: Times,)*
        }

        impl Stats {
    /// The measurements of an earlier program that keeps the same statistics: this process was that program, or was
    /// started by it. Otherwise a shell's commands would measure again, each time.
    pub fn measured(&self) -> Option<Measured> {
        let (read_ns, step_ns) = (self.device_read_ns.load(Relaxed), self.walk_step_ns.load(Relaxed));
        let measured = 1..1 << 36; // less than a minute or so
        (measured.contains(&read_ns) && measured.contains(&step_ns)).then_some(Measured { read_ns, step_ns })
    }

            /// Their values now.
            pub fn snapshot(&self) -> Snapshot {
                let mut snapshot = Snapshot {
                    $($counter: read(&self.$counter),)*
                    $($histogram: self.$histogram.summary(),)*
                };
                if self.shares.are_used() {
                    snapshot.frames = self.shares.sum() as u64;
                }
                snapshot
            }
        }

        impl Snapshot {
            /// Each counter with its name, in order.
            pub fn counters(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($counter), self.$counter),)*]
            }

            /// Each histogram with its name, in order.
            pub fn histograms(&self) -> Vec<(&'static str, Times)> {
                vec![$((stringify!($histogram), self.$histogram),)*]
            }
        }
    };
}

statistics! {
    counters {
        /// Processes that page now.
        processes,
        /// Frames of RAM of all processes that page now.
        frames,
        /// Pages in RAM now, including those on the invalid list.
        resident,
        /// The largest `resident` of any one process so far. Until memory is watched, all that it may touch counts.
        resident_max,
        /// The largest sum of `resident` over all processes at one time. A page that a forked child has from its parent
        /// counts for both.
        together_max,
        /// Pages of managed address space in use now.
        managed,
        /// Pages pinned now.
        pinned,
        /// Faults on pages that had to be brought into RAM, including cold ones.
        true_faults,
        /// True faults on pages without content: filled with zeros, no device.
        cold_faults,
        /// Pages without content that came in beside the pages of those faults.
        first_touch_neighbours,
        /// Faults on pages in RAM that were not mapped.
        false_faults,
        /// First writes to pages mapped read-only.
        write_faults,
        /// Faults that another thread had resolved already.
        stale_faults,
        /// Pages that left RAM.
        evictions,
        /// Of those, pages that were written to, or may have been.
        dirty_evictions,
        /// Of those, pages with unchanged bytes, which were not written.
        writes_saved,
        /// Pages that left although they may be in use: the search's budget was spent.
        forced_evictions,
        /// Pages that were copied out of slow memory since they are used often.
        promotions,
        /// Pages of slow memory that became writable there, since copies for writes took too long.
        in_place,
        /// Pages written to the swap file.
        pages_written,
        /// Writes to the device; one write of the log holds up to 32 pages.
        device_writes,
        /// Bytes of these writes.
        device_bytes_written,
        /// Reads from the device.
        device_reads,
        /// Bytes of these reads.
        device_bytes_read,
        /// Loads served from the log's buffer in RAM.
        log_hits,
        /// Pages that were prefetched; no thread waited for them.
        prefetches,
        /// Prefetches that were dropped for lack of a ticket or a frame.
        prefetches_dropped,
        /// Calls that removed pages from the page table, each with one flush of the TLB.
        flushes,
        /// Pages set aside, to see whether they are used before they leave; those that were moved took a flush each.
        set_aside,
        /// Frames examined in all searches.
        walk_sum,
        /// Transfers that the device refused.
        failures,
        /// Tasks stopped because their page was lost.
        halts,
        /// Forks.
        forks,
        /// With a swap area of the engine: pages programmed from RAM.
        swap_programs,
        /// Pages that collections copied out of their victims.
        swap_copies,
        /// Blocks erased.
        swap_erases,
        /// Collections.
        swap_collections,
        /// Pages for which the area had no room; they were written outside of it.
        swap_full,
        /// The fewest erases of a block of the area, in the process that erased last.
        block_erases_min,
        /// The most erases of a block of an area.
        block_erases_max,
        /// Nanoseconds of victim search and eviction in faults that waited for the device.
        evict_ns,
        /// Of those, nanoseconds after the page had arrived: not hidden by the device.
        evict_exposed_ns,
        /// Nanoseconds of stage PreProcess: from the handler's first instruction to the engine's first command.
        pre_process_ns,
        /// Stage GetFreeframe.
        get_freeframe_ns,
        /// Stage LoadStopover.
        load_stopover_ns,
        /// Stage TransHostMem and UpdateMMU: one system call copies the page and maps it.
        trans_host_mem_ns,
        /// Stage PostProcess.
        post_process_ns,
        /// Measured at the start: a read of one page from the device, median.
        device_read_ns,
        /// Measured at the start: one step of a walk that clears an emulated reference bit.
        walk_step_ns,
    }
    histograms {
        /// True faults that waited for the device, from the handler's first instruction to its last.
        device_fault,
        /// True faults without device: zero-filled pages and pages in the log's buffer.
        memory_fault,
        /// False faults.
        false_fault,
        /// Write faults.
        write_fault,
        /// The wait for the device alone, from submission.
        device_wait,
    }
}

/// The choices of a pager at its start, from its measurements.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Chosen {
    /// The policy with all its parameters.
    pub policy: String,
    /// How it waits for the device.
    pub wait: Wait,
    /// Victims that are evicted together.
    pub evict_batch: u32,
}

impl Stats {
    pub(crate) fn set_chosen(&self, chosen: &Chosen) {
        let text = serde_json::to_string(chosen).expect("plain data has a JSON form");
        for (place, byte) in self.chosen.iter().zip(text.bytes().chain([0])) {
            place.store(byte, Relaxed);
        }
    }

    /// The choices made at the start; `None` before that.
    pub fn chosen(&self) -> Option<Chosen> {
        let bytes: Vec<u8> = self.chosen.iter().map(|b| b.load(Relaxed)).take_while(|b| *b != 0).collect();
        serde_json::from_slice(&bytes).ok().filter(|chosen: &Chosen| !chosen.policy.contains(char::is_control))
    }

    /// Whether the processors are kept awake. Then a thread need not poll: it wakes at once.
    pub(crate) fn are_awake(&self) -> bool {
        self.awake.load(Relaxed) != 0
    }

    /// The value of `magic`.
    pub const MAGIC: u64 = 0x636f_6c64_6672_6d32;
    /// Bytes of the page.
    pub const BYTES: usize = std::mem::size_of::<Stats>().next_multiple_of(4096);
    /// The name of its memfd, by which `coldframe top` finds it.
    pub const NAME: &'static str = "coldframe-stats";

    pub(crate) fn stages(&self) -> [(Stage, &AtomicU64); 5] {
        [
            (Stage::PreProcess, &self.pre_process_ns),
            (Stage::GetFreeframe, &self.get_freeframe_ns),
            (Stage::LoadStopover, &self.load_stopover_ns),
            (Stage::TransHostMem, &self.trans_host_mem_ns),
            (Stage::PostProcess, &self.post_process_ns),
        ]
    }

    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }

    pub(crate) fn sub(counter: &AtomicU64, n: u64) {
        counter.fetch_sub(n, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_counter_overflows() {
        // SAFETY: all are numbers.
        let stats: Stats = unsafe { std::mem::transmute([0xff_u8; size_of::<Stats>()]) };
        let Snapshot { resident, device_fault, .. } = stats.snapshot();
        assert!(resident.checked_mul(4096).is_some() && device_fault.p50_ns > 0 && stats.chosen().is_none());
    }

    #[test]
    fn a_time_comes_back_to_within_an_eighth() {
        for ns in [1, 7, 8, 9, 100, 1_000, 12_345, 1_000_000, 9_999_999_999u64] {
            let back = middle(bucket(ns));
            assert!(back.abs_diff(ns) * 8 <= ns.max(8), "{ns} came back as {back}");
        }
    }
}
