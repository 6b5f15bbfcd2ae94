//! mmap, munmap, mprotect. The program's large private anonymous mappings are managed; smaller ones are managed if
//! the program asks for an address in the span. Addresses show what a range belongs to. A call over the edge of
//! managed memory is done in parts.
//!
//! If a program passes an address without MAP_FIXED, the kernel takes the address as a hint. So does this library: it
//! uses the address if it is in the span and is free. A hint at another place is ignored, since memory there would
//! not be managed. The exception is a program that insists: it has unmapped such memory unused.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use coldframe_live::calls::{place, Errno};
use coldframe_live::{LiveError, Spot, PAGE};

use crate::managed::memory;
use crate::managed::pins;
use crate::managed::ranges::{concerns, failed, is_pagers, number, pages_or_errno, parts, pass, through, Owner};
use crate::say::{full, once};
use crate::symbols::caller;
use crate::symbols::shim::with_caller;
use crate::sys;

/// The least length of a managed mapping at an address of our choice: Ruby's heap uses pieces of 64 KiB, before 3.2 of
/// 16 KiB, for each of which it maps 32 KiB. A managed mapping costs a few system calls and two entries of the kernel's
/// list. Smaller mappings, of which there are few, are not managed.
const THRESHOLD: usize = 32 << 10;

/// Mappings that are not for data: stacks grow, huge pages are not paged.
const UNMANAGED: c_int = libc::MAP_GROWSDOWN | libc::MAP_HUGETLB;
#[cfg(target_arch = "x86_64")]
const MAP_32BIT: c_int = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const MAP_32BIT: c_int = 0;
const MAP_TYPE: c_int = 0xf;
const FIXED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;

/// The last mapping with a hint outside the span, and the length of such mappings that the program insists on.
static WISH: AtomicUsize = AtomicUsize::new(0);
static INSISTED: AtomicUsize = AtomicUsize::new(0);

/// Whether any managed memory has had a key of protection.
static KEYED: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy)]
struct MmapCall {
    at: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
}

impl MmapCall {
    fn is_private_memory(&self) -> bool {
        self.flags & MAP_TYPE == libc::MAP_PRIVATE
            && self.flags & libc::MAP_ANONYMOUS != 0
            && self.flags & (UNMANAGED | MAP_32BIT) == 0
    }

    /// The kernel's mmap: an address or a negative error.
    fn made(self) -> isize {
        let MmapCall { at, len, protection, flags, file, offset } = self;
        let arguments = [at, len, protection as usize, flags as usize, file as usize, offset as usize];
        // SAFETY: the program's call, about its own memory.
        unsafe { sys::call(libc::SYS_mmap, arguments) }
    }

    /// With the C library's kind of result.
    fn pass(self) -> isize {
        sys::answer(self.made())
    }

    /// A mapping for this library, or a trial: never in a hole that the program has made.
    fn of_our_own(self) -> isize {
        let made = |address, fixed| match (MmapCall { at: address, flags: self.flags | fixed, ..self }).made() {
            error @ ..0 => Err(Errno::from_raw_os_error(-error as i32)),
            address => Ok(address as usize),
        };
        sys::answer(
            place(self.len, made).map_or_else(|error| -(error.raw_os_error() as isize), |address| address as isize),
        )
    }
}

with_caller!(mmap, mmap64(6) => mmap_from);
pub unsafe extern "C" fn mmap_from(
    hint: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    caller: usize,
) -> *mut c_void {
    let call = MmapCall { at: hint as usize, len, protection, flags, file, offset };
    // A ring of io_uring.
    if caller::is_own(caller) && flags & libc::MAP_ANONYMOUS == 0 {
        return call.of_our_own() as *mut c_void;
    }
    if !memory::ready() || caller::is_own(caller) || len == 0 || !(offset as usize).is_multiple_of(PAGE) {
        return call.pass() as *mut c_void;
    }
    let own = caller::is_linker(caller);
    let answer = match flags & FIXED {
        0 => anywhere(call, own),
        _ if concerns(call.at, len) => memory::at_once(|| fixed(call)),
        _ => call.pass(),
    };
    memory::named(answer as usize, len, || caller::past_libc(caller)) as *mut c_void
}

fn anywhere(mut call: MmapCall, own: bool) -> isize {
    let Some(len) = call.len.checked_next_multiple_of(PAGE) else { return failed(libc::ENOMEM) };
    if is_pagers(call.at, len) {
        call.at = 0;
    }
    let wish = call.at.checked_next_multiple_of(PAGE).unwrap_or(0);
    let there = wish..wish.saturating_add(len);
    // Below a place in the span there is no room for a stack to grow into.
    let grows = call.flags & libc::MAP_GROWSDOWN != 0;
    if !own && !grows && wish != 0 && parts(there.clone()).iter().all(|(_, owner)| *owner == Owner::Free) {
        if let Some(at) = granted(call, there.clone()) {
            return at;
        }
    }
    let wanted = len >= THRESHOLD && !own && call.flags & (libc::MAP_STACK | UNMANAGED) == 0;
    let private = call.flags & MAP_TYPE == libc::MAP_PRIVATE && call.flags & libc::MAP_ANONYMOUS != 0;
    if !wanted || !private {
        return call.pass();
    }
    // A program with a hint below 4 GiB may store addresses in 32 bits.
    let low = wish != 0 && there.end <= memory::span().start.min(1 << 32);
    if low || call.flags & MAP_32BIT != 0 {
        let Size(n, unit) = size(len);
        once!("{n} {unit} or more are not paged: the program asks for addresses below 4 GiB");
        return call.pass();
    }
    // Inside the span, the kernel would not use the hint either: the place is taken. Programs insist only on
    // reservations.
    let elsewhere = wish != 0 && !memory::meets(wish, len) && call.protection == libc::PROT_NONE;
    if elsewhere && INSISTED.load(Relaxed) == len {
        let Size(n, unit) = size(len);
        let what = "are not paged: the program insists on that address";
        once!("{n} {unit} or more at {wish:#x} {what}");
        return call.pass();
    }
    let at = new(Spot::Anywhere(PAGE), len, call);
    if elsewhere && memory::manages(at as usize) {
        WISH.store(at as usize, Relaxed);
    }
    at
}

struct Size(usize, &'static str);

/// A length as people say it. This code allocates nothing.
fn size(bytes: usize) -> Size {
    match bytes.ilog2() {
        30.. => Size(bytes >> 30, "GiB"),
        20.. => Size(bytes >> 20, "MiB"),
        _ => Size(bytes >> 10, "KiB"),
    }
}

/// `None`: another thread has taken the place meanwhile.
fn granted(call: MmapCall, there: Range<usize>) -> Option<isize> {
    if call.is_private_memory() && call.flags & libc::MAP_STACK == 0 {
        return Some(new(Spot::Free(there.start), there.len(), call)).filter(|at| *at != TAKEN);
    }
    let call = MmapCall { at: there.start, flags: call.flags | libc::MAP_FIXED, ..call };
    Some(memory::at_once(|| foreign(call, there)))
}

/// No address, and no result of a call.
const TAKEN: isize = -2;

fn new(spot: Spot, len: usize, call: MmapCall) -> isize {
    let at = match memory::map_at(spot, len, call.protection) {
        Ok(at) => at,
        Err(LiveError::Full { .. }) if matches!(spot, Spot::Free(_)) && call.flags & FIXED == 0 => return TAKEN,
        Err(LiveError::Full { .. }) if call.protection == libc::PROT_NONE && call.flags & FIXED == 0 => {
            let (Size(n, unit), Size(most, of)) = (size(len), size(memory::span().len()));
            let what = "is not paged: it does not fit into --max-memory";
            once!("a reservation of {n} {unit} {what}, {most} {of}");
            return call.pass();
        }
        Err(error) => {
            if matches!(error, LiveError::Full { .. }) {
                full(&error);
            }
            return failed(number(&error));
        }
    };
    if call.flags & libc::MAP_LOCKED != 0 && memory::pin(at..at + len).is_ok() {
        // As for mmap: a failure to lock is no error.
        memory::note(at..at + len, |manner| manner.locked = true);
    }
    at as isize
}

fn fixed(call: MmapCall) -> isize {
    let Some(range) = pages_or_errno(call.at, call.len, libc::ENOMEM) else { return -1 };
    if is_pagers(range.start, range.len()) {
        let never_over = call.flags & libc::MAP_FIXED_NOREPLACE == libc::MAP_FIXED_NOREPLACE;
        return failed(if never_over { libc::EEXIST } else { libc::ENOMEM });
    }
    let there = parts(range.clone());
    let span = memory::span();
    let inside = range.start.max(span.start)..range.end.min(span.end);
    if call.flags & libc::MAP_FIXED_NOREPLACE == libc::MAP_FIXED_NOREPLACE {
        let taken = |(part, owner): &(Range<usize>, Owner)| match owner {
            Owner::Free => false,
            Owner::Outside => sys::probe(part.start, part.len()) != part.start as isize,
            _ => true,
        };
        if there.iter().any(taken) {
            return failed(libc::EEXIST);
        }
    }
    if !call.is_private_memory() {
        return foreign(call, inside);
    }
    for (part, owner) in &there {
        match owner {
            Owner::Outside if (MmapCall { at: part.start, len: part.len(), ..call }).pass() < 0 => return -1,
            // The pager keeps the mapping, and would keep its key.
            Owner::Managed(manner) if KEYED.load(Relaxed) => {
                pass(libc::SYS_pkey_mprotect, [part.start, part.len(), manner.protection as usize, 0, 0, 0]);
            }
            _ => {}
        }
    }
    match new(Spot::Over(inside.start), inside.len(), call) {
        -1 => -1,
        _ => range.start as isize,
    }
}

/// A file, shared memory or another mapping that only the kernel can make. It is first tried elsewhere, so that
/// nothing is lost if the kernel refuses it.
fn foreign(call: MmapCall, inside: Range<usize>) -> isize {
    let trial = call.flags & !(FIXED | libc::MAP_POPULATE | libc::MAP_LOCKED);
    let elsewhere = MmapCall { flags: trial, ..call }.of_our_own();
    if elsewhere == -1 {
        return -1;
    }
    pass(libc::SYS_munmap, [elsewhere as usize, call.len, 0, 0, 0, 0]);
    let flags = call.flags & !libc::MAP_FIXED_NOREPLACE | libc::MAP_FIXED;
    sys::answer(memory::map_foreign(inside, move || MmapCall { flags, ..call }.made()))
}

with_caller!(munmap(2) => munmap_from);
pub unsafe extern "C" fn munmap_from(address: *mut c_void, len: usize, caller: usize) -> c_int {
    let at = address as usize;
    let is_own = caller::is_own(caller) && !memory::meets(at, len);
    if len == 0 || is_own || !concerns(at, len) {
        return pass(libc::SYS_munmap, [at, len, 0, 0, 0, 0]) as c_int;
    }
    let Some(range) = pages_or_errno(at, len, libc::EINVAL) else { return -1 };
    memory::at_once(|| unmapped(range))
}

fn unmapped(range: Range<usize>) -> c_int {
    let there = parts(range.clone());
    if WISH.load(Relaxed) == range.start
        && !there.iter().any(|(_, owner)| matches!(owner, Owner::Managed(manner) if manner.opened))
    {
        INSISTED.store(range.len(), Relaxed);
    }
    let mut answer = 0;
    for (part, owner) in there {
        answer |= match owner {
            Owner::Free => 0,
            Owner::Outside => pass(libc::SYS_munmap, [part.start, part.len(), 0, 0, 0, 0]),
            Owner::Foreign | Owner::Managed(_) => match pins::unmap(part) {
                Ok(()) => 0,
                Err(error) => failed(number(&error)),
            },
        };
    }
    answer as c_int
}

/// Shared memory in place of managed memory would not be in the map of extents. Without SHM_REMAP the kernel itself
/// takes no place that is in use, and the whole span is.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn shmat(id: c_int, address: *const c_void, flags: c_int) -> *mut c_void {
    let at = address as usize;
    if flags & libc::SHM_REMAP != 0 && memory::ready() {
        // SAFETY: all bytes zero is a value of it, and the call writes it.
        let len = unsafe {
            let mut known: libc::shmid_ds = std::mem::zeroed();
            sys::call(libc::SYS_shmctl, [id as usize, libc::IPC_STAT as usize, &raw mut known as usize, 0, 0, 0]);
            known.shm_segsz
        };
        if concerns(at, len.max(1)) {
            return failed(libc::EINVAL) as *mut c_void;
        }
    }
    pass(libc::SYS_shmat, [id as usize, at, flags as usize, 0, 0, 0]) as *mut c_void
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mprotect(address: *mut c_void, len: usize, protection: c_int) -> c_int {
    protect(libc::SYS_mprotect, address as usize, len, protection, 0)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pkey_mprotect(address: *mut c_void, len: usize, protection: c_int, key: c_int) -> c_int {
    protect(libc::SYS_pkey_mprotect, address as usize, len, protection, key)
}

fn protect(call: i64, address: usize, len: usize, protection: c_int, key: c_int) -> c_int {
    let pass = |at, len| pass(call, [at, len, protection as usize, key as usize, 0, 0]) as c_int;
    if len == 0 || !memory::ready() || !concerns(address, len) {
        return pass(address, len);
    }
    let Some(range) = pages_or_errno(address, len, libc::ENOMEM) else { return -1 };
    const RIGHTS: c_int = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    const SEMAPHORES: c_int = 8;
    if protection & !(RIGHTS | SEMAPHORES | libc::PROT_GROWSDOWN | libc::PROT_GROWSUP) != 0 {
        return failed(libc::EINVAL) as c_int;
    }
    let each = |part: Range<usize>, owner| {
        let managed = matches!(owner, Owner::Managed(_));
        if managed && protection & RIGHTS != 0 && memory::open(part.clone()).is_err() {
            return failed(libc::ENOMEM);
        }
        let answer = pass(part.start, part.len());
        if managed && answer == 0 {
            KEYED.fetch_or(key > 0, Relaxed);
            memory::note(part, move |manner| manner.protection = protection & RIGHTS);
        }
        answer as isize
    };
    memory::at_once(|| through(range, true, each))
}
