//! Which pages the threads of another process fault, in order: `perf_event_open(2)` on its page faults.
//!
//! Each thread has a ring of its own, which keeps its first faults: a full ring takes no more, and nobody has to read
//! it meanwhile. Threads that are born later are not seen. It takes root or `CAP_PERFMON`, or a
//! `kernel.perf_event_paranoid` of 2 or less for a process of one's own.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd};

use crate::process::Process;
use crate::PAGE;

/// `struct perf_event_attr` of include/uapi/linux/perf_event.h, as long as its first version.
#[repr(C)]
#[derive(Default)]
struct Event {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    breakpoint: u64,
}

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_PAGE_FAULTS`: minor ones, too, since a page that was fetched has no major
/// one.
const SOFTWARE: u32 = 1;
const PAGE_FAULTS: u64 = 2;
/// `PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR`: two numbers of a sample, in this order.
const TIME_AND_ADDRESS: u64 = 1 << 2 | 1 << 3;
/// `exclude_kernel`: what a user may ask for.
const NOT_KERNEL: u64 = 1 << 5;
/// `PERF_RECORD_SAMPLE`, and the bytes of a record's head.
const SAMPLE: u32 = 9;
const HEAD: usize = 8;
/// Pages of a ring, a power of two, behind the page that says how far it is filled: 5,461 faults.
const RING: usize = 32;
/// Where that page has it (`data_head`).
const FILLED: usize = 1024;
/// The most rings of a process: 8 MiB.
const RINGS_MAX: usize = 64;

/// The faults of a process from a moment on.
#[derive(Debug)]
pub struct Faults(Vec<Ring>);

impl Faults {
    /// Records those of the threads that it has now.
    ///
    /// # Errors
    /// The kernel does not allow it, or the process is gone.
    pub fn record(process: u32) -> Result<Faults> {
        let (mut rings, mut failed) = (Vec::new(), None);
        for thread in Process::of(process).threads().into_iter().take(RINGS_MAX) {
            match Ring::open(thread) {
                Ok(ring) => rings.push(ring),
                // The thread has ended, or this user's rings are full.
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if rings.is_empty() => Err(error),
            _ => Ok(Faults(rings)),
        }
    }

    /// The addresses of the pages so far, each once, in the order of their first faults.
    pub fn pages(&self) -> Vec<u64> {
        in_order(self.0.iter().flat_map(|ring| samples(ring.filled())).collect())
    }
}

fn in_order(mut samples: Vec<(u64, u64)>) -> Vec<u64> {
    samples.sort_by_key(|(time, _)| *time);
    let mut seen = HashSet::new();
    samples.into_iter().map(|(_, address)| address / PAGE * PAGE).filter(|page| seen.insert(*page)).collect()
}

/// Times and addresses of a ring's records. One that is no sample says that some are lost.
fn samples(mut bytes: &[u8]) -> Vec<(u64, u64)> {
    let mut samples = Vec::new();
    while let Some((head, _)) = bytes.split_at_checked(HEAD) {
        let (kind, len) =
            (u32::from_ne_bytes([head[0], head[1], head[2], head[3]]), u16::from_ne_bytes([head[6], head[7]]));
        let Some((record, rest)) = bytes.split_at_checked(usize::from(len).max(HEAD)) else { break };
        let number = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
        samples.extend((kind == SAMPLE).then(|| number(HEAD).zip(number(HEAD + 8))).flatten());
        bytes = rest;
    }
    samples
}

/// The faults of a thread, in memory that the kernel writes.
#[derive(Debug)]
struct Ring {
    _event: File,
    at: usize,
}

const LEN: usize = (1 + RING) * PAGE as usize;

impl Ring {
    fn open(thread: u32) -> Result<Ring> {
        let event = event(thread, 0).or_else(|_| event(thread, NOT_KERNEL))?;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), LEN, rights, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        match at {
            libc::MAP_FAILED => Err(Error::last_os_error()),
            at => Ok(Ring { _event: event, at: at as usize }),
        }
    }

    fn filled(&self) -> &[u8] {
        use std::sync::atomic::{AtomicU64, Ordering::Acquire};
        // SAFETY: the mapping lives as long as this; the kernel writes the number, and only behind the bytes that it
        // counts, since nobody tells it that any were read.
        unsafe {
            let filled = (*((self.at + FILLED) as *const AtomicU64)).load(Acquire) as usize;
            std::slice::from_raw_parts((self.at + PAGE as usize) as *const u8, filled.min(RING * PAGE as usize))
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: nothing borrows from it any more.
        unsafe { libc::munmap(self.at as *mut _, LEN) };
    }
}

fn event(thread: u32, flags: u64) -> Result<File> {
    let size = size_of::<Event>() as u32;
    let asked = (SOFTWARE, PAGE_FAULTS, 1, TIME_AND_ADDRESS);
    let (kind, config, period, sample_type) = asked;
    let event = Event { kind, size, config, period, sample_type, flags, ..Event::default() };
    // PERF_FLAG_FD_CLOEXEC; on any processor, in no group.
    // SAFETY: the structure lives through the call.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const event, thread, -1, -1, 8) };
    // SAFETY: a new descriptor, which nothing else has.
    if fd < 0 {
        Err(Error::last_os_error())
    } else {
        Ok(unsafe { File::from_raw_fd(fd as i32) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, numbers: &[u64]) -> Vec<u8> {
        let len = (HEAD + 8 * numbers.len()) as u16;
        let numbers = numbers.iter().flat_map(|number| number.to_ne_bytes());
        kind.to_ne_bytes().into_iter().chain([0, 0]).chain(len.to_ne_bytes()).chain(numbers).collect()
    }

    #[test]
    fn pages_come_once_in_the_order_of_time_over_all_threads() {
        let one = [record(SAMPLE, &[10, 0x5008]), record(2, &[7, 3]), record(SAMPLE, &[30, 0x5ff8])].concat();
        let other = [record(SAMPLE, &[20, 0x9000]), record(SAMPLE, &[5, 0x1001])].concat();
        let samples = [samples(&one), samples(&other)].concat();
        assert_eq!(in_order(samples), [0x1000, 0x5000, 0x9000]);
    }

    #[test]
    fn a_ring_that_ends_in_the_middle_of_a_record_or_has_nonsense_ends_there() {
        let whole = record(SAMPLE, &[1, 0x2000]);
        for cut in 0..whole.len() {
            assert_eq!(samples(&whole[..cut]), []);
        }
        assert_eq!(samples(&[whole, vec![0; 20]].concat()), [(1, 0x2000)]);
    }

    #[test]
    fn first_touches_of_this_process_are_recorded_backward_if_they_were_backward() {
        let own = std::process::id();
        let faults = match Faults::record(own) {
            Err(error) => return eprintln!("skipped: no faults are recorded here ({error})"),
            Ok(faults) => faults,
        };
        let len = 16 * PAGE as usize;
        // SAFETY: a new mapping, which nothing else knows.
        let start = unsafe {
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let map = libc::mmap(std::ptr::null_mut(), len, rights, kind, -1, 0);
            libc::madvise(map, len, libc::MADV_NOHUGEPAGE);
            for at in (0..len).step_by(PAGE as usize).rev() {
                map.cast::<u8>().add(at).write_volatile(1);
            }
            map as u64
        };
        let mut pages = faults.pages();
        pages.retain(|page| (start..start + len as u64).contains(page));
        let backward: Vec<u64> =
            (0..len as u64).step_by(PAGE as usize).map(|at| start + len as u64 - PAGE - at).collect();
        // The thread of this test may be one of the last of many.
        assert!(pages == backward || pages.is_empty() && Process::of(own).threads().len() > RINGS_MAX, "{pages:x?}");
        assert!(Faults::record(1 << 23).is_ok_and(|none| none.pages().is_empty()));
    }
}
