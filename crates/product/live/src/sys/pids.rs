//! The program's process and the pager process, which works in the program's memory.

use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

use super::{getpid, open_file, read_start};
use crate::PAGE;

/// Process ids of the program and of its pager process; 0: the pager's threads are in the program's process. A pager
/// process sets the second when it begins, and a forked child clears it.
pub static PROGRAM: AtomicUsize = AtomicUsize::new(0);
pub static PAGER: AtomicUsize = AtomicUsize::new(0);

/// By this name top and gdb show the pager process.
pub const PAGER_NAME: &std::ffi::CStr = c"coldframe-pager";

/// Whether the calling thread is in a program with a pager process, whose descriptors it does not have.
pub fn pager_is_elsewhere() -> bool {
    let pager = PAGER.load(Relaxed);
    pager != 0 && pager != getpid()
}

/// The process that this memory belongs to: for a pager process, the program.
pub fn program() -> usize {
    let (me, pager) = (getpid(), PAGER.load(Relaxed));
    if me == pager {
        PROGRAM.load(Relaxed)
    } else {
        me
    }
}

/// In a pager process: `/proc/self/status`, which also describes the memory that it shares.
static STATUS: AtomicI32 = AtomicI32::new(-1);

/// A pager process begins: it will check for pinned memory.
pub fn open_status() {
    STATUS.store(open_file(c"/proc/self/status").map_or(-1, IntoRawFd::into_raw_fd), Relaxed);
}

pub fn is_pager() -> bool {
    PAGER.load(Relaxed) == getpid()
}

/// In a pager process: pages of the program that are pinned permanently (`VmPin`), buffers of an io_uring or of RDMA.
pub fn pinned_pages() -> usize {
    let mut text = [0u8; 2048];
    let len = read_start(STATUS.load(Relaxed), &mut text);
    let mut lines = text[..len].split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"VmPin:")).unwrap_or_default();
    let digits = line.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |kib, digit| 10 * kib + usize::from(digit - b'0')) / (PAGE >> 10)
}
