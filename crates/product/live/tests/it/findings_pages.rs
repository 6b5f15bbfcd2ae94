//! The life of one page. Each test repeats a defect that was found by reading the code.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::*;
use coldframe_core::policy::{self, ParamKind};
use coldframe_live::{Inject, LiveError, Pager, Region, SwapArea, PAGE, READ_AHEAD_MAX};

/// Two passes in order. Pages come in long lists, and each list evicts its own pages: a thread must not wait for a page
/// that it has itself to copy in.
fn two_passes(policy: &str) {
    let pager = pager(SMALL, |o| (o.policy, o.read_ahead) = (Some(policy.to_string()), READ_AHEAD_MAX));
    let region = pager.anonymous(3 * SMALL as usize).unwrap();
    for round in 0..2 {
        for page in 0..region.len() / PAGE {
            assert_eq!(round_of(&region, page), round, "{policy}");
            stamp(&region, page, round + 1);
        }
    }
    pager.check();
}

/// Each policy with its parameters; required parameters and `valid` have all small values.
fn policies() -> Vec<String> {
    let mut all = Vec::new();
    for spec in policy::ALL {
        let open = spec.params.iter().find(|param| match param.kind {
            ParamKind::Count { default, .. } => default.is_none(),
            ParamKind::Frames { default_percent } => default_percent.is_none(),
            _ => false,
        });
        match open {
            Some(param) => all.extend((1..=16).map(|value| format!("{}:{}={value}", spec.name, param.name))),
            None => all.push(spec.name.to_string()),
        }
    }
    all
}

#[test]
fn a_list_of_any_length_is_passed_twice_with_the_longest_read_ahead() {
    succeeds(|| policies().iter().for_each(|policy| two_passes(policy)));
}

/// More threads than the smallest RAM has pages for.
#[test]
fn forty_threads_in_sixty_four_frames_come_to_their_end() {
    for handlers in [3, 26] {
        succeeds(|| {
            for policy in ["fifo", "fifo-sc:valid=2", "multi-queue", "clock-pro", "s3-fifo"] {
                let pager = pager(SMALL, |o| (o.handlers, o.policy) = (handlers, Some(policy.to_string())));
                let region = pager.anonymous(4 * SMALL as usize).unwrap();
                count_up(&region, 40, 100);
                pager.check();
            }
        });
    }
}

#[test]
fn a_pin_does_not_wait_for_a_task_with_the_engines_lock_in_hand() {
    for handlers in [2, 16] {
        succeeds(|| {
            let pager = pager(4 * SMALL, |o| o.handlers = handlers);
            let region = pager.anonymous(1024 * PAGE).unwrap();
            let pinned = pager.anonymous(8 * PAGE).unwrap();
            let done = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        drop(pinned.pin(0..8 * PAGE).unwrap());
                    }
                });
                count_up(&region, 40, 400);
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            pager.check();
        });
    }
}

/// Before one thread changes a page, others have time to change it first.
fn area() -> Option<SwapArea> {
    Some(SwapArea { bytes: None, collector: "greedy".into(), victims: 1 })
}

fn slow() -> Option<Inject> {
    Some(Inject { pause: 2, ..Inject::default() })
}

#[test]
fn sixteen_threads_in_64_frames_lose_nothing_while_calls_to_the_kernel_are_slow() {
    // With a swap area, every page is first mapped for reading.
    for (handlers, swap) in [(16, area()), (16, None), (3, None)] {
        succeeds(|| {
            let pager = pager(SMALL, |o| {
                (o.inject, o.handlers, o.swap, o.read_ahead) = (slow(), handlers, swap.clone(), 0);
            });
            let region = pager.anonymous(72 * PAGE).unwrap();
            count_up(&region, 16, 1000);
            pager.check();
        });
    }
}

#[test]
fn sixteen_threads_never_have_more_in_memory_than_the_budget() {
    for (batch, handlers) in [(8, 16), (32, 16), (8, 8)] {
        succeeds(|| {
            let pager = pager(SMALL, |o| (o.inject, o.handlers, o.evict_batch) = (slow(), handlers, Some(batch)));
            let region = pager.anonymous(512 * PAGE).unwrap();
            count_up(&region, 16, 100);
            let most = pager.stats().resident_max;
            assert!(most <= 64, "{most} pages were in memory, batch {batch}, {handlers} handlers");
            pager.check();
        });
    }
}

/// A child that shares all frames for a while, as the kernel's merging of equal pages would. It is forked by a raw
/// system call, which the pager does not see.
fn share_frames(span: std::ops::Range<usize>) {
    // SAFETY: the child makes two system calls.
    unsafe {
        libc::madvise(span.start as *mut _, span.len(), libc::MADV_DOFORK);
        let pid = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
        if pid == 0 {
            libc::syscall(libc::SYS_poll, 0, 0, 10);
            libc::syscall(libc::SYS_exit_group, 0);
        }
        assert!(pid > 0);
        assert_eq!(libc::waitpid(pid as i32, std::ptr::null_mut(), 0), pid as i32);
    }
}

#[test]
fn what_is_written_while_a_shared_frame_leaves_is_kept() {
    const PR_SET_MEMORY_MERGE: i32 = 67;
    succeeds(|| {
        // SAFETY: no pointers.
        if unsafe { libc::prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) } != 0 {
            eprintln!("this kernel merges no pages");
            return;
        }
        let pager = pager(SMALL, |o| (o.inject, o.read_ahead) = (slow(), 0));
        let region = pager.anonymous(96 * PAGE).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..60).for_each(|_| share_frames(pager.span())));
            count_up(&region, 16, 400);
        });
        pager.check();
    });
}

/// Eight pages that begin with 7.
fn sevens(pager: &Pager) -> Region {
    let mut region = pager.anonymous(8 * PAGE).unwrap();
    (0..8).for_each(|page| put(&mut region, page, 7));
    region
}

/// Other pages are loaded until this one is evicted.
fn push_out(pager: &Pager) {
    let mut other = pager.anonymous(256 * PAGE).unwrap();
    (0..256).for_each(|page| put(&mut other, page, 1));
}

#[test]
fn a_clean_page_that_was_dropped_behind_our_back_stays_zeros_when_it_leaves() {
    succeeds(|| {
        let pager = pager(SMALL, |o| (o.read_ahead, o.swap) = (0, area()));
        let region = sevens(&pager);
        push_out(&pager);
        // The pages are read, so they are loaded clean; with a swap area they always are.
        (0..8).for_each(|page| assert_eq!(read(&region, page), 7));
        (0..8).for_each(|page| drop_behind_our_back(&region, page));
        (0..8).for_each(|page| assert_eq!(read(&region, page), 0, "page {page}, at once"));
        push_out(&pager);
        (0..8).for_each(|page| assert_eq!(read(&region, page), 0, "page {page}, after it left"));
    });
}

#[test]
fn a_written_page_that_was_dropped_behind_our_back_leaves_as_zeros() {
    // With few valid frames, pages pass through the aside mapping before they are evicted.
    for policy in ["fifo", "fifo-sc:valid=8"] {
        for handlers in [1, 3] {
            succeeds(|| {
                let pager = pager(SMALL, |o| (o.handlers, o.policy) = (handlers, Some(policy.to_string())));
                let region = sevens(&pager);
                (0..8).for_each(|page| drop_behind_our_back(&region, page));
                push_out(&pager);
                (0..8)
                    .for_each(|page| assert_eq!(read(&region, page), 0, "{policy}, {handlers} handlers, page {page}"));
                pager.check();
            });
        }
    }
}

/// The page is absent again before the kernel reads it for the evicting thread. That thread sleeps in the fault while
/// it owns the page and perhaps the engine's lock.
#[test]
fn pages_that_are_dropped_behind_our_back_while_they_leave_stop_nobody() {
    for policy in ["fifo", "fifo-sc:valid=8"] {
        for handlers in [1, 2] {
            succeeds(|| {
                let pager = pager(SMALL, |o| {
                    (o.inject, o.handlers, o.policy) = (slow(), handlers, Some(policy.to_string()));
                });
                let region = pager.anonymous(256 * PAGE).unwrap();
                let done = std::sync::atomic::AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while !done.load(Relaxed) {
                            (0..256).filter(|page| page % 3 == 0).for_each(|page| drop_behind_our_back(&region, page));
                        }
                    });
                    for round in 1..=8 {
                        for page in 0..256 {
                            let was = word(&region, page, 0).swap(round, Relaxed);
                            assert!(was == round - 1 || (was == 0 && page % 3 == 0), "{policy}, page {page}: {was}");
                        }
                    }
                    done.store(true, Relaxed);
                });
                pager.check();
            });
        }
    }
}

/// From now on, this process may not open its own memory as a file.
fn give_up_rights() {
    // SAFETY: no pointers.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
        assert!(libc::geteuid() != 0 || libc::setresuid(65534, 65534, 65534) == 0);
    }
    assert!(std::fs::File::open("/proc/self/mem").is_err());
}

#[test]
fn a_page_that_is_out_of_reach_leaves_as_it_is_also_of_a_process_that_has_given_up_its_rights() {
    // With few valid frames, pages pass through the aside mapping before they are evicted.
    for (policy, handlers, poor) in
        [("fifo", 1, false), ("fifo", 3, true), ("fifo-sc:valid=8", 1, true), ("fifo-sc:valid=8", 2, false)]
    {
        succeeds(|| {
            let pager = pager(SMALL, |o| (o.handlers, o.policy) = (handlers, Some(policy.to_string())));
            let region = sevens(&pager);
            let allow = |what| {
                // SAFETY: the pages are the region's.
                unsafe { assert_eq!(libc::mprotect(region.as_ptr().cast(), 8 * PAGE, what), 0) };
            };
            if poor {
                give_up_rights();
            }
            for round in 0..3 {
                allow(libc::PROT_NONE);
                push_out(&pager);
                allow(libc::PROT_READ | libc::PROT_WRITE);
                (0..8).for_each(|page| assert_eq!(word(&region, page, 0).swap(8 + round, Relaxed), 7 + round));
            }
            pager.check();
        });
    }
}

#[test]
fn pages_leave_although_the_program_has_locked_all_of_its_memory() {
    for policy in ["fifo", "fifo-sc:valid=8"] {
        succeeds(|| {
            let pager = pager(SMALL, |o| o.policy = Some(policy.to_string()));
            let mut region = pager.anonymous(128 * PAGE).unwrap();
            // SAFETY: no pointers.
            if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } != 0 {
                eprintln!("this process may not lock its memory");
                return;
            }
            for round in 1..3 {
                (0..128).for_each(|page| put(&mut region, page, page as u64 * round));
                (0..128).for_each(|page| assert_eq!(read(&region, page), page as u64 * round, "{policy}"));
            }
            pager.check();
        });
    }
}

#[test]
fn pinning_what_has_a_hole_is_refused() {
    succeeds(|| {
        let pager = pager(SMALL, |_| ());
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let memory = pager.map_at(coldframe_live::Spot::Anywhere(PAGE), 4 * PAGE, rights).unwrap();
        pager.unmap(memory + 2 * PAGE..memory + 3 * PAGE).unwrap();
        assert!(matches!(pager.pin(memory..memory + 4 * PAGE), Err(LiveError::Range { .. })));
        pager.pin(memory..memory + 2 * PAGE).unwrap();
        assert_eq!(pager.stats().pinned, 2, "those before the hole are not pinned for the first call");
    });
}

#[test]
fn a_system_call_writes_into_pinned_pages_that_were_never_touched() {
    use std::io::Read;
    succeeds(|| {
        let pager = pager(SMALL, |_| ());
        let mut region = pager.anonymous(4 * PAGE).unwrap();
        let here = region.as_ptr();
        let pin = region.pin(0..4 * PAGE).unwrap();
        // SAFETY: the region lives, and no thread looks at it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(here, 4 * PAGE) };
        std::fs::File::open("/dev/zero").unwrap().read_exact(bytes).unwrap();
        drop(pin);
        put(&mut region, 0, 1);
    });
}

#[test]
fn signals_are_taken_while_a_long_range_is_discarded() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    static DISCARDING: AtomicBool = AtomicBool::new(false);
    static READ: AtomicU32 = AtomicU32::new(0);
    extern "C" fn on_alarm(_: i32) {
        READ.fetch_add(u32::from(DISCARDING.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
    succeeds(|| {
        let pages = 16_384;
        let pager = pager(16 * SMALL, |_| ());
        let mut region = pager.anonymous(pages * PAGE).unwrap();
        (0..pages).for_each(|page| put(&mut region, page, 7));
        // SAFETY: plain use of signal and setitimer.
        unsafe {
            libc::signal(libc::SIGALRM, on_alarm as extern "C" fn(i32) as usize);
            let step = libc::timeval { tv_sec: 0, tv_usec: 50 };
            libc::setitimer(
                libc::ITIMER_REAL,
                &libc::itimerval { it_interval: step, it_value: step },
                std::ptr::null_mut(),
            );
        }
        DISCARDING.store(true, Ordering::Relaxed);
        region.discard(0..pages * PAGE).unwrap();
        DISCARDING.store(false, Ordering::Relaxed);
        // One signal may come before the range and one after it.
        let measured = READ.load(Ordering::Relaxed);
        assert!(measured > 2, "{measured} signals were taken");
    });
}
