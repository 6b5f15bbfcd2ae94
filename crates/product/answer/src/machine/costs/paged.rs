//! The events of a pager. Each string of accesses causes only one kind of event.
//!
//! ```text
//!   roomy    RAM for all        read zeros, write to them, write zeros     first write
//!   blocks   RAM for all        write zeros, which come in blocks          zero fill
//!   tight    RAM for a quarter  read zeros, write zeros, read in order,    what leaves beside zeros, clean and
//!                               read shuffled, write shuffled              written; read-ahead; device fault; what
//!                                                                          leaves beside a load
//!   memory   the log's buffers  write some, read others, read those again  memory fault
//!   unmapped RAM for all        go round more pages than the valid list    false fault
//! ```

use std::io;
use std::path::Path;
use std::time::Instant;

use coldframe_live::{LiveError, Options, Pager, Region, Snapshot, FRAMES_MIN};
use coldframe_recording::plan::{LOG_BUFFERS, SEGMENT};

use super::stretch::{plain, Ground, Plain, Touch};
use super::{bytes, Dimensions};

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
pub struct Timings {
    pub native: Vec<f64>,
    pub native_huge: Vec<f64>,
    pub zeros_read: Vec<f64>,
    pub zeros_written: Vec<f64>,
    pub zeros_in_blocks: Vec<f64>,
    pub first_write: Vec<f64>,
    pub zeros_in_clean_out: Vec<f64>,
    pub zeros_in_dirty_out: Vec<f64>,
    pub sequential_read: Vec<f64>,
    pub random_read: Vec<f64>,
    pub random_write: Vec<f64>,
    pub from_memory: Vec<f64>,
    pub unmapped: Vec<f64>,
    /// Copies of a loaded page into place, and the nanoseconds of all.
    pub copies: u64,
    pub copies_ns: u64,
}

/// One round of all measurements.
pub fn round(timings: &mut Timings, backing: &Path, course: Dimensions) -> Result<(), LiveError> {
    native(timings, course)?;
    roomy(timings, backing, course)?;
    tight(timings, backing, course)?;
    from_memory(timings, backing, course)?;
    unmapped(timings, backing, course)
}

/// A counter of the pager.
type EventCounter = fn(&Snapshot) -> u64;

const TRUE_FAULTS: EventCounter = |stats| stats.true_faults;

/// A pager like that of `run`, and its memory.
struct PagerBench {
    ground: Ground,
    region: Region,
    course: Dimensions,
}

fn no_memory(error: io::Error) -> LiveError {
    LiveError::Os { what: "memory to measure with", error }
}

impl PagerBench {
    fn new(backing: &Path, course: Dimensions, frames: usize, policy: Option<&str>) -> Result<PagerBench, LiveError> {
        let options = Options {
            policy: policy.map(Into::into),
            max_memory: MEMORY,
            backing: backing.to_path_buf(),
            first_touches_in_blocks: false,
            ..Options::new(bytes(frames) as u64)
        };
        PagerBench::with_options(options, course)
    }

    fn with_options(options: Options, course: Dimensions) -> Result<PagerBench, LiveError> {
        let pager = Pager::start(options)?;
        let region = pager.anonymous(bytes(course.pages))?;
        // SAFETY: the region's own memory, which lives beside it and is used by no other thread.
        let ground = unsafe { Ground::new(region.as_ptr() as usize, course.pages, &mut fastrand::Rng::with_seed(2)) };
        let ground = ground.knowing(plain(course.pages).map_err(no_memory)?);
        Ok(PagerBench { ground, region, course })
    }

    fn measure(
        &mut self,
        pages: impl IntoIterator<Item = usize>,
        touch: Touch,
        len: usize,
        counters: &[EventCounter],
    ) -> Vec<f64> {
        let events = || {
            let stats = self.region.pager().stats();
            counters.iter().map(|counter| counter(&stats)).sum()
        };
        self.ground.stretches(pages, touch, (len, self.course.longest), &events)
    }
}

/// First touches without a pager.
fn native(timings: &mut Timings, course: Dimensions) -> Result<(), LiveError> {
    for (huge, into) in [(false, &mut timings.native), (true, &mut timings.native_huge)] {
        let pages = 4 * course.pages;
        let memory = Plain::new(bytes(pages), huge).map_err(no_memory)?;
        let mut ground = memory.ground(&mut fastrand::Rng::with_seed(3));
        // Each access is an event.
        let events_so_far = std::cell::Cell::new(0);
        let events = || events_so_far.replace(events_so_far.get() + NATIVE as u64);
        into.extend(ground.stretches(0..pages, Touch::Write, (NATIVE, course.longest), &events));
    }
    Ok(())
}

/// No page has to leave.
fn roomy(timings: &mut Timings, backing: &Path, course: Dimensions) -> Result<(), LiveError> {
    // A quarter more than is used, since a reserve of frames stays free for faults.
    let mut bench = PagerBench::new(backing, course, course.pages + course.pages / 4, None)?;
    let half = course.pages / 2;
    timings.zeros_read.extend(bench.measure(0..half, Touch::Read, FAST, &[TRUE_FAULTS]));
    timings.first_write.extend(bench.measure(0..half, Touch::Write, FAST, &[|stats| stats.write_faults]));
    timings.zeros_written.extend(bench.measure(half..course.pages, Touch::Write, FAST, &[TRUE_FAULTS]));
    drop(bench);
    let ram = bytes(course.pages + course.pages / 4) as u64;
    let mut bench =
        PagerBench::with_options(Options { max_memory: MEMORY, backing: backing.into(), ..Options::new(ram) }, course)?;
    let came = [TRUE_FAULTS, |stats| stats.first_touch_neighbours];
    timings.zeros_in_blocks.extend(bench.measure(0..course.pages, Touch::Write, STREAM, &came));
    Ok(())
}

/// For each page that comes, another one leaves. Each string begins with as many untimed accesses as there are
/// frames. From then on, the evicted pages are those that the string itself brought in.
fn tight(timings: &mut Timings, backing: &Path, course: Dimensions) -> Result<(), LiveError> {
    let Dimensions { frames, pages, .. } = course;
    let mut bench = PagerBench::new(backing, course, frames, None)?;
    let random = || fastrand::Rng::with_seed(4);

    bench.ground.touch(0..frames, Touch::Read);
    timings.zeros_in_clean_out.extend(bench.measure(frames..pages, Touch::Read, FAST, &[TRUE_FAULTS]));

    bench.ground.touch(0..frames, Touch::Fill);
    timings.zeros_in_dirty_out.extend(bench.measure(frames..pages, Touch::Fill, FAST, &[TRUE_FAULTS]));
    // The pages that the time was too short for.
    bench.ground.touch(0..pages, Touch::Fill);

    bench.ground.touch(0..frames, Touch::Read);
    let round = (frames..3 * pages).map(|i| i % pages);
    let came = [TRUE_FAULTS, |stats| stats.prefetches];
    timings.sequential_read.extend(bench.measure(round, Touch::Read, STREAM, &came));

    let shuffled = bench.ground.shuffled(random());
    let before = bench.region.pager().stats();
    timings.random_read.extend(bench.measure(shuffled, Touch::Read, SLOW, &[TRUE_FAULTS]));
    let after = bench.region.pager().stats();
    timings.copies_ns += after.trans_host_mem_ns - before.trans_host_mem_ns;
    timings.copies += after.true_faults - before.true_faults;

    let mut shuffled = bench.ground.shuffled(random());
    bench.measure(shuffled.by_ref().take(frames), Touch::Fill, SLOW, &[TRUE_FAULTS]);
    timings.random_write.extend(bench.measure(shuffled, Touch::Fill, SLOW, &[TRUE_FAULTS]));
    Ok(())
}

/// Pages that were written lately and have left: half of what the log's buffers hold.
const WRITTEN: usize = LOG_BUFFERS * SEGMENT / 2;

/// Pages that come back from the log's buffers while clean pages are evicted.
fn from_memory(timings: &mut Timings, backing: &Path, course: Dimensions) -> Result<(), LiveError> {
    let frames = 2 * FRAMES_MIN + 2 * WRITTEN;
    let mut bench = PagerBench::new(backing, course, frames, Some("fifo"))?;
    // With gaps between them, so that nothing is read ahead.
    let mut written: Vec<usize> = (0..WRITTEN).map(|i| 3 * i).collect();
    fastrand::Rng::with_seed(5).shuffle(&mut written);
    let others = 3 * WRITTEN..3 * WRITTEN + frames + WRITTEN;
    let began = Instant::now();
    while began.elapsed() < course.longest {
        bench.ground.touch(written.iter().copied(), Touch::Fill);
        bench.ground.touch(others.clone(), Touch::Read);
        timings.from_memory.extend(bench.measure(
            written.iter().copied(),
            Touch::Read,
            WRITTEN,
            &[|stats| stats.log_hits],
        ));
    }
    Ok(())
}

/// More pages than the valid list has, in turn, with RAM for all of them: each page is on the invalid list when it is
/// touched again.
fn unmapped(timings: &mut Timings, backing: &Path, course: Dimensions) -> Result<(), LiveError> {
    let mut bench = PagerBench::new(backing, course, course.frames, Some("fifo-sc:valid=50%"))?;
    let round = course.frames * 3 / 4;
    bench.ground.touch((0..2 * round).map(|i| i % round), Touch::Write);
    let rounds = (0..16 * round).map(|i| i % round);
    timings.unmapped.extend(bench.measure(rounds, Touch::Read, FAST, &[|stats| stats.false_faults]));
    Ok(())
}
