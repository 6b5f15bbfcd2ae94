//! The strings of page references for all peers, and the loop that runs them. The loop times each access, and checks
//! that the page is the right one and that no write of this thread was lost.

use std::time::Instant;

use coldframe_live::PAGE;
use serde::{Deserialize, Serialize};

/// A longer access counts as a fault.
pub const FAULT_NS: u64 = 1500;

/// A pattern of accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Workload {
    /// Reads; all pages are equally likely.
    Uniform,
    /// Reads, Zipf with exponent 0.99 over a random order of the pages.
    Zipf,
    /// Reads; one page after the other.
    Sequential,
    /// Zipf as above; 3 of 10 accesses are writes.
    Mixed,
}

pub const WORKLOADS: [Workload; 4] = [Workload::Uniform, Workload::Zipf, Workload::Sequential, Workload::Mixed];

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Workload::Uniform => "uniform read",
            Workload::Zipf => "Zipf 0.99 read",
            Workload::Sequential => "sequential read",
            Workload::Mixed => "Zipf 0.99 70/30",
        }
    }

    /// The accesses of one thread: the page times two, plus one for a write.
    pub fn string(self, pages: usize, len: usize, thread: usize) -> Vec<u32> {
        let mut random = fastrand::Rng::with_seed(7 + thread as u64);
        let skewed = Skewed::new(pages);
        let mut page = |i: usize| match self {
            Workload::Uniform => random.usize(..pages),
            Workload::Sequential => (i + thread * pages / 2) % pages,
            Workload::Zipf | Workload::Mixed => skewed.page(random.f64()),
        };
        let pages: Vec<usize> = (0..len).map(&mut page).collect();
        let write = |i: usize| u32::from(self == Workload::Mixed && i % 10 < 3);
        let mut order = fastrand::Rng::with_seed(99 + thread as u64);
        pages.iter().map(|page| (*page as u32) << 1 | write(order.usize(..10))).collect()
    }
}

/// Pages by Zipf's law: the share of the page with rank r is proportional to r to the power of -0.99.
struct Skewed {
    until: Vec<f64>,
    page: Vec<usize>,
}

impl Skewed {
    fn new(pages: usize) -> Skewed {
        let mut sum = 0.0;
        let shares = (1..=pages).map(|rank| {
            sum += (rank as f64).powf(-0.99);
            sum
        });
        let until: Vec<f64> = shares.collect();
        let mut page: Vec<usize> = (0..pages).collect();
        fastrand::Rng::with_seed(1).shuffle(&mut page);
        Skewed { until, page }
    }

    fn page(&self, chance: f64) -> usize {
        let at = chance * self.until.last().expect("there are pages");
        self.page[self.until.partition_point(|until| *until < at).min(self.page.len() - 1)]
    }
}

/// The first content of a page: its stamp, and bytes that do not compress.
pub fn content(page: usize) -> [u64; PAGE / 8] {
    let mut random = fastrand::Rng::with_seed(page as u64);
    let mut words = [0x0123_4567_89ab_cdef; PAGE / 8];
    words[64..192].fill_with(|| random.u64(..));
    words[..64].fill(0);
    words[0] = page as u64 + 1;
    words
}

/// The results of one thread.
#[derive(Default)]
pub struct Seen {
    pub seconds: f64,
    /// The nanoseconds of each access that was a fault.
    pub faults: Vec<u64>,
}

/// Drives one thread's string.
///
/// # Safety
/// `base` must hold `pages` pages with `content`, and only thread `thread` may write their word of that number.
pub unsafe fn drive(base: *mut u8, pages: usize, string: &[u32], thread: usize, written: &mut [u32]) -> Seen {
    assert_eq!(written.len(), pages);
    let mut measured = Seen { seconds: 0.0, faults: Vec::with_capacity(string.len()) };
    let start = Instant::now();
    for access in string {
        let page = (access >> 1) as usize;
        // SAFETY: words of a page of the region.
        let (stamp, own) = unsafe {
            let stamp = base.add(page * PAGE).cast::<u64>();
            (stamp, stamp.add(1 + thread))
        };
        let before = Instant::now();
        // SAFETY: as above; the own word is this thread's.
        let value = unsafe {
            if access & 1 == 1 {
                own.write_volatile(u64::from(written[page]) + 1);
            }
            stamp.read_volatile()
        };
        let took = before.elapsed().as_nanos() as u64;
        assert_eq!(value, page as u64 + 1, "page {page} holds another page's bytes");
        written[page] += access & 1;
        // SAFETY: as above.
        let kept = unsafe { own.read_volatile() };
        assert_eq!(kept, u64::from(written[page]), "a write to page {page} was lost");
        if took > FAULT_NS {
            measured.faults.push(took);
        }
    }
    measured.seconds = start.elapsed().as_secs_f64();
    measured
}
