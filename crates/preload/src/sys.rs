//! System calls without the C library, since this crate replaces the C library's wrappers.

use std::arch::asm;
use std::sync::atomic::{AtomicU32, Ordering::*};

const FUTEX_WAIT_PRIVATE: usize = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
const FUTEX_WAKE_PRIVATE: usize = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;

/// One system call; a negative result is an error number.
///
/// # Safety
/// The caller answers for what the call does to memory.
#[cfg(target_arch = "x86_64")]
pub unsafe fn call(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel's calling convention; the caller answers for the rest.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
        in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack))
    };
    result
}

/// One system call; a negative result is an error number.
///
/// # Safety
/// The caller answers for what the call does to memory.
#[cfg(target_arch = "aarch64")]
pub unsafe fn call(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: as above.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b, in("x2") c, in("x3") d, in("x4") e,
        in("x5") f, options(nostack))
    };
    result
}

/// The result of the C library's wrappers: -1 and `errno`.
pub fn answer(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        set_errno(-result as i32);
        return -1;
    }
    result
}

/// The thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the C library gives every thread one.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// Sleeps while `word` is `value`; may wake without a reason.
pub fn futex_wait(word: &AtomicU32, value: u32) {
    let pointer = word.as_ptr() as usize;
    // SAFETY: the word outlives the call.
    unsafe { call(libc::SYS_futex, [pointer, FUTEX_WAIT_PRIVATE, value as usize, 0, 0, 0]) };
}

/// Wakes all who sleep on `word`.
pub fn futex_wake(word: &AtomicU32) {
    let pointer = word.as_ptr() as usize;
    // SAFETY: as above.
    unsafe { call(libc::SYS_futex, [pointer, FUTEX_WAKE_PRIVATE, i32::MAX as usize, 0, 0, 0]) };
}

/// Sleeps a little.
pub fn nap(microseconds: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: microseconds * 1000 };
    // SAFETY: reads `time`.
    unsafe { call(libc::SYS_nanosleep, [&raw const time as usize, 0, 0, 0, 0, 0]) };
}

/// Blocks all signals. Returns the old mask.
pub fn block_signals() -> u64 {
    let (all, mut before) = (u64::MAX, 0u64);
    let arguments = [libc::SIG_SETMASK as usize, &raw const all as usize, &raw mut before as usize, 8, 0, 0];
    // SAFETY: reads and writes masks of 8 bytes, which live in this frame.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Undoes `block_signals`.
pub fn restore_signals(before: u64) {
    let arguments = [libc::SIG_SETMASK as usize, &raw const before as usize, 0, 8, 0, 0];
    // SAFETY: as above.
    unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
}

/// Runs `work` with all signals blocked.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let before = block_signals();
    let result = work();
    restore_signals(before);
    result
}

/// A lock so small that one can see that it neither allocates nor calls other code.
pub struct Lock(AtomicU32);

impl Lock {
    /// Open.
    pub const fn new() -> Lock {
        Lock(AtomicU32::new(0))
    }

    /// Waits for it. 0: free, 1: held, 2: held and a thread may sleep.
    pub fn lock(&self) {
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.0.swap(2, Acquire) != 0 {
                futex_wait(&self.0, 2);
            }
        }
    }

    /// Frees it.
    pub fn unlock(&self) {
        if self.0.swap(0, Release) == 2 {
            futex_wake(&self.0);
        }
    }

    /// Runs `work` under the lock.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> T {
        self.lock();
        let result = work();
        self.unlock();
        result
    }
}
