//! Layout-only mode: the addresses of a pager with plain memory behind them, so that a program can be recorded. Calls
//! that a pager would also need to see are noted in the recording (`coldframe_recording::span`). Nothing is reserved:
//! an emulator may keep a word for each mapped page.

use std::ops::Range;

use coldframe_live::extents::{Extents, Kind, Manner};
use coldframe_live::{LiveError, Spot};
use coldframe_recording::span::{self, Note};

use crate::sys::{self, Lock};

/// Plain memory at managed addresses.
pub struct Layout {
    pub span: Range<usize>,
    extents: Lock<Extents>,
}

/// Maps private memory without huge pages, which the pager does not have either. A negative result is an error
/// number.
///
/// # Safety
/// With MAP_FIXED, the old content of the range must not be needed any more.
unsafe fn map(range: &Range<usize>, protection: i32, fixed: i32) -> isize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    let arguments = [range.start, range.len(), protection as usize, flags as usize, -1isize as usize, 0];
    // SAFETY: the caller answers for it; the second is advice only.
    unsafe {
        let result = sys::call(libc::SYS_mmap, arguments);
        sys::call(libc::SYS_madvise, [range.start, range.len(), libc::MADV_NOHUGEPAGE as usize, 0, 0, 0]);
        result
    }
}

fn refused(range: &Range<usize>, error: isize) -> LiveError {
    LiveError::Setting {
        field: "base",
        reason: format!("the kernel does not give {range:#x?} (error {}); choose another", -error),
    }
}

impl Layout {
    pub fn new(span: Range<usize>) -> Result<Layout, LiveError> {
        let extents = Lock::new(Extents::new(span.clone()));
        let layout = Layout { span, extents };
        let notes = layout.span().notes();
        let notes = notes.start as usize..notes.end as usize;
        // SAFETY: replaces nothing.
        match unsafe { map(&notes, libc::PROT_READ, libc::MAP_FIXED_NOREPLACE) } {
            at if at == notes.start as isize => Ok(layout),
            error => Err(refused(&notes, error)),
        }
    }

    fn span(&self) -> span::Span {
        span::Span { start: self.span.start as u64, len: self.span.len() as u64 }
    }

    /// Reads the bytes that stand for the note. They are never written, so one page of zeros in the kernel backs all
    /// of them.
    pub fn note(&self, note: Note, address: usize, len: usize) {
        if len > 0 {
            for at in self.span().note(note, address as u64..(address + len) as u64) {
                // SAFETY: `new` has mapped all addresses of notes.
                unsafe { (at as *const u8).read_volatile() };
            }
        }
    }

    pub fn map_at(&self, spot: Spot, len: usize, protection: i32) -> Result<usize, LiveError> {
        self.extents.with(|extents| {
            let full = |free| LiveError::Full { requested: len, free, max: self.span.len() };
            let at = match spot {
                Spot::Anywhere(align) => extents.find(len, align).ok_or_else(|| full(extents.free()))?,
                Spot::Free(at) | Spot::Over(at) => at,
            };
            let range = at..at.checked_add(len).ok_or_else(|| full(0))?;
            let over = matches!(spot, Spot::Over(_));
            if !over && !extents.is_free(&range) {
                return Err(full(extents.free()));
            }
            let fixed = if over { libc::MAP_FIXED } else { libc::MAP_FIXED_NOREPLACE };
            // SAFETY: the program wants it replaced, or nothing is.
            let result = unsafe { map(&range, protection, fixed) };
            if result != at as isize {
                return Err(refused(&range, result));
            }
            if over {
                self.released(extents, &range);
            }
            extents.insert(range, Kind::Managed(Manner::new(protection)));
            Ok(at)
        })
    }

    /// Notes that the managed memory in a range is gone.
    fn released(&self, extents: &mut Extents, range: &Range<usize>) {
        for (part, kind) in extents.remove(range.clone()) {
            if let Kind::Managed(_) = kind {
                self.note(Note::Released, part.start, part.len());
            }
        }
    }

    pub fn unmap(&self, range: &Range<usize>) -> Result<(), LiveError> {
        self.extents.with(|extents| {
            // SAFETY: the program gives it back.
            let result = unsafe { sys::call(libc::SYS_munmap, [range.start, range.len(), 0, 0, 0, 0]) };
            if result < 0 {
                return Err(refused(range, result));
            }
            self.released(extents, range);
            Ok(())
        })
    }

    pub fn map_foreign(&self, range: Range<usize>, place: impl FnOnce() -> bool) -> bool {
        self.extents.with(|extents| {
            self.released(extents, &range);
            let placed = place();
            if placed {
                extents.insert(range, Kind::Foreign);
            }
            placed
        })
    }

    pub fn gone(&self, range: Range<usize>) {
        self.extents.with(|extents| drop(extents.remove(range)));
    }

    pub fn extents(&self, range: Range<usize>) -> Vec<(Range<usize>, Kind)> {
        self.extents.with(|extents| extents.within(range).collect())
    }

    pub fn change(&self, range: Range<usize>, change: impl Fn(&mut Manner)) {
        self.extents.with(|extents| extents.change(range, change));
    }

    /// In a forked child: the kernel has already copied its memory.
    pub fn after_fork(&self) {
        self.extents.with(|extents| {
            for (part, kind) in extents.within(self.span.clone()).collect::<Vec<_>>() {
                if matches!(kind, Kind::Managed(manner) if manner.dont_fork) {
                    extents.remove(part);
                }
            }
            extents.change(self.span.clone(), |manner| manner.locked = false);
        });
    }

    pub fn discard(&self, range: &Range<usize>) {
        // SAFETY: the program asked for zeros there.
        unsafe { sys::call(libc::SYS_madvise, [range.start, range.len(), libc::MADV_DONTNEED as usize, 0, 0, 0]) };
        self.note(Note::Released, range.start, range.len());
    }
}
