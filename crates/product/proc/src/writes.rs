//! Which pages another process writes, without a message to anybody (`PAGEMAP_SCAN` with asynchronous write protection,
//! Linux 6.7): the kernel lets the first write to a protected page pass, and notes it. The process itself has opened
//! the userfaultfd that this takes (the preload library, `COLDFRAME_WRITES`); reads are not noted.

use std::fs::{read_link, File};
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::pages::{Scan, WRITTEN};
use crate::process::Process;

/// What the link of such a descriptor says.
const KIND: &str = "anon_inode:[userfaultfd]";
/// `_IOWR(0xAA, 0x00, struct uffdio_register)`, its mode for write protection, and `PM_SCAN_WP_MATCHING`.
const REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const WRITE_PROTECT: u64 = 2;
const PROTECT: u64 = 1;

/// `struct uffdio_register` of include/uapi/linux/userfaultfd.h.
#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// The writes of a process.
#[derive(Debug)]
pub struct Writes {
    noting: OwnedFd,
    map: File,
}

impl Writes {
    /// Of a process that has opened a userfaultfd for this.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: it has none, not yet or since the kernel refused it; or it may not be looked at.
    pub fn of(pid: u32) -> Result<Writes> {
        let process = Process::of(pid);
        let entries = std::fs::read_dir(process.file("fd"))?.flatten();
        let found = entries.filter(|entry| read_link(entry.path()).is_ok_and(|link| link.as_os_str() == KIND));
        let number = found.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).next();
        let number = number.ok_or(ErrorKind::NotFound)?;
        // SAFETY: no pointers; the descriptors are new, and nothing else has them.
        let noting = unsafe {
            let process = owned(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
            owned(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0))?
        };
        Ok(Writes { noting, map: File::open(process.file("pagemap"))? })
    }

    /// Also notes writes to this mapping. One that is gone, or of another kind, is passed over.
    ///
    /// # Errors
    /// The program has started another one in its place: its writes are to be found anew.
    pub fn cover(&self, mapping: &Range<u64>) -> Result<()> {
        let mut asked =
            Register { start: mapping.start, len: mapping.end - mapping.start, mode: WRITE_PROTECT, ioctls: 0 };
        // SAFETY: the structure lives through the call.
        match unsafe { libc::ioctl(self.noting.as_raw_fd(), REGISTER, &mut asked) } {
            0 => Ok(()),
            _ if Error::last_os_error().raw_os_error() == Some(libc::ESRCH) => Err(Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// The pages of this range that were written since the last call, as ranges in order; from now on they are
    /// protected again. The first call finds all that are there.
    ///
    /// # Errors
    /// The process is gone, or, [`ErrorKind::Unsupported`], the kernel is older than Linux 6.7.
    pub fn since_last(&self, range: &Range<u64>) -> Result<Vec<Range<u64>>> {
        let scan = Scan { flags: PROTECT, start: range.start, end: range.end, all_of: WRITTEN, ..Scan::default() };
        scan.ranges(&self.map)
    }
}

/// A descriptor, or the error of the call that should have made it.
///
/// # Safety
/// Nothing else may have it.
unsafe fn owned(result: libc::c_long) -> Result<OwnedFd> {
    if result < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the caller answers for it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;

    /// A userfaultfd of this process, as the preload library opens it; `None`: the kernel has none of that kind.
    fn note_own() -> Option<OwnedFd> {
        // PAGEFAULT_FLAG_WP, WP_UNPOPULATED, WP_ASYNC; UFFD_USER_MODE_ONLY; UFFDIO_API.
        let mut api = [0xaa, 1u64 | 1 << 13 | 1 << 15, 0];
        // SAFETY: the array lives through the call; the descriptor is new.
        unsafe {
            let fd = owned(libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | 1)).ok()?;
            (libc::ioctl(fd.as_raw_fd(), 0xc018_aa3f_u32 as libc::Ioctl, &mut api) == 0).then_some(fd)
        }
    }

    #[test]
    fn pages_that_were_written_since_the_last_look_are_found_and_those_that_were_read_are_not() {
        let Some(_noting) = note_own() else { return eprintln!("skipped: no asynchronous write protection here") };
        let Ok(writes) = Writes::of(std::process::id()) else { return eprintln!("skipped: pidfd_getfd is refused") };
        let len = 8 * PAGE;
        // SAFETY: a new mapping, which nothing else knows.
        let memory = unsafe {
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let map = libc::mmap(std::ptr::null_mut(), len as usize, rights, kind, -1, 0);
            libc::madvise(map, len as usize, libc::MADV_NOHUGEPAGE);
            std::slice::from_raw_parts_mut(map.cast::<u8>(), len as usize)
        };
        memory.fill(1);
        let start = memory.as_ptr() as u64;
        let range = start..start + len;
        writes.cover(&range).unwrap();
        writes.since_last(&range).unwrap();
        let page = PAGE as usize;
        for written in [1, 2, 5] {
            memory[written * page] = 7;
        }
        std::hint::black_box(memory[3 * page]);
        let found = || {
            let pages = |range: Range<u64>| (range.start - start) / PAGE..(range.end - start) / PAGE;
            writes.since_last(&range).unwrap().into_iter().map(pages).collect::<Vec<_>>()
        };
        assert_eq!(found(), [1..3, 5..6]);
        memory[2 * page] = 8;
        assert_eq!(found(), std::slice::from_ref(&(2..3)));
        assert_eq!(found(), []);
        assert!(Writes::of(1 << 23).is_err());
    }
}
