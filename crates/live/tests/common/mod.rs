//! What tests of a pager share: a process of their own to fail in, and regions of stamped pages.
#![allow(dead_code)] // each test binary uses its part

use coldframe_live::{Options, Pager, Region, PAGE};

/// A pager with so much RAM.
pub fn pager(ram: u64, change: impl FnOnce(&mut Options)) -> Pager {
    let mut options = Options { max_memory: 1 << 28, ..Options::new(ram) };
    change(&mut options);
    Pager::start(options).unwrap()
}

/// How a process has ended: its exit status, or minus the signal that ended it.
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

/// Runs `f` in a forked process, which is killed if it hangs; how it has ended and what it wrote to stderr.
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
            kill_after(30);
            // Not by `eprintln`, which the test harness takes for itself.
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

/// Kills this process after so many seconds, whatever it has blocked or waits for: -9 instead of a test that never ends.
fn kill_after(seconds: u32) {
    // SAFETY: plain use of getpid, fork, sleep and kill; the watchman ends without returning, at the latest then.
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

/// Writes a word that only this page has in this round.
pub fn stamp(region: &Region, page: usize, round: u64) {
    // SAFETY: inside the region, aligned, and touched by one thread at a time.
    unsafe { region.as_ptr().add(page * PAGE).cast::<u64>().write_volatile((page as u64) << 20 | round) };
}

/// The round in which a page was stamped; panics if the word is another page's.
pub fn round_of(region: &Region, page: usize) -> u64 {
    // SAFETY: as above.
    let word = unsafe { region.as_ptr().add(page * PAGE).cast::<u64>().read_volatile() };
    assert_eq!(word >> 20, if word == 0 { 0 } else { page as u64 }, "page {page} has the bytes of another one");
    word & 0xf_ffff
}
