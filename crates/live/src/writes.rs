//! Finds the pages that a process writes to, interval by interval, without stopping it at each write: asynchronous
//! write protection.
//!
//! ```text
//! process ── opens a userfaultfd (foreign.rs) ──► ours: UFFDIO_API(WP_ASYNC)
//! each interval:  /proc/PID/maps ──► each writable mapping: PAGEMAP_SCAN(written since?, protect again)
//!                                         EPERM: new here ──► what is present counts as written; REGISTER, WRITEPROTECT
//! ```
//! The first write to a protected page costs the process one fault, which the kernel resolves alone (0.44 of a
//! zero-fill fault here). Further writes in the interval cost nothing and are not distinguished. Needs Linux 6.7. A
//! forked child has memory of its own, which is not watched. If the process executes another program, the watch ends.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use linux_raw_sys::general as k;
use linux_raw_sys::ioctl as numbers;

use crate::foreign::{self, Stopped};
use crate::sys::{ioctl, Errno, Sys};
use crate::{LiveError, PAGE};

/// `_IOWR('f', 16, struct pm_scan_arg)` of 96 bytes (include/uapi/linux/fs.h).
const PAGEMAP_SCAN: u32 = 0xC060_6610;
const MODE_WP: u64 = 2;
const PROTECT_ON: u64 = 1;
/// The most runs of pages that one call returns.
const RUNS: usize = 4096;

/// The watch over one process.
pub struct WriteWatch {
    pid: u32,
    uffd: OwnedFd,
    pagemap: OwnedFd,
    runs: Vec<k::page_region>,
    /// Mappings that the kernel does not let us protect.
    refused: BTreeSet<u64>,
}

/// The state of the process after an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interval {
    /// The process goes on.
    Running,
    /// It has ended, or replaced its program.
    Over,
}

impl WriteWatch {
    /// Starts a program and watches it from its first instruction on.
    ///
    /// # Errors
    /// It cannot be started; the kernel does not allow it or is older than Linux 6.7.
    pub fn start(command: &mut Command) -> Result<(Child, WriteWatch), LiveError> {
        let (mut child, stopped) = foreign::start(command)?;
        let watch = WriteWatch::new(child.id(), stopped);
        if watch.is_err() {
            let _ = (child.kill(), child.wait());
        }
        Ok((child, watch?))
    }

    /// Watches a running process. Its earlier writes do not count.
    ///
    /// # Errors
    /// As [`WriteWatch::start`].
    pub fn attach(pid: u32) -> Result<WriteWatch, LiveError> {
        let mut watch = WriteWatch::new(pid, foreign::stop(pid)?)?;
        watch.scan(&mut |_| ())?;
        Ok(watch)
    }

    fn new(pid: u32, stopped: Stopped) -> Result<WriteWatch, LiveError> {
        let uffd = stopped.userfaultfd(libc::O_CLOEXEC as usize | k::UFFD_USER_MODE_ONLY as usize)?;
        let features = u64::from(k::UFFD_FEATURE_WP_ASYNC | k::UFFD_FEATURE_WP_UNPOPULATED);
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features, ioctls: 0 };
        ioctl(&uffd, numbers::UFFDIO_API, &mut api).map_err(|error| LiveError::Missing {
            feature: "asynchronous write protection",
            reason: error.io().to_string(),
            remedy: "Linux 6.7 or newer has it",
        })?;
        let pagemap =
            File::open(format!("/proc/{pid}/pagemap")).map_err(|e| LiveError::os("opening the pagemap", e))?;
        let runs = vec![k::page_region { start: 0, end: 0, categories: 0 }; RUNS];
        Ok(WriteWatch { pid, uffd, pagemap: pagemap.into(), runs, refused: BTreeSet::new() })
    }

    /// Calls `written` with each run of pages written to since the last call, and protects them again.
    ///
    /// # Errors
    /// The kernel refuses a scan.
    pub fn scan(&mut self, written: &mut dyn FnMut(Range<u64>)) -> Result<Interval, LiveError> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        if maps.is_empty() || !self.memory_is_there() {
            return Ok(Interval::Over);
        }
        for mapping in maps.lines().filter(|line| writable(line)).filter_map(range) {
            if self.refused.contains(&mapping.start) {
                continue;
            }
            match self.take(&mapping, k::PM_SCAN_WP_MATCHING | k::PM_SCAN_CHECK_WPASYNC, written) {
                Err(Errno(libc::EPERM)) => self.enrol(&mapping, written)?,
                Err(Errno(libc::ESRCH)) => return Ok(Interval::Over),
                done => done.map_err(|error| LiveError::os("scanning for written pages", error))?,
            }
        }
        Ok(Interval::Running)
    }

    /// Mappings that could not be watched.
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    /// A new mapping: the pages present in it were written since the last interval.
    fn enrol(&mut self, mapping: &Range<u64>, written: &mut dyn FnMut(Range<u64>)) -> Result<(), LiveError> {
        let range = || k::uffdio_range { start: mapping.start, len: mapping.end - mapping.start };
        let mut register = k::uffdio_register { range: range(), mode: MODE_WP, ioctls: 0 };
        let registered = ioctl(&self.uffd, numbers::UFFDIO_REGISTER, &mut register);
        if registered.is_err() {
            // It may be gone by now, too; then it does not come again.
            self.refused.insert(mapping.start);
            return Ok(());
        }
        self.take(mapping, 0, written).map_err(|error| LiveError::os("scanning a new mapping", error))?;
        let mut protect = k::uffdio_writeprotect { range: range(), mode: PROTECT_ON };
        match ioctl(&self.uffd, numbers::UFFDIO_WRITEPROTECT, &mut protect) {
            // Unmapped meanwhile, or changing: the next interval sees its state then.
            Ok(()) | Err(Errno(libc::ENOENT | libc::EAGAIN | libc::ESRCH)) => Ok(()),
            Err(error) => Err(LiveError::os("protecting a mapping", error)),
        }
    }

    /// One walk over a mapping.
    fn take(&mut self, mapping: &Range<u64>, flags: u32, written: &mut dyn FnMut(Range<u64>)) -> Sys<()> {
        let mut start = mapping.start;
        while start < mapping.end {
            let mut scan = k::pm_scan_arg {
                size: size_of::<k::pm_scan_arg>() as u64,
                flags: flags.into(),
                start,
                end: mapping.end,
                walk_end: 0,
                vec: self.runs.as_mut_ptr() as u64,
                vec_len: self.runs.len() as u64,
                max_pages: 0,
                category_inverted: 0,
                category_mask: k::PAGE_IS_WRITTEN.into(),
                category_anyof_mask: 0,
                return_mask: k::PAGE_IS_WRITTEN.into(),
            };
            let found = self.call(&mut scan)?;
            self.runs[..found].iter().for_each(|run| written(run.start..run.end));
            start = scan.walk_end.max(start + PAGE as u64);
        }
        Ok(())
    }

    fn call(&self, scan: &mut k::pm_scan_arg) -> Sys<usize> {
        use std::os::fd::AsRawFd;
        let at = &raw mut *scan as usize;
        let arguments = [self.pagemap.as_raw_fd() as usize, PAGEMAP_SCAN as usize, at, 0, 0, 0];
        // SAFETY: the argument is this call's structure, whose vector is `runs` with its length.
        unsafe { crate::sys::call(libc::SYS_ioctl, arguments) }
    }

    /// Whether the memory of the descriptor still exists: a call that protects nothing shows this.
    fn memory_is_there(&self) -> bool {
        let range = k::uffdio_range { start: 0, len: PAGE as u64 };
        let mut protect = k::uffdio_writeprotect { range, mode: PROTECT_ON };
        ioctl(&self.uffd, numbers::UFFDIO_WRITEPROTECT, &mut protect) != Err(Errno(libc::ESRCH))
    }
}

/// `start-end` at the beginning of a line of /proc/PID/maps.
pub(crate) fn range(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// Memory that the program may write to, without the kernel's own mappings.
fn writable(line: &str) -> bool {
    let kernel = ["[vvar]", "[vdso]", "[vsyscall]"].iter().any(|name| line.ends_with(name));
    !kernel && line.split(' ').nth(1).is_some_and(|protection| protection.as_bytes().get(1) == Some(&b'w'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_mapping_table_are_read() {
        let line = "7ffe0b0e4000-7ffe0b105000 rw-p 00000000 00:00 0                          [stack]";
        assert_eq!((range(line), writable(line)), (Some(0x7ffe_0b0e_4000..0x7ffe_0b10_5000), true));
        assert!(!writable("7f00-8f00 r--p 00000000 00:00 0 ") && !writable("7f00-8f00 rw-p 0 0 0 [vvar]"));
        assert_eq!(range("nonsense"), None);
    }
}
