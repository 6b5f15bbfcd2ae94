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

use crate::errno::Words;
pub(crate) use crate::high::{move_high, move_high_inherited, with_room};

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
    pub const FBIG: Errno = Errno(libc::EFBIG);
    pub const NOENT: Errno = Errno(libc::ENOENT);
    pub const INVAL: Errno = Errno(libc::EINVAL);
    pub const FAULT: Errno = Errno(libc::EFAULT);

    /// What it says.
    pub fn io(self) -> Words {
        Words(self.0)
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
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
pub fn again<T>(mut f: impl FnMut() -> Sys<T>) -> Sys<T> {
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

/// The kernel's number of this thread.
pub fn thread() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// Sleeps while `word` is `value`, or until woken.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` lives through the call.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op, value as usize, 0, 0, 0]) };
}

/// Sleeps while `word` is `value`, until woken, or for so many microseconds.
pub fn futex_wait_for(word: &AtomicU32, value: u32, us: u64) {
    let op = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let t = libc::timespec { tv_sec: (us / 1_000_000) as i64, tv_nsec: (us % 1_000_000 * 1000) as i64 };
    // SAFETY: both live through the call.
    let _ =
        unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op, value as usize, &t as *const _ as usize, 0, 0]) };
}

/// Wakes so many sleepers.
pub fn futex_wake(word: &AtomicU32, count: usize) {
    let op = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` lives through the call.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op, count, 0, 0, 0]) };
}

/// As `futex_wait`, for a word that the kernel clears when a thread ends: it wakes those who wait as strangers would.
pub fn futex_wait_shared(word: &AtomicU32, value: u32) {
    // SAFETY: `word` lives through the call.
    let _ =
        unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, libc::FUTEX_WAIT as usize, value as usize, 0, 0, 0]) };
}

/// Wakes all who sleep so.
pub fn futex_wake_shared(word: &AtomicU32) {
    let (word, all) = (word.as_ptr() as usize, i32::MAX as usize);
    // SAFETY: the address need not even be good: nothing is read.
    let _ = unsafe { call(libc::SYS_futex, [word, libc::FUTEX_WAKE as usize, all, 0, 0, 0]) };
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

/// Takes the content of a range away, even where the program has locked all of its memory (`mlockall`). Kernels before 5.18 cannot do
/// the latter.
///
/// # Safety
/// Nobody may want the content.
pub unsafe fn drop_range(range: Range<usize>) -> Sys<()> {
    // SAFETY: the caller answers for the content.
    match unsafe { advise(range.clone(), libc::MADV_DONTNEED) } {
        Err(Errno::INVAL) => unsafe { advise(range, MADV_DONTNEED_LOCKED) },
        other => other,
    }
}

/// `include/uapi/asm-generic/mman-common.h`.
const MADV_DONTNEED_LOCKED: i32 = 24;

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
    crate::pause::here();
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
        if let Err(error) = unsafe { drop_range(start..start + page.iov_len) } {
            crate::fatal::stop(format_args!(
                "the kernel refused to drop the page at {start:#x} (madvise): {}",
                error.io()
            ));
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

/// Makes the pipe refer to the pages' frames, without copying and without touching the page table. Returns how many of them, from the
/// first on; at least one, or an error.
pub fn hold(pipe: RawFd, pages: &[libc::iovec]) -> Sys<usize> {
    crate::pause::here();
    // SAFETY: the vector lives through the call; the pipe only refers to the pages.
    let bytes =
        again(|| unsafe { call(libc::SYS_vmsplice, [pipe as usize, pages.as_ptr() as usize, pages.len(), 0, 0, 0]) })?;
    match bytes > 0 && bytes % crate::PAGE == 0 {
        true => Ok(bytes / crate::PAGE),
        false => Err(Errno::IO),
    }
}

/// Whether a page has a frame. False for a page that the kernel has swapped out, too.
pub fn is_there(page: usize) -> bool {
    let mut there = 0u8;
    // SAFETY: the byte lives through the call and takes the answer for one page.
    let asked = unsafe { call(libc::SYS_mincore, [page, crate::PAGE, &raw mut there as usize, 0, 0, 0]) };
    asked.is_ok() && there & 1 != 0
}

/// Whether the kernel merges equal pages of this process, or has somewhere to swap to.
pub fn merges_or_swaps() -> bool {
    // include/uapi/linux/prctl.h.
    const PR_GET_MEMORY_MERGE: usize = 68;
    // SAFETY: no pointers.
    let merges = unsafe { call(libc::SYS_prctl, [PR_GET_MEMORY_MERGE, 0, 0, 0, 0, 0]) };
    // SAFETY: zero is a value of the structure, which lives through the call.
    let swap = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        call(libc::SYS_sysinfo, [&raw mut info as usize, 0, 0, 0, 0, 0]).map(|_| info.totalswap)
    };
    merges == Ok(1) || swap.is_ok_and(|bytes| bytes > 0)
}

/// Copies a page of this process that the program has made inaccessible, which may be gone from its place then: it is to be dropped next.
///
/// A process that has changed its user, or has another root folder, may not open its own memory as a file. It can always move the page
/// to a new place, where the rights on it are nobody else's business. That takes a mapping more for a moment, so it comes second.
///
/// # Safety
/// `into` must be good for a page, and nobody may want the one at `page` to stay.
pub unsafe fn peek(page: usize, into: usize) -> Sys<()> {
    // SAFETY: the caller answers for both.
    unsafe { peek_in_file(page, into).or_else(|error| peek_elsewhere(page, into).map_err(|_| error)) }
}

/// # Safety
/// `into` must be good for a page.
unsafe fn peek_in_file(page: usize, into: usize) -> Sys<()> {
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

/// The mapping at `page` stays, empty there, and goes on to be watched; the new one is not.
///
/// # Safety
/// As for `peek`.
unsafe fn peek_elsewhere(page: usize, into: usize) -> Sys<()> {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP) as usize;
    let (len, read) = (crate::PAGE, libc::PROT_READ as usize);
    // SAFETY: the new mapping is ours alone, readable when it is read, and given back; the caller answers for the rest.
    unsafe {
        let new = call(libc::SYS_mremap, [page, len, len, flags, 0, 0])?;
        // With the key that every thread may use, where there are keys.
        let readable = call(libc::SYS_pkey_mprotect, [new, len, read, 0, 0, 0])
            .or_else(|_| call(libc::SYS_mprotect, [new, len, read, 0, 0, 0]));
        if readable.is_ok() {
            std::ptr::copy_nonoverlapping(new as *const u8, into as *mut u8, len);
        }
        unmap_memory(new, len);
        readable.map(drop)
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

/// Takes a signal off those that wait for this thread to let them in, if it is among them.
pub fn take_signal(signal: i32) {
    let (set, none) = (1u64 << (signal - 1), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let a = [&set as *const u64 as usize, 0, &none as *const _ as usize, 8, 0, 0];
    // SAFETY: both live through the call; the kernel's signal set is 8 bytes.
    let _ = unsafe { call(libc::SYS_rt_sigtimedwait, a) };
}

/// The signals that wait for this thread, or for any of this process, to let them in.
pub fn pending_signals() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes 8 bytes.
    let _ = unsafe { call(libc::SYS_rt_sigpending, [&mut set as *mut u64 as usize, 8, 0, 0, 0, 0]) };
    set
}

/// Whether the program leaves a signal to the kernel.
pub fn has_default_action(signal: i32) -> bool {
    // The kernel's structure is 32 bytes on both machines and begins with the handler.
    let mut action = [usize::MAX; 4];
    let a = [signal as usize, 0, action.as_mut_ptr() as usize, 8, 0, 0];
    // SAFETY: room for the kernel's structure.
    unsafe { call(libc::SYS_rt_sigaction, a) }.is_ok() && action[0] == libc::SIG_DFL
}

/// Lets one signal in.
pub fn unblock_signal(signal: i32) {
    let set = 1u64 << (signal - 1);
    let a = [libc::SIG_UNBLOCK as usize, &set as *const u64 as usize, 0, 8, 0, 0];
    // SAFETY: the word lives through the call; the kernel's signal set is 8 bytes.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, a) };
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
    /// SIGBUS in the thread that faulted. Needs no rights; faults of the kernel fail with EFAULT.
    Signal,
    /// A message to whoever reads the descriptor, for faults of the kernel too. Needs rights.
    Message,
    /// A message; faults of the kernel fail with EFAULT. Needs no rights.
    UserMessage,
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

/// Makes userfaultfds, now and in forked children. `/dev/userfaultfd` is opened once and kept: rights that a program drops, another root
/// folder and filters of system calls do not matter to what is open.
#[derive(Debug)]
pub struct Source {
    device: Option<OwnedFd>,
    notify: Notify,
    features: u64,
}

impl Source {
    /// Finds out how they are to be had, and what they can.
    ///
    /// # Errors
    /// What the kernel says; EPERM without rights.
    pub fn find(notify: Notify) -> Sys<Source> {
        let device = match notify {
            Notify::Message => Source::device().ok(),
            Notify::Signal | Notify::UserMessage => None,
        };
        let mut source = Source { device, notify, features: 0 };
        let fd = source.fd().or_else(|error| {
            // Where the system call is forbidden altogether, the device may not be.
            source.device = Source::device().ok();
            if source.device.is_some() {
                source.fd()
            } else {
                Err(error)
            }
        })?;
        source.features = Uffd::features(&fd)?;
        Ok(source)
    }

    /// Whether faults of the kernel are reported too.
    pub fn serves_kernel(&self) -> bool {
        self.notify == Notify::Message
    }

    /// The device's descriptor, where it is kept.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.device.as_ref().map(AsRawFd::as_raw_fd)
    }

    fn device() -> Sys<OwnedFd> {
        let path = c"/dev/userfaultfd".as_ptr() as usize;
        let open = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        // SAFETY: the path is a C string; the descriptor is new and ours.
        let device = unsafe {
            let device = call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, open, 0, 0, 0])?;
            OwnedFd::from_raw_fd(device as RawFd)
        };
        Ok(move_high(device))
    }

    fn fd(&self) -> Sys<OwnedFd> {
        const USERFAULTFD_IOC_NEW: usize = 0xAA00;
        let user_only = if self.serves_kernel() { 0 } else { k::UFFD_USER_MODE_ONLY as usize };
        let flags = libc::O_CLOEXEC as usize | user_only;
        // SAFETY: no pointers; the descriptor is new and ours.
        unsafe {
            let fd = match &self.device {
                Some(device) => {
                    call(libc::SYS_ioctl, [device.as_raw_fd() as usize, USERFAULTFD_IOC_NEW, flags, 0, 0, 0])
                }
                None => call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]),
            }?;
            Ok(OwnedFd::from_raw_fd(fd as RawFd))
        }
    }

    /// A new one, for the memory of this process.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn make(&self) -> Sys<Uffd> {
        let fd = move_high(self.fd()?);
        let how = match self.notify {
            Notify::Signal => k::UFFD_FEATURE_SIGBUS,
            Notify::Message | Notify::UserMessage => k::UFFD_FEATURE_THREAD_ID,
        };
        let wanted = u64::from(k::UFFD_FEATURE_PAGEFAULT_FLAG_WP | how);
        let moves = self.features & u64::from(k::UFFD_FEATURE_MOVE);
        let mut api = k::uffdio_api { api: k::UFFD_API.into(), features: wanted | moves, ioctls: 0 };
        ioctl(&fd, ioctl::UFFDIO_API, &mut api)?;
        Ok(Uffd { fd, can_move: moves != 0 })
    }
}

impl Uffd {
    /// Opens one.
    ///
    /// # Errors
    /// What the kernel says; EPERM without rights.
    pub fn open(notify: Notify) -> Sys<Uffd> {
        Source::find(notify)?.make()
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
        crate::pause::here();
        let mode = COPY_DONTWAKE | if protected { COPY_WP } else { 0 };
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, ioctl::UFFDIO_COPY, &mut k::uffdio_copy { dst, src, len, mode, copy: 0 }))
    }

    /// Moves a page of this process to an empty place; wakes nobody. EBUSY where the frame is shared or pinned.
    pub fn move_page(&self, to: usize, from: usize) -> Sys<()> {
        crate::pause::here();
        let (dst, src, len) = (to as u64, from as u64, crate::PAGE as u64);
        retry(|| ioctl(&self.fd, UFFDIO_MOVE, &mut k::uffdio_move { dst, src, len, mode: MOVE_DONTWAKE, move_: 0 }))
    }

    /// Lets writes fault, or not; wakes nobody.
    pub fn protect(&self, range: Range<usize>, on: bool) -> Sys<()> {
        crate::pause::here();
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
