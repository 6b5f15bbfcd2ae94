//! Pages that leave: put into a pipe, read without access rights, dropped.

use std::os::fd::{AsRawFd, RawFd};

use super::{again, call, drop_range, map_memory, read_at, unmap_memory, Errno, High, Sys};

pub fn iovec(address: usize, len: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut _, iov_len: len }
}

/// Drops scattered pages of this process with one call, so that the TLB is flushed once. Older kernels refuse this
/// for DONTNEED; then page by page. Returns the number of calls.
///
/// # Safety
/// It drops content.
pub unsafe fn drop_pages(pidfd: RawFd, pages: &[libc::iovec]) -> u64 {
    crate::sys::pause::here();
    let a = [pidfd as usize, pages.as_ptr() as usize, pages.len(), libc::MADV_DONTNEED as usize, 0, 0];
    // SAFETY: the vector lives through the call; the caller answers for the content.
    let mut done = unsafe { call(libc::SYS_process_madvise, a) }.unwrap_or(0);
    let mut calls = 1;
    for page in pages {
        if done >= page.iov_len {
            done -= page.iov_len;
            continue;
        }
        let start = page.iov_base as usize;
        // SAFETY: as above.
        if let Err(error) = unsafe { drop_range(start..start + page.iov_len) } {
            let error = super::words(error);
            super::fatal::stop(format_args!("the kernel refused to drop the page at {start:#x} (madvise): {error}"));
        }
        calls += 1;
    }
    calls
}

/// Makes the pipe refer to the pages' frames, without a copy and without a change of the page table. Returns the
/// number of pages, from the first on: at least one, or an error.
pub fn to_pipe(pipe: RawFd, pages: &[libc::iovec]) -> Sys<usize> {
    crate::sys::pause::here();
    let a = [pipe as usize, pages.as_ptr() as usize, pages.len(), 0, 0, 0];
    // SAFETY: the vector lives through the call; the pipe only refers to the pages.
    let bytes = again(|| unsafe { call(libc::SYS_vmsplice, a) })?;
    match bytes > 0 && bytes % crate::PAGE == 0 {
        true => Ok(bytes / crate::PAGE),
        false => Err(Errno::IO),
    }
}

/// Whether a page has a frame. Also false for a page that the kernel has swapped out.
pub fn is_there(page: usize) -> bool {
    let mut there = 0u8;
    // SAFETY: the byte lives through the call and takes the answer for one page.
    let answer = unsafe { call(libc::SYS_mincore, [page, crate::PAGE, &raw mut there as usize, 0, 0, 0]) };
    answer.is_ok() && there & 1 != 0
}

/// The memory of this process as a file. It is opened once: a new descriptor takes the lowest free number, if only for
/// a moment, and another thread of the program may rely on that number.
#[derive(Debug)]
pub struct OwnMemory {
    /// `None`: the process may not open it.
    file: Option<High>,
    /// A child has its parent's file until it opens its own.
    process: usize,
}

impl OwnMemory {
    pub fn open() -> OwnMemory {
        let file = super::open_file(c"/proc/self/mem").ok().map(super::move_high);
        OwnMemory { file, process: super::pids::program() }
    }

    /// Copies the first `len` bytes of a page of this process, whatever rights the program has on it. EFAULT: it is
    /// absent. The copy never sleeps in a fault: the kernel does not allow that for a reader of memory as a file.
    ///
    /// # Safety
    /// `into` must be good for `len` bytes.
    pub unsafe fn peek(&self, page: usize, into: usize, len: usize) -> Sys<()> {
        let file = self.file.as_ref().filter(|_| self.process == super::pids::program()).ok_or(Errno::ACCESS)?;
        // SAFETY: the caller answers for `into`.
        match unsafe { read_at(file.as_raw_fd(), into, len, page as u64) } {
            Ok(read) if read == len => Ok(()),
            _ if !is_there(page) => Err(Errno::FAULT),
            other => Err(other.err().unwrap_or(Errno::IO)),
        }
    }
}

/// Copies a page of a process that may not open its own memory as a file, since it has changed its user or its root
/// folder. It can always move the page to a new place and set the rights there. That takes an extra mapping for a
/// moment, so it is the second choice. The page is then gone from its place.
///
/// # Safety
/// `into` must be good for a page, and the page at `page` must not be needed there any more.
pub unsafe fn peek_elsewhere(page: usize, into: usize) -> Sys<()> {
    // SAFETY: the new mapping is ours alone and given back; the caller answers for the rest.
    unsafe {
        let new = set_apart(page)?;
        std::ptr::copy_nonoverlapping(new as *const u8, into as *mut u8, crate::PAGE);
        unmap_memory(new, crate::PAGE);
    }
    Ok(())
}

/// Moves a page to a new place that only this thread knows, where it may be read and written. The mapping at `page`
/// stays, is empty there, and is still watched; the new one is not.
///
/// # Safety
/// The page is the caller's.
pub unsafe fn set_apart(page: usize) -> Sys<usize> {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) as usize;
    let (len, rights) = (crate::PAGE, (libc::PROT_READ | libc::PROT_WRITE) as usize);
    let new = map_memory(len)?;
    // SAFETY: the caller answers for the page; the new place is ours.
    unsafe {
        call(libc::SYS_mremap, [page, len, len, flags, new, 0]).inspect_err(|_| unmap_memory(new, len))?;
        // With the key that every thread may use, if there are keys.
        call(libc::SYS_pkey_mprotect, [new, len, rights, 0, 0, 0])
            .or_else(|_| call(libc::SYS_mprotect, [new, len, rights, 0, 0, 0]))?;
        Ok(new)
    }
}

/// Puts such a page back, with these rights. Its mapping is then no longer watched.
///
/// # Safety
/// `new` is from [`set_apart`] of that page.
pub unsafe fn put_back(new: usize, page: usize, rights: i32) -> Sys<()> {
    let (flags, len) = ((libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize, crate::PAGE);
    // SAFETY: the caller answers for it.
    unsafe {
        call(libc::SYS_mprotect, [new, len, rights as usize, 0, 0, 0])?;
        call(libc::SYS_mremap, [new, len, len, flags, page, 0]).map(drop)
    }
}

/// Puts the bytes of a page into a pipe that has room for them.
///
/// # Safety
/// `from` must be good for a page.
pub unsafe fn write_pipe(pipe: RawFd, from: usize) -> Sys<()> {
    // SAFETY: the caller answers for the memory.
    match again(|| unsafe { call(libc::SYS_write, [pipe as usize, from, crate::PAGE, 0, 0, 0]) })? {
        crate::PAGE => Ok(()),
        _ => Err(Errno::IO),
    }
}

/// Reads exactly `len` bytes from a pipe.
///
/// # Safety
/// `into` must be good for `len` bytes.
pub unsafe fn read_pipe(pipe: RawFd, into: usize, len: usize) -> Sys<()> {
    let mut done = 0;
    while done < len {
        // SAFETY: the caller answers for the memory.
        match again(|| unsafe { call(libc::SYS_read, [pipe as usize, into + done, len - done, 0, 0, 0]) })? {
            0 => return Err(Errno::IO),
            n => done += n,
        }
    }
    Ok(())
}
