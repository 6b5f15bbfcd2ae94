//! Memory that the program gives to an io_uring permanently: fixed buffers, and rings of provided buffers. The kernel
//! takes its frames at that moment and uses them from then on. So the memory is pinned until the program takes it
//! back. Beyond the limit for pinned memory, the call fails with ENOMEM.
//!
//! Covered: the C library's `syscall`, and liburing as a shared library. Not covered: programs with their own system
//! calls or with liburing linked in. Other operations of a ring copy, and pages come and go under them as under every
//! system call.

use std::ffi::{c_int, c_long, c_uint, c_void};

use crate::parts::pass;
use crate::pins::{self, Pinned, Why};
use crate::say::{once, Once};
use crate::{memory, sys, wary};

/// Opcodes of io_uring_register, and the bit that says that the descriptor is an index.
const REGISTER_BUFFERS: c_uint = 0;
const UNREGISTER_BUFFERS: c_uint = 1;
const REGISTER_BUFFERS2: c_uint = 15;
const BUFFERS_UPDATE: c_uint = 16;
const REGISTER_PBUF_RING: c_uint = 22;
const UNREGISTER_PBUF_RING: c_uint = 23;
const CLONE_BUFFERS: c_uint = 30;
const ZCRX_IFQ: c_uint = 32;
const MEM_REGION: c_uint = 34;
const BY_INDEX: c_uint = 1 << 31;
/// Flag of io_uring_setup: the program supplies the memory of the ring.
const SETUP_NO_MMAP: u32 = 1 << 14;
/// Flag of a ring of provided buffers: the kernel supplies the memory.
const PBUF_RING_MMAP: u16 = 1;
/// Bytes of an entry of such a ring.
const PBUF_ENTRY: usize = 16;

/// `struct io_uring_rsrc_register`.
#[repr(C)]
struct Register {
    count: u32,
    flags: u32,
    reserved: u64,
    data: u64,
    tags: u64,
}

/// `struct io_uring_rsrc_update2`.
#[repr(C)]
struct Update {
    offset: u32,
    reserved: u32,
    data: u64,
    tags: u64,
    count: u32,
    reserved2: u32,
}

/// `struct io_uring_buf_reg`.
#[repr(C)]
struct Provided {
    address: u64,
    entries: u32,
    group: u16,
    flags: u16,
    reserved: [u64; 3],
}

fn refused(what: &str, error: c_int) -> c_int {
    once(Once::Rings, format_args!("{what}; the program gets an error from io_uring instead"));
    -error
}

/// Pins buffers and has the kernel register them. As many as are registered then belong to `of`, from `offset` on.
/// `register` returns a negative error number on failure; `all`: its result 0 means all of them, not none.
///
/// # Safety
/// `buffers` is null or has `count` entries, as the kernel expects.
unsafe fn registered(
    (why, of): (Why, usize),
    offset: u32,
    buffers: *const libc::iovec,
    count: usize,
    all: bool,
    register: impl FnOnce() -> c_int,
) -> c_int {
    if buffers.is_null() || count > u16::MAX.into() {
        return register(); // sparse, or the kernel has the word for it
    }
    let mut pinned = Vec::new();
    // SAFETY: the caller's.
    for buffer in unsafe { std::slice::from_raw_parts(buffers, count) } {
        match Pinned::new(buffer.iov_base as usize, buffer.iov_len) {
            Some(one) => pinned.push(one),
            None => {
                return refused(
                    "buffers of an io_uring are more than may stay in RAM; --ram is too small for them",
                    libc::ENOMEM,
                )
            }
        }
    }
    let result = register();
    let good = if result == 0 && all { count } else { usize::try_from(result).unwrap_or(0) };
    for (i, one) in pinned.into_iter().enumerate().take(good) {
        one.belong_to((why, of, offset + i as u32));
    }
    result
}

/// io_uring_register through `syscall`; returns a negative error number, or the kernel's result.
unsafe fn register(ring: usize, opcode: c_uint, argument: usize, count: usize) -> c_int {
    let call = [ring, opcode as usize, argument, count, 0, 0];
    // SAFETY: the caller's call.
    let pass = || unsafe { sys::call(libc::SYS_io_uring_register, call) } as c_int;
    // An index belongs to the thread, a descriptor to the process; the upper half distinguishes them.
    let of = ring & u32::MAX as usize | (opcode & BY_INDEX) as usize;
    // SAFETY: the caller's structures, of the lengths that the kernel expects; and one buffer of this frame.
    unsafe {
        match opcode & !BY_INDEX {
            REGISTER_BUFFERS => registered((Why::RingBuffer, of), 0, argument as *const _, count, true, pass),
            REGISTER_BUFFERS2 if count == size_of::<Register>() && argument != 0 => {
                let Register { count, data, .. } = (argument as *const Register).read_unaligned();
                registered((Why::RingBuffer, of), 0, data as *const _, count as usize, true, pass)
            }
            BUFFERS_UPDATE if count == size_of::<Update>() && argument != 0 => {
                let Update { offset, data, count, .. } = (argument as *const Update).read_unaligned();
                registered((Why::RingBuffer, of), offset, data as *const _, count as usize, false, pass)
            }
            UNREGISTER_BUFFERS => given_back(Why::RingBuffer, of, pass),
            REGISTER_PBUF_RING if argument != 0 => {
                let Provided { address, entries, group, flags, .. } = (argument as *const Provided).read_unaligned();
                if flags & PBUF_RING_MMAP != 0 {
                    return pass();
                }
                let ring = libc::iovec { iov_base: address as *mut c_void, iov_len: entries as usize * PBUF_ENTRY };
                registered((Why::RingProvided, of), group.into(), &ring, 1, true, pass)
            }
            UNREGISTER_PBUF_RING if argument != 0 => {
                let Provided { group, .. } = (argument as *const Provided).read_unaligned();
                let result = pass();
                if result >= 0 {
                    pins::release_one((Why::RingProvided, of, group.into()));
                }
                result
            }
            CLONE_BUFFERS if pins::any() => {
                refused("io_uring buffers of one ring cannot be shared with another", libc::EINVAL)
            }
            ZCRX_IFQ | MEM_REGION => refused("io_uring cannot have regions of the program's memory", libc::EINVAL),
            _ => pass(),
        }
    }
}

fn given_back(why: Why, of: usize, unregister: impl FnOnce() -> c_int) -> c_int {
    let result = unregister();
    if result >= 0 {
        pins::release(why, of);
    }
    result
}

/// io_uring_register, with the kind of result of `syscall`.
pub unsafe fn register_from(ring: usize, opcode: c_uint, argument: usize, count: usize) -> c_long {
    // SAFETY: the caller's call.
    sys::answer(unsafe { register(ring, opcode, argument, count) } as isize) as c_long
}

/// `struct io_uring_params`, as far as it is used: flags, and the two addresses of memory that the program supplies.
#[repr(C)]
struct Params {
    entries: [u32; 2],
    flags: u32,
    others: [u32; 7],
    submission: [u32; 8],
    submission_memory: u64,
    completion: [u32; 8],
    completion_memory: u64,
}

/// It can open files with O_DIRECT itself, and what registers buffers may be a call that nobody sees.
const A_RING: &str = "an io_uring";

/// io_uring_setup, with the kind of result of `syscall`. A ring whose own memory would be paged is refused, as an
/// older kernel refuses it.
pub unsafe fn setup_from(entries: usize, params: usize) -> c_long {
    if !wary::be_wary(A_RING) {
        sys::set_errno(libc::EPERM);
        return -1;
    }
    // SAFETY: the caller's structure, which the kernel would read as well.
    if let Some(params) = unsafe { (params as *const Params).as_ref() } {
        let managed = |address: u64| memory::manages(address as usize);
        let own = params.flags & SETUP_NO_MMAP != 0;
        if own && (managed(params.submission_memory) || managed(params.completion_memory)) {
            let error = refused("an io_uring cannot lie in managed memory", libc::EINVAL);
            return sys::answer(error as isize) as c_long;
        }
    }
    pass(libc::SYS_io_uring_setup, [entries, params, 0, 0, 0, 0]) as c_long
}

/// A descriptor is closed, or becomes another file: the program has a ring's memory back. Operations in progress keep
/// their frames, and their results cannot be relied on.
pub fn closed(descriptor: c_int) {
    if pins::any() && descriptor >= 0 {
        pins::release(Why::RingBuffer, descriptor as usize);
        pins::release(Why::RingProvided, descriptor as usize);
    }
}

/// Whether a descriptor is that of a ring with pinned memory.
pub fn has_pins(descriptor: c_int) -> bool {
    let of = descriptor as usize;
    descriptor >= 0 && (pins::has(Why::RingBuffer, of) || pins::has(Why::RingProvided, of))
}

/// The ring has one more descriptor and lives longer than the first: its memory stays pinned.
pub fn copied(descriptor: c_int) {
    if has_pins(descriptor) {
        pins::keep_for_good(Why::RingBuffer, descriptor as usize);
        pins::keep_for_good(Why::RingProvided, descriptor as usize);
    }
}

/// liburing's function of this name, however the library was loaded: a plugin may have loaded it.
fn liburing(name: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: looks a name up, in a library that is there or not at all.
    unsafe {
        let mut found = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        for library in [c"liburing.so.2", c"liburing.so.1"] {
            if found.is_null() {
                let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
                found = if handle.is_null() { found } else { libc::dlsym(handle, name.as_ptr()) };
            }
        }
        (!found.is_null()).then_some(found as usize)
    }
}

/// `forward!(name, type, arguments)`: the result of liburing's function.
macro_rules! forward {
    ($name:ident, $type:ty, ($($argument:expr),*)) => {
        match liburing(const { match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name"),
        } }) {
            // SAFETY: liburing's function of that name has that type.
            Some(found) => unsafe { std::mem::transmute::<usize, $type>(found)($($argument),*) },
            None => -libc::ENOSYS,
        }
    };
}

type Buffers = unsafe extern "C" fn(usize, *const libc::iovec, c_uint) -> c_int;
type Tagged = unsafe extern "C" fn(usize, *const libc::iovec, *const u64, c_uint) -> c_int;
type Updated = unsafe extern "C" fn(usize, c_uint, *const libc::iovec, *const u64, c_uint) -> c_int;
type Init = unsafe extern "C" fn(c_uint, usize, c_uint) -> c_int;
type InitParams = unsafe extern "C" fn(c_uint, usize, usize) -> c_int;
type Clone = unsafe extern "C" fn(usize, usize) -> c_int;
type OfRing = unsafe extern "C" fn(usize) -> c_int;
type InMemory = unsafe extern "C" fn(c_uint, usize, usize, *mut c_void, usize) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_register_buffers(ring: usize, buffers: *const libc::iovec, count: c_uint) -> c_int {
    let pass = || forward!(io_uring_register_buffers, Buffers, (ring, buffers, count));
    // SAFETY: the caller's buffers.
    unsafe { registered((Why::Liburing, ring), 0, buffers, count as usize, true, pass) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_register_buffers_tags(
    ring: usize,
    buffers: *const libc::iovec,
    tags: *const u64,
    count: c_uint,
) -> c_int {
    let pass = || forward!(io_uring_register_buffers_tags, Tagged, (ring, buffers, tags, count));
    // SAFETY: the caller's buffers.
    unsafe { registered((Why::Liburing, ring), 0, buffers, count as usize, true, pass) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_register_buffers_update_tag(
    ring: usize,
    offset: c_uint,
    buffers: *const libc::iovec,
    tags: *const u64,
    count: c_uint,
) -> c_int {
    let pass = || forward!(io_uring_register_buffers_update_tag, Updated, (ring, offset, buffers, tags, count));
    // SAFETY: the caller's buffers.
    unsafe { registered((Why::Liburing, ring), offset, buffers, count as usize, false, pass) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_unregister_buffers(ring: usize) -> c_int {
    given_back(Why::Liburing, ring, || forward!(io_uring_unregister_buffers, OfRing, (ring)))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_queue_exit(ring: usize) {
    // It returns nothing, and the value read as its result is not used.
    forward!(io_uring_queue_exit, OfRing, (ring));
    pins::release(Why::Liburing, ring);
}

/// Replaces liburing's function: a ring in memory of the program.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_queue_init_mem(
    entries: c_uint,
    ring: usize,
    params: usize,
    memory: *mut c_void,
    len: usize,
) -> c_int {
    if memory::meets(memory as usize, len.max(1)) {
        return refused("an io_uring cannot lie in managed memory", libc::EINVAL);
    }
    if !wary::be_wary(A_RING) {
        return -libc::EPERM;
    }
    forward!(io_uring_queue_init_mem, InMemory, (entries, ring, params, memory, len))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_queue_init(entries: c_uint, ring: usize, flags: c_uint) -> c_int {
    match wary::be_wary(A_RING) {
        true => forward!(io_uring_queue_init, Init, (entries, ring, flags)),
        false => -libc::EPERM,
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_queue_init_params(entries: c_uint, ring: usize, params: usize) -> c_int {
    match wary::be_wary(A_RING) {
        true => forward!(io_uring_queue_init_params, InitParams, (entries, ring, params)),
        false => -libc::EPERM,
    }
}

/// liburing's names for the bare calls.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_setup(entries: c_uint, params: usize) -> c_int {
    // SAFETY: the caller's structure.
    bare(unsafe { setup_from(entries as usize, params) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_register(ring: c_uint, opcode: c_uint, argument: usize, count: c_uint) -> c_int {
    // SAFETY: the caller's structure.
    unsafe { register(ring as usize, opcode, argument, count as usize) }
}

fn bare(result: c_long) -> c_int {
    if result < 0 {
        -sys::errno()
    } else {
        result as c_int
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_clone_buffers(to: usize, from: usize) -> c_int {
    match pins::any() {
        true => refused("io_uring buffers of one ring cannot be shared with another", libc::EINVAL),
        false => forward!(io_uring_clone_buffers, Clone, (to, from)),
    }
}

/// `struct io_uring_buf_reg` comes with the call.
type ProvidedRing = unsafe extern "C" fn(usize, *const c_void, c_uint) -> c_int;
type NoProvidedRing = unsafe extern "C" fn(usize, c_int) -> c_int;

/// Above the indices of fixed buffers, of which there are at most 2^14.
const GROUPS: u32 = 1 << 16;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_register_buf_ring(ring: usize, argument: *const c_void, flags: c_uint) -> c_int {
    let pass = || forward!(io_uring_register_buf_ring, ProvidedRing, (ring, argument, flags));
    // SAFETY: the caller's structure, which liburing would read as well.
    let Some(Provided { address, entries, group, flags, .. }) = (unsafe { argument.cast::<Provided>().as_ref() })
    else {
        return pass();
    };
    if flags & PBUF_RING_MMAP != 0 {
        return pass();
    }
    let buffer = libc::iovec { iov_base: *address as *mut c_void, iov_len: *entries as usize * PBUF_ENTRY };
    // SAFETY: one buffer of this frame.
    unsafe { registered((Why::Liburing, ring), GROUPS + u32::from(*group), &buffer, 1, true, pass) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn io_uring_unregister_buf_ring(ring: usize, group: c_int) -> c_int {
    let result = forward!(io_uring_unregister_buf_ring, NoProvidedRing, (ring, group));
    if result >= 0 {
        pins::release_one((Why::Liburing, ring, GROUPS + group as u32));
    }
    result
}
