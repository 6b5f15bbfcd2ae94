//! Where the pages of another process are, and how they are brought in or pushed out.
//!
//! [`scan`] reads page tables (`PAGEMAP_SCAN`, Linux 6.7), [`page_in_ram`] a page. [`advise`] needs `CAP_SYS_NICE`;
//! what it brings in lies in the swap cache, so a page that is not touched still counts as swapped. [`touch`] reads a
//! byte of each page, which the owner may; such pages are mapped, and look used.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::process::Process;
use crate::PAGE;

/// Which pages are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Without a file, mapped, in RAM.
    Ram,
    /// Without a file, in swap, or only in the swap cache.
    Swap,
    /// Of a file, mapped, in RAM: code and data of the program and its libraries.
    File,
}

/// What the kernel is asked to do with pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Read them into the swap cache, or a file's into the page cache.
    WillNeed = libc::MADV_WILLNEED as isize,
    /// Push them out.
    PageOut = libc::MADV_PAGEOUT as isize,
}

/// `struct pm_scan_arg` of include/uapi/linux/fs.h.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) size: u64,
    pub(crate) flags: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) walk_end: u64,
    pub(crate) vec: u64,
    pub(crate) room: u64,
    pub(crate) pages_max: u64,
    pub(crate) inverted: u64,
    pub(crate) all_of: u64,
    pub(crate) any_of: u64,
    pub(crate) returned: u64,
}

/// `struct page_region`: pages in a row.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
/// `PAGE_IS_WRITTEN` and so on.
pub(crate) const WRITTEN: u64 = 1 << 1;
const FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;
/// The end of a program's addresses, with four levels of page tables.
const END: u64 = if cfg!(target_arch = "x86_64") { (1 << 47) - PAGE } else { 1 << 48 };
/// Ranges of one call: the kernel takes 1024 (`UIO_MAXIOV`), and a call cannot be stopped.
const BATCH: usize = 512;
/// Pages that a thread reads at a time.
const READ: usize = 32;
/// The most bytes of a range, for the same reason.
const PIECE: u64 = 1 << 20;

/// The pages of a process that are there, as ranges of addresses in order.
///
/// # Errors
/// The process is gone or another user's; or, [`ErrorKind::Unsupported`], the kernel is older than Linux 6.7.
pub fn scan(pid: u32, place: Place) -> Result<Vec<Range<u64>>> {
    let file = File::open(Process::of(pid).file("pagemap"))?;
    let (all_of, inverted) = match place {
        Place::Ram => (PRESENT | FILE | ZERO, FILE | ZERO),
        Place::Swap => (SWAPPED, 0),
        Place::File => (PRESENT | FILE, 0),
    };
    Scan { end: END, all_of, inverted, ..Scan::default() }.ranges(&file)
}

impl Scan {
    /// The pages that it asks for, as ranges of addresses in order.
    pub(crate) fn ranges(mut self, map: &File) -> Result<Vec<Range<u64>>> {
        let (mut ranges, mut regions) = (Vec::new(), [Region::default(); BATCH]);
        (self.size, self.vec, self.room) = (size_of::<Scan>() as u64, regions.as_mut_ptr() as u64, BATCH as u64);
        self.returned = PRESENT | SWAPPED;
        loop {
            // SAFETY: both structures live through the call, which fills in no more than `room` regions.
            let count = unsafe { libc::ioctl(map.as_raw_fd(), PAGEMAP_SCAN, &mut self) };
            if count < 0 {
                let error = Error::last_os_error();
                let old = matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL));
                return Err(if old { ErrorKind::Unsupported.into() } else { error });
            }
            ranges.extend(regions[..count as usize].iter().map(|region| region.start..region.end));
            self.start = self.walk_end;
            if self.walk_end >= self.end {
                return Ok(ranges);
            }
        }
    }
}

/// The bit of a page map's entry that says that the page is in RAM (Documentation/admin-guide/mm/pagemap.rst).
const IN_RAM: u64 = 1 << 63;

/// The first page in RAM among these pages of a process, by number; `None`: there is none, or it may not be read.
pub fn page_in_ram(process: &Process, pages: Range<u64>) -> Option<Vec<u8>> {
    let (map, memory) = (File::open(process.file("pagemap")).ok()?, File::open(process.file("mem")).ok()?);
    let mut entries = vec![0u8; 8 * (pages.end - pages.start) as usize];
    let whole = map.read_at(&mut entries, 8 * pages.start).ok()? / 8;
    let is_in_ram = |entry: &[u8]| u64::from_ne_bytes(entry.try_into().expect("eight bytes")) & IN_RAM != 0;
    let found = entries.chunks_exact(8).take(whole).position(is_in_ram)?;
    let mut page = vec![0; PAGE as usize];
    memory.read_exact_at(&mut page, (pages.start + found as u64) * PAGE).ok()?;
    Some(page)
}

/// Asks the kernel to do this with all of these pages, until `stop`. Ranges that are not mapped any more are passed
/// over.
///
/// # Errors
/// It is not allowed, or the process is gone.
pub fn advise(
    process: impl AsFd,
    pages: &[Range<u64>],
    advice: Advice,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let pieces = |range: &Range<u64>| {
        let end = range.end;
        range.clone().step_by(PIECE as usize).map(move |start| (start, (end - start).min(PIECE)))
    };
    let part = |(start, len): (u64, u64)| libc::iovec { iov_base: start as *mut _, iov_len: len as usize };
    let parts: Vec<_> = pages.iter().flat_map(pieces).map(part).collect();
    let (mut left, process) = (parts.as_slice(), process.as_fd().as_raw_fd());
    while !left.is_empty() && !stop() {
        let batch = &left[..left.len().min(BATCH)];
        // SAFETY: the vector lives through the call; both advices leave the contents of pages as they are.
        let done = unsafe { libc::syscall(libc::SYS_process_madvise, process, batch.as_ptr(), batch.len(), advice, 0) };
        if done < 0 && matches!(Error::last_os_error().raw_os_error(), Some(libc::EPERM | libc::ESRCH | libc::ENOSYS)) {
            return Err(Error::last_os_error());
        }
        // Bytes of whole ranges; the one behind them has failed, and fails again as the first.
        let mut bytes = done.max(0) as usize;
        let whole = batch.iter().take_while(|part| {
            let fits = part.iov_len <= bytes;
            bytes -= part.iov_len * usize::from(fits);
            fits
        });
        left = &left[whole.count().max(1)..];
    }
    Ok(())
}

/// Reads a byte of each of these pages with so many threads, until `stop`. Pages that are gone are passed over.
///
/// # Errors
/// It is not allowed, or the process is gone.
pub fn touch(pid: u32, pages: &[u64], threads: usize, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let (next, batches) = (AtomicUsize::new(0), pages.chunks(READ).collect::<Vec<_>>());
    let work = || {
        while let Some(batch) = batches.get(next.fetch_add(1, Relaxed)).filter(|_| !stop()) {
            read(pid, batch)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let made = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (1..threads.min(batches.len())).map_while(made).collect();
        // This thread is one of them, and the only one where no more can be made.
        work()?;
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Ok(())))
    })
}

/// No more pages than [`READ`].
fn read(pid: u32, mut pages: &[u64]) -> Result<()> {
    let mut bytes = [0u8; READ];
    while !pages.is_empty() {
        let to = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: pages.len().min(READ) };
        let from: Vec<_> = pages.iter().map(|page| libc::iovec { iov_base: *page as *mut _, iov_len: 1 }).collect();
        // SAFETY: the buffer has a byte for each page that is read, and all of it lives through the call.
        let done = unsafe { libc::process_vm_readv(pid as i32, &to, 1, from.as_ptr(), from.len() as u64, 0) };
        if done < 0 && Error::last_os_error().raw_os_error() != Some(libc::EFAULT) {
            return Err(Error::last_os_error());
        }
        // The page behind those that were read is gone.
        pages = &pages[(done.max(0) as usize).max(1)..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_process_are_found_advised_and_read_and_those_that_are_gone_are_passed_over() {
        let (own, len) = (std::process::id(), 64 * PAGE as usize);
        // SAFETY: a new mapping, with and then without its middle; nothing else knows it.
        let start = unsafe {
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let map = libc::mmap(std::ptr::null_mut(), len, rights, kind, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            libc::madvise(map, len, libc::MADV_NOHUGEPAGE);
            std::slice::from_raw_parts_mut(map.cast::<u8>(), len).fill(7);
            libc::munmap(map.byte_add(len / 4), len / 2);
            map as u64
        };
        let ranges = match scan(own, Place::Ram) {
            Err(error) if error.kind() == ErrorKind::Unsupported => return eprintln!("skipped: Linux before 6.7"),
            ranges => ranges.unwrap(),
        };
        let within = |at: u64| ranges.iter().any(|range| range.contains(&at));
        let quarter = len as u64 / 4;
        assert!(within(start) && !within(start + quarter) && within(start + 3 * quarter), "{ranges:x?}");
        let pages: Vec<u64> = (start..start + len as u64).step_by(PAGE as usize).collect();
        touch(own, &pages, 3, &|| false).unwrap();
        assert!(touch(1 << 23, &pages, 3, &|| false).is_err());
        let first = start / PAGE;
        let page = page_in_ram(&Process::of(own), first + 1..first + 64).unwrap();
        assert!(page.iter().all(|byte| *byte == 7));
        assert_eq!(page_in_ram(&Process::of(1 << 23), first..first + 1), None);
    }
}
