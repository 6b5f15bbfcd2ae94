//! The kernel, as far as the pager needs it.
//!
//! System calls are made here without libc: nothing touches `errno`, which a signal handler must leave alone, and nothing can be
//! caught by a library that interposes libc's functions, as our own preload library does.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;

use linux_raw_sys::general as k;
use linux_raw_sys::ioctl;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

impl Errno {
    pub const AGAIN: Errno = Errno(libc::EAGAIN);
    pub const BUSY: Errno = Errno(libc::EBUSY);
    pub const EXIST: Errno = Errno(libc::EEXIST);
    pub const INTR: Errno = Errno(libc::EINTR);
    pub const IO: Errno = Errno(libc::EIO);
    pub const NOSPC: Errno = Errno(libc::ENOSPC);
    pub const NOENT: Errno = Errno(libc::ENOENT);
    pub const FAULT: Errno = Errno(libc::EFAULT);

    /// The same as an `io::Error`.
    pub fn io(self) -> io::Error {
        io::Error::from_raw_os_error(self.0)
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        errno.io()
    }
}

pub type Sys<T> = Result<T, Errno>;

/// A system call; absent arguments are zeros.
///
/// # Safety
/// As for the system call: pointers must be what the kernel expects of them.
pub unsafe fn call(number: libc::c_long, a: [usize; 6]) -> Sys<usize> {
    let result: isize;
    // SAFETY: the kernel's calling convention; the caller answers for the arguments.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
            in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("svc 0", in("x8") number, inlateout("x0") a[0] as isize => result, in("x1") a[1], in("x2") a[2],
            in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack));
    }
    match result {
        -4095..=-1 => Err(Errno(-result as i32)),
        value => Ok(value as usize),
    }
}

/// Repeats what a signal has interrupted.
fn again<T>(mut f: impl FnMut() -> Sys<T>) -> Sys<T> {
    loop {
        match f() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec; the vDSO neither allocates nor touches errno on success.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Sleeps.
pub fn sleep_us(us: u64) {
    let t = libc::timespec { tv_sec: (us / 1_000_000) as i64, tv_nsec: (us % 1_000_000 * 1000) as i64 };
    // SAFETY: `t` lives through the call.
    let _ = unsafe { call(libc::SYS_nanosleep, [&t as *const _ as usize, 0, 0, 0, 0, 0]) };
}

/// Gives the processor away.
pub fn give_way() {
    // SAFETY: no arguments.
    let _ = unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// Sleeps while `word` is `value`, or until woken.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` lives through the call.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op, value as usize, 0, 0, 0]) };
}

/// Wakes so many sleepers.
pub fn futex_wake(word: &AtomicU32, count: usize) {
    let op = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` lives through the call.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op, count, 0, 0, 0]) };
}

/// Writes words to stderr, whatever state the process is in.
pub fn say(text: &str) {
    // SAFETY: the bytes live through the call.
    let _ = unsafe { call(libc::SYS_write, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
}

/// Ends the process at once.
pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Private anonymous memory, zero and without RAM until it is touched. `at`: exactly there, and never over something else.
pub fn map_memory(len: usize, at: Option<usize>) -> Sys<usize> {
    let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    if at.is_some() {
        flags |= libc::MAP_FIXED_NOREPLACE;
    }
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: takes address space that nobody has.
    unsafe { call(libc::SYS_mmap, [at.unwrap_or(0), len, prot, flags as usize, usize::MAX, 0]) }
}

/// A shared mapping of a file.
pub fn map_file(fd: RawFd, len: usize) -> Sys<usize> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: takes address space that nobody has.
    unsafe { call(libc::SYS_mmap, [0, len, prot, libc::MAP_SHARED as usize, fd as usize, 0]) }
}

/// Takes memory away.
///
/// # Safety
/// Nobody may use it any more.
pub unsafe fn unmap_memory(address: usize, len: usize) {
    // SAFETY: the caller answers for it.
    let _ = unsafe { call(libc::SYS_munmap, [address, len, 0, 0, 0, 0]) };
}

/// Advice on memory.
///
/// # Safety
/// MADV_DONTNEED takes content away.
pub unsafe fn advise(range: Range<usize>, advice: i32) -> Sys<()> {
    // SAFETY: the caller answers for it.
    unsafe { call(libc::SYS_madvise, [range.start, range.len(), advice as usize, 0, 0, 0]) }.map(drop)
}

/// A range of memory, as vectors want it.
pub fn iovec(address: usize, len: usize) -> libc::iovec {
    libc::iovec { iov_base: address as *mut _, iov_len: len }
}

/// Drops scattered pages of this process with one call, so that the TLB is flushed once. Older kernels refuse it for DONTNEED: then
/// page by page. Returns the calls made.
///
/// # Safety
/// Takes content away.
pub unsafe fn drop_pages(pidfd: RawFd, pages: &[libc::iovec]) -> u64 {
    let mut done = 0;
    // SAFETY: the vector lives through the call; the caller answers for the content.
    if let Ok(bytes) = unsafe {
        call(
            libc::SYS_process_madvise,
            [pidfd as usize, pages.as_ptr() as usize, pages.len(), libc::MADV_DONTNEED as usize, 0, 0],
        )
    } {
        done = bytes;
    }
    let mut calls = 1;
    for page in pages {
        if done >= page.iov_len {
            done -= page.iov_len;
            continue;
        }
        let start = page.iov_base as usize;
        // SAFETY: as above.
        if unsafe { advise(start..start + page.iov_len, libc::MADV_DONTNEED) }.is_err() {
            crate::fatal::stop("the kernel refused to drop a page (madvise)");
        }
        calls += 1;
    }
    calls
}

/// A pidfd of this process.
pub fn own_pidfd() -> Sys<OwnedFd> {
    // SAFETY: no pointers; the descriptor is new and ours.
    unsafe {
        let pid = call(libc::SYS_getpid, [0; 6])?;
        call(libc::SYS_pidfd_open, [pid, 0, 0, 0, 0, 0]).map(|fd| OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// A pipe for held pages: so many bytes, closed on exec.
pub fn pipe(bytes: usize) -> Sys<(OwnedFd, OwnedFd)> {
    let mut fds = [0i32; 2];
    // SAFETY: `fds` takes two descriptors, which are ours then.
    unsafe {
        call(libc::SYS_pipe2, [fds.as_mut_ptr() as usize, libc::O_CLOEXEC as usize, 0, 0, 0, 0])?;
        let pair = (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]));
        if bytes > 0 {
            call(libc::SYS_fcntl, [fds[1] as usize, libc::F_SETPIPE_SZ as usize, bytes, 0, 0, 0])?;
        }
        Ok(pair)
    }
}

/// Moves a descriptor out of the way of programs that close or reuse the low numbers.
pub fn move_high(fd: OwnedFd) -> OwnedFd {
    const LOWEST: usize = 900;
    // SAFETY: the duplicate is new and ours.
    match unsafe { call(libc::SYS_fcntl, [fd.as_raw_fd() as usize, libc::F_DUPFD_CLOEXEC as usize, LOWEST, 0, 0, 0]) } {
        // SAFETY: as above.
        Ok(high) => unsafe { OwnedFd::from_raw_fd(high as RawFd) },
        Err(_) => fd,
    }
}

/// Makes the pipe refer to the pages' frames, without copying and without touching the page table. Returns how many of them, from the
/// first on; at least one, or an error.
pub fn hold(pipe: RawFd, pages: &[libc::iovec]) -> Sys<usize> {
    // SAFETY: the vector lives through the call; the pipe only refers to the pages.
    let bytes =
        again(|| unsafe { call(libc::SYS_vmsplice, [pipe as usize, pages.as_ptr() as usize, pages.len(), 0, 0, 0]) })?;
    match bytes > 0 && bytes % crate::PAGE == 0 {
        true => Ok(bytes / crate::PAGE),
        false => Err(Errno::IO),
    }
}

/// Copies a page of this process that its owner has made inaccessible.
///
/// # Safety
/// `into` must be good for a page.
pub unsafe fn peek(page: usize, into: usize) -> Sys<()> {
    let (path, flags) = (c"/proc/self/mem".as_ptr() as usize, (libc::O_RDONLY | libc::O_CLOEXEC) as usize);
    // SAFETY: the path is a C string, the descriptor is new and ours; the caller answers for `into`.
    unsafe {
        let file = call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])?;
        let file = OwnedFd::from_raw_fd(file as RawFd);
        match read_at(file.as_raw_fd(), into, crate::PAGE, page as u64)? {
            crate::PAGE => Ok(()),
            _ => Err(Errno::IO),
        }
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

/// Reads exactly so many bytes from a pipe.
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

/// One read at a place; may be short.
///
/// # Safety
/// `into` must be good for `len` bytes.
pub unsafe fn read_at(fd: RawFd, into: usize, len: usize, offset: u64) -> Sys<usize> {
    // SAFETY: the caller answers for the memory.
    again(|| unsafe { call(libc::SYS_pread64, [fd as usize, into, len, offset as usize, 0, 0]) })
}

/// One write at a place; may be short.
///
/// # Safety
/// `from` must be good for `len` bytes.
pub unsafe fn write_at(fd: RawFd, from: usize, len: usize, offset: u64) -> Sys<usize> {
    // SAFETY: the caller answers for the memory.
    again(|| unsafe { call(libc::SYS_pwrite64, [fd as usize, from, len, offset as usize, 0, 0]) })
}

/// Blocks every signal of this thread and returns the old mask.
pub fn block_signals() -> u64 {
    let (all, mut old) = (u64::MAX, 0u64);
    let (new, was) = (&all as *const u64 as usize, &mut old as *mut u64 as usize);
    // SAFETY: both words live through the call; the kernel's signal set is 8 bytes.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, new, was, 8, 0, 0]) };
    old
}

/// Restores a mask that `block_signals` gave.
pub fn restore_signals(mask: u64) {
    // SAFETY: the word lives through the call.
    let _ = unsafe {
        call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &mask as *const u64 as usize, 0, 8, 0, 0])
    };
}

/// What a userfaultfd shall do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notify {
    /// SIGBUS in the thread that faulted.
    Signal,
    /// A message to whoever reads the descriptor.
    Message,
}

/// A fault as the descriptor reports it.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub address: usize,
    pub write: bool,
    pub protected: bool,
    /// The thread, by the kernel's number.
    pub thread: u32,
}

/// A userfaultfd.
#[derive(Debug)]
pub struct Uffd {
    fd: OwnedFd,
    /// The kernel has UFFDIO_MOVE.
    pub can_move: bool,
}

/// `_IOWR(0xAA, 0x05, struct uffdio_move)`; linux-raw-sys has the structure but not the number.
const UFFDIO_MOVE: u32 = 3 << 30 | (std::mem::size_of::<k::uffdio_move>() as u32) << 16 | 0xAA << 8 | 5;
/// `include/uapi/linux/userfaultfd.h`.
const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 2;
const COPY_DONTWAKE: u64 = 1;
const COPY_WP: u64 = 2;
const MOVE_DONTWAKE: u64 = 1;
const PROTECT_ON: u64 = 1;
const PROTECT_DONTWAKE: u64 = 2;

impl Uffd {
    /// Opens one. `Signal` needs no rights; `Message` serves faults of the kernel too and needs them.
    ///
    /// # Errors
    /// What the kernel says; EPERM without rights.
    pub fn open(notify: Notify) -> Sys<Uffd> {
        let user_only = if notify == Notify::Signal { k::UFFD_USER_MODE_ONLY as usize } else { 0 };
        let flags = libc::O_CLOEXEC as usize | user_only;
        // SAFETY: no pointers; the descriptor is new and ours.
        let fd = match unsafe { call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]) } {
            Ok(fd) => fd,
            Err(error) => Uffd::open_device(flags).map_err(|_| error)?,
        };
        // SAFETY: as above.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        let known = Uffd::features(&fd)?;
        let how = if notify == Notify::Signal { k::UFFD_FEATURE_SIGBUS } else { k::UFFD_FEATURE_THREAD_ID };
        let wanted = u64::from(k::UFFD_FEATURE_PAGEFAULT_FLAG_WP | how);
        let can_move = known & u64::from(k::UFFD_FEATURE_MOVE) != 0;
        // A descriptor takes UFFDIO_API once: the first one was for asking.
        drop(fd);
        // SAFETY: as above.
        let fd = match unsafe { call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]) } {
            Ok(fd) => fd,
            Err(_) => Uffd::open_device(flags)?,
        };
        // SAFETY: as above.
        let fd = move_high(unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
        let mut api = k::uffdio_api {
            api: k::UFFD_API.into(),
            features: wanted | if can_move { u64::from(k::UFFD_FEATURE_MOVE) } else { 0 },
            ioctls: 0,
        };
        ioctl(&fd, ioctl::UFFDIO_API, &mut api)?;
        Ok(Uffd { fd, can_move })
    }

    /// `/dev/userfaultfd`, which gives full rights to whom its permissions allow.
    fn open_device(flags: usize) -> Sys<usize> {
        const USERFAULTFD_IOC_NEW: usize = 0xAA00;
        let path = c"/dev/userfaultfd".as_ptr() as usize;
        let open = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        // SAFETY: the path is a C string; the descriptors are new and ours.
        unsafe {
            let device = call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, open, 0, 0, 0])?;
            let device = OwnedFd::from_raw_fd(device as RawFd);
            let flags = flags & !(k::UFFD_USER_MODE_ONLY as usize);
            call(libc::SYS_ioctl, [device.as_raw_fd() as usize, USERFAULTFD_IOC_NEW, flags, 0, 0, 0])
        }
    }

    fn features(fd: &OwnedFd) -> Sys<u64> {
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features: 0, ioctls: 0 };
        ioctl(fd, ioctl::UFFDIO_API, &mut api)?;
        Ok(api.features)
    }

    /// The descriptor's number.
    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Asks to be told of touches of absent pages and of writes to protected ones.
    pub fn register(&self, range: Range<usize>) -> Sys<()> {
        let mut register = k::uffdio_register { range: kernel_range(range), mode: MODE_MISSING | MODE_WP, ioctls: 0 };
        ioctl(&self.fd, ioctl::UFFDIO_REGISTER, &mut register)
    }

    /// Copies a page in, write-protected or not; wakes nobody.
    pub fn copy(&self, to: usize, from: usize, protected: bool) -> Sys<()> {
        let mode = COPY_DONTWAKE | if protected { COPY_WP } else { 0 };
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, ioctl::UFFDIO_COPY, &mut k::uffdio_copy { dst, src, len, mode, copy: 0 }))
    }

    /// Moves a page of this process to an empty place; wakes nobody. EBUSY where the frame is shared or pinned.
    pub fn move_page(&self, to: usize, from: usize) -> Sys<()> {
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, UFFDIO_MOVE, &mut k::uffdio_move { dst, src, len, mode: MOVE_DONTWAKE, move_: 0 }))
    }

    /// Lets writes fault, or not; wakes nobody.
    pub fn protect(&self, range: Range<usize>, on: bool) -> Sys<()> {
        let mode = if on { PROTECT_ON } else { PROTECT_DONTWAKE };
        let range = kernel_range(range);
        retry(|| ioctl(&self.fd, ioctl::UFFDIO_WRITEPROTECT, &mut k::uffdio_writeprotect { range, mode }))
    }

    /// Wakes the threads that wait for a page, if they wait in the kernel.
    pub fn wake(&self, page: usize) {
        let _ = ioctl(&self.fd, ioctl::UFFDIO_WAKE, &mut kernel_range(page..page + crate::PAGE));
    }

    /// Waits for the next fault.
    pub fn read(&self) -> Sys<Message> {
        // The message is 32 bytes: event, padding, flags (u64), address (u64), thread.
        let mut words = [0u64; 4];
        loop {
            // SAFETY: `words` takes one message.
            again(|| unsafe { call(libc::SYS_read, [self.raw() as usize, words.as_mut_ptr() as usize, 32, 0, 0, 0]) })?;
            if words[0] as u8 == k::UFFD_EVENT_PAGEFAULT as u8 {
                let flag = |bit: u32| words[1] & u64::from(bit) != 0;
                return Ok(Message {
                    address: words[2] as usize,
                    write: flag(k::UFFD_PAGEFAULT_FLAG_WRITE),
                    protected: flag(k::UFFD_PAGEFAULT_FLAG_WP),
                    thread: words[3] as u32,
                });
            }
        }
    }
}

fn kernel_range(range: Range<usize>) -> k::uffdio_range {
    k::uffdio_range { start: range.start as u64, len: range.len() as u64 }
}

/// Another thread changes the address space just now: try again.
fn retry(mut f: impl FnMut() -> Sys<()>) -> Sys<()> {
    for _ in 0..100_000 {
        match f() {
            Err(Errno::AGAIN) => give_way(),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

pub(crate) fn ioctl<T>(fd: &OwnedFd, number: u32, argument: &mut T) -> Sys<()> {
    let argument = argument as *mut T as usize;
    // SAFETY: each number comes with the structure that the kernel expects of it.
    again(|| unsafe { call(libc::SYS_ioctl, [fd.as_raw_fd() as usize, number as usize, argument, 0, 0, 0]) }).map(drop)
}
