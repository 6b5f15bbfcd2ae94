//! A process and its descendants: who they are, whether they may be watched, and their processor time.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::error::ProcError;

/// The flag of the kernel's own threads in `/proc/PID/stat` (`PF_KTHREAD`, include/linux/sched.h).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Whether the process can be watched.
///
/// # Errors
/// It is not there, has ended, is the kernel's or another user's.
pub fn check(pid: u32) -> Result<(), ProcError> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|_| ProcError::None(pid))?;
    // The name may contain anything, so fields are counted from its last parenthesis: state, ..., flags.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return Err(ProcError::Ended(pid));
    }
    if fields.get(6).and_then(|flags| flags.parse::<u32>().ok()).is_some_and(|flags| flags & KERNEL_THREAD != 0) {
        return Err(ProcError::Kernel(pid));
    }
    match fs::read(format!("/proc/{pid}/smaps_rollup")).and_then(|_| writable(pid)) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(ProcError::Foreign { pid, owner: owner(pid) })
        }
        _ => Ok(()),
    }
}

fn writable(pid: u32) -> std::io::Result<()> {
    fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/clear_refs")).map(|_| ())
}

/// The user of a process, with its number; a program that protects itself belongs to root.
fn owner(pid: u32) -> String {
    let uid = fs::metadata(format!("/proc/{pid}")).map_or(0, |folder| folder.uid());
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of = |line: &str| {
        let mut words = line.split(':');
        let name = words.next()?.to_string();
        (words.nth(1)?.parse() == Ok(uid)).then_some(name)
    };
    users.lines().find_map(of).unwrap_or_else(|| format!("user {uid}"))
}

/// The processes that a process has started and that still are its children. A kernel without
/// `CONFIG_PROC_CHILDREN` names none.
pub fn children(pid: u32) -> Vec<u32> {
    let lists = threads(pid).into_iter().map(|thread| format!("/proc/{pid}/task/{thread}/children"));
    let texts: Vec<String> = lists.filter_map(|list| fs::read_to_string(list).ok()).collect();
    texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
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
        let second = fs::read_to_string("/proc/2/stat").is_ok_and(|stat| stat.contains("(kthreadd)"));
        assert!(!second || matches!(check(2), Err(ProcError::Kernel(2))));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") Z") {
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
