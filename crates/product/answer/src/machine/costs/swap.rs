//! Times faults from the kernel's swap, without any right: a process may push out its own pages (`MADV_PAGEOUT`,
//! Linux 5.4).

use std::time::{Duration, Instant};

use coldframe_live::PAGE;
use coldframe_proc::Tree;
use coldframe_sheet::sheet::machine::Spread;

use super::stretch::{spread, Plain, Touch};
use super::{bytes, ns};

/// Pages that are pushed out: 32 MiB.
const PAGES: usize = 8192;
/// One in so many is touched at random, since the kernel reads up to 8 neighbours ahead (`vm.page-cluster`).
const APART: usize = 16;
/// Touches whose mean is one value of the sample.
const TOGETHER: usize = 8;
/// All touches are made, unless they take longer.
const LONGEST: Duration = Duration::from_secs(10);
/// Pages of a stream whose mean is one value of the sample.
const STREAM: usize = 256;
/// If fewer of the touched pages came from swap, the measurement is of something else.
const FROM_SWAP: f64 = 0.9;
/// A page on its way to a disk stays in RAM, and is dropped if it is pushed out again after its write. How often, and
/// after which time, this is tried.
const TRIES: usize = 10;
const WRITTEN: Duration = Duration::from_millis(200);

/// What the kernel's swap costs a program here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapCosts {
    /// Whether it is compressed RAM: zram, or zswap before a disk.
    pub compressed: bool,
    /// A page at a random place, with the time to push one out.
    pub fault: Spread,
    /// A page of a stream, which the kernel reads ahead, with the same.
    pub ahead: Spread,
}

/// The costs of the swap that the kernel uses first; `None`: there is no swap, or it takes no pages of this process.
/// The pages compress about three times, as real ones do.
pub fn swap_costs() -> Option<SwapCosts> {
    let compressed = swap_is_compressed()?;
    let mut memory = Plain::new(bytes(PAGES), false).ok()?;
    let mut random = fastrand::Rng::with_seed(7);
    let mut ground = memory.ground(&mut random);
    ground.touch(0..PAGES, Touch::Text);
    let mut order: Vec<usize> = (0..PAGES / APART).map(|i| i * APART).collect();
    random.shuffle(&mut order);
    let out = push_out(&mut memory)?;
    for _ in 0..TRIES {
        let before = major_faults();
        let fault = ground.stretches(order.iter().copied(), Touch::Read, (TOGETHER, LONGEST), &major_faults);
        if (major_faults() - before) as f64 >= FROM_SWAP * order.len() as f64 {
            let fault: Vec<f64> = fault.into_iter().map(|each| each + out).collect();
            let mut ahead = Vec::new();
            for stream in (0..PAGES).collect::<Vec<_>>().chunks(STREAM) {
                let began = Instant::now();
                ground.touch(stream.iter().copied(), Touch::Read);
                ahead.push(ns(began) as f64 / stream.len() as f64 + out);
            }
            return Some(SwapCosts { compressed, fault: spread(&fault)?, ahead: spread(&ahead)? });
        }
        std::thread::sleep(WRITTEN);
        ground.touch(0..PAGES, Touch::Read);
        push_out(&mut memory)?;
    }
    None
}

/// Whether the swap that the kernel uses first is compressed RAM; `None`: there is no swap.
pub fn swap_is_compressed() -> Option<bool> {
    first_is_compressed(&Tree::machine())
}

fn first_is_compressed(tree: &Tree) -> Option<bool> {
    let first = tree.swap_areas().into_iter().max_by_key(|area| area.priority)?;
    Some(first.is_zram() || tree.zswap())
}

/// Nanoseconds of this thread's processor time for each page. By a clock on the wall, one interruption of the call
/// would be in the price of each fault: 14 to 37 us on zram at a load of 4 on 2 processors.
fn push_out(memory: &mut Plain) -> Option<f64> {
    let (began, range) = (processor_ns(), memory.bytes());
    // SAFETY: memory of this module; the advice keeps its content.
    let done = unsafe { libc::madvise(range.as_mut_ptr().cast(), range.len(), libc::MADV_PAGEOUT) };
    (done == 0).then(|| (processor_ns() - began) as f64 / PAGES as f64)
}

/// Processor time of this thread so far.
fn processor_ns() -> i64 {
    // SAFETY: zero is a value of the structure, which lives through the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// Faults of this process that had to bring in a page.
fn major_faults() -> u64 {
    // SAFETY: zero is a value of the structure, which lives through the call.
    unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut used);
        used.ru_majflt as u64
    }
}

const _: () = assert!(PAGES * PAGE == 32 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_from_swap_are_timed_if_there_is_swap_and_only_then() {
        let areas = Tree::machine().swap_areas().len();
        match swap_costs() {
            Some(SwapCosts { fault, ahead, .. }) => {
                assert!(areas > 0);
                assert!(fault.low.0 > 100_000, "a fault takes more than 100 ns: {fault:?}");
                assert!(ahead.low <= ahead.mean && ahead.mean <= fault.high, "{ahead:?} {fault:?}");
            }
            // Swap may be full, or not for this cgroup.
            None => eprintln!("no swap takes pages of this process ({areas} areas)"),
        }
    }

    #[test]
    fn the_swap_of_the_highest_priority_counts() {
        let (folder, head) = (tempfile::tempdir().unwrap(), "Filename Type Size Used Priority\n");
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let first = |areas: &str| {
            std::fs::write(folder.path().join("proc/swaps"), format!("{head}{areas}")).unwrap();
            first_is_compressed(&Tree::new(folder.path()))
        };
        let disk = "/swapfile file 1024 0 -2\n";
        assert_eq!(first(&format!("{disk}/dev/zram0 partition 1024 0 100\n")), Some(true));
        assert_eq!((first(disk), first("")), (Some(false), None));
    }
}
