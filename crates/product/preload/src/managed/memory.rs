//! Managed memory: the pager's.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::OnceLock;

use coldframe_live::extents::{Kind, Manner};
use coldframe_live::{LiveError, Options, Pager, Spot, PAGE};
use coldframe_recording::span;

use crate::managed::{gate, stacks};
use crate::sys::{self, Lock};

static PAGER: OnceLock<Pager> = OnceLock::new();
static READY: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Makes the memory.
/// `direct`: the program has a descriptor by which the kernel may write past the page table.
pub fn start(mut options: Options, direct: bool) -> Result<(), LiveError> {
    // An executable that cannot be moved, with a lot of static data, may be there.
    let taken = || sys::probe(span::BASE as usize, 1 << 30) == -(libc::EEXIST as isize);
    options.base.get_or_insert_with(|| if taken() { span::BASE_RECORDED } else { span::BASE });
    let pager = Pager::start_for_program(options)?;
    let span = pager.span();
    if direct && !pager.expect_pinned_frames() {
        // The pager process exists and ends with the program.
        std::mem::forget(pager);
        let reason = "the program has been given a file or a device that does not use the page cache".to_string();
        return Err(LiveError::Missing { feature: "UFFDIO_MOVE", reason, remedy: "use Linux 6.8 or newer" });
    }
    if PAGER.set(pager).is_err() {
        unreachable!("the constructor runs once");
    }
    START.store(span.start, Relaxed);
    LEN.store(span.len(), Relaxed);
    Ok(())
}

pub fn begin() {
    READY.store(true, Release);
}

pub fn ready() -> bool {
    READY.load(Acquire)
}

pub fn pager() -> &'static Pager {
    PAGER.get().expect("the constructor has run")
}

pub fn span() -> Range<usize> {
    let start = START.load(Relaxed);
    start..start + LEN.load(Relaxed)
}

pub fn manages(address: usize) -> bool {
    address.wrapping_sub(START.load(Relaxed)) < LEN.load(Relaxed)
}

/// Whether any byte of `address..address + len` is managed.
pub fn meets(address: usize, len: usize) -> bool {
    let span = span();
    address < span.end && address.saturating_add(len) > span.start
}

/// Functions of the pager by which the program's calls change managed memory: each is run [`inside`].
macro_rules! inside {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => { $(
        pub fn $name($($argument: $type),*) -> $result {
            inside(move || pager().$name($($argument),*))
        }
    )* };
}

inside! {
    map_at(spot: Spot, len: usize, protection: i32) -> Result<usize, LiveError>;
    unmap(range: Range<usize>) -> Result<(), LiveError>;
    foreign_gone(range: Range<usize>) -> ();
    extents(range: Range<usize>) -> Vec<(Range<usize>, Kind)>;
    note(range: Range<usize>, change: impl Fn(&mut Manner) + 'static) -> ();
    open(range: Range<usize>) -> Result<(), LiveError>;
    contents(range: Range<usize>) -> Vec<Range<usize>>;
    discard(range: Range<usize>) -> ();
    will_need(range: Range<usize>) -> ();
    pin(range: Range<usize>) -> Result<(), LiveError>;
    unpin(range: Range<usize>) -> ();
}

/// The least block whose caller a recording notes: an arena of Python before 3.10, or a page of V8.
const NAMED: usize = 256 << 10;

/// Notes for a recording who has mapped or allocated a large block; returns the block's address.
pub fn named(block: usize, len: usize, caller: impl FnOnce() -> usize) -> usize {
    if len >= NAMED && manages(block) {
        pager().note_caller(block..block.saturating_add(len), caller);
    }
    block
}

/// Has the kernel put a mapping of the program itself into the span. `place` makes the mapping and returns the
/// kernel's answer: an address or a negative error.
pub fn map_foreign(range: Range<usize>, place: impl FnOnce() -> isize + 'static) -> isize {
    inside(move || pager().map_foreign(range, place))
}

/// Copies memory to a place that is all zeros. Pages without content are skipped, so a large block that was
/// hardly touched is cheap to move.
///
/// # Safety
/// `len` bytes at `from` can be read, those at `to` can be written, and they do not overlap.
pub unsafe fn copy(from: usize, to: usize, len: usize) {
    let (start, end) = (from / PAGE * PAGE, (from + len).next_multiple_of(PAGE));
    for part in contents(start..end) {
        let (first, last) = (part.start.max(from), part.end.min(from + len));
        let target = (to + (first - from)) as *mut u8;
        // SAFETY: a part of what the caller answers for.
        unsafe { target.copy_from_nonoverlapping(first as *const u8, last - first) };
    }
}

/// Runs a change of the memory that takes several steps, some of them the kernel's: no fork comes between them, no
/// other such change, and no signal handler that forks. Changes do not nest.
pub fn at_once<T>(work: impl FnOnce() -> T) -> T {
    static CHANGES: Lock<()> = Lock::new(());
    let _inside = gate::enter();
    sys::undisturbed(|| CHANGES.with(|()| work()))
}

/// Runs `work` inside the gate, so that no fork copies a pager in the middle of its work. All signals are blocked,
/// so that no signal handler waits for a page that the interrupted work must bring. The stack is one of ours.
pub fn inside<T: 'static>(work: impl FnOnce() -> T + 'static) -> T {
    let _inside = gate::enter();
    sys::undisturbed(|| stacks::run(work))
}
