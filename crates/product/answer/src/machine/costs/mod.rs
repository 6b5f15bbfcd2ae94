//! This machine as a device.
//!
//! Measures what paging costs a program on this machine: a pager in this process causes each event, and the thread
//! that waits for the event times it.
//!
//! Each number is the wall time of a stretch of accesses, minus the time of as many accesses to plain memory, divided
//! by the events that the pager counted in the stretch. [`measure`] takes some seconds. Nothing else should use the
//! pager's folder meanwhile. `run/rights` finds out whether a pager can work here at all.

use std::path::Path;
use std::time::{Duration, Instant};

use coldframe_core::Ps;
use coldframe_live::{LiveError, PAGE};
use coldframe_sheet::here::Here;
use coldframe_sheet::sheet::machine::{Latency, Spread};

use stretch::{less, more, spread};

mod disk;
mod paged;
mod stretch;
mod swap;

pub use swap::{swap_costs, swap_is_compressed, SwapCosts};

/// How long to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// About five seconds on a solid-state disk.
    Whole,
    /// At most a second, with numbers that vary more: for tests.
    Short,
}

/// Sizes in pages, and durations.
#[derive(Clone, Copy, Debug)]
struct Dimensions {
    /// RAM, for measurements in which pages must leave.
    frames: usize,
    /// Memory that is touched: four times the RAM.
    pages: usize,
    /// How often each of the pager's events is measured, in turn, so that a disturbance affects only one of several
    /// rounds.
    rounds: u64,
    /// The longest that one kind of event is measured in a round.
    longest: Duration,
}

impl Dimensions {
    fn new(extent: Extent) -> Dimensions {
        let (frames, rounds, most_ms) = match extent {
            Extent::Whole => (2048, 3, 200),
            Extent::Short => (512, 1, 60),
        };
        Dimensions { frames, pages: 4 * frames, rounds, longest: Duration::from_millis(most_ms) }
    }
}

/// Free bytes that the swap folder needs: the file that is measured, the log of the paged memory, and the room that
/// the log reserves ahead.
pub const ROOM: u64 = 160 << 20;

/// What was measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostTable {
    /// The cost of each event that the answer's prices need.
    pub here: Here,
    /// The first touch of a page without the pager for each 4 KiB, with huge pages as the kernel has them set.
    pub zero_fill_huge: Spread,
    /// The extra time of a fault that waits for the device, if a dirty page is evicted instead of a clean one.
    pub evict_dirty_read: Spread,
    /// The copy of a loaded page from its buffer into place, as the pager counts it.
    pub transfer: Ps,
    /// The times of the device alone, by their key in a sheet. Reads are of one page at random places, with so many in
    /// flight; writes are of so many pages. Without io_uring there is one read in flight only.
    pub disk: Vec<(&'static str, Latency)>,
}

impl CostTable {
    /// Each event with its key in a sheet.
    pub fn events(&self) -> Vec<(&'static str, Spread)> {
        let more = [("zero_fill_huge", self.zero_fill_huge), ("evict_dirty_read", self.evict_dirty_read)];
        [self.here.all(), more.into()].concat()
    }

    /// The device's times of this kind, which is always measured.
    ///
    /// # Panics
    /// If there is no such kind.
    pub fn disk(&self, kind: &str) -> Latency {
        self.disk.iter().find(|(known, _)| *known == kind).expect("it is measured").1
    }
}

/// Measures this machine with a swap file in `backing`. Before each part, calls `step` with the number of finished
/// parts and of all parts.
pub fn measure(backing: &Path, extent: Extent, step: &mut dyn FnMut(u64, u64)) -> Result<CostTable, LiveError> {
    let course = Dimensions::new(extent);
    let parts = course.rounds + 1;
    step(0, parts);
    let disk = disk::measure(backing, course)?;
    let mut timings = paged::Timings::default();
    for round in 1..=course.rounds {
        step(round, parts);
        paged::round(&mut timings, backing, course)?;
    }
    // Under load, time may run out before an event happened.
    for _ in 0..MORE_ROUNDS {
        if costs(&timings, &disk).is_none() {
            paged::round(&mut timings, backing, course)?;
        }
    }
    step(parts, parts);
    costs(&timings, &disk).ok_or_else(|| LiveError::Backing {
        path: backing.to_path_buf(),
        reason: "the events to be measured could not be provoked; try again when the machine has less to do".into(),
    })
}

/// A page read from the disk of a folder at a random place: what can be measured without any right. It takes some
/// tenths of a second.
pub fn page_read(backing: &Path) -> Result<Spread, LiveError> {
    disk::page_read(backing, Dimensions::new(Extent::Short))
}

/// Rounds at most that follow while an event is missing. A guess: one round has missed one at a load of 2.4 on two
/// processors.
const MORE_ROUNDS: u64 = 10;

fn costs(timings: &paged::Timings, disk: &[(&'static str, Latency)]) -> Option<CostTable> {
    let (evict_clean, false_fault) =
        (more(&timings.zeros_in_clean_out, &timings.zeros_read)?, spread(&timings.unmapped)?);
    // If no page came from the log's buffers, another event without the device is taken.
    let memory = spread(&timings.from_memory).map(|spread| less(spread, evict_clean.mean));
    let here = Here {
        zero_fill_native: spread(&timings.native)?,
        zero_fill: spread(&timings.zeros_in_blocks)?,
        device_fault: spread(&timings.random_read)?,
        read_ahead: spread(&timings.sequential_read)?,
        memory_fault: memory.or_else(|| spread(&timings.zeros_read))?,
        false_fault,
        first_write: spread(&timings.first_write)?,
        evict_clean,
        evict_dirty: more(&timings.zeros_in_dirty_out, &timings.zeros_written)?,
        // The recorder's window moves a page out and back in the same way as the invalid list.
        entry: false_fault,
    };
    Some(CostTable {
        here,
        zero_fill_huge: spread(&timings.native_huge)?,
        evict_dirty_read: more(&timings.random_write, &timings.random_read)?,
        transfer: Ps(timings.copies_ns * 1000 / timings.copies.max(1)).max(SHORTEST),
        disk: disk.into(),
    })
}

/// The day, in universal time, as `2026-11-22`.
pub fn today() -> String {
    // SAFETY: zero is a value of the structure; both live through the calls.
    let day = unsafe {
        let (now, mut day) = (libc::time(std::ptr::null_mut()), std::mem::zeroed::<libc::tm>());
        libc::gmtime_r(&now, &mut day);
        day
    };
    format!("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday)
}

/// The smallest value of a difference of two measurements.
const SHORTEST: Ps = Ps(1_000);

/// Nanoseconds since then.
fn ns(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

/// The bytes of this many pages.
fn bytes(pages: usize) -> usize {
    pages * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_calibration_gives_every_number_in_order_of_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = Vec::new();
        let costs = measure(folder.path(), Extent::Short, &mut |done, all| steps.push((done, all))).unwrap();
        for (name, sample) in costs.events() {
            assert!(
                Ps::ZERO < sample.low && sample.low <= sample.mean && sample.mean <= sample.high,
                "{name}: {sample:?}"
            );
        }
        for (name, latency) in &costs.disk {
            assert!(Ps::ZERO < latency.p50 && latency.p50 <= latency.p99, "{name}: {latency:?}");
            assert!(Ps::ZERO < latency.per_page && Ps::ZERO < latency.mean, "{name}: {latency:?}");
        }
        assert_eq!((steps.first(), steps.last()), (Some(&(0, 2)), Some(&(2, 2))));
        assert!(
            costs.here.device_fault.mean > costs.here.zero_fill_native.mean,
            "a device is slower than the kernel's zeros"
        );
    }

    #[test]
    fn a_folder_that_is_none_is_refused_by_name() {
        let error = measure(Path::new("/nowhere/at/all"), Extent::Short, &mut |_, _| {}).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
        assert_eq!(error.code(), 5);
    }
}
