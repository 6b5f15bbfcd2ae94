//! Several threads compared with a shadow copy, with forks and with a device that fails: no byte is ever lost or wrong.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use coldframe_live::{Inject, Options, Pager, Region, Tier, Wait, PAGE};
use common::in_child;

const RAM: u64 = 1 << 20;
const PAGES: usize = 1024;

fn pager(change: impl FnOnce(&mut Options)) -> Pager {
    let mut options = Options { max_memory: 1 << 28, ..Options::new(RAM) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// The word of a page that only one thread writes; all threads can read it.
fn word(region: &Region, page: usize, thread: usize) -> &AtomicU64 {
    // SAFETY: inside the region and aligned; all access to these words is atomic.
    unsafe { AtomicU64::from_ptr(region.as_ptr().add(page * PAGE + thread * 64).cast()) }
}

/// Each thread counts up its own words and checks that it reads what it wrote last; `go` stops the threads.
fn writers(region: &Region, threads: usize, steps: u64, seed: u64) -> Vec<Vec<u64>> {
    std::thread::scope(|scope| {
        let one = |thread: usize| {
            move || {
                let mut shadow = vec![0u64; PAGES];
                let mut random = fastrand::Rng::with_seed(seed + thread as u64);
                for step in 1..=steps {
                    // Some pages are hot.
                    let page = if random.bool() { random.usize(..PAGES) } else { random.usize(..PAGES / 16) };
                    let place = word(region, page, thread);
                    assert_eq!(place.load(Ordering::Relaxed), shadow[page], "thread {thread} page {page} seed {seed}");
                    if random.u8(..10) < 4 {
                        shadow[page] = step;
                        place.store(step, Ordering::Relaxed);
                    }
                }
                shadow
            }
        };
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(one(thread))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn check(region: &Region, shadows: &[Vec<u64>]) {
    for (thread, shadow) in shadows.iter().enumerate() {
        for (page, value) in shadow.iter().enumerate() {
            assert_eq!(word(region, page, thread).load(Ordering::Relaxed), *value, "thread {thread} page {page}");
        }
    }
}

#[test]
fn four_threads_find_what_they_wrote() {
    for (policy, wait, encrypt) in [
        ("multi-queue", Wait::Read, false),
        ("multi-queue", Wait::Brief, true),
        ("fifo", Wait::Brief, false),
        ("fifo-sc:valid=60%", Wait::Read, true),
        ("clock", Wait::Sleep, false),
        ("pa-fifo-sc:valid=50%", Wait::Poll, false),
    ] {
        let pager = pager(|o| (o.policy, o.wait, o.encrypt) = (Some(policy.to_string()), wait, encrypt));
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        let seed = fastrand::u64(..1 << 40);
        let shadows = writers(&region, 4, 20_000, seed);
        check(&region, &shadows);
        pager.check();
        let stats = pager.stats();
        let most = RAM / PAGE as u64;
        assert!(stats.resident_max <= most, "{policy}: {} pages in RAM, at most {most}", stats.resident_max);
    }
}

#[test]
fn a_device_that_stumbles_loses_nothing() {
    let inject = Inject { seed: 5, read_short: 40, again: 20, read_error: 400, write_short: 30, ..Inject::default() };
    let pager = pager(|o| (o.inject, o.wait, o.tier) = (Some(inject), Wait::Read, Tier::None));
    let region = pager.anonymous(PAGES * PAGE).unwrap();
    let shadows = writers(&region, 2, 20_000, 1);
    check(&region, &shadows);
    assert!(pager.stats().failures > 0, "the device was to fail now and then");
}

fn stopped_by(inject: Inject) -> (i32, String) {
    in_child(|| {
        let pager = pager(|o| (o.inject, o.tier) = (Some(inject), Tier::None));
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        let shadows = writers(&region, 1, 20_000, 1);
        check(&region, &shadows);
    })
}

#[test]
fn a_flipped_bit_stops_the_program_and_is_never_read() {
    let (status, said) = stopped_by(Inject { seed: 1, read_flip: 1, ..Inject::default() });
    assert_eq!(status, 125, "{said}");
    assert!(said.contains("checksum differs") && !said.contains("panicked"), "{said}");
}

#[test]
fn a_device_that_refuses_to_read_stops_the_program() {
    let (status, said) = stopped_by(Inject { seed: 1, read_error: 1, ..Inject::default() });
    assert_eq!(status, 125, "{said}");
    assert!(said.contains("Input/output error") && said.contains("the program is stopped"), "{said}");
}

#[test]
fn a_device_that_refuses_to_write_stops_the_program() {
    let (status, said) = stopped_by(Inject { seed: 1, write_error: 1, ..Inject::default() });
    assert_eq!(status, 125, "{said}");
    assert!(said.contains("writing 131072 bytes at"), "{said}");
}

#[test]
fn a_full_device_makes_the_program_wait_and_then_go_on() {
    let (status, said) = stopped_by(Inject { seed: 9, write_full: 3, ..Inject::default() });
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("no space left for the swap file; the program waits"), "{said}");
}

/// A running child sees the parent's memory at the fork, to the last word, while two threads of the parent rewrite all
/// pages.
#[test]
fn a_child_sees_the_memory_of_the_fork_and_pages_for_itself() {
    let pager = pager(|_| {});
    let region = Arc::new(pager.anonymous(PAGES * PAGE).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let sums: Vec<Arc<AtomicU64>> = (0..2).map(|_| Arc::default()).collect();
    let threads: Vec<_> = (0..2)
        .map(|thread| {
            let (region, stop, sum) = (region.clone(), stop.clone(), sums[thread].clone());
            std::thread::spawn(move || {
                // Round r writes r into every page, in order: at any moment, the first pages have r and the rest r - 1.
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    round += 1;
                    for page in 0..PAGES {
                        word(&region, page, thread).store(round, Ordering::Release);
                    }
                    sum.store(round, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let prefix = |region: &Region, thread: usize| {
        let values: Vec<u64> = (0..PAGES).map(|page| word(region, page, thread).load(Ordering::Acquire)).collect();
        let first = values[0];
        let end = values.iter().take_while(|v| **v == first).count();
        assert!(
            values[end..].iter().all(|v| *v + 1 == first),
            "thread {thread}: not a prefix of round {first}: page {end} has {}",
            values[end]
        );
    };
    std::thread::sleep(std::time::Duration::from_millis(50));
    for round in 0..6 {
        let (status, said) = in_child(|| {
            std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..2 {
                    (0..2).for_each(|thread| prefix(&region, thread));
                }
                // The child also writes, and its own child sees the writes.
                (0..PAGES).for_each(|page| word(&region, page, 7).store(page as u64 + round, Ordering::Release));
                let (status, said) = in_child(|| {
                    let own = |page: usize| word(&region, page, 7).load(Ordering::Acquire) == page as u64 + round;
                    if !(0..PAGES).all(own) {
                        eprintln!("a grandchild saw something else");
                        // SAFETY: ends the process.
                        unsafe { libc::_exit(3) };
                    }
                });
                assert_eq!(status, 0, "{said}");
                (0..2).for_each(|thread| prefix(&region, thread));
            }));
            if result.is_err() {
                // SAFETY: ends the process.
                unsafe { libc::_exit(2) };
            }
        });
        assert_eq!(status, 0, "round {round}: {said}");
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|t| t.join().unwrap());
    for (thread, sum) in sums.iter().enumerate() {
        let last = sum.load(Ordering::Relaxed);
        (0..PAGES).for_each(|page| assert_eq!(word(&region, page, thread).load(Ordering::Relaxed), last));
    }
    assert!((0..PAGES).all(|page| word(&region, page, 7).load(Ordering::Relaxed) == 0), "a child's write came back");
    pager.check();
}

#[test]
fn a_child_that_outlives_its_parent_still_sees_its_memory() {
    // The middle process forks the process that checks, and ends at once.
    let folder = tempfile::tempdir().unwrap();
    let verdict = folder.path().join("verdict");
    let (status, said) = in_child(|| {
        let pager = pager(|_| {});
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        (0..PAGES).for_each(|page| word(&region, page, 0).store(page as u64 * 3 + 1, Ordering::Relaxed));
        // SAFETY: the parent ends, the child continues.
        unsafe {
            if libc::fork() != 0 {
                libc::_exit(0);
            }
            libc::usleep(100_000);
        }
        let good = (0..PAGES).all(|page| word(&region, page, 0).load(Ordering::Relaxed) == page as u64 * 3 + 1);
        let _ = std::fs::write(&verdict, if good { "good" } else { "bad" });
    });
    assert_eq!(status, 0, "{said}");
    for _ in 0..100 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        if let Ok(text) = std::fs::read_to_string(&verdict) {
            if !text.is_empty() {
                assert_eq!(text, "good");
                return;
            }
        }
    }
    panic!("the child never came to its end");
}
