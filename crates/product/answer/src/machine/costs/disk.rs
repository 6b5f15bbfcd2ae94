//! Times the device alone: direct reads and writes of a file like the pager's, one at a time and several in flight.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use coldframe_core::Ps;
use io_uring::{opcode, types, IoUring};

use coldframe_live::{swap_file, LiveError, PAGE};
use coldframe_recording::plan::SEGMENT;
use coldframe_sheet::sheet::machine::{Latency, Spread};

use super::stretch::{self, Plain};
use super::{bytes, ns, Dimensions, SHORTEST};

/// The most requests in flight.
const DEPTH_MAX: usize = 16;
/// Pages of the longest write: a segment of the log.
const LONG: usize = SEGMENT;
/// Fewer requests say nothing about the slowest of a hundred.
const REQUESTS_MIN: usize = 100;
/// More are not needed.
const REQUESTS_MAX: usize = 4000;

/// A file like the pager's, with content, and memory for its transfers.
struct Transfers {
    file: File,
    memory: Plain,
    course: Dimensions,
    random: fastrand::Rng,
}

impl Transfers {
    fn new(backing: &Path, course: Dimensions) -> Result<Transfers, LiveError> {
        let file = swap_file(backing)?;
        let memory = Plain::new(bytes(LONG + DEPTH_MAX), true).map_err(|e| refused(backing, &e))?;
        Ok(Transfers { file, memory, course, random: fastrand::Rng::with_seed(6) })
    }
}

/// Measures all kinds of requests.
pub fn measure(backing: &Path, course: Dimensions) -> Result<Vec<(&'static str, Latency)>, LiveError> {
    Transfers::new(backing, course)?.latencies().map_err(|e| refused(backing, &e))
}

/// A page read from the device at a random place, one at a time.
pub fn page_read(backing: &Path, course: Dimensions) -> Result<Spread, LiveError> {
    let mut transfers = Transfers::new(backing, course)?;
    let times = transfers.writes(LONG).and_then(|_| transfers.times_of_reads()).map_err(|e| refused(backing, &e))?;
    let mean = |few: &[u64]| few.iter().sum::<u64>() as f64 / few.len() as f64;
    Ok(stretch::spread(&times.chunks(TOGETHER).map(mean).collect::<Vec<_>>()).expect("there are always some"))
}

/// Reads whose mean is one value of a sample.
const TOGETHER: usize = 16;

fn refused(backing: &Path, error: &io::Error) -> LiveError {
    LiveError::Backing {
        path: backing.to_path_buf(),
        reason: format!("cannot be written and read: {error}; give another folder with --backing"),
    }
}

impl Transfers {
    /// The long writes come first: they fill the file.
    fn latencies(&mut self) -> io::Result<Vec<(&'static str, Latency)>> {
        let random = &mut self.random;
        self.memory.bytes().fill_with(|| random.u8(..));
        let mut latencies = vec![("write_32", self.writes(LONG)?), ("read_1", self.reads()?)];
        for (kind, depth) in [("read_4", 4), ("read_16", DEPTH_MAX)] {
            latencies.extend(self.reads_together(depth)?.map(|latency| (kind, latency)));
        }
        latencies.extend([("write_1", self.writes(1)?), ("write_8", self.writes(8)?)]);
        Ok(latencies)
    }

    fn goes_on(&self, done: usize, began: Instant) -> bool {
        done < REQUESTS_MIN || (done < REQUESTS_MAX && began.elapsed() < self.course.longest)
    }

    /// A random place: a multiple of `pages` pages.
    fn place(&mut self, pages: usize) -> u64 {
        bytes(self.random.usize(..self.course.pages / pages) * pages) as u64
    }

    /// Writes of `pages` pages each. The longest writes go in order, first over the whole file; the others go to
    /// random places.
    fn writes(&mut self, pages: usize) -> io::Result<Latency> {
        let (mut times, began, whole) = (Vec::new(), Instant::now(), self.course.pages / pages);
        while (pages == LONG && times.len() < whole) || self.goes_on(times.len(), began) {
            let place = if pages == LONG { bytes(times.len() % whole * pages) as u64 } else { self.place(pages) };
            let before = Instant::now();
            self.file.write_all_at(&self.memory.bytes()[..bytes(pages)], place)?;
            times.push(ns(before));
        }
        Ok(latency(&mut times, ns(began), pages))
    }

    fn reads(&mut self) -> io::Result<Latency> {
        let began = Instant::now();
        let mut times = self.times_of_reads()?;
        Ok(latency(&mut times, ns(began), 1))
    }

    fn times_of_reads(&mut self) -> io::Result<Vec<u64>> {
        let (mut times, began) = (Vec::new(), Instant::now());
        while self.goes_on(times.len(), began) {
            let place = self.place(1);
            let before = Instant::now();
            self.file.read_exact_at(&mut self.memory.bytes()[..PAGE], place)?;
            times.push(ns(before));
        }
        Ok(times)
    }

    /// Reads with `depth` in flight: each completed read is followed by another one.
    fn reads_together(&mut self, depth: usize) -> io::Result<Option<Latency>> {
        let Ok(mut ring) = IoUring::new(DEPTH_MAX as u32) else { return Ok(None) };
        let (mut times, began) = (Vec::new(), Instant::now());
        let mut requested_at = [began; DEPTH_MAX];
        let memory = self.memory.bytes().as_mut_ptr();
        let mut free: Vec<usize> = (0..depth).collect();
        let mut failed = None;
        while (failed.is_none() && self.goes_on(times.len(), began)) || free.len() < depth {
            if failed.is_none() && self.goes_on(times.len(), began) {
                for number in free.drain(..) {
                    let into = memory.wrapping_add(bytes(LONG + number));
                    let place = bytes(self.random.usize(..self.course.pages)) as u64;
                    let read = opcode::Read::new(types::Fd(self.file.as_raw_fd()), into, PAGE as u32).offset(place);
                    requested_at[number] = Instant::now();
                    // SAFETY: each number has a page of its own, and is free only after its completion.
                    let pushed = unsafe { ring.submission().push(&read.build().user_data(number as u64)) };
                    pushed.expect("there are as many entries as reads");
                }
            }
            match ring.submit_and_wait(1) {
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                // A filter of system calls; no request was sent.
                Err(_) if times.is_empty() => return Ok(None),
                Err(e) => return Err(e),
                Ok(_) => {}
            }
            for entry in ring.completion() {
                let number = entry.user_data() as usize;
                times.push(ns(requested_at[number]));
                free.push(number);
                if entry.result() != PAGE as i32 {
                    failed = Some(io::Error::from_raw_os_error((-entry.result()).max(libc::EIO)));
                }
            }
        }
        failed.map_or(Ok(()), Err)?;
        Ok(Some(latency(&mut times, ns(began), 1)))
    }
}

fn latency(times: &mut [u64], all_ns: u64, pages: usize) -> Latency {
    times.sort_unstable();
    let ps = |ns: u64| Ps(ns * 1000).max(SHORTEST);
    let sum: u64 = times.iter().sum();
    let each = |ns: u64, n: usize| Ps(ns * 1000 / n as u64).max(SHORTEST);
    Latency {
        p50: ps(times[times.len() / 2]),
        mean: each(sum, times.len()),
        p99: ps(times[times.len() * 99 / 100]),
        per_page: each(all_ns, times.len() * pages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_of_all_requests_and_a_page_of_all_time() {
        let mut times: Vec<u64> = (1..=100).rev().collect();
        let measured = latency(&mut times, 8_000, 8);
        assert_eq!((measured.p50, measured.mean, measured.p99), (Ps(51_000), Ps(50_500), Ps(100_000)));
        assert_eq!(measured.per_page, Ps(10_000));
    }
}
