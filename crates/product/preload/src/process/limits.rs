//! Limits that the program sets for its process also limit the pager. A limit that would stop the pager is refused with
//! EPERM and one line that says why. Other limits do not matter: the pager's descriptors and threads exist already.

use std::ffi::c_int;

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

/// From `/proc/self/statm`, in bytes: all mapped memory, and the part of it that is private and writable.
fn mapped() -> Option<(u64, u64)> {
    let mut text = [0u8; 256];
    let len = sys::read_file(c"/proc/self/statm", &mut text);
    let text = std::str::from_utf8(&text[..len]).ok()?;
    let pages = |column: usize| text.split_ascii_whitespace().nth(column)?.parse::<u64>().ok();
    Some((pages(0)? * PAGE as u64, pages(5)? * PAGE as u64))
}

fn objection(resource: u32, soft: u64) -> Option<&'static str> {
    let pager = memory::pager();
    let least = |mapped: u64| mapped.saturating_add(ROOM);
    match resource {
        // A recorder's pager writes in this process: a write beyond it would raise a signal that ends it.
        libc::RLIMIT_FSIZE => (pager.options().record.is_some()
            && soft < pager.options().backing_max.unwrap_or(u64::MAX))
        .then_some("size of files (RLIMIT_FSIZE), which the files of a recording may reach"),
        libc::RLIMIT_AS => mapped()
            .is_some_and(|(all, _)| soft < least(all))
            .then_some("address space (RLIMIT_AS), of which managed memory has more"),
        libc::RLIMIT_DATA => mapped()
            // Of the second half of managed memory, the pager opens what it comes to need.
            .is_some_and(|(_, data)| soft < least(data + memory::span().len() as u64))
            .then_some("data (RLIMIT_DATA), of which there is as much already"),
        _ => None,
    }
}

/// prlimit, with the C library's kind of result. Limits of other processes are not checked.
pub unsafe fn set(process: c_int, resource: u32, new: *const rlimit64, old: *mut rlimit64) -> c_int {
    let own = process == 0 || process as u32 == std::process::id();
    let limit = if own && memory::ready() { value(new) } else { None };
    if let Some(limit) = limit {
        if let Some(what) = objection(resource, limit.rlim_cur) {
            once!("the program does not get its limit on the {what}");
            return failed(libc::EPERM) as c_int;
        }
    }
    pass(libc::SYS_prlimit64, [process as usize, resource as usize, new as usize, old as usize, 0, 0]) as c_int
}

exported! {
    setrlimit(resource: u32, new: *const rlimit64) -> c_int => set(0, resource, new, std::ptr::null_mut());
    setrlimit64(resource: u32, new: *const rlimit64) -> c_int => set(0, resource, new, std::ptr::null_mut());
    prlimit(process: c_int, resource: u32, new: *const rlimit64, old: *mut rlimit64) -> c_int =>
        set(process, resource, new, old);
    prlimit64(process: c_int, resource: u32, new: *const rlimit64, old: *mut rlimit64) -> c_int =>
        set(process, resource, new, old);
}
