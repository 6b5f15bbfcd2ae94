//! Whether a process may be watched, and its processor time.

use std::fs;

use crate::error::ProcError;
use crate::process::Process;

/// The flag of the kernel's own threads in `/proc/PID/stat` (`PF_KTHREAD`, include/linux/sched.h).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Whether the process can be watched.
///
/// # Errors
/// It is not there, has ended, is the kernel's or another user's.
pub fn check(pid: u32) -> Result<(), ProcError> {
    let process = Process::of(pid);
    let stat = process.stat().ok_or(ProcError::None(pid))?;
    if stat.ended() {
        return Err(ProcError::Ended(pid));
    }
    if stat.flags & KERNEL_THREAD != 0 {
        return Err(ProcError::Kernel(pid));
    }
    let writable = |_| fs::OpenOptions::new().write(true).open(process.file("clear_refs")).map(drop);
    match fs::read(process.file("smaps_rollup")).and_then(writable) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(ProcError::Foreign { pid, owner: process.owner() })
        }
        _ => Ok(()),
    }
}

/// Nanoseconds of processor time of all threads of a process, also of those that have ended; 0 if it is not there. It
/// is the clock of a working set: a program that waits for a processor or for a request references nothing.
pub fn processor_ns(pid: u32) -> u64 {
    // SAFETY: both values live through the calls, which fill them in if they succeed.
    unsafe {
        let (mut clock, mut time) = (0, std::mem::zeroed::<libc::timespec>());
        if libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) != 0 || libc::clock_gettime(clock, &mut time) != 0
        {
            return 0;
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_cannot_be_watched_are_told_apart() {
        assert!(check(std::process::id()).is_ok());
        assert!(matches!(check(u32::MAX), Err(ProcError::None(_))));
        // The second process of a machine is the kernel's; a container has none of the kernel's.
        let second = Process::of(2).name() == "kthreadd";
        assert!(!second || matches!(check(2), Err(ProcError::Kernel(2))));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !Process::of(child.id()).stat().unwrap().ended() {
            std::thread::yield_now();
        }
        assert!(matches!(check(child.id()), Err(ProcError::Ended(_))));
        child.wait().unwrap();
    }

    #[test]
    fn work_moves_the_clock() {
        let own = std::process::id();
        let (before, began, mut sum) = (processor_ns(own), std::time::Instant::now(), 0u64);
        while processor_ns(own) - before < 5_000_000 {
            sum = (0..10_000).fold(sum, |sum, i| std::hint::black_box(sum ^ i));
            assert!(began.elapsed().as_secs() < 60, "{sum}");
        }
        // Linux has no more than 2^22 processes.
        assert_eq!(processor_ns(1 << 23), 0);
    }
}
