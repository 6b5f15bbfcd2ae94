//! Times a fault from the kernel's swap, without any right: a process may push out its own pages (`MADV_PAGEOUT`,
//! Linux 5.4).

use std::time::Instant;

use coldframe_live::PAGE;

use super::stretch::{Plain, Sample, Touch};
use super::{bytes, ns};

/// Pages that are pushed out: 32 MiB.
const PAGES: usize = 8192;
/// One in so many is touched, since the kernel reads up to 8 neighbours ahead (`vm.page-cluster`).
const APART: usize = 16;
/// Touches whose mean is one value of the sample.
const TOGETHER: usize = 8;
/// If fewer of the touched pages came from swap, the measurement is of something else.
const FROM_SWAP: f64 = 0.9;

/// A page from the kernel's swap, one at a time, with the time to push one out; `None`: there is no swap, or it takes no
/// pages of this process. The pages compress about three times, as real ones do.
pub fn swap_fault() -> Option<Sample> {
    let swaps = std::fs::read_to_string("/proc/swaps").ok()?;
    if swaps.lines().count() < 2 {
        return None;
    }
    let mut memory = Plain::new(bytes(PAGES), false).ok()?;
    let mut random = fastrand::Rng::with_seed(7);
    let mut ground = memory.ground(&mut random);
    ground.touch(0..PAGES, Touch::Text);
    let began = Instant::now();
    let range = memory.bytes();
    // SAFETY: memory of this function; the advice keeps its content.
    let done = unsafe { libc::madvise(range.as_mut_ptr().cast(), range.len(), libc::MADV_PAGEOUT) };
    let out = ns(began) as f64 / PAGES as f64;
    if done != 0 {
        return None;
    }
    let mut order: Vec<usize> = (0..PAGES / APART).map(|i| i * APART).collect();
    random.shuffle(&mut order);
    let (before, mut times) = (major_faults(), Vec::new());
    for few in order.chunks(TOGETHER) {
        let began = Instant::now();
        ground.touch(few.iter().copied(), Touch::Read);
        times.push(ns(began) as f64 / few.len() as f64 + out);
    }
    let from_swap = (major_faults() - before) as f64 / order.len() as f64;
    (from_swap >= FROM_SWAP).then(|| Sample::of(&times)).flatten()
}

/// Faults of this process that had to bring in a page.
fn major_faults() -> i64 {
    // SAFETY: zero is a value of the structure, which lives through the call.
    unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut used);
        used.ru_majflt
    }
}

const _: () = assert!(PAGES * PAGE == 32 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_from_swap_is_timed_if_there_is_swap_and_only_then() {
        let areas = std::fs::read_to_string("/proc/swaps").unwrap().lines().count();
        match swap_fault() {
            Some(sample) => {
                assert!(areas > 1);
                assert!(sample.low.0 > 100_000, "a fault takes more than 100 ns: {sample:?}");
                assert!(sample.low <= sample.mean && sample.mean <= sample.high, "{sample:?}");
            }
            // Swap may be full, or not for this cgroup.
            None => eprintln!("no swap takes pages of this process ({} areas)", areas - 1),
        }
    }
}
