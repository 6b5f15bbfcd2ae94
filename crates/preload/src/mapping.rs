//! mmap and its kin. Large private anonymous mappings of the program are managed. A managed range is told by its address; a call
//! that reaches over the edge of managed memory is done in parts.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use coldframe_live::PAGE;

use crate::memory::{self, backing};
use crate::say::{once, Once};
use crate::shim::with_caller;
use crate::{caller, sys};

/// The least length of a managed mapping.
pub static THRESHOLD: AtomicUsize = AtomicUsize::new(128 << 10);

/// Mappings that are for something other than data: stacks grow, huge pages are not paged.
const UNMANAGED: c_int = libc::MAP_GROWSDOWN | libc::MAP_STACK | libc::MAP_HUGETLB;
#[cfg(target_arch = "x86_64")]
const MAP_32BIT: c_int = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const MAP_32BIT: c_int = 0;
const MAP_TYPE: c_int = 0xf;

fn failed(error: c_int) -> isize {
    sys::set_errno(error);
    -1
}

/// A system call with the C library's answer.
///
/// # Safety
/// As the call's.
unsafe fn pass(number: i64, arguments: [usize; 6]) -> isize {
    sys::answer(sys::call(number, arguments))
}

/// Where `address..address + len`, which starts at a page and ends within one, meets managed memory.
fn managed_part(address: usize, len: usize) -> Range<usize> {
    let span = memory::span();
    let end = address.saturating_add(len).next_multiple_of(PAGE);
    address.clamp(span.start, span.end)..end.clamp(span.start, span.end)
}

/// Runs `inside` on the managed part of a range and `number` on what lies before and after it.
unsafe fn in_parts(
    number: i64,
    address: usize,
    len: usize,
    third: usize,
    inside: impl FnOnce(Range<usize>) -> isize,
) -> isize {
    if !memory::meets(address, len) {
        return pass(number, [address, len, third, 0, 0, 0]);
    }
    if !address.is_multiple_of(PAGE) {
        return failed(libc::EINVAL);
    }
    let part = managed_part(address, len);
    let mut result = 0;
    if address < part.start {
        result |= pass(number, [address, part.start - address, third, 0, 0, 0]);
    }
    if address + len > part.end {
        result |= pass(number, [part.end, address + len - part.end, third, 0, 0, 0]);
    }
    result | inside(part)
}

with_caller!(mmap(6) => mmap_from);
with_caller!(mmap64(6) => mmap_from);
/// mmap.
pub unsafe extern "C" fn mmap_from(
    hint: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    caller: usize,
) -> *mut c_void {
    let hint = hint as usize;
    let arguments = [hint, len, protection as usize, flags as usize, file as usize, offset as usize];
    if !memory::ready() || caller::is_own(caller) {
        return pass(libc::SYS_mmap, arguments) as *mut c_void;
    }
    if flags & libc::MAP_FIXED != 0 && memory::meets(hint, len) {
        return fixed(hint, len, protection, flags) as *mut c_void;
    }
    // A hint below 4 GiB is a program that stores addresses in 32 bits.
    let low = hint != 0 && hint.saturating_add(len) <= 1 << 32 || flags & MAP_32BIT != 0;
    let anywhere = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | UNMANAGED) == 0 && !low;
    let private = flags & MAP_TYPE == libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS != 0;
    let wanted = len >= THRESHOLD.load(Relaxed) && !caller::is_libc(caller) && !caller::is_linker(caller);
    if !(anywhere && private && wanted) {
        return pass(libc::SYS_mmap, arguments) as *mut c_void;
    }
    if protection == libc::PROT_NONE && len > memory::span().len() / 4 {
        once(
            Once::Reservation,
            format_args!(
                "a reservation of {len} bytes is not managed, since `max_memory` is {} bytes",
                memory::span().len()
            ),
        );
        return pass(libc::SYS_mmap, arguments) as *mut c_void;
    }
    new(len, protection, flags) as *mut c_void
}

/// A new managed mapping.
unsafe fn new(len: usize, protection: c_int, flags: c_int) -> isize {
    let Some(len) = len.checked_next_multiple_of(PAGE) else { return failed(libc::ENOMEM) };
    let at = match backing().map(len, PAGE) {
        Ok(at) => at,
        Err(error) => {
            once(Once::Full, format_args!("the program gets no more memory: {error}"));
            return failed(libc::ENOMEM);
        }
    };
    if protection != libc::PROT_READ | libc::PROT_WRITE
        && pass(libc::SYS_mprotect, [at, len, protection as usize, 0, 0, 0]) < 0
    {
        let error = sys::errno();
        backing().unmap(at, len);
        return failed(error);
    }
    if flags & libc::MAP_LOCKED != 0 {
        let _ = backing().pin(at, len); // as mmap's: not an error
    }
    at as isize
}

/// A mapping over a managed one: the same addresses with zeros.
unsafe fn fixed(at: usize, len: usize, protection: c_int, flags: c_int) -> isize {
    if flags & libc::MAP_FIXED_NOREPLACE == libc::MAP_FIXED_NOREPLACE {
        return failed(libc::EEXIST);
    }
    let span = memory::span();
    let within = at >= span.start && len <= span.end.saturating_sub(at);
    if !at.is_multiple_of(PAGE) || len == 0 {
        return failed(libc::EINVAL);
    }
    if !within || flags & MAP_TYPE != libc::MAP_PRIVATE || flags & libc::MAP_ANONYMOUS == 0 {
        once(
            Once::FixedFile,
            format_args!(
                "a file or shared memory cannot be mapped over managed memory; raise COLDFRAME_MMAP_THRESHOLD"
            ),
        );
        return failed(libc::ENOMEM);
    }
    let len = len.next_multiple_of(PAGE);
    backing().discard(at, len);
    if pass(libc::SYS_mprotect, [at, len, protection as usize, 0, 0, 0]) < 0 {
        return -1;
    }
    at as isize
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    if len == 0 {
        return failed(libc::EINVAL) as c_int;
    }
    in_parts(libc::SYS_munmap, address as usize, len, 0, |part| {
        backing().unmap(part.start, part.len());
        0
    }) as c_int
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    let at = old as usize;
    let to_managed = flags & libc::MREMAP_FIXED != 0 && memory::meets(to as usize, new_len);
    if !memory::meets(at, old_len.max(1)) && !to_managed {
        return pass(libc::SYS_mremap, [at, old_len, new_len, flags as usize, to as usize, 0]) as *mut c_void;
    }
    resize(at, old_len, new_len, flags) as *mut c_void
}

/// mremap of a managed mapping: what does not fit moves to a new one.
unsafe fn resize(at: usize, old_len: usize, new_len: usize, flags: c_int) -> isize {
    if flags & !libc::MREMAP_MAYMOVE != 0 {
        once(
            Once::FixedMove,
            format_args!("mremap cannot move managed memory to a given address, nor leave the old one mapped"),
        );
        return failed(libc::EINVAL);
    }
    let (Some(old_len), Some(new_len)) =
        (old_len.checked_next_multiple_of(PAGE), new_len.checked_next_multiple_of(PAGE))
    else {
        return failed(libc::ENOMEM);
    };
    let span = memory::span();
    if !at.is_multiple_of(PAGE) || new_len == 0 || old_len == 0 || at < span.start || at + old_len > span.end {
        return failed(libc::EINVAL);
    }
    if new_len <= old_len {
        if new_len < old_len {
            backing().unmap(at + new_len, old_len - new_len);
        }
        return at as isize;
    }
    if flags & libc::MREMAP_MAYMOVE == 0 {
        return failed(libc::ENOMEM);
    }
    let moved = new(new_len, libc::PROT_READ | libc::PROT_WRITE, 0);
    if moved > 0 {
        (moved as *mut u8).copy_from_nonoverlapping(at as *const u8, old_len);
        backing().unmap(at, old_len);
    }
    moved
}

/// Replaces the C library's. mimalloc's purges come here too.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    in_parts(libc::SYS_madvise, address as usize, len, advice as usize, |part| advise(part, advice)) as c_int
}

unsafe fn advise(part: Range<usize>, advice: c_int) -> isize {
    const COLLAPSE: c_int = 25;
    const DONTNEED_LOCKED: c_int = 24;
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | DONTNEED_LOCKED => backing().discard(part.start, part.len()),
        libc::MADV_WILLNEED | libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => {
            backing().will_need(part.start, part.len());
        }
        libc::MADV_NORMAL | libc::MADV_RANDOM | libc::MADV_SEQUENTIAL | libc::MADV_COLD | libc::MADV_PAGEOUT => (),
        libc::MADV_HUGEPAGE | libc::MADV_NOHUGEPAGE | libc::MADV_MERGEABLE | libc::MADV_UNMERGEABLE | COLLAPSE => (),
        libc::MADV_DOFORK | KEEPONFORK => (),
        libc::MADV_DONTDUMP | libc::MADV_DODUMP => {
            return pass(libc::SYS_madvise, [part.start, part.len(), advice as usize, 0, 0, 0]);
        }
        _ => {
            once(Once::Advice, format_args!("madvise {advice} is not to be had for managed memory"));
            return failed(libc::EINVAL);
        }
    }
    0
}

const KEEPONFORK: c_int = 19;

/// Replaces the C library's, which answers with the error.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    // Its POSIX_MADV_DONTNEED (4) does nothing, since the program's data must stay.
    if advice == libc::POSIX_MADV_DONTNEED {
        return 0;
    }
    let errno = sys::errno();
    let result = if madvise(address, len, advice) == 0 { 0 } else { sys::errno() };
    sys::set_errno(errno);
    result
}

/// The pages that a lock of any bytes is about.
fn pages(address: usize, len: usize) -> (usize, usize) {
    let start = address / PAGE * PAGE;
    (start, address.saturating_add(len) - start)
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mlock(address: *const c_void, len: usize) -> c_int {
    let (start, len) = pages(address as usize, len);
    in_parts(libc::SYS_mlock, start, len, 0, pin) as c_int
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mlock2(address: *const c_void, len: usize, flags: u32) -> c_int {
    let (start, len) = pages(address as usize, len);
    in_parts(libc::SYS_mlock2, start, len, flags as usize, pin) as c_int
}

fn pin(part: Range<usize>) -> isize {
    match backing().pin(part.start, part.len()) {
        Ok(()) => 0,
        Err(_) => failed(libc::ENOMEM),
    }
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munlock(address: *const c_void, len: usize) -> c_int {
    let (start, len) = pages(address as usize, len);
    in_parts(libc::SYS_munlock, start, len, 0, |part| {
        backing().unpin(part.start, part.len());
        0
    }) as c_int
}

/// Replaces the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mlockall(_flags: c_int) -> c_int {
    once(Once::LockAll, format_args!("mlockall is refused, since the program is to run in less memory than it has"));
    failed(libc::ENOMEM) as c_int
}
