//! Managed memory: the pager's.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::OnceLock;

use coldframe_live::extents::{Kind, Manner};
use coldframe_live::{own_descriptors, LiveError, Options, Pager, Spot, PAGE};
use coldframe_recording::span;

use crate::{gate, stacks, sys};

/// The provider of the memory.
pub struct Backing(Pager);

static BACKING: OnceLock<Backing> = OnceLock::new();
/// From here on, allocations are managed.
static READY: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Makes the memory.
/// `direct`: the program has a descriptor by which the kernel may write past the page table.
pub fn start(mut options: Options, direct: bool) -> Result<(), LiveError> {
    // An executable that cannot be moved, with a lot of static data, may be there.
    let taken = || sys::probe(span::BASE as usize, 1 << 30) == -(libc::EEXIST as isize);
    options.base.get_or_insert_with(|| if taken() { span::BASE_RECORDED } else { span::BASE });
    let stats = options.stats_fd;
    let pager = Pager::start_for_program(options)?;
    let span = pager.span();
    if direct && !pager.expect_pinned_frames() {
        // The pager process exists and ends with the program.
        std::mem::forget(pager);
        let reason = "the program has been given a file or a device that does not use the page cache".to_string();
        return Err(LiveError::Missing { feature: "UFFDIO_MOVE", reason, remedy: "use Linux 6.8 or newer" });
    }
    if BACKING.set(Backing(pager)).is_err() {
        unreachable!("the constructor runs once");
    }
    START.store(span.start, Relaxed);
    LEN.store(span.len(), Relaxed);
    stats.into_iter().for_each(own_descriptors::add);
    Ok(())
}

/// From here on, allocations are managed.
pub fn open() {
    READY.store(true, Release);
}

/// Whether allocations are managed.
pub fn ready() -> bool {
    READY.load(Acquire)
}

/// The backing.
pub fn backing() -> &'static Backing {
    BACKING.get().expect("the constructor has run")
}

/// The pager.
pub fn pager() -> &'static Pager {
    &backing().0
}

/// All managed addresses.
pub fn span() -> Range<usize> {
    let start = START.load(Relaxed);
    start..start + LEN.load(Relaxed)
}

/// Whether an address is managed.
pub fn manages(address: usize) -> bool {
    address.wrapping_sub(START.load(Relaxed)) < LEN.load(Relaxed)
}

/// Whether any byte of `address..address + len` is managed.
pub fn meets(address: usize, len: usize) -> bool {
    let span = span();
    address < span.end && address.saturating_add(len) > span.start
}

impl Backing {
    /// Zeroed memory that the program may read and write; `len` and `align` are multiples of a page.
    pub fn map(&'static self, len: usize, align: usize) -> Result<usize, LiveError> {
        self.map_at(Spot::Anywhere(align), len, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Zeroed memory at a given spot, with given rights.
    pub fn map_at(&'static self, spot: Spot, len: usize, protection: i32) -> Result<usize, LiveError> {
        inside(move || self.0.map_at(spot, len, protection).map(|p| p as usize))
    }

    /// Unmaps memory, of which nothing is pinned; parts that are not mapped are skipped.
    pub fn unmap(&'static self, range: Range<usize>) -> Result<(), LiveError> {
        inside(move || self.0.unmap(range.start, range.len()))
    }

    /// Has the kernel put a mapping of the program itself into the span. `place` makes the mapping and returns the
    /// kernel's answer: an address or a negative error.
    pub fn map_foreign(&'static self, range: Range<usize>, place: impl FnOnce() -> isize + 'static) -> isize {
        inside(move || {
            let mut answer = 0;
            let place = || {
                answer = place();
                answer >= 0
            };
            self.0.map_foreign(range, place);
            answer
        })
    }

    /// The kernel has moved a foreign mapping, or a part of one, away.
    pub fn foreign_gone(&'static self, range: Range<usize>) {
        inside(move || self.0.foreign_gone(range))
    }

    /// The extents in a range, lowest first; gaps are free.
    pub fn extents(&'static self, range: Range<usize>) -> Vec<(Range<usize>, Kind)> {
        inside(move || self.0.extents(range))
    }

    /// Changes what the program has asked for its memory.
    pub fn change(&'static self, range: Range<usize>, change: impl Fn(&mut Manner) + 'static) {
        inside(move || self.0.note(range, change))
    }

    /// Before the program may touch a part of the range that it could not touch.
    pub fn open(&'static self, range: Range<usize>) -> Result<(), LiveError> {
        inside(move || self.0.open(range))
    }

    /// The parts of a managed range that may hold anything but zeros.
    pub fn contents(&'static self, range: Range<usize>) -> Vec<Range<usize>> {
        inside(move || self.0.contents(range))
    }

    /// Copies memory to a place that is all zeros. Pages without content are skipped, so a large block that was
    /// hardly touched is cheap to move.
    ///
    /// # Safety
    /// `len` bytes at `from` can be read, those at `to` can be written, and they do not overlap.
    pub unsafe fn copy(&'static self, from: usize, to: usize, len: usize) {
        let (start, end) = (from / PAGE * PAGE, (from + len).next_multiple_of(PAGE));
        for part in self.contents(start..end) {
            let (first, last) = (part.start.max(from), part.end.min(from + len));
            let target = (to + (first - from)) as *mut u8;
            // SAFETY: a part of what the caller answers for.
            unsafe { target.copy_from_nonoverlapping(first as *const u8, last - first) };
        }
    }

    /// Drops the content of memory: it reads as zeros.
    pub fn discard(&'static self, address: usize, len: usize) {
        inside(move || self.0.discard(address, len))
    }

    /// A hint that memory will be needed.
    pub fn will_need(&'static self, address: usize, len: usize) {
        inside(move || self.0.will_need(address, len))
    }

    /// Keeps memory in RAM.
    pub fn pin(&'static self, address: usize, len: usize) -> Result<(), LiveError> {
        inside(move || self.0.pin(address, len))
    }

    /// Undoes `pin`.
    pub fn unpin(&'static self, address: usize, len: usize) {
        inside(move || self.0.unpin(address, len))
    }
}

/// Runs `work` inside the gate, so that no fork copies a pager in the middle of its work. All signals are blocked,
/// so that no signal handler waits for a page that the interrupted work must bring. The stack is one of ours.
pub fn inside<T: 'static>(work: impl FnOnce() -> T + 'static) -> T {
    let _inside = gate::enter();
    sys::undisturbed(|| stacks::run(work))
}
