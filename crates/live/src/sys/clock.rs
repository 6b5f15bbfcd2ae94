//! The clock, read as the C library reads it: by the function that the kernel maps into each process (vDSO). The C
//! library's own `clock_gettime` may be replaced by the program's, which must not run in the pager's threads. A bare
//! call would do, but takes 20 times as long.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{clock, symbol_in};

#[cfg(target_arch = "x86_64")]
const NAME: &CStr = c"__vdso_clock_gettime";
#[cfg(target_arch = "aarch64")]
const NAME: &CStr = c"__kernel_clock_gettime";

/// The function's address; 0: not found, or not looked for. The same in a forked child.
static FUNCTION: AtomicUsize = AtomicUsize::new(0);

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    type Function = unsafe extern "C" fn(i32, *mut libc::timespec) -> i32;
    match FUNCTION.load(Relaxed) {
        0 => clock(libc::CLOCK_MONOTONIC as isize),
        function => {
            let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the kernel's function of that name has that type.
            unsafe { std::mem::transmute::<usize, Function>(function)(libc::CLOCK_MONOTONIC, &raw mut t) };
            t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
        }
    }
}

/// Looks for the function; before the first fault.
pub fn find() {
    // SAFETY: the kernel maps a whole and correct ELF file there, or says 0.
    let function = unsafe {
        let base = libc::getauxval(libc::AT_SYSINFO_EHDR) as usize;
        Some(base).filter(|base| *base != 0).and_then(|base| symbol_in(base, NAME))
    };
    FUNCTION.store(function.unwrap_or(0), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_function_gives_the_time_of_the_bare_call() {
        let bare = now();
        find();
        assert_ne!(FUNCTION.load(Relaxed), 0);
        let (here, later) = (now(), std::time::Duration::from_secs(60));
        assert!(here >= bare && here - bare < later.as_nanos() as u64);
    }
}
