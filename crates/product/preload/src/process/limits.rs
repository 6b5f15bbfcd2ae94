//! Limits that the program sets for its process. The pager is in another one, which they do not reach; but the memory
//! of both is the same, and so is what the kernel counts for limits on address space and on data. So the kernel gets
//! the program's limit and what the pager has at the start, and the program reads its own limit again. A program that
//! is executed inherits the kernel's.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use coldframe_live::PAGE;
use libc::rlimit64;

use crate::managed::memory;
use crate::managed::ranges::{failed, pass};
use crate::pointers::value;
use crate::say::once;
use crate::symbols::shim::exported;
use crate::sys;

/// Bytes that the pager may still map when the program limits its address space: tables and buffers not used so far.
const ROOM: u64 = 256 << 20;

/// What is the pager's, in bytes: address space, and memory that is private and writable.
static ADDRESSES: AtomicU64 = AtomicU64::new(0);
static DATA: AtomicU64 = AtomicU64::new(0);

/// Notes what the pager has, from `/proc/self/statm`: all mapped memory, and the part of it that is data.
pub fn start() {
    let mut text = [0u8; 256];
    let len = sys::read_file(c"/proc/self/statm", &mut text);
    let text = std::str::from_utf8(&text[..len]).unwrap_or_default();
    let pages = |column: usize| text.split_ascii_whitespace().nth(column)?.parse::<u64>().ok();
    let bytes = |column: usize| pages(column).unwrap_or(0) * PAGE as u64 + ROOM;
    let span = memory::span().len() as u64;
    ADDRESSES.store(bytes(0).max(2 * span), Relaxed);
    // Of the second half of managed memory, the pager opens what it comes to need.
    DATA.store(bytes(5) + span, Relaxed);
}

/// What the pager has of a resource.
fn pagers(resource: u32) -> u64 {
    match resource {
        libc::RLIMIT_AS => ADDRESSES.load(Relaxed),
        libc::RLIMIT_DATA => DATA.load(Relaxed),
        _ => 0,
    }
}

/// A limit as the kernel gets it, or as the program reads it.
fn changed(limit: rlimit64, change: impl Fn(u64) -> u64) -> rlimit64 {
    let change = |n: u64| if n == libc::RLIM64_INFINITY { n } else { change(n) };
    rlimit64 { rlim_cur: change(limit.rlim_cur), rlim_max: change(limit.rlim_max) }
}

/// A recorder's pager writes in this process: a write beyond such a limit would raise a signal that ends it.
fn objects(resource: u32, soft: u64) -> bool {
    let options = memory::pager().options();
    let objects =
        resource == libc::RLIMIT_FSIZE && options.record.is_some() && soft < options.backing_max.unwrap_or(u64::MAX);
    if objects {
        once!("the program does not get its limit on the size of files (RLIMIT_FSIZE), which a recording may reach");
    }
    objects
}

/// prlimit, with the C library's kind of result. Limits of other processes are not changed.
pub unsafe fn set(process: c_int, resource: u32, new: *const rlimit64, old: *mut rlimit64) -> c_int {
    let own = process == 0 || process as u32 == std::process::id();
    let mine = if own && memory::ready() { pagers(resource) } else { 0 };
    let mut limit = if own && memory::ready() { value(new) } else { None };
    if limit.is_some_and(|limit| objects(resource, limit.rlim_cur)) {
        return failed(libc::EPERM) as c_int;
    }
    limit = limit.filter(|_| mine > 0).map(|limit| changed(limit, |n| n.saturating_add(mine)));
    let given = limit.as_ref().map_or(new as usize, |limit| limit as *const rlimit64 as usize);
    let answer = pass(libc::SYS_prlimit64, [process as usize, resource as usize, given, old as usize, 0, 0]) as c_int;
    if answer == 0 && mine > 0 && !old.is_null() {
        // SAFETY: the kernel has written it.
        unsafe { *old = changed(*old, |n| n.saturating_sub(mine)) };
    }
    answer
}

exported! {
    getrlimit(resource: u32, old: *mut rlimit64) -> c_int => set(0, resource, std::ptr::null(), old);
    getrlimit64(resource: u32, old: *mut rlimit64) -> c_int => set(0, resource, std::ptr::null(), old);
    setrlimit(resource: u32, new: *const rlimit64) -> c_int => set(0, resource, new, std::ptr::null_mut());
    setrlimit64(resource: u32, new: *const rlimit64) -> c_int => set(0, resource, new, std::ptr::null_mut());
    prlimit(process: c_int, resource: u32, new: *const rlimit64, old: *mut rlimit64) -> c_int =>
        set(process, resource, new, old);
    prlimit64(process: c_int, resource: u32, new: *const rlimit64, old: *mut rlimit64) -> c_int =>
        set(process, resource, new, old);
}
