//! mlock and related calls. Locks do not nest but the pager's pins do, so each extent records what is locked.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use coldframe_live::extents::Manner;
use coldframe_live::PAGE;

use crate::managed::memory;
use crate::managed::ranges::{concerns, failed, pages_or_errno, parts, pass, through, Owner};
use crate::say::once;

/// Calls `kernel` or `own` for each part, up to the first hole.
fn each(
    address: usize,
    len: usize,
    kernel: impl Fn(usize, usize) -> isize,
    own: impl Fn(Range<usize>, Manner) -> isize,
) -> c_int {
    // A lock covers every page of which it has a byte.
    let before = address % PAGE;
    let Some(range) = pages_or_errno(address - before, len.saturating_add(before), libc::EINVAL) else { return -1 };
    if !concerns(range.start, range.len()) {
        return kernel(address, len) as c_int;
    }
    let each = |part: Range<usize>, owner| match owner {
        Owner::Managed(manner) => own(part, manner),
        _ => kernel(part.start, part.len()),
    };
    memory::at_once(|| through(range, true, each))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mlock(address: *const c_void, len: usize) -> c_int {
    each(address as usize, len, |at, len| pass(libc::SYS_mlock, [at, len, 0, 0, 0, 0]), lock)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mlock2(address: *const c_void, len: usize, flags: u32) -> c_int {
    const ONFAULT: u32 = libc::MLOCK_ONFAULT;
    if flags & !ONFAULT != 0 {
        return failed(libc::EINVAL) as c_int;
    }
    let kernel = |at, len| pass(libc::SYS_mlock2, [at, len, flags as usize, 0, 0, 0]);
    match flags {
        ONFAULT => each(address as usize, len, kernel, lock_present),
        _ => each(address as usize, len, kernel, lock),
    }
}

fn lock(part: Range<usize>, manner: Manner) -> isize {
    // As in the kernel: inaccessible memory cannot be brought in.
    if manner.protection == 0 || manner.guarded {
        return failed(libc::ENOMEM);
    }
    if !manner.locked {
        if memory::pin(part.clone()).is_err() {
            return failed(libc::ENOMEM);
        }
        memory::note(part, |manner| manner.locked = true);
    }
    0
}

/// Locks pages that have content now. Pages that are touched later can still be paged out.
fn lock_present(part: Range<usize>, manner: Manner) -> isize {
    once!("mlock2 with MLOCK_ONFAULT locks only those managed pages that have content already");
    if manner.locked {
        return 0;
    }
    for content in memory::contents(part.clone()) {
        if memory::pin(content.clone()).is_err() {
            memory::unpin(part.start..content.start);
            return failed(libc::ENOMEM);
        }
    }
    memory::note(part, |manner| manner.locked = true);
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munlock(address: *const c_void, len: usize) -> c_int {
    each(address as usize, len, |at, len| pass(libc::SYS_munlock, [at, len, 0, 0, 0, 0]), unlock)
}

fn unlock(part: Range<usize>, manner: Manner) -> isize {
    if manner.locked {
        memory::unpin(part.clone());
        memory::note(part, |manner| manner.locked = false);
    }
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munlockall() -> c_int {
    if memory::ready() {
        for (part, owner) in parts(memory::span()) {
            if let Owner::Managed(manner) = owner {
                unlock(part, manner);
            }
        }
    }
    pass(libc::SYS_munlockall, [0; 6]) as c_int
}
