//! madvise with every advice, and the queries msync and mincore. Each does what the kernel would do, for each part of
//! a range, including holes.

use std::ffi::{c_int, c_uchar, c_uint, c_void};
use std::ops::Range;

use coldframe_live::extents::Manner;
use coldframe_live::PAGE;

use crate::managed::memory;
use crate::managed::ranges::{concerns, failed, pages_or_errno, pass, through, Owner};
use crate::pointers::values;
use crate::say::once;
use crate::sys;

const WIPEONFORK: c_int = libc::MADV_WIPEONFORK;
const KEEPONFORK: c_int = libc::MADV_KEEPONFORK;
const DONTNEED_LOCKED: c_int = 24;
const COLLAPSE: c_int = 25;
pub const GUARD_INSTALL: c_int = 102;
const GUARD_REMOVE: c_int = 103;

/// Replaces the C library's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    let address = address as usize;
    if !concerns(address, len) {
        return pass(libc::SYS_madvise, [address, len, advice as usize, 0, 0, 0]) as c_int;
    }
    // With a length of 0, the kernel says whether it knows the advice.
    if pass(libc::SYS_madvise, [address, 0, advice as usize, 0, 0, 0]) < 0 {
        return -1;
    }
    let Some(range) = pages_or_errno(address, len, libc::EINVAL) else { return -1 };
    let stops_at_holes = matches!(advice, libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE);
    let each = || {
        through(range, stops_at_holes, |part, owner| match owner {
            Owner::Managed(manner) => advise(part, manner, advice),
            _ => pass(libc::SYS_madvise, [part.start, part.len(), advice as usize, 0, 0, 0]),
        })
    };
    match advice {
        GUARD_INSTALL | GUARD_REMOVE | DONTNEED_LOCKED => memory::at_once(each),
        _ => each(),
    }
}

/// Replaces the C library's function. The kernel would drop only what is in RAM of the program's own memory.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn process_madvise(
    process: c_int,
    parts: *const libc::iovec,
    count: usize,
    advice: c_int,
    flags: c_uint,
) -> isize {
    let ask = |parts: usize, count| {
        pass(libc::SYS_process_madvise, [process as usize, parts, count, advice as usize, flags as usize, 0])
    };
    let known = (1..=libc::UIO_MAXIOV as usize).contains(&count) && memory::ready();
    // Without parts, the kernel says whether it would take the advice.
    if !known || ask(0, 0) < 0 || !is_own(process) {
        return ask(parts as usize, count);
    }
    let Some(vector) = values(parts, count) else { return ask(parts as usize, count) };
    let mut done = 0;
    for part in vector {
        // SAFETY: the caller's call, in part.
        if unsafe { madvise(part.iov_base, part.iov_len, advice) } < 0 {
            return if done == 0 { -1 } else { done as isize };
        }
        done += part.iov_len;
    }
    done as isize
}

/// Whether a pidfd, or the kernel's word for one, is that of this process or of one of its threads. Kernels that do not
/// know the question let no process drop its own memory in this way.
fn is_own(process: c_int) -> bool {
    /// `PIDFD_SELF_THREAD` and `PIDFD_SELF_THREAD_GROUP` (`linux/pidfd.h`).
    const SELF: std::ops::RangeInclusive<c_int> = -10001..=-10000;
    /// `PIDFD_GET_INFO`, for a structure of 64 bytes. The process's number is the upper half of its third word.
    const GET_INFO: usize = 0xc040_ff0b;
    let mut info = [0u64; 8];
    // SAFETY: the structure lives through the calls and has the length that the number names.
    unsafe {
        let answer = sys::call(libc::SYS_ioctl, [process as usize, GET_INFO, info.as_mut_ptr() as usize, 0, 0, 0]);
        SELF.contains(&process) || (answer == 0 && info[2] >> 32 == sys::call(libc::SYS_getpid, [0; 6]) as u64)
    }
}

fn advise(part: Range<usize>, manner: Manner, advice: c_int) -> isize {
    let kernel = || pass(libc::SYS_madvise, [part.start, part.len(), advice as usize, 0, 0, 0]);
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_COLD | libc::MADV_PAGEOUT | GUARD_INSTALL
            if manner.locked =>
        {
            return failed(libc::EINVAL);
        }
        libc::MADV_DONTNEED | libc::MADV_FREE => memory::discard(part.clone()),
        DONTNEED_LOCKED => drop_locked(&part, manner),
        // For files only.
        libc::MADV_REMOVE => return failed(libc::EINVAL),
        libc::MADV_WILLNEED if manner.guarded => (),
        libc::MADV_WILLNEED => memory::will_need(part.clone()),
        // The kernel touches the pages, as the program would.
        libc::MADV_POPULATE_READ | libc::MADV_POPULATE_WRITE => return kernel(),
        libc::MADV_DONTDUMP | libc::MADV_DODUMP => {
            memory::note(part.clone(), move |manner| manner.dont_dump = advice == libc::MADV_DONTDUMP);
            return kernel();
        }
        // The pager applies these at a fork, and mremap.
        libc::MADV_DONTFORK | libc::MADV_DOFORK => {
            memory::note(part, move |manner| manner.dont_fork = advice == libc::MADV_DONTFORK);
        }
        WIPEONFORK | KEEPONFORK => memory::note(part, move |manner| manner.wipe_on_fork = advice == WIPEONFORK),
        libc::MADV_MERGEABLE | libc::MADV_UNMERGEABLE => {
            memory::note(part, move |manner| manner.mergeable = advice == libc::MADV_MERGEABLE);
        }
        // As before Linux 6.13.
        GUARD_INSTALL | GUARD_REMOVE if !memory::pager().takes_guards() => {
            return failed(libc::EINVAL);
        }
        GUARD_INSTALL | GUARD_REMOVE => return guard(part, advice),
        libc::MADV_HWPOISON | libc::MADV_SOFT_OFFLINE => {
            once!("managed memory cannot be poisoned (madvise {advice})");
            return failed(libc::EPERM);
        }
        // Managed memory has neither huge nor merged pages, and the pager has its own policy.
        libc::MADV_NORMAL | libc::MADV_RANDOM | libc::MADV_SEQUENTIAL | libc::MADV_COLD | libc::MADV_PAGEOUT => (),
        libc::MADV_HUGEPAGE | libc::MADV_NOHUGEPAGE | COLLAPSE => (),
        _ => {
            once!("madvise {advice} is not to be had for managed memory");
            return failed(libc::EINVAL);
        }
    }
    0
}

/// Installs guards, or removes them; content remains only where no guards are.
pub fn guard(part: Range<usize>, advice: c_int) -> isize {
    if advice == GUARD_INSTALL {
        memory::discard(part.clone());
    }
    let answer = pass(libc::SYS_madvise, [part.start, part.len(), advice as usize, 0, 0, 0]);
    if answer == 0 {
        memory::note(part, move |manner| manner.guarded = advice == GUARD_INSTALL);
    }
    answer
}

/// Drops the content of locked memory: the zeros stay in RAM, as the dropped pages did.
fn drop_locked(part: &Range<usize>, manner: Manner) {
    if manner.locked {
        memory::unpin(part.clone());
    }
    memory::discard(part.clone());
    if manner.locked && memory::pin(part.clone()).is_err() {
        memory::note(part.clone(), |manner| manner.locked = false);
    }
}

/// Replaces the C library's function, which returns the error.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    // Its POSIX_MADV_DONTNEED (4) does nothing, since the program's data must stay.
    if advice == libc::POSIX_MADV_DONTNEED {
        return 0;
    }
    let errno = sys::errno();
    // SAFETY: the caller's call.
    let result = if unsafe { madvise(address, len, advice) } == 0 { 0 } else { sys::errno() };
    sys::set_errno(errno);
    result
}

/// Replaces the C library's function. Programs use it to ask whether an address is mapped at all.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn msync(address: *mut c_void, len: usize, flags: c_int) -> c_int {
    let address = address as usize;
    let pass = |at, len| pass(libc::SYS_msync, [at, len, flags as usize, 0, 0, 0]) as c_int;
    if !concerns(address, len) {
        return pass(address, len);
    }
    if pass(address, 0) < 0 {
        return -1;
    }
    let Some(range) = pages_or_errno(address, len, libc::ENOMEM) else { return -1 };
    through(range, false, |part, owner| match owner {
        Owner::Managed(Manner { locked: true, .. }) if flags & libc::MS_INVALIDATE != 0 => failed(libc::EBUSY),
        _ => pass(part.start, part.len()) as isize,
    })
}

/// Replaces the C library's function. Mapped pages count as resident; pages in RAM that are not mapped do not.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mincore(address: *mut c_void, len: usize, out: *mut c_uchar) -> c_int {
    let address = address as usize;
    let pass = |at, len, out| pass(libc::SYS_mincore, [at, len, out, 0, 0, 0]) as c_int;
    if !concerns(address, len) {
        return pass(address, len, out as usize);
    }
    let Some(range) = pages_or_errno(address, len, libc::ENOMEM) else { return -1 };
    let into = |at: usize| out as usize + (at - address) / PAGE;
    through(range, true, |part, _| pass(part.start, part.len(), into(part.start)) as isize)
}
