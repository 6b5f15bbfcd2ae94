//! The events of a pager, each provoked by a string of accesses that does nothing else.
//!
//! ```text
//!   roomy    RAM for all        read zeros, write to them, write zeros      zero fill, first write
//!   tight    RAM for a quarter  read zeros, write zeros, read in order,     what leaves beside zeros, clean and written; read-ahead;
//!                               read shuffled, write shuffled               device fault; what leaves beside a load
//!   memory   the log's buffers  write some, read others, read those again   memory fault
//!   unmapped RAM for all        go round more pages than the valid list     false fault
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use coldframe_core::Ps;

use super::stretch::{plain, Ground, Plain, Sample, Touch};
use super::{bytes, Course, LEAST};
use crate::stats::Stats;
use crate::{LiveError, Options, Pager, Region};

/// Accesses of a stretch where a device answers, and where none does.
const SLOW: usize = 64;
const FAST: usize = 128;
/// Accesses of a stretch of a stream: several times what is read ahead.
const STREAM: usize = 512;
/// Accesses of a stretch of the kernel's own zeros: a huge page.
const NATIVE: usize = 512;

/// Address space for the pagers here.
const MEMORY: u64 = 1 << 30;

/// The kernel's own first touches.
pub struct Native {
    pub plain: Sample,
    pub huge: Sample,
}

/// With RAM for all.
pub struct Roomy {
    pub zeros_read: Sample,
    pub zeros_written: Sample,
    pub first_write: Sample,
}

/// With RAM for a quarter.
pub struct Tight {
    pub zeros_in_clean_out: Sample,
    pub zeros_in_dirty_out: Sample,
    pub sequential_read: Sample,
    pub random_read: Sample,
    pub random_write: Sample,
    /// A page from its buffer into place, on average.
    pub transfer: Ps,
}

/// A pager as `run` starts one, its memory, and what is counted.
struct Bench {
    ground: Ground,
    region: Region,
    stats: &'static Stats,
    most_ns: u64,
}

impl Bench {
    /// The pager's statistics outlive it: they are mapped for good.
    fn new(backing: &Path, course: Course, frames: usize, policy: Option<&str>) -> Result<Bench, LiveError> {
        let options = Options {
            policy: policy.map(Into::into),
            max_memory: MEMORY,
            backing: backing.to_path_buf(),
            ..Options::new(bytes(frames) as u64)
        };
        let pager = Pager::start(options)?;
        let region = pager.anonymous(bytes(course.pages))?;
        // SAFETY: the region's own memory, which lives beside it and is used by nobody else.
        let ground =
            unsafe { Ground::new(region.as_ptr() as usize, course.pages, &mut fastrand::Rng::with_seed(2)) };
        let ground = ground.knowing(plain(course.pages).map_err(|e| LiveError::os("memory to measure with", e))?);
        Ok(Bench { ground, region, stats: pager.inner.stats, most_ns: course.most_ns })
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

    /// What a string of accesses found out.
    fn sample(&self, stretches: Vec<f64>) -> Result<Sample, LiveError> {
        Sample::of(stretches).ok_or_else(|| LiveError::Setting {
            field: "backing",
            reason: format!(
                "the pager did not meet the events that are measured ({:?}); is another program at work on this folder?",
                self.region.pager()
            ),
        })
    }
}

/// First touches where nobody pages.
pub fn native(course: Course) -> Result<Native, LiveError> {
    let one = |huge: bool| -> Result<Sample, LiveError> {
        let pages = 4 * course.pages;
        let refused = |e| LiveError::os("memory to measure with", e);
        let memory = Plain::new(bytes(pages), huge).map_err(refused)?;
        let mut ground = memory.ground(&mut fastrand::Rng::with_seed(3));
        let all = std::cell::Cell::new(0);
        let events = || {
            all.set(all.get() + NATIVE as u64);
            all.get()
        };
        let stretches = ground.stretches(0..pages, Touch::Write, (NATIVE, course.most_ns), &events);
        Ok(Sample::of(stretches).unwrap_or_default())
    };
    Ok(Native { plain: one(false)?, huge: one(true)? })
}

/// Nothing has to leave.
pub fn roomy(backing: &Path, course: Course) -> Result<Roomy, LiveError> {
    // A quarter more than is used, since a reserve is kept free for faults.
    let mut bench = Bench::new(backing, course, course.pages + course.pages / 4, None)?;
    let (half, stats) = (course.pages / 2, bench.stats);
    let zeros_read = bench.measure(0..half, Touch::Read, FAST, &[&stats.true_faults]);
    let first_write = bench.measure(0..half, Touch::Write, FAST, &[&stats.write_faults]);
    let zeros_written = bench.measure(half..course.pages, Touch::Write, FAST, &[&stats.true_faults]);
    Ok(Roomy {
        zeros_read: bench.sample(zeros_read)?,
        zeros_written: bench.sample(zeros_written)?,
        first_write: bench.sample(first_write)?,
    })
}

/// For each page that comes another one leaves. Each string begins with as many accesses as there are frames, untimed, after which what leaves
/// is what the string has brought.
pub fn tight(backing: &Path, course: Course) -> Result<Tight, LiveError> {
    let Course { frames, pages, .. } = course;
    let mut bench = Bench::new(backing, course, frames, None)?;
    let (stats, random) = (bench.stats, || fastrand::Rng::with_seed(4));

    bench.ground.touch(0..frames, Touch::Read);
    let clean = bench.measure(frames..pages, Touch::Read, FAST, &[&stats.true_faults]);

    bench.ground.touch(0..frames, Touch::Fill);
    let dirty = bench.measure(frames..pages, Touch::Fill, FAST, &[&stats.true_faults]);
    // What the time did not reach for.
    bench.ground.touch(0..pages, Touch::Fill);

    bench.ground.touch(0..frames, Touch::Read);
    let round = (frames..3 * pages).map(|i| i % pages);
    let stream = bench.measure(round, Touch::Read, STREAM, &[&stats.true_faults, &stats.prefetches]);

    let shuffled = bench.ground.shuffled(random());
    let sums = || [&stats.trans_host_mem_ns, &stats.true_faults].map(|counter| counter.load(Relaxed));
    let before = sums();
    let read = bench.measure(shuffled, Touch::Read, SLOW, &[&stats.true_faults]);
    let [copies_ns, copies] = std::array::from_fn(|i| sums()[i] - before[i]);

    let mut shuffled = bench.ground.shuffled(random());
    bench.measure(shuffled.by_ref().take(frames), Touch::Fill, SLOW, &[&stats.true_faults]);
    let write = bench.measure(shuffled, Touch::Fill, SLOW, &[&stats.true_faults]);
    Ok(Tight {
        zeros_in_clean_out: bench.sample(clean)?,
        zeros_in_dirty_out: bench.sample(dirty)?,
        sequential_read: bench.sample(stream)?,
        random_read: bench.sample(read)?,
        random_write: bench.sample(write)?,
        transfer: Ps(copies_ns * 1000 / copies.max(1)).max(LEAST),
    })
}

/// Pages that were written lately and have left: half of what the log's buffers keep.
const WRITTEN: usize = crate::log::BUFFERS * crate::log::SEGMENT / 2;

/// Pages that come back from the log's buffers while clean ones leave. `None` if too few did.
pub fn from_memory(backing: &Path, course: Course) -> Result<Option<Sample>, LiveError> {
    let frames = 2 * crate::FRAMES_MIN + 2 * WRITTEN;
    let mut bench = Bench::new(backing, course, frames, Some("fifo"))?;
    // Apart from each other, so that nothing is read ahead.
    let mut written: Vec<usize> = (0..WRITTEN).map(|i| 3 * i).collect();
    fastrand::Rng::with_seed(5).shuffle(&mut written);
    let others = 3 * WRITTEN..3 * WRITTEN + frames + WRITTEN;
    let (mut all, began, stats) = (Vec::new(), crate::sys::now(), bench.stats);
    while all.len() < 3 || crate::sys::now() - began < course.most_ns {
        bench.ground.touch(written.iter().copied(), Touch::Fill);
        bench.ground.touch(others.clone(), Touch::Read);
        let found = bench.measure(written.iter().copied(), Touch::Read, WRITTEN, &[&stats.log_hits]);
        if found.is_empty() {
            return Ok(None);
        }
        all.extend(found);
    }
    Ok(Sample::of(all))
}

/// More pages than the valid list has, in turn, and RAM for all of them: each is on the invalid list when its turn comes.
pub fn unmapped(backing: &Path, course: Course) -> Result<Sample, LiveError> {
    let mut bench = Bench::new(backing, course, course.frames, Some("fifo-sc:valid=50%"))?;
    let round = course.frames * 3 / 4;
    bench.ground.touch((0..2 * round).map(|i| i % round), Touch::Write);
    let counters = [&bench.stats.false_faults];
    let stretches = bench.measure((0..16 * round).map(|i| i % round), Touch::Read, FAST, &counters);
    bench.sample(stretches)
}
