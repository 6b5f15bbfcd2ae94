//! Managed memory: a pager's, or only its addresses.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::*};
use std::sync::OnceLock;

use coldframe_live::span::{self, Note};
use coldframe_live::{LiveError, Options, Pager, PAGE};

use crate::extents::Extents;
use crate::gate;
use crate::sys::{self, Lock};

/// Who provides the memory.
pub enum Backing {
    /// The pager.
    Pager(Pager),
    /// Nobody: the same addresses with plain memory behind them, so that the program can be recorded. What a pager would be told
    /// besides is noted in the recording (`coldframe_live::span`).
    Layout(Layout),
}

/// Plain memory at managed addresses.
pub struct Layout {
    span: Range<usize>,
    lock: Lock,
    free: UnsafeCell<Extents>,
    stats_fd: Option<i32>,
}

// SAFETY: `free` is touched under `lock` only.
unsafe impl Sync for Layout {}
// SAFETY: holds nothing that belongs to a thread.
unsafe impl Send for Layout {}

static BACKING: OnceLock<Backing> = OnceLock::new();
/// From here on, allocations are managed.
static READY: AtomicBool = AtomicBool::new(false);
static START: AtomicUsize = AtomicUsize::new(0);
static LEN: AtomicUsize = AtomicUsize::new(0);

/// File descriptors that the program must not close.
const KEPT_MAX: usize = 32;
static KEPT: [AtomicI32; KEPT_MAX] = [const { AtomicI32::new(-1) }; KEPT_MAX];

/// Makes the memory.
pub fn start(mut options: Options, layout_only: bool) -> Result<(), LiveError> {
    options.base.get_or_insert(span::BASE);
    let backing = if layout_only {
        let start = options.base.unwrap_or(span::BASE) as usize;
        let span = start..start + (options.max_memory as usize).next_multiple_of(PAGE);
        Backing::Layout(Layout::new(span, options.stats_fd)?)
    } else {
        Backing::Pager(Pager::start(options)?)
    };
    let span = match &backing {
        Backing::Pager(pager) => pager.span(),
        Backing::Layout(layout) => layout.span.clone(),
    };
    if BACKING.set(backing).is_err() {
        unreachable!("the constructor runs once");
    }
    START.store(span.start, Relaxed);
    LEN.store(span.len(), Relaxed);
    keep();
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

/// All managed addresses.
pub fn span() -> Range<usize> {
    let start = START.load(Relaxed);
    start..start + LEN.load(Relaxed)
}

/// Whether an address is managed.
pub fn holds(address: usize) -> bool {
    address.wrapping_sub(START.load(Relaxed)) < LEN.load(Relaxed)
}

/// Whether any byte of `address..address + len` is managed.
pub fn meets(address: usize, len: usize) -> bool {
    let span = span();
    address < span.end && address.saturating_add(len) > span.start
}

/// Notes the descriptors that the program must not close; again after a fork.
pub fn keep() {
    let descriptors = match backing() {
        Backing::Pager(pager) => pager.descriptors(),
        Backing::Layout(layout) => layout.stats_fd.into_iter().collect(),
    };
    for (i, kept) in KEPT.iter().enumerate() {
        kept.store(descriptors.get(i).copied().unwrap_or(-1), Relaxed);
    }
    assert!(descriptors.len() <= KEPT_MAX, "{} descriptors to keep", descriptors.len());
}

/// Whether the program must not close this descriptor.
pub fn keeps(descriptor: i32) -> bool {
    descriptor >= 0 && KEPT.iter().any(|kept| kept.load(Relaxed) == descriptor)
}

/// The kept descriptors, in order, at most `KEPT_MAX`; the rest are -1 and come first.
pub fn kept() -> [i32; KEPT_MAX] {
    let mut all = std::array::from_fn(|i| KEPT[i].load(Relaxed));
    all.sort_unstable();
    all
}

impl Backing {
    /// Zeroed memory; `len` and `align` are multiples of a page.
    pub fn map(&self, len: usize, align: usize) -> Result<usize, LiveError> {
        inside(|| match self {
            Backing::Pager(pager) => pager.map(len, align).map(|p| p as usize),
            Backing::Layout(layout) => layout.map(len, align),
        })
    }

    /// Gives memory back.
    pub fn unmap(&self, address: usize, len: usize) {
        inside(|| match self {
            Backing::Pager(pager) => pager.unmap(address, len),
            Backing::Layout(layout) => layout.unmap(address, len),
        })
    }

    /// Memory reads as zeros.
    pub fn discard(&self, address: usize, len: usize) {
        inside(|| match self {
            Backing::Pager(pager) => pager.discard(address, len),
            Backing::Layout(layout) => {
                let dont_need = libc::MADV_DONTNEED as usize;
                // SAFETY: the program asked for zeros there.
                unsafe { sys::call(libc::SYS_madvise, [address, len, dont_need, 0, 0, 0]) };
                layout.note(Note::Released, address, len);
            }
        })
    }

    /// Memory will be wanted.
    pub fn will_need(&self, address: usize, len: usize) {
        inside(|| match self {
            Backing::Pager(pager) => pager.will_need(address, len),
            Backing::Layout(layout) => layout.note(Note::WillNeed, address, len),
        })
    }

    /// Memory stays in RAM.
    pub fn pin(&self, address: usize, len: usize) -> Result<(), LiveError> {
        match self {
            Backing::Pager(pager) => inside(|| pager.pin(address, len)),
            Backing::Layout(layout) => {
                layout.note(Note::Pinned, address, len);
                Ok(())
            }
        }
    }

    /// Undoes `pin`.
    pub fn unpin(&self, address: usize, len: usize) {
        inside(|| match self {
            Backing::Pager(pager) => pager.unpin(address, len),
            Backing::Layout(layout) => layout.note(Note::Unpinned, address, len),
        })
    }
}

/// Runs `work` inside the gate, so that no fork copies a pager at work, and with all signals held back, so that no signal handler
/// waits for a page that the work it interrupted must bring.
fn inside<T>(work: impl FnOnce() -> T) -> T {
    let _inside = gate::enter();
    sys::undisturbed(work)
}

/// Maps memory at an address that must be free.
fn place(at: usize, len: usize, protection: i32) -> Result<(), LiveError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let no_file = -1isize as usize;
    // SAFETY: replaces nothing.
    let result = unsafe { sys::call(libc::SYS_mmap, [at, len, protection as usize, flags as usize, no_file, 0]) };
    if result != at as isize {
        let error = -result;
        return Err(LiveError::Setting {
            field: "base",
            reason: format!("the kernel does not give {len:#x} bytes at {at:#x} (error {error}); choose another"),
        });
    }
    // The pager has no huge pages either.
    let small = libc::MADV_NOHUGEPAGE as usize;
    // SAFETY: advice only.
    unsafe { sys::call(libc::SYS_madvise, [at, len, small, 0, 0, 0]) };
    Ok(())
}

impl Layout {
    fn new(span: Range<usize>, stats_fd: Option<i32>) -> Result<Layout, LiveError> {
        let free = UnsafeCell::new(Extents::new(span.start, span.end));
        let layout = Layout { span, lock: Lock::new(), free, stats_fd };
        let notes = layout.span().notes();
        place(notes.start as usize, (notes.end - notes.start) as usize, libc::PROT_READ)?;
        Ok(layout)
    }

    fn span(&self) -> span::Span {
        span::Span { start: self.span.start as u64, len: self.span.len() as u64 }
    }

    /// Reads the bytes that note it. Nobody ever writes there, so the kernel's one page of zeros stands behind all of them.
    fn note(&self, note: Note, address: usize, len: usize) {
        if len > 0 {
            for at in self.span().note(note, address as u64..(address + len) as u64) {
                // SAFETY: `new` has mapped all addresses of notes.
                unsafe { (at as *const u8).read_volatile() };
            }
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Extents) -> T) -> T {
        // SAFETY: the lock is held, and `work` does not come back here.
        self.lock.with(|| work(unsafe { &mut *self.free.get() }))
    }

    fn map(&self, len: usize, align: usize) -> Result<usize, LiveError> {
        let full = || LiveError::Full { asked: len, free: 0, max: self.span.len() };
        let at = self.with(|free| free.take(len, align)).ok_or_else(full)?;
        place(at, len, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(at)
    }

    fn unmap(&self, address: usize, len: usize) {
        // SAFETY: the program gives it back.
        unsafe { sys::call(libc::SYS_munmap, [address, len, 0, 0, 0, 0]) };
        self.note(Note::Released, address, len);
        self.with(|free| free.give(address, address + len));
    }
}
