//! The budget: a process never has more in RAM because of its pager than the RAM that it was given, a constant, and
//! some bytes for each page of managed memory that was ever used. The kernel's counts are used, while threads fault and
//! every system call that removes pages is delayed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Barrier;

use crate::common::succeeds;
use coldframe_live::{Inject, Options, Pager, PAGE};

/// Bytes of this process in RAM.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[derive(Clone, Copy)]
struct Use {
    policy: &'static str,
    ram: u64,
    managed: usize,
    threads: usize,
    handlers: usize,
    encrypt: bool,
    pause: u32,
}

/// Threads go once through their share of the region and then touch pages at random; one page in four is written.
/// Returns the most RAM used above the RAM used before, and the bound. What the pager says that it took is what
/// the process has in addition to the pages, except for what the engine notes.
fn peak(u: &Use) -> (u64, u64) {
    // The swap file is in memory, which is not in the process's resident set, so the test is not slowed by a device.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let inject = Inject { pause: u.pause, ..Inject::default() };
    let options = Options {
        policy: Some(u.policy.to_string()),
        max_memory: 2 * u.managed as u64,
        handlers: u.handlers,
        encrypt: u.encrypt,
        backing: folder.path().to_path_buf(),
        inject: Some(inject),
        ..Options::new(u.ram)
    };
    let (ready, started) = (Barrier::new(u.threads + 1), Barrier::new(u.threads + 1));
    let (base, done, most) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let pages = u.managed / PAGE;
    let share = pages / u.threads;
    std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (ready, started, base) = (&ready, &started, &base);
            move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                ready.wait();
                started.wait();
                let touch = |page: usize| {
                    let word = (base.load(Ordering::Relaxed) as usize + page * PAGE + thread % 64 * 8) as *mut u64;
                    // SAFETY: inside the region; each thread has its own word in each page.
                    unsafe {
                        word.write_volatile(if page.is_multiple_of(4) { page as u64 + 1 } else { word.read_volatile() })
                    };
                };
                (thread * share..(thread + 1) * share).for_each(touch);
                (0..share.min(2000)).for_each(|_| touch(random.usize(..pages)));
            }
        };
        let workers: Vec<_> = (0..u.threads).map(|thread| scope.spawn(work(thread))).collect();
        ready.wait();
        let before = resident();
        let (done_now, highest) = (&done, &most);
        let sampler = scope.spawn(move || {
            while !done_now.load(Ordering::Relaxed) {
                highest.fetch_max(resident().saturating_sub(before), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
        });
        let pager = Pager::start(options).unwrap();
        let region = pager.anonymous(u.managed).unwrap();
        base.store(region.as_ptr() as u64, Ordering::Relaxed);
        started.wait();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Relaxed);
        sampler.join().unwrap();
    });
    (most.into_inner(), (6 << 20) + 80 * pages as u64)
}

/// Each use has its own process, so no other test's memory is counted.
#[test]
fn a_process_keeps_its_budget() {
    const MIB: usize = 1 << 20;
    let usual =
        Use { policy: "multi-queue", ram: 4 << 20, managed: 0, threads: 4, handlers: 2, encrypt: false, pause: 0 };
    for u in [
        Use { ram: 16 << 20, managed: 2048 * MIB, ..usual },
        // Many threads whose pages leave late.
        Use { policy: "fifo-sc:valid=50%", managed: 64 * MIB, threads: 24, handlers: 16, pause: 1, ..usual },
        Use { policy: "clock-pro", managed: 128 * MIB, threads: 8, handlers: 4, encrypt: true, pause: 3, ..usual },
        // A policy with large tables.
        Use { policy: "s3-fifo", managed: 256 * MIB, ..usual },
    ] {
        succeeds(|| {
            let (most, bound) = peak(&u);
            let (ram, mib) = (u.ram, |bytes: u64| bytes as f64 / MIB as f64);
            assert!(
                most <= ram + bound,
                "{}: {:.2} MiB, of {:.2} and {:.2}",
                u.policy,
                mib(most),
                mib(ram),
                mib(bound)
            );
        });
    }
}
