//! The allocation functions of C. The caller decides from which heap a new block comes. The address of a block shows
//! to which heap it belongs.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coldframe_live::PAGE;

use crate::allocation::{heap, unmanaged};
use crate::managed::memory;
use crate::symbols::caller;
use crate::symbols::next::call_at;
use crate::symbols::shim::{exported, with_caller};
use crate::sys;

/// The C library's own large blocks (the buffers of qsort, getline, or a memory stream) are managed: the blocks that
/// fork touches are small.
const LIBC_LARGE: usize = 128 << 10;

fn is_managed(size: usize, caller: usize) -> bool {
    memory::ready() && !caller::is_linker(caller) && (size >= LIBC_LARGE || !caller::is_libc(caller))
}

fn named(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    memory::named(block as usize, size, caller) as *mut c_void
}

/// The program's own malloc and realloc, if they are not ours: it has an allocator inside its executable, or one was
/// preloaded before this library. That allocator's `free` then gets the blocks of our `strdup`, so they must be
/// blocks of that allocator.
static MALLOC: AtomicUsize = AtomicUsize::new(0);
static REALLOC: AtomicUsize = AtomicUsize::new(0);

pub fn find() {
    for (name, theirs) in [(c"malloc", &MALLOC), (c"realloc", &REALLOC)] {
        // SAFETY: looks a name up as the program does.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
        theirs.store(if caller::is_own(address) { 0 } else { address }, Relaxed);
    }
}

fn as_the_program(size: usize, caller: usize) -> *mut c_void {
    match MALLOC.load(Relaxed) {
        0 => malloc_from(size, caller),
        // SAFETY: whatever is of that name has that type.
        theirs => unsafe { call_at!(theirs, (size)) },
    }
}

with_caller!(malloc(1) => malloc_from);
extern "C" fn malloc_from(size: usize, caller: usize) -> *mut c_void {
    match is_managed(size, caller) {
        true => named(heap::allocate(size), size, caller),
        // SAFETY: any size may be asked for.
        false => unsafe { unmanaged::malloc(size) },
    }
}

with_caller!(calloc(2) => calloc_from);
extern "C" fn calloc_from(count: usize, size: usize, caller: usize) -> *mut c_void {
    match is_managed(count.saturating_mul(size), caller) {
        true => named(heap::zeroed(count, size), count.saturating_mul(size), caller),
        // SAFETY: any size may be asked for.
        false => unsafe { unmanaged::calloc(count, size) },
    }
}

with_caller!(realloc(2) => realloc_from);
unsafe extern "C" fn realloc_from(block: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    if block.is_null() {
        return malloc_from(size, caller);
    }
    if memory::manages(block as usize) {
        // SAFETY: the caller gives up a block of the managed heap.
        unsafe {
            if size == 0 {
                heap::free(block);
                return null_mut();
            }
            return named(heap::reallocate(block, size), size, caller);
        }
    }
    // A block from before the start, or one that the C library has given to the program, moves when the program
    // resizes it.
    if size == 0 || !is_managed(size, caller) {
        // SAFETY: a block of the C library's heap, which the caller gives up.
        return unsafe { unmanaged::realloc(block, size) };
    }
    let new = heap::allocate(size);
    if !new.is_null() {
        // SAFETY: as above; the new block is another one, of this size.
        unsafe {
            new.cast::<u8>().copy_from_nonoverlapping(block.cast(), unmanaged::usable_size(block).min(size));
            unmanaged::free(block);
        }
    }
    new
}

with_caller!(memalign, aligned_alloc(2) => memalign_from);
extern "C" fn memalign_from(align: usize, size: usize, caller: usize) -> *mut c_void {
    match (is_managed(size, caller), align.checked_next_power_of_two()) {
        (_, None) => heap::none(),
        (true, Some(align)) => named(heap::aligned(align, size), size, caller),
        // SAFETY: as above; it mends alignments that are none.
        (false, Some(align)) => unsafe { unmanaged::memalign(align, size) },
    }
}

with_caller!(posix_memalign(3) => posix_memalign_from);
unsafe extern "C" fn posix_memalign_from(out: *mut *mut c_void, align: usize, size: usize, caller: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let errno = sys::errno();
    let block = memalign_from(align, size, caller);
    sys::set_errno(errno);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's place for it.
    unsafe { *out = block };
    0
}

with_caller!(valloc(1) => valloc_from);
extern "C" fn valloc_from(size: usize, caller: usize) -> *mut c_void {
    memalign_from(PAGE, size, caller)
}

with_caller!(pvalloc(1) => pvalloc_from);
extern "C" fn pvalloc_from(size: usize, caller: usize) -> *mut c_void {
    size.checked_next_multiple_of(PAGE).map_or_else(heap::none, |size| memalign_from(PAGE, size, caller))
}

with_caller!(reallocarray(3) => reallocarray_from);
unsafe extern "C" fn reallocarray_from(block: *mut c_void, count: usize, size: usize, caller: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else { return heap::none() };
    // SAFETY: the caller gives up the block; whatever is of that name has that type.
    match REALLOC.load(Relaxed) {
        0 => unsafe { realloc_from(block, size, caller) },
        theirs => unsafe { call_at!(theirs, (block, size)) },
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: the address shows whose block it is; the caller gives it up.
    match memory::manages(block as usize) {
        true => unsafe { heap::free(block) },
        false => unsafe { unmanaged::free(block) },
    }
}

exported! {
    cfree(block: *mut c_void) -> () => free(block);
    free_sized(block: *mut c_void) -> () => free(block);
    free_aligned_sized(block: *mut c_void) -> () => free(block);
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the address shows whose block it is.
    match block as usize {
        0 => 0,
        address if memory::manages(address) => unsafe { heap::usable_size(block) },
        _ => unsafe { unmanaged::usable_size(block) },
    }
}

/// # Safety
/// `text` has `len` bytes.
unsafe fn duplicate(text: *const c_char, len: usize, caller: usize) -> *mut c_char {
    let copy: *mut c_char = as_the_program(len + 1, caller).cast();
    if !copy.is_null() {
        // SAFETY: a new block of `len + 1` bytes.
        unsafe {
            copy.copy_from_nonoverlapping(text, len);
            *copy.add(len) = 0;
        }
    }
    copy
}

with_caller!(strdup, __strdup(1) => strdup_from);
unsafe extern "C" fn strdup_from(text: *const c_char, caller: usize) -> *mut c_char {
    // SAFETY: the caller's string.
    unsafe { duplicate(text, libc::strlen(text), caller) }
}

with_caller!(strndup, __strndup(2) => strndup_from);
unsafe extern "C" fn strndup_from(text: *const c_char, most: usize, caller: usize) -> *mut c_char {
    // SAFETY: the caller's string.
    unsafe { duplicate(text, libc::strnlen(text, most), caller) }
}
