//! The C library's own heap: for its own allocations, for those made before this library has started, and for the
//! Rust code of this library. It is safe in a forked child, because fork handles its locks. It never touches managed
//! memory, so a thread that holds one of its locks never waits for a page. It does not use the names that this
//! library replaces, and an allocator that the user has preloaded does not replace its functions.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use coldframe_live::PAGE;

use crate::libc_symbols::Own;
use crate::sys;

static MALLOC: Own = Own::new(c"__libc_malloc");
static CALLOC: Own = Own::new(c"__libc_calloc");
static REALLOC: Own = Own::new(c"__libc_realloc");
static MEMALIGN: Own = Own::new(c"__libc_memalign");
static FREE: Own = Own::new(c"__libc_free");
static USABLE: Own = Own::new(c"malloc_usable_size");

/// One of these functions, with its type. Without it this is not the C library that `caller::known` checks for.
macro_rules! own {
    ($which:ident: $type:ty) => {
        match $which.address() {
            0 => std::process::abort(),
            // The C library's function of that name has that type; the block around the macro says so.
            found => std::mem::transmute::<usize, $type>(found),
        }
    };
}

/// Finds them, before a signal handler or a child needs them.
pub fn find() {
    for own in [&MALLOC, &CALLOC, &REALLOC, &MEMALIGN, &FREE, &USABLE] {
        own.address();
    }
}

pub fn malloc(size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    unsafe { own!(MALLOC: unsafe extern "C" fn(usize) -> *mut c_void)(size) }
}

pub fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { own!(CALLOC: unsafe extern "C" fn(usize, usize) -> *mut c_void)(count, size) }
}

pub fn memalign(align: usize, size: usize) -> *mut c_void {
    // SAFETY: as above; it mends alignments that are none.
    unsafe { own!(MEMALIGN: unsafe extern "C" fn(usize, usize) -> *mut c_void)(align, size) }
}

/// # Safety
/// `block` is one of this heap, or null.
pub unsafe fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's block.
    unsafe { own!(REALLOC: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void)(block, size) }
}

/// # Safety
/// `block` is one of this heap, or null.
pub unsafe fn free(block: *mut c_void) {
    // SAFETY: the caller's block.
    unsafe { own!(FREE: unsafe extern "C" fn(*mut c_void))(block) }
}

/// # Safety
/// `block` is one of this heap.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's block.
    unsafe { own!(USABLE: unsafe extern "C" fn(*mut c_void) -> usize)(block) }
}

/// The allocator of this library's Rust code. Large blocks are mappings of their own. So the zeros of `alloc_zeroed`
/// take no RAM before they are used, and the pager's tables can be as long as its address space.
pub struct Internal;

const LARGE: usize = 64 << 10;

fn map(layout: Layout) -> *mut u8 {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let no_file = -1isize as usize;
    // SAFETY: new memory at a place of the kernel's choice.
    let result = unsafe { sys::call(libc::SYS_mmap, [0, layout.size(), protection, flags, no_file, 0]) };
    if (-4095..0).contains(&result) {
        return std::ptr::null_mut();
    }
    result as *mut u8
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: every block comes from a heap or is a mapping of its own, told apart by the layout, which its owner keeps.
unsafe impl GlobalAlloc for Internal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.align() {
            _ if is_large(layout) => map(layout),
            0..=16 => malloc(layout.size()).cast(),
            align => memalign(align, layout.size()).cast(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout);
        }
        if layout.align() <= 16 {
            return calloc(1, layout.size()).cast();
        }
        // SAFETY: a new block of that length.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the layout shows whether the block is a mapping; the caller gives it up.
        match is_large(layout) {
            true => _ = unsafe { sys::call(libc::SYS_munmap, [block as usize, layout.size(), 0, 0, 0, 0]) },
            false => unsafe { free(block.cast()) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the caller answers for the new length, and a new block is another one.
        unsafe {
            let new = Layout::from_size_align_unchecked(size, layout.align());
            match (is_large(layout), is_large(new)) {
                (true, true) => {
                    let may_move = libc::MREMAP_MAYMOVE as usize;
                    match sys::call(libc::SYS_mremap, [block as usize, layout.size(), size, may_move, 0, 0]) {
                        -4095..=-1 => std::ptr::null_mut(),
                        moved => moved as *mut u8,
                    }
                }
                (false, false) if layout.align() <= 16 => realloc(block.cast(), size).cast(),
                _ => {
                    let moved = self.alloc(new);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}
