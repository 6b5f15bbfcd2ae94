//! Whose memory it is: a keeper's threads work in the memory of another process, its program.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::getpid;

/// Numbers of the program's process and of its keeper's; 0: the pager's threads are in the program's process.
static PROGRAM: AtomicUsize = AtomicUsize::new(0);
static KEEPER: AtomicUsize = AtomicUsize::new(0);

/// The calling process is about to start a keeper.
pub fn is_program() {
    PROGRAM.store(getpid(), Relaxed);
}

/// The calling process is the keeper.
pub fn is_keeper() {
    KEEPER.store(getpid(), Relaxed);
}

/// In a forked child: the keeper is the parent's.
pub fn has_no_keeper() {
    KEEPER.store(0, Relaxed);
}

/// The program that has a keeper.
pub fn program() -> usize {
    PROGRAM.load(Relaxed)
}

/// Whether the calling thread is in a program with a keeper: it does not have the keeper's descriptors.
pub fn is_elsewhere() -> bool {
    let keeper = KEEPER.load(Relaxed);
    keeper != 0 && keeper != getpid()
}

/// The process whose memory this is: for a keeper, that of its program.
pub fn process() -> usize {
    let me = getpid();
    if me == KEEPER.load(Relaxed) {
        program()
    } else {
        me
    }
}
