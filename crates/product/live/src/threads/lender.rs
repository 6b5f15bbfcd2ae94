//! The thread that gives frames back when another process of the run asks for them (`stats/shares.rs`). It sleeps until
//! then. It is the owner of the process's place: when it is gone, the kernel marks the place, and the frames are the
//! others'.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering::*};

use crate::region::ManagedMemory;
use crate::sys::thread::{spawn, RawThread, THREAD};
use crate::sys::{self, Sys};

/// A guess: pins last for a moment, or for long.
const LATER_US: u64 = 1_000_000;

struct LenderStart {
    managed: *const ManagedMemory,
    ready: AtomicU32,
}

/// `struct robust_list_head` (`include/uapi/linux/futex.h`), and its only entry behind it.
#[repr(C)]
struct RobustList {
    next: usize,
    /// From an entry to its futex.
    offset: isize,
    pending: usize,
    entry: usize,
}

/// Starts it; it has its place when this returns.
///
/// # Safety
/// The pager lives as long as the process that the thread is in.
pub unsafe fn start(managed: &ManagedMemory) -> Sys<RawThread> {
    let mut start = LenderStart { managed, ready: AtomicU32::new(0) };
    // SAFETY: `start` lives until the thread is ready.
    let thread = unsafe { spawn(run, (&raw mut start).cast(), THREAD) }?;
    while start.ready.load(Acquire) == 0 {
        sys::futex_wait(&start.ready, 0);
    }
    Ok(thread)
}

unsafe extern "C" fn run(start: *mut c_void) {
    // SAFETY: `start` waits until `ready` is set; the pager outlives this thread.
    let (start, managed) = unsafe { (&*start.cast::<LenderStart>(), &*(*start.cast::<LenderStart>()).managed) };
    let share = &managed.memory().share;
    let mut list = RobustList { next: 0, offset: 0, pending: 0, entry: 0 };
    list.next = &raw const list.entry as usize;
    list.entry = &raw const list as usize;
    let (address, entry) = (&raw mut list, list.next as isize);
    // SAFETY: the list lives as long as this thread.
    let robust = unsafe { sys::call(libc::SYS_set_robust_list, [address as usize, 24, 0, 0, 0, 0]) };
    let mark = |word: &AtomicU32| {
        // SAFETY: the list is this thread's. The kernel reads it at the thread's end.
        unsafe { (&raw mut (*address).offset).write_volatile(word.as_ptr() as isize - entry) };
    };
    let claim = || managed.stats.shares.claim(sys::thread(), share.frames(), share.floor(), mark);
    // Where a filter of the program's refuses the list, nobody would get the frames back.
    share.set_place(if robust.is_ok() { claim() } else { None });
    start.ready.store(1, Release);
    sys::futex_wake(&start.ready, 1);
    let Some(place) = share.place() else { return managed.give_back(usize::MAX) };
    share.ask_for_excess();
    loop {
        match place.asked.load(SeqCst) {
            // What it could not give for a while, it may be able to give later.
            0 if place.floor.load(Relaxed) as usize > share.floor() => {
                sys::futex_wait_shared(&place.asked, 0, Some(LATER_US));
                share.set_floor(share.floor());
            }
            0 => sys::futex_wait_shared(&place.asked, 0, None),
            asked => {
                managed.give_back(asked as usize);
                place.asked.store(0, SeqCst);
            }
        }
    }
}
