//! sbrk and brk for the program. An allocator that grows its heap this way (tcmalloc, shells) gets managed memory.
//! The C library's heap keeps the kernel's break, since it does not use these names.

use std::ffi::{c_int, c_void};

use coldframe_live::PAGE;

use crate::managed::{gate, memory};
use crate::say::once;
use crate::symbols::caller;
use crate::symbols::next::next;
use crate::symbols::shim::with_caller;
use crate::sys::{self, Lock};

/// The most that a program can get by this; an allocator then continues with mmap. Never more than a quarter of all
/// managed memory.
const MOST: usize = 1 << 30;

/// Its start, present value and end; all zero before the first call.
#[derive(Clone, Copy)]
struct Bounds {
    start: usize,
    at: usize,
    end: usize,
}

static BREAK: Lock<Bounds> = Lock::new(Bounds { start: 0, at: 0, end: 0 });

fn concerns(caller: usize) -> bool {
    memory::ready() && !caller::is_own(caller) && !caller::is_libc(caller) && !caller::is_linker(caller)
}

/// Moves the break to the result of `to` for the present one. Returns the old break; `None`: no room, and `errno` says
/// so.
fn set(to: impl FnOnce(usize) -> Option<usize>) -> Option<usize> {
    let _inside = gate::enter();
    let old = sys::undisturbed(|| {
        BREAK.with(|bounds| {
            if bounds.start == 0 {
                let len = MOST.min(memory::span().len() / 4 / PAGE * PAGE);
                bounds.start = memory::map(len, PAGE).ok()?;
                (bounds.at, bounds.end) = (bounds.start, bounds.start + len);
            }
            let (old, new) = (bounds.at, to(bounds.at)?);
            if !(bounds.start..=bounds.end).contains(&new) {
                return None;
            }
            if new < old {
                give_back(new, old);
            }
            bounds.at = new;
            Some(old)
        })
    });
    if old.is_none() {
        once!("sbrk gives the program {MOST} bytes at most; more is to be had with mmap");
        sys::set_errno(libc::ENOMEM);
    }
    old
}

/// Returned memory reads as zeros when it is used again.
fn give_back(from: usize, to: usize) {
    let (first, last) = (from.next_multiple_of(PAGE), to.next_multiple_of(PAGE));
    if first < last {
        memory::discard(first..last);
    }
    // SAFETY: below the break until now, and the program's no more.
    unsafe { std::ptr::write_bytes(from as *mut u8, 0, first.min(to) - from) };
}

// tcmalloc replaces `sbrk` and calls the second.
with_caller!(sbrk, __sbrk(1) => sbrk_from);
unsafe extern "C" fn sbrk_from(by: isize, caller: usize) -> *mut c_void {
    let none = usize::MAX as *mut c_void;
    if !concerns(caller) {
        return next!(SBRK, (by), none);
    }
    set(|at| at.checked_add_signed(by)).map_or(none, |old| old as *mut c_void)
}

with_caller!(brk(1) => brk_from);
unsafe extern "C" fn brk_from(to: *mut c_void, caller: usize) -> c_int {
    if !concerns(caller) {
        return next!(BRK, (to), -1);
    }
    set(|_| Some(to as usize)).map_or(-1, |_| 0)
}
