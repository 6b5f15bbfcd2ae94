//! A range of addresses that a program passes to mmap and related calls, cut into parts by owner.

use std::ops::Range;

use coldframe_live::extents::{Kind, Manner};
use coldframe_live::PAGE;

use crate::managed::memory;
use crate::sys;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Outside of the span: only the kernel handles it.
    Outside,
    /// A mapping of the program itself in the span: the kernel handles it, too.
    Foreign,
    Managed(Manner),
    /// A part of the span that is unmapped for the program.
    Free,
}

/// All parts of a range that ends at the end of a page, lowest part first.
pub fn parts(range: Range<usize>) -> Vec<(Range<usize>, Owner)> {
    let span = memory::span();
    let inner = range.start.clamp(span.start, span.end)..range.end.clamp(span.start, span.end);
    let mut parts = Vec::new();
    let mut at = range.start;
    let mut add = |from: usize, to: usize, owner| {
        if from < to {
            parts.push((from..to, owner));
        }
    };
    add(at, span.start.min(range.end), Owner::Outside);
    at = at.max(inner.start);
    for (part, kind) in if inner.is_empty() { Vec::new() } else { memory::extents(inner.clone()) } {
        add(at, part.start, Owner::Free);
        let owner = match kind {
            Kind::Managed(manner) => Owner::Managed(manner),
            Kind::Foreign => Owner::Foreign,
        };
        add(part.start, part.end, owner);
        at = part.end;
    }
    add(at, inner.end, Owner::Free);
    add(at.max(inner.end).max(range.start), range.end, Owner::Outside);
    parts
}

/// Calls `each` for each part but holes. As the kernel does it: other errors than ENOMEM end it, and holes are an
/// ENOMEM at last, or at once (`stops`). A result of the C library's kind.
pub fn through(range: Range<usize>, stops: bool, mut each: impl FnMut(Range<usize>, Owner) -> isize) -> i32 {
    let mut holes = false;
    for (part, owner) in parts(range) {
        let answer = if owner == Owner::Free { failed(libc::ENOMEM) } else { each(part, owner) };
        if answer < 0 && (stops || sys::errno() != libc::ENOMEM) {
            return -1;
        }
        holes |= answer < 0;
    }
    if holes {
        return failed(libc::ENOMEM) as i32;
    }
    0
}

/// The result of a failed call: -1, with the error number in errno.
pub fn failed(error: i32) -> isize {
    sys::set_errno(error);
    -1
}

/// Passes a call of the program on to the kernel, with the C library's kind of result.
pub fn pass(number: i64, arguments: [usize; 6]) -> isize {
    // SAFETY: the program has asked for this call, and answers for its own memory; the pager's is never passed.
    sys::answer(unsafe { sys::call(number, arguments) })
}

/// The whole pages of a range that must begin at a page, as the kernel computes them. EINVAL if it does not begin at
/// a page, `overflow` if it goes beyond the last address.
pub fn pages(address: usize, len: usize, overflow: i32) -> Result<Range<usize>, i32> {
    if !address.is_multiple_of(PAGE) {
        return Err(libc::EINVAL);
    }
    let len = len.checked_next_multiple_of(PAGE).ok_or(overflow)?;
    Ok(address..address.checked_add(len).ok_or(overflow)?)
}

/// The same for a call of the program; `None`: the call has failed, and `errno` says why.
pub fn pages_or_errno(address: usize, len: usize, overflow: i32) -> Option<Range<usize>> {
    pages(address, len, overflow).map_err(failed).ok()
}

pub fn number(error: &coldframe_live::LiveError) -> i32 {
    match error {
        coldframe_live::LiveError::Os { error, .. } => error.raw_os_error().unwrap_or(libc::ENOMEM),
        _ => libc::ENOMEM,
    }
}
