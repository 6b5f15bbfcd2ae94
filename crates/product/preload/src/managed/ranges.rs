//! A range of addresses that a program passes to mmap and related calls, cut into parts by owner.

use std::ops::Range;

use coldframe_live::calls::OWN;
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
    /// A part of the span that is unmapped for the program, or memory of the pager's own.
    Free,
}

/// The second half of managed memory, and other mappings of the pager's own. The program has no memory there.
fn pagers() -> [Range<usize>; 2] {
    let span = memory::span();
    [span.end..span.end + span.len(), OWN]
}

/// Whether any byte of `address..address + len` is in the pager's own ranges.
pub fn is_pagers(address: usize, len: usize) -> bool {
    let end = address.saturating_add(len);
    memory::ready() && pagers().iter().any(|range| address < range.end && end > range.start)
}

/// Whether the kernel alone must not handle a call about this memory.
pub fn concerns(address: usize, len: usize) -> bool {
    memory::meets(address, len) || is_pagers(address, len)
}

/// All parts of a range that ends at the end of a page, lowest part first.
pub fn parts(range: Range<usize>) -> Vec<(Range<usize>, Owner)> {
    let (span, pagers) = (memory::span(), pagers());
    let mut cuts = vec![range.start, range.end];
    for known in pagers.iter().chain([&span]) {
        cuts.extend([known.start, known.end].into_iter().filter(|cut| range.contains(cut)));
    }
    cuts.sort_unstable();
    let mut parts = Vec::new();
    for piece in cuts.windows(2).map(|cut| cut[0]..cut[1]).filter(|piece| !piece.is_empty()) {
        if span.contains(&piece.start) {
            managed(piece, &mut parts);
        } else {
            let is_own = pagers.iter().any(|known| known.contains(&piece.start));
            parts.push((piece, if is_own { Owner::Free } else { Owner::Outside }));
        }
    }
    parts
}

/// The parts of a range in the span.
fn managed(range: Range<usize>, parts: &mut Vec<(Range<usize>, Owner)>) {
    let mut at = range.start;
    for (part, kind) in memory::extents(range.clone()) {
        let owner = match kind {
            Kind::Managed(manner) => Owner::Managed(manner),
            Kind::Foreign => Owner::Foreign,
        };
        parts.extend([(at..part.start, Owner::Free), (part.clone(), owner)]);
        at = part.end;
    }
    parts.push((at..range.end, Owner::Free));
    parts.retain(|(part, _)| !part.is_empty());
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
