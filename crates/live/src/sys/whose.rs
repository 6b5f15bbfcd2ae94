//! Whose memory it is: a keeper's threads work in the memory of another process, its program.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::getpid;

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
