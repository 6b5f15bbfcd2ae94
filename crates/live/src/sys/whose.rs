//! Whose memory it is: a keeper's threads work in the memory of another process, its program.

use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

use super::{getpid, open_file, read_start};

/// Numbers of the program's process and of its keeper's; 0: the pager's threads are in the program's process. A keeper
/// sets the second when it begins, and a forked child clears it.
pub static PROGRAM: AtomicUsize = AtomicUsize::new(0);
pub static KEEPER: AtomicUsize = AtomicUsize::new(0);

/// Whether the calling thread is in a program with a keeper: it does not have the keeper's descriptors.
pub fn is_elsewhere() -> bool {
    let keeper = KEEPER.load(Relaxed);
    keeper != 0 && keeper != getpid()
}

/// The process whose memory this is: for a keeper, that of its program.
pub fn process() -> usize {
    let (me, keeper) = (getpid(), KEEPER.load(Relaxed));
    if me == keeper {
        PROGRAM.load(Relaxed)
    } else {
        me
    }
}

/// In a keeper: what the kernel tells of it, and so of the memory that it shares.
static STATUS: AtomicI32 = AtomicI32::new(-1);

/// A keeper begins: it will ask whether memory is held.
pub fn open_status() {
    STATUS.store(open_file(c"/proc/self/status").map_or(-1, IntoRawFd::into_raw_fd), Relaxed);
}

/// Whether the calling thread is in a keeper.
pub fn is_here() -> bool {
    KEEPER.load(Relaxed) == getpid()
}

/// In a keeper: whether the kernel holds memory of the program for good (`VmPin`), buffers of an io_uring or of RDMA.
pub fn is_held() -> bool {
    let mut text = [0u8; 2048];
    let len = read_start(STATUS.load(Relaxed), &mut text);
    let mut lines = text[..len].split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"VmPin:")).unwrap_or_default();
    line.iter().any(|byte| (b'1'..=b'9').contains(byte))
}
