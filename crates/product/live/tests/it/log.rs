//! The swap log as a program sees it: what it may interrupt, which threads wait for it, and for how many children it
//! keeps bytes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{in_child, pager, rewrite, round_of, stamp, succeeds, wait_for};
use coldframe_live::{Inject, Options, Pager, Region, Wait, PAGE};

/// The completion of an operation that a thread has left in flight could interrupt the thread's next call.
#[test]
fn a_wait_for_events_after_an_eviction_is_not_interrupted() {
    succeeds(|| {
        let pager = pager(1 << 18, |o| o.wait = Wait::Brief);
        let region = pager.anonymous(1024 * PAGE).unwrap();
        // SAFETY: no arguments that matter.
        let events = unsafe { libc::epoll_create1(0) };
        let mut interrupted = 0;
        for step in 0..20_000usize {
            stamp(&region, step * 7 % 1024, step as u64 / 1024 + 1);
            if step % 8 == 7 {
                let mut event = libc::epoll_event { events: 0, u64: 0 };
                // SAFETY: room for one event; a millisecond.
                interrupted += usize::from(unsafe { libc::epoll_wait(events, &mut event, 1, 1) } < 0);
            }
        }
        assert_eq!(interrupted, 0, "times a wait was interrupted");
    });
}

/// The thread is in a system call that faults. The thread's operations in flight cannot end before that call.
#[test]
fn a_thread_that_has_loaded_pages_may_stand_in_a_system_call() {
    succeeds(|| {
        let pager = pager(1 << 20, |o| o.wait = Wait::Brief);
        let mut region = pager.anonymous(2048 * PAGE).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let mut random = fastrand::Rng::with_seed(5);
        for round in 0..1500 {
            let mut part = || {
                let from = random.usize(..2048 - 32) * PAGE;
                from..from + 32 * PAGE
            };
            region.as_mut_slice()[part()].fill(round as u8);
            region.will_need(&[part()]).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            std::io::Write::write_all(&mut file, &region.as_slice()[part()]).unwrap();
        }
    });
}

/// A word that parent and children share. Children wait until it is not 0.
fn gate() -> &'static AtomicU32 {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new page, which is never unmapped; zero is a value of the word.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), PAGE, prot, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        &*page.cast::<AtomicU32>()
    }
}

/// A child that waits for `go` and then checks that every page is of `round`.
fn observer(region: &Region, pages: usize, round: u64, go: &AtomicU32) -> i32 {
    // SAFETY: plain use of fork and getppid; the child ends without returning.
    unsafe {
        let parent = libc::getpid();
        let pid = libc::fork();
        if pid == 0 {
            while go.load(Ordering::Acquire) == 0 && libc::getppid() == parent {
                libc::usleep(5000);
            }
            let good = (0..pages).all(|page| round_of(region, page) == round);
            libc::_exit(if good { 0 } else { 1 });
        }
        assert!(pid > 0, "{}", std::io::Error::last_os_error());
        pid
    }
}

#[test]
fn a_hundred_children_see_their_fork_while_the_oldest_end_and_the_parent_rewrites() {
    const PAGES: usize = 160;
    succeeds(|| {
        let pager = pager(1 << 18, |_| {});
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        let (first, rest) = (gate(), gate());
        let rewrite = |round: u64| (0..PAGES).for_each(|page| stamp(&region, page, round));
        rewrite(1);
        let oldest: Vec<i32> = (0..2).map(|_| observer(&region, PAGES, 1, first)).collect();
        let children: Vec<i32> = (2..100)
            .map(|round| {
                rewrite(round);
                observer(&region, PAGES, round, rest)
            })
            .collect();
        first.store(1, Ordering::Release);
        oldest.into_iter().for_each(|pid| assert_eq!(wait_for(pid), 0));
        (100..130).for_each(rewrite);
        rest.store(1, Ordering::Release);
        for (i, pid) in children.into_iter().enumerate() {
            assert_eq!(wait_for(pid), 0, "child {i}");
        }
        assert!((0..PAGES).all(|page| round_of(&region, page) == 129));
    });
}

#[test]
fn snapshots_take_the_room_that_the_device_has() {
    const PAGES: usize = 4096;
    succeeds(|| {
        let pager = pager(1 << 20, |o| o.max_memory = (PAGES * PAGE) as u64);
        let region = pager.anonymous(PAGES * PAGE).unwrap();
        let go = gate();
        let children: Vec<i32> = (1..=5)
            .map(|round| {
                (0..PAGES).for_each(|page| stamp(&region, page, round));
                observer(&region, PAGES, round, go)
            })
            .collect();
        (0..PAGES).for_each(|page| stamp(&region, page, 9));
        go.store(1, Ordering::Release);
        children.into_iter().for_each(|pid| assert_eq!(wait_for(pid), 0));
    });
}

/// Sets the soft limit on the length of files.
fn limit_files(bytes: libc::rlim_t) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls have a limit to read or to fill.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit), 0);
        limit.rlim_cur = bytes.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

#[test]
fn a_limit_on_file_sizes_is_a_limit_on_the_swap_file_and_kills_nobody() {
    let (status, stderr) = in_child(|| {
        limit_files(32 << 20);
        let pager = pager(1 << 20, |_| ());
        let region = pager.anonymous(6000 * PAGE).unwrap();
        rewrite(&region, 6000, 1..=2);
        let larger = pager.anonymous(12000 * PAGE).unwrap();
        rewrite(&larger, 12000, 1..=1);
    });
    assert!(stderr.contains("the swap file may take 32 MiB: the limit on file sizes (ulimit -f)"), "{stderr}");
    assert!(status == 125 && stderr.contains("is full; the program is stopped"), "{status}: {stderr}");
}

#[test]
fn a_limit_on_file_sizes_that_leaves_no_room_is_refused_at_the_start() {
    let (status, stderr) = in_child(|| {
        limit_files(8 << 20);
        let error = Pager::start(Options { max_memory: 1 << 26, ..Options::new(1 << 20) }).unwrap_err();
        assert!(error.code() == 4 && error.to_string().contains("(ulimit -f unlimited)"), "{error}");
    });
    assert_eq!(status, 0, "{stderr}");
}

#[test]
fn a_limit_on_file_sizes_that_comes_later_makes_the_program_wait_until_it_is_raised() {
    let (status, stderr) = in_child(|| {
        let pager = pager(1 << 20, |_| ());
        let region = pager.anonymous(6000 * PAGE).unwrap();
        rewrite(&region, 3000, 1..=1);
        limit_files(1 << 20);
        let raise = std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            limit_files(libc::RLIM_INFINITY);
        });
        rewrite(&region, 3000, 2..=3);
        raise.join().unwrap();
    });
    assert!(status == 0 && stderr.contains("the swap file may not grow (ulimit -f); the program waits"), "{stderr}");
}

#[test]
fn a_device_that_is_slow_full_and_fails_now_and_then_loses_nothing_across_forks() {
    let inject = Inject { seed: 3, write_error: 60, write_full: 4, write_short: 5, again: 9, ..Inject::default() };
    for (handlers, slow_us) in [(1, 0), (3, 0), (2, 300)] {
        let (status, stderr) = in_child(|| {
            let pager = pager(1 << 20, |o| (o.handlers, o.inject) = (handlers, Some(Inject { slow_us, ..inject })));
            let region = pager.anonymous(1024 * PAGE).unwrap();
            let go = gate();
            go.store(1, Ordering::Relaxed);
            for round in 1..=3 {
                rewrite(&region, 1024, round..=round);
                assert_eq!(wait_for(observer(&region, 1024, round, go)), 0);
            }
            pager.check();
        });
        assert_eq!(status, 0, "{handlers} handlers: {stderr}");
    }
}

#[test]
fn a_pager_ends_although_its_device_is_slow_or_full() {
    for inject in
        [Inject { slow_us: 30_000, ..Inject::default() }, Inject { seed: 2, write_full: 2, ..Inject::default() }]
    {
        let (status, stderr) = in_child(|| {
            let pager = pager(1 << 18, |o| o.inject = Some(inject));
            let region = pager.anonymous(400 * PAGE).unwrap();
            (0..400).for_each(|page| stamp(&region, page, 1));
            drop(region);
            drop(pager);
        });
        assert_eq!(status, 0, "{stderr}");
    }
}

#[test]
fn a_program_that_waits_for_space_is_ended_by_the_signals_that_end_programs() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let (status, stderr) = in_child(|| {
            // A shell makes tests in the background ignore SIGINT.
            // SAFETY: back to what the kernel does.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            let inject = Inject { seed: 2, write_full: 1, ..Inject::default() };
            let pager = pager(1 << 18, |o| o.inject = Some(inject));
            let region = pager.anonymous(1024 * PAGE).unwrap();
            std::thread::spawn(move || {
                // A thread that blocks all signals, as in programs with one thread for signals.
                // SAFETY: plain use of sigfillset and pthread_sigmask, then of usleep and kill.
                unsafe {
                    let mut all: libc::sigset_t = std::mem::zeroed();
                    libc::sigfillset(&mut all);
                    libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
                    libc::usleep(300_000);
                    libc::kill(libc::getpid(), signal);
                }
            });
            (0..1024).for_each(|page| stamp(&region, page, 1));
        });
        assert!(stderr.contains("no space left for the swap file; the program waits"), "{stderr}");
        assert_eq!(status, -signal, "{stderr}");
    }
}
