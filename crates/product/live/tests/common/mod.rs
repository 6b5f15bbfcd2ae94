//! Helpers for tests of a pager: a separate process that may fail, regions of stamped pages, threads that count.
#![allow(dead_code)] // each test binary uses its part

use coldframe_live::{Options, Pager, Region, PAGE};

/// The smallest RAM.
pub const SMALL: u64 = 64 * PAGE as u64;
/// A process that hangs is killed after this many seconds.
const PATIENCE: u32 = 60;

/// A pager with this much RAM.
pub fn pager(ram: u64, change: impl FnOnce(&mut Options)) -> Pager {
    let mut options = Options { max_memory: 1 << 28, ..Options::new(ram) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// How a process ended: its exit status, or the negated signal that ended it.
pub fn wait_for(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is an int.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        -libc::WTERMSIG(status)
    }
}

/// Runs `f` in a forked process, which is killed if it hangs. Returns how it ended and its stderr.
pub fn in_child(f: impl FnOnce()) -> (i32, String) {
    let mut ends = [0; 2];
    // SAFETY: plain use of pipe, fork, dup2 and alarm; the child ends without returning.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let pid = libc::fork();
        if pid == 0 {
            libc::dup2(ends[1], 2);
            libc::close(ends[0]);
            libc::close(ends[1]);
            kill_after(PATIENCE);
            // Not with `eprintln`, which the test harness captures.
            std::panic::set_hook(Box::new(|info| {
                let text = format!("{info}\n");
                libc::write(2, text.as_ptr().cast(), text.len());
            }));
            let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
            libc::_exit(if good { 0 } else { 101 });
        }
        libc::close(ends[1]);
        let mut text = String::new();
        let mut file = <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(ends[0]);
        let _ = std::io::Read::read_to_string(&mut file, &mut text);
        (wait_for(pid), text)
    }
}

/// Like `in_child`; the process must succeed.
#[track_caller]
pub fn succeeds(f: impl FnOnce()) {
    let (status, said) = in_child(f);
    assert_eq!(status, 0, "{said}");
}

/// A forked process that runs `f`, and ends well if that does not panic.
pub fn forked(f: impl FnOnce()) -> i32 {
    // SAFETY: plain use of fork; the child ends without returning.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
        if pid == 0 {
            let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
            libc::_exit(if good { 0 } else { 101 });
        }
        pid
    }
}

/// Kills this process after this many seconds, whatever it blocks or waits for: the test fails with -9 instead of
/// hanging.
fn kill_after(seconds: u32) {
    // SAFETY: plain use of getpid, fork, sleep and kill; the watching process ends without returning, at that time at
    // the latest.
    unsafe {
        let watched = libc::getpid();
        if libc::fork() == 0 {
            (3..1000).for_each(|fd| _ = libc::close(fd));
            libc::close(2);
            for _ in 0..seconds * 10 {
                libc::usleep(100_000);
                if libc::getppid() != watched {
                    libc::_exit(0);
                }
            }
            libc::kill(watched, libc::SIGKILL);
            libc::_exit(0);
        }
    }
}

/// Writes a word that is unique to this page and round.
pub fn stamp(region: &Region, page: usize, round: u64) {
    // SAFETY: inside the region, aligned, and touched by one thread at a time.
    unsafe { region.as_ptr().add(page * PAGE).cast::<u64>().write_volatile((page as u64) << 20 | round) };
}

/// The round in which a page was stamped; panics if the word belongs to another page.
pub fn round_of(region: &Region, page: usize) -> u64 {
    // SAFETY: as above.
    let word = unsafe { region.as_ptr().add(page * PAGE).cast::<u64>().read_volatile() };
    assert_eq!(word >> 20, if word == 0 { 0 } else { page as u64 }, "page {page} has the bytes of another one");
    word & 0xf_ffff
}

/// Stamps the first pages in these rounds, and checks before each write and at the end that every page is unchanged.
pub fn rewrite(region: &Region, pages: usize, rounds: std::ops::RangeInclusive<u64>) {
    for round in rounds.clone() {
        for page in 0..pages {
            assert_eq!(round_of(region, page), round - 1);
            stamp(region, page, round);
        }
    }
    assert!((0..pages).all(|page| round_of(region, page) == *rounds.end()));
}

/// Writes the first word of a page.
pub fn put(region: &mut Region, page: usize, word: u64) {
    region.as_mut_slice()[page * PAGE..][..8].copy_from_slice(&word.to_le_bytes());
}

pub fn read(region: &Region, page: usize) -> u64 {
    u64::from_le_bytes(region.as_slice()[page * PAGE..][..8].try_into().unwrap())
}

/// Drops a page by a raw system call, which the pager does not see.
pub fn drop_behind_our_back(region: &Region, page: usize) {
    // SAFETY: the page is in the region, and the test drops its content.
    let result = unsafe { libc::madvise(region.as_ptr().add(page * PAGE).cast(), PAGE, libc::MADV_DONTNEED) };
    assert_eq!(result, 0);
}

/// A word in each page that all threads can read.
pub fn word(region: &Region, page: usize, thread: usize) -> &std::sync::atomic::AtomicU64 {
    // SAFETY: inside the region and aligned; all access to these words is atomic.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(region.as_ptr().add(page * PAGE + thread * 8).cast()) }
}

/// Each thread counts up its own words in random pages, and checks that it reads what it wrote.
pub fn count_up(region: &Region, threads: usize, steps: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    let pages = region.len() / PAGE;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
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
        }
    });
}
