//! What the tests of findings share.

#![allow(dead_code)]

use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};

use coldframe_live::{Options, Pager, Region, PAGE};

/// The least RAM there is.
pub const SMALL: u64 = 64 * PAGE as u64;
/// After this a child that hangs is ended.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub fn pager(ram: u64, change: impl FnOnce(&mut Options)) -> Pager {
    let mut options = Options { max_memory: 1 << 28, ..Options::new(ram) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// Runs `f` in a forked child, so that a hang ends that child alone. Gives its exit status (a signal's is negative) and its stderr.
pub fn in_child(f: impl FnOnce()) -> (i32, String) {
    let mut ends = [0; 2];
    // SAFETY: plain use of pipe, fork, dup2, kill and waitpid; the child ends without returning.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let pid = libc::fork();
        if pid == 0 {
            libc::dup2(ends[1], 2);
            // Not by a macro, whose output the harness would keep.
            std::panic::set_hook(Box::new(|info| drop(writeln!(std::io::stderr(), "{info}"))));
            let result = catch_unwind(AssertUnwindSafe(f));
            libc::_exit(if result.is_ok() { 0 } else { 101 });
        }
        libc::close(ends[1]);
        let mut status = 0;
        let begun = std::time::Instant::now();
        // A thread that hangs in a fault has every signal blocked but SIGKILL.
        while libc::waitpid(pid, &mut status, libc::WNOHANG) == 0 {
            if begun.elapsed() > PATIENCE {
                libc::kill(pid, libc::SIGKILL);
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let mut text = String::new();
        let mut file = <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(ends[0]);
        let _ = std::io::Read::read_to_string(&mut file, &mut text);
        (if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }, text)
    }
}

#[track_caller]
pub fn succeeds(f: impl FnOnce()) {
    let (status, said) = in_child(f);
    assert_eq!(status, 0, "{said}");
}

pub fn stamp(region: &mut Region, page: usize, word: u64) {
    region.as_mut_slice()[page * PAGE..][..8].copy_from_slice(&word.to_le_bytes());
}

pub fn read(region: &Region, page: usize) -> u64 {
    u64::from_le_bytes(region.as_slice()[page * PAGE..][..8].try_into().unwrap())
}

/// Signal frames are large on processors with many registers: threads of a test get room for one and for the handler.
pub fn with_signal_stack<T>(f: impl FnOnce() -> T) -> T {
    const BYTES: usize = 256 << 10;
    let mut stack = vec![0u8; BYTES];
    // SAFETY: the stack lives until the old one is back in its place.
    unsafe {
        let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: BYTES };
        let mut old = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(&new, &mut old), 0);
        let result = f();
        libc::sigaltstack(&old, std::ptr::null_mut());
        result
    }
}

/// A word in each page, seen by all threads.
pub fn word(region: &Region, page: usize, thread: usize) -> &std::sync::atomic::AtomicU64 {
    // SAFETY: inside the region and aligned; all access to these words is atomic.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(region.as_ptr().add(page * PAGE + thread * 8).cast()) }
}

/// Each thread counts its own words up in pages at random, and finds what it wrote.
pub fn count_up(region: &Region, threads: usize, steps: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    let pages = region.len() / PAGE;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                with_signal_stack(|| {
                    let mut shadow = vec![0u64; pages];
                    let mut random = fastrand::Rng::with_seed(thread as u64);
                    for step in 1..=steps {
                        let page = random.usize(..pages);
                        let place = word(region, page, thread);
                        assert_eq!(place.load(Relaxed), shadow[page], "thread {thread}, page {page}, step {step}");
                        if random.bool() {
                            shadow[page] = step;
                            place.store(step, Relaxed);
                        }
                    }
                });
            });
        }
    });
}
