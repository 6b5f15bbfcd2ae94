//! The system calls that the pager needs.
//!
//! They are made without libc. So they do not touch `errno`, which a signal handler must leave alone, and no library
//! that interposes libc's functions can catch them; our own preload library is such a library.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;

use rustix::pipe::{fcntl_setpipe_size, pipe_with, PipeFlags};
use rustix::thread::futex;
use rustix::time::{clock_gettime_dynamic, ClockId, DynamicClockId, Timespec};

pub mod descriptors;
mod errno;
pub mod fatal;
mod leaving;
pub mod lock;
mod own;
pub mod own_descriptors;
pub mod own_range;
pub mod pause;
pub mod pids;
mod process;
pub mod rights;
mod signals;
pub mod sockets;
mod symbols;
pub mod sync;
pub mod table;
pub mod thread;
mod uffd;

pub(crate) use descriptors::{move_high, move_high_inherited, with_room, High};
pub use errno::words;
pub use leaving::{
    drop_pages, iovec, is_there, peek_elsewhere, put_back, read_pipe, set_apart, to_pipe, write_pipe, OwnMemory,
};
pub use own::Own;
pub use process::{adopts_orphans, await_events, await_events_for, close_range, deadly_pipe, disarm, dup_onto};
pub use process::{inherit_as, is_open};
pub use process::{leave_group_and_folder, lift_limits, move_to, reap};
pub use rustix::io::{retry_on_intr as again, Errno};
pub use rustix::thread::sched_yield as give_way;
pub use signals::{block_signals, restore_signals, take_signal, Signals};
pub use symbols::symbol_in;
pub use uffd::{Message, Notify, Source, Uffd};

pub type Sys<T> = rustix::io::Result<T>;

/// One system call, as the kernel answers it: a negative result is an error number. Absent arguments are zeros.
///
/// # Safety
/// As for the system call: pointers must be what the kernel expects of them.
pub unsafe fn raw(number: libc::c_long, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; the caller answers for the arguments.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a[0], in("rsi") a[1],
            in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _,
            options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("svc 0", in("x8") number, inlateout("x0") a[0] as isize => result, in("x1") a[1], in("x2") a[2],
            in("x3") a[3], in("x4") a[4], in("x5") a[5], options(nostack));
    }
    result
}

/// The same as a result.
///
/// # Safety
/// As for `raw`.
pub unsafe fn call(number: libc::c_long, a: [usize; 6]) -> Sys<usize> {
    // SAFETY: the caller answers for it.
    match unsafe { raw(number, a) } {
        error @ -4095..=-1 => Err(Errno::from_raw_os_error(-error as i32)),
        value => Ok(value as usize),
    }
}

/// Nanoseconds of the monotonic clock, read by the function that the kernel maps into each process (vDSO). The C
/// library's own `clock_gettime` may be replaced by the program's, which must not run in the pager's threads. A bare
/// call would do, but takes 20 times as long.
pub fn now() -> u64 {
    clock_gettime_dynamic(DynamicClockId::Known(ClockId::Monotonic))
        .map_or(0, |t| t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Nanoseconds of processor time of a thread of this process; 0: there is no such thread. `linux/posix-timers.h`: a
/// thread's clock is its number, inverted, above the bits for a thread's clock (4) and for the scheduler's own count
/// (2).
pub fn thread_time(thread: u32) -> u64 {
    if thread == 0 {
        return 0;
    }
    clock((!(thread as isize) << 3) | 6)
}

/// Nanoseconds of processor time of this process, including threads that have ended.
pub fn process_time() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID as isize)
}

fn clock(clock: isize) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec.
    match unsafe { call(libc::SYS_clock_gettime, [clock as usize, &raw mut t as usize, 0, 0, 0, 0]) } {
        Ok(_) => t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64,
        Err(_) => 0,
    }
}

/// Opens a file, closed on exec; a relative path begins at `folder`.
pub fn open_at(folder: RawFd, path: &CStr, flags: i32, mode: usize) -> Sys<OwnedFd> {
    let a = [folder as usize, path.as_ptr() as usize, (flags | libc::O_CLOEXEC) as usize, mode, 0, 0];
    // SAFETY: the path is a C string; the descriptor is new and ours.
    unsafe { again(|| call(libc::SYS_openat, a)).map(|fd| OwnedFd::from_raw_fd(fd as RawFd)) }
}

pub fn open_file(path: &CStr) -> Sys<OwnedFd> {
    open_at(libc::AT_FDCWD, path, libc::O_RDONLY, 0)
}

/// Reads the beginning of a file, as much as fits; 0: it cannot be read.
pub fn read_start(fd: i32, into: &mut [u8]) -> usize {
    // SAFETY: `into` has room for this many bytes.
    unsafe { read_at(fd, into.as_mut_ptr() as usize, into.len(), 0) }.unwrap_or(0)
}

/// Reads the beginning of a file that is opened only for this; 0: it cannot be read. Do not use it while the
/// program's threads run: the descriptor may have a number that they expect.
pub fn read_file(path: &CStr, into: &mut [u8]) -> usize {
    open_file(path).map_or(0, |file| read_start(file.as_raw_fd(), into))
}

fn timespec(us: u64) -> Timespec {
    Timespec { tv_sec: (us / 1_000_000) as i64, tv_nsec: (us % 1_000_000 * 1000) as i64 }
}

/// Sleeps.
pub fn sleep_us(us: u64) {
    let _ = rustix::thread::nanosleep(&timespec(us));
}

/// The kernel's number of this thread.
pub fn thread() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// Sleeps while `word` is `value`, or until woken.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, None);
}

/// Sleeps while `word` is `value`, until woken, or for at most `us` microseconds.
pub fn futex_wait_for(word: &AtomicU32, value: u32, us: u64) {
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, Some(&timespec(us)));
}

/// Wakes up to `count` sleepers.
pub fn futex_wake(word: &AtomicU32, count: usize) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, count as u32);
}

/// Like `futex_wait`, for a word that the kernel clears when a thread ends. The kernel wakes such waiters by a shared
/// futex. At most `us` microseconds, if there is such a number.
pub fn futex_wait_shared(word: &AtomicU32, value: u32, us: Option<u64>) {
    let _ = futex::wait(word, futex::Flags::empty(), value, us.map(timespec).as_ref());
}

pub fn futex_wake_shared(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Writes text to stderr, in any state of the process. Returns false if there is none.
pub fn say(text: &str) -> bool {
    // SAFETY: the bytes live through the call.
    let written = unsafe { call(libc::SYS_write, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
    written != Err(Errno::BADF)
}

/// Ends the process at once.
pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: does not return.
        let _ = unsafe { call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Private anonymous memory, zero and without RAM until it is touched.
pub fn map_memory(len: usize) -> Sys<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let start = map(usize::MAX, len, libc::PROT_READ | libc::PROT_WRITE, flags)?;
    // SAFETY: says only that a core dump of the program has no use for it.
    let _ = unsafe { advise(start..start + len, libc::MADV_DONTDUMP) };
    Ok(start)
}

/// Runs `work` while `len` bytes of address space are mapped that nobody can use.
pub fn with_address_space<T>(len: usize, work: impl FnOnce() -> T) -> Sys<T> {
    let at = map(usize::MAX, len, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE)?;
    let result = work();
    // SAFETY: no other code knows it.
    unsafe { unmap_memory(at, len) };
    Ok(result)
}

/// Shared memory, zero and without RAM until it is touched; forked children have it, too.
pub fn map_shared(len: usize) -> Sys<usize> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(usize::MAX, len, libc::PROT_READ | libc::PROT_WRITE, flags)
}

pub fn map_file(fd: RawFd, len: usize, rights: i32) -> Sys<usize> {
    map(fd as usize, len, rights, libc::MAP_SHARED)
}

fn map(fd: usize, len: usize, rights: i32, flags: i32) -> Sys<usize> {
    // SAFETY: takes unused address space.
    own_range::place(len, |at, fixed| unsafe {
        call(libc::SYS_mmap, [at, len, rights as usize, (flags | fixed) as usize, fd, 0])
    })
}

/// Unmaps memory.
///
/// # Safety
/// No thread may use it any more.
pub unsafe fn unmap_memory(address: usize, len: usize) {
    // SAFETY: the caller answers for it.
    let _ = unsafe { call(libc::SYS_munmap, [address, len, 0, 0, 0, 0]) };
}

pub fn set_rights(range: &Range<usize>, rights: i32) -> Sys<()> {
    // SAFETY: changes no content; a thread that loses a right faults where it uses it.
    unsafe { call(libc::SYS_mprotect, [range.start, range.len(), rights as usize, 0, 0, 0]) }.map(drop)
}

pub fn with_memory<T>(len: usize, work: impl FnOnce(usize) -> T) -> Sys<T> {
    let address = map_memory(len)?;
    let result = work(address);
    // SAFETY: no other code knows it.
    unsafe { unmap_memory(address, len) };
    Ok(result)
}

/// Advice on memory.
///
/// # Safety
/// MADV_DONTNEED drops content.
pub unsafe fn advise(range: Range<usize>, advice: i32) -> Sys<()> {
    // SAFETY: the caller answers for it.
    unsafe { call(libc::SYS_madvise, [range.start, range.len(), advice as usize, 0, 0, 0]) }.map(drop)
}

/// Drops the content of a range, even if the program has locked all of its memory (`mlockall`). Kernels before 5.18
/// cannot drop locked memory.
///
/// # Safety
/// The content must not be needed any more.
pub unsafe fn drop_range(range: Range<usize>) -> Sys<()> {
    // SAFETY: the caller answers for the content.
    match unsafe { advise(range.clone(), libc::MADV_DONTNEED) } {
        Err(Errno::INVAL) => unsafe { advise(range, MADV_DONTNEED_LOCKED) },
        other => other,
    }
}

/// `include/uapi/asm-generic/mman-common.h`.
const MADV_DONTNEED_LOCKED: i32 = 24;

pub fn getpid() -> usize {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.unwrap_or(0)
}

pub fn pidfd(process: usize) -> Sys<OwnedFd> {
    // SAFETY: no pointers; the descriptor is new and ours.
    unsafe { call(libc::SYS_pidfd_open, [process, 0, 0, 0, 0, 0]).map(|fd| OwnedFd::from_raw_fd(fd as RawFd)) }
}

pub fn own_pidfd() -> Sys<OwnedFd> {
    pidfd(getpid())
}

/// A pipe for pages that leave, closed on exec. It has room for `bytes` bytes if the kernel allows this user that many:
/// without rights, all pipes of one user have 64 MiB (fs.pipe-user-pages-soft), and further ones two pages each.
pub fn pipe(bytes: usize) -> Sys<(OwnedFd, OwnedFd)> {
    let pair = pipe_with(PipeFlags::CLOEXEC)?;
    if bytes > 0 {
        let _ = fcntl_setpipe_size(&pair.1, bytes);
    }
    Ok(pair)
}

/// Whether the kernel merges equal pages of this process, or has a swap device.
pub fn merges_or_swaps() -> bool {
    // include/uapi/linux/prctl.h.
    const PR_GET_MEMORY_MERGE: usize = 68;
    // SAFETY: no pointers.
    let merges = unsafe { call(libc::SYS_prctl, [PR_GET_MEMORY_MERGE, 0, 0, 0, 0, 0]) };
    merges == Ok(1) || sysinfo().is_ok_and(|info| info.totalswap > 0)
}

pub fn all_ram() -> u64 {
    sysinfo().map_or(1 << 30, |info| info.totalram * u64::from(info.mem_unit))
}

/// A filter of the program's may refuse it.
fn sysinfo() -> Sys<libc::sysinfo> {
    // SAFETY: zero is a value of the structure, which lives through the call.
    unsafe {
        let mut info = std::mem::zeroed();
        call(libc::SYS_sysinfo, [&raw mut info as usize, 0, 0, 0, 0, 0]).map(|_| info)
    }
}

/// One read at an offset; it may be short.
///
/// # Safety
/// `into` must be good for `len` bytes.
pub unsafe fn read_at(fd: RawFd, into: usize, len: usize, offset: u64) -> Sys<usize> {
    // SAFETY: the caller answers for the memory.
    again(|| unsafe { call(libc::SYS_pread64, [fd as usize, into, len, offset as usize, 0, 0]) })
}

/// One write at an offset; it may be short.
///
/// # Safety
/// `from` must be good for `len` bytes.
pub unsafe fn write_at(fd: RawFd, from: usize, len: usize, offset: u64) -> Sys<usize> {
    // SAFETY: the caller answers for the memory.
    again(|| unsafe { call(libc::SYS_pwrite64, [fd as usize, from, len, offset as usize, 0, 0]) })
}

pub(crate) fn ioctl<T>(fd: &OwnedFd, number: u32, argument: &mut T) -> Sys<()> {
    let argument = argument as *mut T as usize;
    // SAFETY: each number comes with the structure that the kernel expects of it.
    again(|| unsafe { call(libc::SYS_ioctl, [fd.as_raw_fd() as usize, number as usize, argument, 0, 0, 0]) }).map(drop)
}
