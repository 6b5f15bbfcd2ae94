//! mremap. Managed memory grows in place if there is room. Otherwise it moves: pages with content are copied, others
//! are not.
//!
//! ```text
//!   from \ to      elsewhere or anywhere          a place in the span            a place outside
//!   managed        a new managed mapping          the same, in place of that     unmanaged memory, one message
//!   foreign        the kernel's; its old place is free space again
//!   outside        the kernel's                   the kernel's, foreign now      the kernel's
//! ```

use std::ffi::{c_int, c_void};
use std::ops::Range;

use coldframe_live::extents::Manner;
use coldframe_live::{Spot, PAGE};

use crate::managed::memory;
use crate::managed::pins;
use crate::managed::ranges::{concerns, failed, is_pagers, number, pages, parts, pass, Owner};
use crate::mappings::advice::{guard, GUARD_INSTALL};
use crate::say::{full, once};
use crate::sys;

const RIGHTS: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// The arguments of an mremap of the program, in whole pages.
struct MremapCall {
    from: Range<usize>,
    len: usize,
    flags: c_int,
    to: usize,
}

impl MremapCall {
    fn is(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    fn target(&self) -> Option<Range<usize>> {
        self.is(libc::MREMAP_FIXED).then_some(self.to..self.to + self.len)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let (at, to) = (old as usize, to as usize);
    let to_span = flags & libc::MREMAP_FIXED != 0 && concerns(to, new_len);
    if !concerns(at, old_len.max(1)) && !to_span {
        return pass(libc::SYS_mremap, [at, old_len, new_len, flags as usize, to, 0]) as *mut c_void;
    }
    let answer = match checked(at, old_len, new_len, flags, to) {
        Ok(call) => memory::at_once(|| resize(call)),
        Err(error) => failed(error),
    };
    answer as *mut c_void
}

/// The kernel's checks before it looks at the mapping.
fn checked(at: usize, old_len: usize, new_len: usize, flags: c_int, to: usize) -> Result<MremapCall, c_int> {
    const KNOWN: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let from = pages(at, old_len, libc::EINVAL)?;
    let len = new_len.checked_next_multiple_of(PAGE).filter(|len| *len > 0).ok_or(libc::EINVAL)?;
    let moves = flags & (libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) != 0;
    let stays = flags & libc::MREMAP_DONTUNMAP != 0;
    if flags & !KNOWN != 0 || moves && flags & libc::MREMAP_MAYMOVE == 0 || stays && from.len() != len {
        return Err(libc::EINVAL);
    }
    if flags & libc::MREMAP_FIXED != 0 && is_pagers(to, len) {
        return Err(libc::ENOMEM);
    }
    // A call of four arguments has anything in the fifth.
    let end = if moves { to.checked_add(len).ok_or(libc::EINVAL)? } else { 0 };
    // With MREMAP_DONTUNMAP the new address is checked, too, although it is only a hint then.
    if moves && (!to.is_multiple_of(PAGE) || from.start < end && to < from.end) {
        return Err(libc::EINVAL);
    }
    Ok(MremapCall { from, len, flags, to })
}

fn resize(call: MremapCall) -> isize {
    let first = call.from.start..call.from.end.max(call.from.start + PAGE);
    let there = parts(first);
    if there.len() > 1 && call.is(libc::MREMAP_FIXED) && call.len == call.from.len() {
        return each(&call, there);
    }
    match there[0].1 {
        Owner::Free => failed(libc::EFAULT),
        // A length of 0 would mean a second view of the same memory, which private memory does not have.
        Owner::Managed(_) if call.from.is_empty() => failed(libc::EINVAL),
        Owner::Managed(manner) => {
            // Guards do not cut a mapping.
            let whole = |manner: Manner| Manner { guarded: false, opened: false, ..manner };
            let manner = whole(manner);
            let same = |owner| matches!(owner, Owner::Managed(other) if whole(other) == manner);
            if there.iter().all(|(_, owner)| same(*owner)) {
                managed(call, manner)
            } else {
                failed(libc::EFAULT)
            }
        }
        _ if there.len() > 1 && call.len >= call.from.len() => failed(libc::EFAULT),
        owner => kernels(call, owner == Owner::Foreign),
    }
}

/// Moves several mappings, each to its new place, as Linux does from 6.17 on. Holes stay behind.
fn each(call: &MremapCall, there: Vec<(Range<usize>, Owner)>) -> isize {
    if there[0].1 == Owner::Free {
        return failed(libc::EFAULT);
    }
    for (part, _) in there.into_iter().filter(|(_, owner)| *owner != Owner::Free) {
        let to = call.to + (part.start - call.from.start);
        if resize(MremapCall { len: part.len(), from: part, to, flags: call.flags }) == -1 {
            return -1;
        }
    }
    call.to as isize
}

/// A mapping of the kernel, in the span or on its way there.
fn kernels(call: MremapCall, foreign: bool) -> isize {
    let MremapCall { from, len, flags, to } = &call;
    let arguments = [from.start, from.len(), *len, *flags as usize, *to, 0];
    // SAFETY: the program's call, about its own memory.
    let remap = move || unsafe { sys::call(libc::SYS_mremap, arguments) };
    let span = memory::span();
    let answer = sys::answer(match call.target() {
        Some(target) if memory::meets(target.start, target.len()) => {
            let inside = target.start.max(span.start)..target.end.min(span.end);
            memory::map_foreign(inside, remap)
        }
        _ => remap(),
    });
    if foreign && answer != -1 && !from.is_empty() && !call.is(libc::MREMAP_DONTUNMAP) {
        let same_place = if answer as usize == from.start { *len } else { 0 };
        if same_place < from.len() {
            memory::foreign_gone(from.start + same_place..from.end);
        }
    }
    answer
}

fn managed(call: MremapCall, manner: Manner) -> isize {
    let (from, len) = (call.from.clone(), call.len);
    let moves = call.is(libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP);
    if !moves && len == from.len() {
        return from.start as isize;
    }
    if !moves && len < from.len() {
        return match pins::unmap(from.start + len..from.end) {
            Ok(()) => from.start as isize,
            Err(error) => failed(number(&error)),
        };
    }
    if !moves && grown(&from, len, manner) {
        return from.start as isize;
    }
    if !call.is(libc::MREMAP_MAYMOVE) {
        return failed(libc::ENOMEM);
    }
    let to = match target(&call) {
        Ok(to) => to,
        Err(error) => return failed(error),
    };
    match moved(&call, manner, to) {
        Ok(()) => to as isize,
        Err(error) => {
            let _ = pins::unmap(to..to + len);
            failed(error)
        }
    }
}

fn grown(from: &Range<usize>, len: usize, manner: Manner) -> bool {
    let more = len - from.len();
    if memory::map_at(Spot::Free(from.end), more, manner.protection).is_err() {
        return false;
    }
    take_manner(from.end..from.end + more, manner);
    true
}

/// Gives new memory the locks and the advice of that from which it is.
fn take_manner(range: Range<usize>, manner: Manner) {
    let managed = memory::manages(range.start) && memory::manages(range.end - 1);
    let advice = [
        (manner.dont_dump, libc::MADV_DONTDUMP),
        (manner.dont_fork && !managed, libc::MADV_DONTFORK),
        (manner.wipe_on_fork && !managed, libc::MADV_WIPEONFORK),
        (manner.mergeable && !managed, libc::MADV_MERGEABLE),
    ];
    for (_, advice) in advice.into_iter().filter(|(given, _)| *given) {
        pass(libc::SYS_madvise, [range.start, range.len(), advice as usize, 0, 0, 0]);
    }
    if managed {
        let locked = manner.locked && memory::pin(range.clone()).is_ok();
        memory::note(range, move |new| *new = Manner { locked, ..manner });
    } else if manner.locked {
        pass(libc::SYS_mlock, [range.start, range.len(), 0, 0, 0, 0]);
    }
}

/// Readable and writable memory at the new place. Where a part of that is outside of the span, all of it is the
/// kernel's.
fn target(call: &MremapCall) -> Result<usize, c_int> {
    let (len, span) = (call.len, memory::span());
    let spot = match call.target() {
        Some(target) if span.start <= target.start && target.end <= span.end => Spot::Over(target.start),
        Some(target) => {
            once!("memory that mremap moves to {:#x} is not paged there", target.start);
            let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as usize;
            let arguments = [target.start, len, RIGHTS as usize, flags, usize::MAX, 0];
            // SAFETY: the program wants it replaced.
            let place = move || unsafe { sys::call(libc::SYS_mmap, arguments) };
            let inside = target.start.max(span.start)..target.end.min(span.end);
            let answer = if inside.is_empty() { place() } else { memory::map_foreign(inside, place) };
            return if answer < 0 { Err(libc::ENOMEM) } else { Ok(target.start) };
        }
        None => Spot::Anywhere(PAGE),
    };
    memory::map_at(spot, len, RIGHTS).inspect_err(full).map_err(|error| number(&error))
}

/// Moves content and manner, and closes the old place, or leaves it empty. An error leaves the old place as it was.
fn moved(call: &MremapCall, manner: Manner, to: usize) -> Result<(), c_int> {
    let (from, len) = (call.from.clone(), call.len);
    let protect = |at: usize, len: usize, rights: c_int| {
        // SAFETY: the old place, or the new one; no thread uses the new one yet.
        match unsafe { sys::call(libc::SYS_mprotect, [at, len, rights as usize, 0, 0, 0]) } {
            0 => Ok(()),
            error => Err(-error as c_int),
        }
    };
    // Other threads may still read there. A write would be lost: it is SIGSEGV, as after the move (with
    // MREMAP_DONTUNMAP only until then).
    protect(from.start, from.len(), libc::PROT_READ)?;
    let there = parts(from.start..from.start + len.min(from.len()));
    let (guards, rest): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(_, owner)| matches!(owner, Owner::Managed(manner) if manner.guarded));
    for (part, _) in rest {
        // SAFETY: the old place is readable now, the new one is ours and writable, and they do not overlap.
        unsafe { memory::copy(part.start, to + (part.start - from.start), part.len()) };
    }
    if let Err(error) = protect(to, len, manner.protection) {
        let _ = protect(from.start, from.len(), manner.protection);
        return Err(error);
    }
    take_manner(to..to + len, manner);
    for (part, _) in guards {
        guard(to + (part.start - from.start)..to + (part.end - from.start), GUARD_INSTALL);
    }
    // The content is at the new place, so an old place that cannot be closed is no error; the kernel has it so, too.
    if call.is(libc::MREMAP_DONTUNMAP) {
        let _ = memory::map_at(Spot::Over(from.start), from.len(), manner.protection);
        take_manner(from, Manner { locked: false, ..manner });
    } else {
        let _ = pins::unmap(from);
    }
    Ok(())
}
