//! Signals of the calling thread.

use super::call;

/// Blocks every signal of this thread and returns the old mask.
pub fn block_signals() -> u64 {
    let (all, mut old) = (u64::MAX, 0u64);
    let (new, was) = (&all as *const u64 as usize, &mut old as *mut u64 as usize);
    // SAFETY: both words live through the call; the kernel's signal set is 8 bytes.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, new, was, 8, 0, 0]) };
    old
}

/// Takes a pending signal of this thread away, if there is one.
pub fn take_signal(signal: i32) {
    let (set, none) = (1u64 << (signal - 1), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let a = [&set as *const u64 as usize, 0, &none as *const _ as usize, 8, 0, 0];
    // SAFETY: both live through the call; the kernel's signal set is 8 bytes.
    let _ = unsafe { call(libc::SYS_rt_sigtimedwait, a) };
}

/// Restores a mask that `block_signals` returned.
pub fn restore_signals(mask: u64) {
    // SAFETY: the word lives through the call.
    let _ = unsafe {
        call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, &mask as *const u64 as usize, 0, 8, 0, 0])
    };
}

/// Signals are blocked while it lives: a handler of the program must not fault while this thread holds a lock.
pub struct Signals(u64);

impl Signals {
    pub fn block() -> Signals {
        Signals(block_signals())
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        restore_signals(self.0);
    }
}
