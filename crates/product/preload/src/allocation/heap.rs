//! The program's heap. Blocks below 4 MiB come from mimalloc, in arenas of managed memory. Larger blocks are managed
//! mappings of their own. When they are freed, the pager keeps them for the next ones of their size; their bytes are
//! never written to a device.
//!
//! ```text
//! the span, in units of 32 MiB:  | arena: two units | direct blocks, mmap | arena | free ...
//! ```
//!
//! A block's address shows what it belongs to: a unit belongs to an arena as a whole or not at all. All work and all
//! locking happens inside the gate, so a fork finds no lock held.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::sync::OnceLock;

use coldframe_live::{Spot, PAGE};
use libmimalloc_sys as mi;

use crate::managed::{gate, memory, pins};
use crate::say;
use crate::symbols::libc_symbols::Symbol;
use crate::symbols::next;
use crate::symbols::next::call_at;
use crate::sys::{self, Lock};

/// mimalloc v2's segment (`MI_SEGMENT_SHIFT` in its `types.h`), the unit of its arenas.
const UNIT: usize = 32 << 20;
/// The least and the most that one more arena takes. An arena takes at most half of what the others have, so that 132
/// arenas (`MI_MAX_ARENAS`) are enough.
const ARENA_MIN: usize = 2 * UNIT;
const ARENA_MAX: usize = 4 << 30;
/// From this size on, a block is a mapping of its own.
const DIRECT: usize = 4 << 20;
/// mimalloc aligns blocks of 8 bytes to 8. glibc aligns everything to 16, and some programs need that.
const LEAST: usize = 16;
/// From this value on, the alignment is that of a mapping.
const ALIGN_MAX: usize = 1 << 20;

/// Milliseconds until free memory is returned. This is mimalloc's own default.
const PURGE_DELAY: i64 = 10;

static UNITS: OnceLock<Box<[AtomicBool]>> = OnceLock::new();
/// Bytes in arenas, and the number of arenas so far.
static ARENAS: AtomicUsize = AtomicUsize::new(0);
static GENERATION: AtomicUsize = AtomicUsize::new(0);
static GROW: Lock<()> = Lock::new(());

/// A block with its own mapping: bytes asked for, in whole pages, and bytes mapped.
#[derive(Clone, Copy)]
struct Direct {
    len: usize,
    mapped: usize,
}

static REGISTRY: Lock<BTreeMap<usize, Direct>> = Lock::new(BTreeMap::new());

/// Sets mimalloc's options. Their numbers are those of v2's `mimalloc.h`; the crate's names are v2's, too.
pub fn start() {
    let span = memory::span();
    let units = (0..span.len().div_ceil(UNIT) + 1).map(|_| AtomicBool::new(false)).collect();
    UNITS.get_or_init(|| units);
    const EAGER_COMMIT: c_int = 3;
    const ARENA_EAGER_COMMIT: c_int = 4;
    const PURGE_DECOMMITS: c_int = 5;
    const ALLOW_LARGE_OS_PAGES: c_int = 6;
    const DELAY: c_int = 15;
    const USE_NUMA_NODES: c_int = 16;
    const DISALLOW_OS_ALLOC: c_int = 17;
    const DESTROY_ON_EXIT: c_int = 22;
    const ARENA_RESERVE: c_int = 23;
    let set = |option: c_int, value: c_long| {
        // SAFETY: sets a number in a table.
        unsafe { mi::mi_option_set(option, value) }
    };
    set(mi::mi_option_verbose, 0);
    set(mi::mi_option_reserve_huge_os_pages, 0);
    set(mi::mi_option_reserve_os_memory, 0);
    set(ALLOW_LARGE_OS_PAGES, 0);
    // Memory is opened by mprotect just before its first use, and counts from then on.
    set(EAGER_COMMIT, 0);
    set(ARENA_EAGER_COMMIT, 0);
    set(PURGE_DECOMMITS, 0); // madvise alone, no mprotect
    set(DELAY, PURGE_DELAY);
    set(USE_NUMA_NODES, 1);
    set(DISALLOW_OS_ALLOC, 1);
    set(ARENA_RESERVE, 0);
    set(DESTROY_ON_EXIT, 2); // do nothing at exit: collecting would bring the whole heap in
                             // SAFETY: may be called at any time.
    unsafe { mi::mi_process_init() };
}

fn unit(address: usize) -> usize {
    // The span begins where the options say, which need not be the start of a unit.
    address / UNIT - memory::span().start / UNIT
}

fn in_arena(address: usize) -> bool {
    UNITS.get().is_some_and(|units| units[unit(address)].load(Relaxed))
}

/// Adds an arena, unless another thread has added one since `generation`.
#[cold]
fn grow(generation: usize) -> bool {
    let _inside = gate::enter();
    GROW.with(|()| {
        if GENERATION.load(Acquire) != generation {
            return true;
        }
        let mut len = (ARENAS.load(Relaxed) / 2).next_multiple_of(UNIT).clamp(ARENA_MIN, ARENA_MAX);
        let at = loop {
            match memory::map_at(Spot::Anywhere(UNIT), len, libc::PROT_NONE) {
                Ok(at) => break at,
                Err(_) if len > UNIT => len = (len / 2).next_multiple_of(UNIT),
                Err(error) => {
                    say::full(&error);
                    return false;
                }
            }
        };
        for first in (at..at + len).step_by(UNIT) {
            UNITS.get().expect("the heap has started")[unit(first)].store(true, Relaxed);
        }
        let mut id = Default::default();
        // SAFETY: zeroed memory in use for nothing else, from here on mimalloc's.
        let taken =
            unsafe { mi::mi_manage_os_memory_ex(at as *mut c_void, len, false, false, true, -1, false, &mut id) };
        if taken {
            ARENAS.fetch_add(len, Relaxed);
            GENERATION.fetch_add(1, Release);
        }
        taken
    })
}

/// mimalloc's answer; if it has no room, its answer after one more arena.
fn from_arena(work: impl Fn() -> *mut c_void) -> *mut c_void {
    loop {
        let generation = GENERATION.load(Acquire);
        let block = {
            let _inside = gate::enter();
            work()
        };
        if !block.is_null() {
            return block;
        }
        if !grow(generation) {
            return none();
        }
    }
}

pub fn none() -> *mut c_void {
    sys::set_errno(libc::ENOMEM);
    null_mut()
}

/// A block with its own mapping, with room to grow to `room`; `zeros`: of zeros.
fn direct(len: usize, align: usize, room: usize, zeros: bool) -> *mut c_void {
    let _inside = gate::enter();
    let (Some(len), Some(room)) = (len.checked_next_multiple_of(PAGE), room.checked_next_multiple_of(PAGE)) else {
        return none();
    };
    let map = |mapped| Some((memory::map(mapped, align.max(PAGE)).map_err(|e| say::full(&e)).ok()?, mapped));
    let cached = memory::take_cached(room, align.max(PAGE)).map(|cached| (cached.start, cached.len()));
    if let Some((at, mapped)) = cached.filter(|_| zeros) {
        memory::discard(at..at + mapped);
    }
    let Some((at, mapped)) = cached.or_else(|| map(room)).or_else(|| if room > len { map(len) } else { None }) else {
        return none();
    };
    REGISTRY.with(|blocks| blocks.insert(at, Direct { len, mapped }));
    at as *mut c_void
}

pub fn allocate(size: usize) -> *mut c_void {
    match size {
        0..DIRECT => from_arena(|| {
            // SAFETY: any size may be asked for.
            unsafe { mi::mi_malloc(size.max(LEAST)) }
        }),
        _ if size > isize::MAX as usize => none(),
        _ => direct(size, PAGE, size, false),
    }
}

pub fn zeroed(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        None => none(),
        Some(bytes @ 0..DIRECT) => from_arena(|| {
            // SAFETY: any size may be asked for.
            unsafe { mi::mi_zalloc(bytes.max(LEAST)) }
        }),
        Some(bytes) if bytes > isize::MAX as usize => none(),
        Some(bytes) => direct(bytes, PAGE, bytes, true),
    }
}

/// memalign; `align` is a power of two.
pub fn aligned(align: usize, size: usize) -> *mut c_void {
    if size < DIRECT && align <= ALIGN_MAX {
        return from_arena(|| {
            // SAFETY: a power of two and any size.
            unsafe { mi::mi_malloc_aligned(size.max(LEAST), align) }
        });
    }
    match size > isize::MAX as usize {
        true => none(),
        false => direct(size.max(1), align, size.max(1), false),
    }
}

/// The function of an allocator that is loaded after this library, if there is one. Its `new` takes from its own
/// heap, whose memory is managed, but its `delete` calls `free` by name. So a block in managed memory that is not
/// ours is its own.
fn behind(function: &Symbol) -> Option<usize> {
    Some(function.address()).filter(|address| *address != 0 && !crate::symbols::caller::is_libc(*address))
}

/// free.
///
/// # Safety
/// `block` is one of this heap, or of an allocator behind it.
pub unsafe fn free(block: *mut c_void) {
    let errno = sys::errno();
    let _inside = gate::enter();
    if in_arena(block as usize) {
        // SAFETY: a block of mimalloc's, which the caller gives up.
        unsafe { mi::mi_free(block) };
    } else {
        match REGISTRY.with(|blocks| blocks.remove(&(block as usize))) {
            // This function cannot report that the kernel refused.
            Some(Direct { mapped, .. }) => _ = pins::keep(block as usize..block as usize + mapped),
            None => match behind(&next::FREE) {
                // SAFETY: of that name, and of that type.
                Some(theirs) => unsafe { call_at!(theirs, (block)) },
                None => say::fail(134, format_args!("free({block:p}): not a block of the heap")),
            },
        }
    }
    sys::set_errno(errno);
}

/// malloc_usable_size.
///
/// # Safety
/// `block` is one of this heap.
pub unsafe fn usable_size(block: *mut c_void) -> usize {
    let _inside = gate::enter();
    if in_arena(block as usize) {
        // SAFETY: a block of mimalloc's.
        return unsafe { mi::mi_usable_size(block) };
    }
    match (REGISTRY.with(|blocks| blocks.get(&(block as usize)).map(|b| b.len)), behind(&next::USABLE_SIZE)) {
        (Some(len), _) => len,
        (None, None) => 0,
        // SAFETY: of that name, and of that type.
        (None, Some(theirs)) => unsafe { call_at!(theirs, (block)) },
    }
}

/// realloc.
///
/// # Safety
/// `block` is one of this heap.
pub unsafe fn reallocate(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller gives up the block for the one that it gets.
    let moved = |had, to| unsafe { moved(block, had, size, to) };
    if in_arena(block as usize) {
        // SAFETY: as above; a block of mimalloc's.
        return match size {
            0..DIRECT => from_arena(|| unsafe { mi::mi_realloc(block, size.max(LEAST)) }),
            _ => moved(unsafe { usable_size(block) }, direct(size, PAGE, size, true)),
        };
    }
    let _inside = gate::enter();
    let Some(old) = REGISTRY.with(|blocks| blocks.get(&(block as usize)).copied()) else {
        let Some(theirs) = behind(&next::REALLOC) else {
            say::fail(134, format_args!("realloc({block:p}): not a block of the heap"));
        };
        // SAFETY: of that name, and of that type.
        return unsafe { call_at!(theirs, (block, size)) };
    };
    if size > isize::MAX as usize {
        return none();
    }
    if size < DIRECT {
        return moved(old.len, allocate(size));
    }
    let len = size.next_multiple_of(PAGE);
    if len <= old.mapped {
        if len < old.len {
            // Memory that a later growth uncovers need not be zero, and need not be kept either.
            memory::discard(block as usize + len..block as usize + old.len);
        }
        REGISTRY.with(|blocks| blocks.insert(block as usize, Direct { len, mapped: old.mapped }));
        return block;
    }
    // A move loads the whole block. Room to grow costs only addresses and makes moves rare.
    moved(old.len, direct(size, PAGE, size.saturating_mul(2), true))
}

/// # Safety
/// As for `reallocate`; `to` is null or a new block of `size` bytes, and `had` bytes of `block` can be read.
unsafe fn moved(block: *mut c_void, had: usize, size: usize, to: *mut c_void) -> *mut c_void {
    if !to.is_null() {
        // SAFETY: the new block is another one, and the caller gives up the old one.
        unsafe {
            memory::copy(block as usize, to as usize, had.min(size));
            free(block);
        }
    }
    to
}
