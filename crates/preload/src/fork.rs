//! Fork. The handlers are registered before all others, so that `prepare` runs last and `child` runs first: other libraries'
//! handlers find their memory in both.
//!
//! ```text
//! prepare: the C library's list of files ─ the heap's gate ─ the pager
//! (fork itself takes the list again, which the same thread may, and the C library's heap)
//! parent and child: the pager ─ the heap's gate ─ the list
//! ```
//!
//! The list comes first because a thread may hold it while it waits for a page (`fflush(NULL)` writes from any buffer), and once
//! the pager stands still it would wait for ever.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coldframe_live::PAGE;

use crate::memory::{self, backing, Backing};
use crate::{gate, sys};

extern "C" {
    fn _IO_list_lock();
    fn _IO_list_unlock();
    fn _IO_list_resetlock();
}

/// The part of the stack that a fork uses, where a program runs on a stack in managed memory (coroutines do).
const STACK: usize = 64 << 10;
/// Where that part was pinned, or 0.
static PINNED: AtomicUsize = AtomicUsize::new(0);

/// Registers the handlers.
pub fn register() {
    // SAFETY: the three are functions of that type and stay loaded.
    let result = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    assert_eq!(result, 0, "pthread_atfork");
}

unsafe extern "C" fn prepare() {
    // SAFETY: a recursive lock, opened in `parent` or made anew in `child`.
    unsafe { _IO_list_lock() };
    let here = Cell::new(0u8);
    let top = here.as_ptr() as usize / PAGE * PAGE;
    if memory::holds(top) && backing().pin(top - STACK, STACK + PAGE).is_ok() {
        PINNED.store(top - STACK, Relaxed);
    }
    gate::shut();
    if let Backing::Pager(pager) = backing() {
        pager.fork_prepare();
    }
}

fn unpin() {
    match PINNED.swap(0, Relaxed) {
        0 => (),
        from => backing().unpin(from, STACK + PAGE),
    }
}

unsafe extern "C" fn parent() {
    let errno = sys::errno();
    if let Backing::Pager(pager) = backing() {
        pager.fork_parent();
    }
    gate::open();
    unpin();
    // SAFETY: locked in `prepare`.
    unsafe { _IO_list_unlock() };
    sys::set_errno(errno);
}

unsafe extern "C" fn child() {
    if let Backing::Pager(pager) = backing() {
        pager.fork_child();
    }
    memory::keep();
    gate::open_in_child();
    unpin();
    // SAFETY: nobody else lives in this process.
    unsafe { _IO_list_resetlock() };
}
