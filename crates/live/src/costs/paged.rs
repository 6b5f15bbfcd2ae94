//! The events of a pager. Each string of accesses causes only one kind of event.
//!
//! ```text
//!   roomy    RAM for all        read zeros, write to them, write zeros      zero fill, first write
//!   tight    RAM for a quarter  read zeros, write zeros, read in order,     what leaves beside zeros, clean and written; read-ahead;
//!                               read shuffled, write shuffled               device fault; what leaves beside a load
//!   memory   the log's buffers  write some, read others, read those again   memory fault
//!   pool     RAM for half       write text, read shuffled                   page from compressed RAM
//!   unmapped RAM for all        go round more pages than the valid list     false fault
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::stretch::{plain, Ground, Plain, Touch};
use super::{bytes, Course};
use crate::stats::Stats;
use crate::{LiveError, Options, Pager, Region, Tier};

/// Accesses of a stretch where a device answers, and where none does.
const SLOW: usize = 64;
const FAST: usize = 128;
/// Accesses of a stretch of a stream: several times what is read ahead.
const STREAM: usize = 512;
/// Accesses of a stretch of the kernel's own zeros: a huge page.
const NATIVE: usize = 512;

/// Address space for the pagers here.
const MEMORY: u64 = 1 << 30;

/// Nanoseconds for each event: one value for each stretch, of each string of accesses.
#[derive(Default)]
pub struct Found {
    pub native: Vec<f64>,
    pub native_huge: Vec<f64>,
    pub zeros_read: Vec<f64>,
    pub zeros_written: Vec<f64>,
    pub first_write: Vec<f64>,
    pub zeros_in_clean_out: Vec<f64>,
    pub zeros_in_dirty_out: Vec<f64>,
    pub sequential_read: Vec<f64>,
    pub random_read: Vec<f64>,
    pub random_write: Vec<f64>,
    pub from_memory: Vec<f64>,
    pub from_pool: Vec<f64>,
    pub unmapped: Vec<f64>,
    /// Copies of a loaded page into place, and the nanoseconds of all.
    pub copies: u64,
    pub copies_ns: u64,
}

/// One round of all measurements.
pub fn round(found: &mut Found, backing: &Path, course: Course) -> Result<(), LiveError> {
    native(found, course)?;
    roomy(found, backing, course)?;
    tight(found, backing, course)?;
    from_memory(found, backing, course)?;
    from_pool(found, backing, course)?;
    unmapped(found, backing, course)
}

/// A pager like that of `run`, its memory, and its counters.
struct Bench {
    ground: Ground,
    _region: Region,
    stats: &'static Stats,
    most_ns: u64,
}

impl Bench {
    /// The pager's statistics outlive it: their mapping is never removed.
    fn new(backing: &Path, course: Course, frames: usize, policy: Option<&str>) -> Result<Bench, LiveError> {
        Bench::with_tier(backing, course, frames, (policy, Tier::None))
    }

    fn with_tier(
        backing: &Path,
        course: Course,
        frames: usize,
        (policy, tier): (Option<&str>, Tier),
    ) -> Result<Bench, LiveError> {
        let options = Options {
            policy: policy.map(Into::into),
            tier,
            max_memory: MEMORY,
            backing: backing.to_path_buf(),
            ..Options::new(bytes(frames) as u64)
        };
        let pager = Pager::start(options)?;
        let region = pager.anonymous(bytes(course.pages))?;
        // SAFETY: the region's own memory, which lives beside it and is used by no other thread.
        let ground = unsafe { Ground::new(region.as_ptr() as usize, course.pages, &mut fastrand::Rng::with_seed(2)) };
        let ground = ground.knowing(plain(course.pages).map_err(|e| LiveError::os("memory to measure with", e))?);
        Ok(Bench { ground, _region: region, stats: pager.inner.stats, most_ns: course.most_ns })
    }

    fn measure(
        &mut self,
        pages: impl IntoIterator<Item = usize>,
        touch: Touch,
        len: usize,
        counters: &[&AtomicU64],
    ) -> Vec<f64> {
        let events = || counters.iter().map(|counter| counter.load(Relaxed)).sum();
        self.ground.stretches(pages, touch, (len, self.most_ns), &events)
    }
}

/// First touches without a pager.
fn native(found: &mut Found, course: Course) -> Result<(), LiveError> {
    for (huge, into) in [(false, &mut found.native), (true, &mut found.native_huge)] {
        let pages = 4 * course.pages;
        let memory = Plain::new(bytes(pages), huge).map_err(|e| LiveError::os("memory to measure with", e))?;
        let mut ground = memory.ground(&mut fastrand::Rng::with_seed(3));
        // Each access is an event.
        let all = std::cell::Cell::new(0);
        let events = || all.replace(all.get() + NATIVE as u64);
        into.extend(ground.stretches(0..pages, Touch::Write, (NATIVE, course.most_ns), &events));
    }
    Ok(())
}

/// No page has to leave.
fn roomy(found: &mut Found, backing: &Path, course: Course) -> Result<(), LiveError> {
    // A quarter more than is used, since a reserve of frames stays free for faults.
    let mut bench = Bench::new(backing, course, course.pages + course.pages / 4, None)?;
    let (half, stats) = (course.pages / 2, bench.stats);
    found.zeros_read.extend(bench.measure(0..half, Touch::Read, FAST, &[&stats.true_faults]));
    found.first_write.extend(bench.measure(0..half, Touch::Write, FAST, &[&stats.write_faults]));
    found.zeros_written.extend(bench.measure(half..course.pages, Touch::Write, FAST, &[&stats.true_faults]));
    Ok(())
}

/// For each page that comes, another one leaves. Each string begins with as many untimed accesses as there are
/// frames. From then on, the evicted pages are those that the string itself brought in.
fn tight(found: &mut Found, backing: &Path, course: Course) -> Result<(), LiveError> {
    let Course { frames, pages, .. } = course;
    let mut bench = Bench::new(backing, course, frames, None)?;
    let (stats, random) = (bench.stats, || fastrand::Rng::with_seed(4));

    bench.ground.touch(0..frames, Touch::Read);
    found.zeros_in_clean_out.extend(bench.measure(frames..pages, Touch::Read, FAST, &[&stats.true_faults]));

    bench.ground.touch(0..frames, Touch::Fill);
    found.zeros_in_dirty_out.extend(bench.measure(frames..pages, Touch::Fill, FAST, &[&stats.true_faults]));
    // The pages that the time was too short for.
    bench.ground.touch(0..pages, Touch::Fill);

    bench.ground.touch(0..frames, Touch::Read);
    let round = (frames..3 * pages).map(|i| i % pages);
    let came = [&stats.true_faults, &stats.prefetches];
    found.sequential_read.extend(bench.measure(round, Touch::Read, STREAM, &came));

    let shuffled = bench.ground.shuffled(random());
    let sums = || [&stats.trans_host_mem_ns, &stats.true_faults].map(|counter| counter.load(Relaxed));
    let before = sums();
    found.random_read.extend(bench.measure(shuffled, Touch::Read, SLOW, &[&stats.true_faults]));
    found.copies_ns += sums()[0] - before[0];
    found.copies += sums()[1] - before[1];

    let mut shuffled = bench.ground.shuffled(random());
    bench.measure(shuffled.by_ref().take(frames), Touch::Fill, SLOW, &[&stats.true_faults]);
    found.random_write.extend(bench.measure(shuffled, Touch::Fill, SLOW, &[&stats.true_faults]));
    Ok(())
}

/// Pages that were written lately and have left: half of what the log's buffers hold.
const WRITTEN: usize = crate::log::BUFFERS * crate::log::SEGMENT / 2;

/// Pages that come back from the log's buffers while clean pages are evicted.
fn from_memory(found: &mut Found, backing: &Path, course: Course) -> Result<(), LiveError> {
    let frames = 2 * crate::FRAMES_MIN + 2 * WRITTEN;
    let mut bench = Bench::new(backing, course, frames, Some("fifo"))?;
    // With gaps between them, so that nothing is read ahead.
    let mut written: Vec<usize> = (0..WRITTEN).map(|i| 3 * i).collect();
    fastrand::Rng::with_seed(5).shuffle(&mut written);
    let others = 3 * WRITTEN..3 * WRITTEN + frames + WRITTEN;
    let (began, stats) = (crate::sys::now(), bench.stats);
    while crate::sys::now() - began < course.most_ns {
        bench.ground.touch(written.iter().copied(), Touch::Fill);
        bench.ground.touch(others.clone(), Touch::Read);
        found.from_memory.extend(bench.measure(written.iter().copied(), Touch::Read, WRITTEN, &[&stats.log_hits]));
    }
    Ok(())
}

/// Pages that come back from compressed RAM, while others go there: pages that compress well, in half of the RAM that
/// they need.
fn from_pool(found: &mut Found, backing: &Path, course: Course) -> Result<(), LiveError> {
    let pages = course.pages / 2;
    let small = Course { pages, ..course };
    let mut bench = Bench::with_tier(backing, small, course.frames, (None, Tier::Lz4))?;
    let stats = bench.stats;
    bench.ground.touch(0..pages, Touch::Text);
    let shuffled = bench.ground.shuffled(fastrand::Rng::with_seed(7));
    found.from_pool.extend(bench.measure(shuffled, Touch::Read, FAST, &[&stats.tier_loads]));
    Ok(())
}

/// More pages than the valid list has, in turn, with RAM for all of them: each page is on the invalid list when it is
/// touched again.
fn unmapped(found: &mut Found, backing: &Path, course: Course) -> Result<(), LiveError> {
    let mut bench = Bench::new(backing, course, course.frames, Some("fifo-sc:valid=50%"))?;
    let (round, stats) = (course.frames * 3 / 4, bench.stats);
    bench.ground.touch((0..2 * round).map(|i| i % round), Touch::Write);
    let rounds = (0..16 * round).map(|i| i % round);
    found.unmapped.extend(bench.measure(rounds, Touch::Read, FAST, &[&stats.false_faults]));
    Ok(())
}
