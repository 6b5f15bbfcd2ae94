//! sbrk and brk, for the C library's malloc and for the program: the break is in managed memory, in a part of the span
//! where no other mapping comes before all else is taken. What the C library got before this library has started
//! stays the kernel's.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use coldframe_live::{Spot, PAGE};

use crate::managed::{gate, memory, pins};
use crate::say::once;
use crate::symbols::caller;
use crate::symbols::libc_symbols::Symbol;
use crate::symbols::next::call_at;
use crate::symbols::shim::with_caller;
use crate::sys::{self, Lock};

/// This part of the span, its end, is for the break. Then allocators continue with mmap.
const SHARE: usize = 8;

/// Its start and present value; both zero before the first call.
#[derive(Clone, Copy)]
struct Bounds {
    start: usize,
    at: usize,
}

static BREAK: Lock<Bounds> = Lock::new(Bounds { start: 0, at: 0 });

/// The C library's malloc has memory behind the kernel's break, and takes a break below that for a mistake. If a call
/// fails once, it knows that its memory is in several pieces.
static IS_CUT: AtomicBool = AtomicBool::new(false);

/// Call this before the C library's malloc comes here. What malloc has behind the kernel's break and does not use, it
/// gives back; the last page is filled, so that the program's own blocks come from managed memory.
pub fn start() {
    // SAFETY: the C library's variable of that name: the break; null before its first call.
    let before = unsafe { (Symbol::own(c"__curbrk").address() as *const usize).as_ref() };
    // SAFETY: may be called at any time; a block may be as large as the free memory at the end, without its head.
    unsafe {
        libc::malloc_trim(0);
        let own = Symbol::own(c"__libc_malloc").address();
        let rest = (libc::mallinfo().keepcost as usize).saturating_sub(40);
        let _: *mut c_void = if own == 0 { null_mut() } else { call_at!(own, (rest)) };
    }
    IS_CUT.store(before.is_none_or(|at| *at != 0), Relaxed);
}

/// For calls before the start: the C library's own, since another library's may call this one's.
static SBRK: Symbol = Symbol::own(c"sbrk");
static BRK: Symbol = Symbol::own(c"brk");

fn concerns(caller: usize) -> bool {
    memory::ready() && !caller::is_own(caller) && !caller::is_linker(caller)
}

/// Moves the break to the result of `to` for the present one. Returns the old break; `None`: no room, and `errno` says
/// so.
fn set(to: impl FnOnce(usize) -> Option<usize>) -> Option<usize> {
    let _inside = gate::enter();
    let old = sys::undisturbed(|| BREAK.with(|bounds| moved(bounds, to)));
    if old.is_none() {
        sys::set_errno(libc::ENOMEM);
    }
    old
}

fn moved(bounds: &mut Bounds, to: impl FnOnce(usize) -> Option<usize>) -> Option<usize> {
    let span = memory::span();
    if bounds.start == 0 {
        bounds.start = (span.end - span.len() / SHARE).next_multiple_of(PAGE);
        bounds.at = bounds.start;
    }
    let (old, new) = (bounds.at, to(bounds.at)?);
    let (had, has) = (old.next_multiple_of(PAGE), new.checked_next_multiple_of(PAGE)?);
    if !(bounds.start..=span.end).contains(&new) {
        return None;
    }
    if had < has {
        memory::map_at(Spot::Free(had), has - had, libc::PROT_READ | libc::PROT_WRITE).ok()?;
    } else if has < had {
        pins::unmap(has..had).ok()?;
    }
    bounds.at = new;
    Some(old)
}

// tcmalloc replaces `sbrk` and calls the second.
with_caller!(sbrk, __sbrk(1) => sbrk_from);
unsafe extern "C" fn sbrk_from(by: isize, caller: usize) -> *mut c_void {
    let none = usize::MAX as *mut c_void;
    if !concerns(caller) {
        // SAFETY: the C library's function of that name has that type.
        return if SBRK.address() == 0 { none } else { unsafe { call_at!(SBRK.address(), (by)) } };
    }
    let mallocs = caller::is_libc(caller);
    if mallocs && by > 0 && IS_CUT.swap(false, Relaxed) {
        sys::set_errno(libc::ENOMEM);
        return none;
    }
    let old = set(|at| at.checked_add_signed(by));
    if old.is_none() && !mallocs {
        once!("sbrk gives the program an eighth of --max-memory at most; more is to be had with mmap");
    }
    old.map_or(none, |old| old as *mut c_void)
}

with_caller!(brk(1) => brk_from);
unsafe extern "C" fn brk_from(to: *mut c_void, caller: usize) -> c_int {
    if !concerns(caller) {
        // SAFETY: as above.
        return if BRK.address() == 0 { -1 } else { unsafe { call_at!(BRK.address(), (to)) } };
    }
    set(|_| Some(to as usize)).map_or(-1, |_| 0)
}
