//! Identifies the caller. Mappings that the dynamic linker and this library make for themselves are not the program's.

use std::ffi::{c_int, c_void, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sys;

struct Text {
    start: AtomicUsize,
    len: AtomicUsize,
}

impl Text {
    const fn none() -> Text {
        Text { start: AtomicUsize::new(0), len: AtomicUsize::new(0) }
    }

    fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.start.load(Relaxed)) < self.len.load(Relaxed)
    }

    /// Adds a segment. The executable segments of one object are next to each other, and nearly always there is only
    /// one.
    fn extend(&self, start: usize, end: usize) {
        let (s, n) = (self.start.load(Relaxed), self.len.load(Relaxed));
        let (start, end) = if n == 0 { (start, end) } else { (s.min(start), (s + n).max(end)) };
        self.start.store(start, Relaxed);
        self.len.store(end - start, Relaxed);
    }
}

static LIBC: Text = Text::none();
static LINKER: Text = Text::none();
/// Where the C library begins; 0: not known yet.
static LIBC_BASE: AtomicUsize = AtomicUsize::new(0);
/// Before version 2.34 the C library had more parts.
static PARTS: [Text; 3] = [const { Text::none() }; 3];
static OWN: Text = Text::none();

/// Finds the ranges. Before this, no caller is recognised. A second time changes nothing.
pub fn find() {
    // SAFETY: `object` matches the callback's type and does not keep what it is shown.
    unsafe { libc::dl_iterate_phdr(Some(object), std::ptr::null_mut()) };
}

unsafe extern "C" fn object(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the linker shows a valid object with its headers for the length of this call.
    let (info, headers) = unsafe { (&*info, std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into())) };
    let own = find as *const () as usize;
    // SAFETY: null, or a C string, as above.
    let name = unsafe { info.dlpi_name.as_ref().map_or(&b""[..], |name| CStr::from_ptr(name).to_bytes()) };
    let name = name.rsplit(|b| *b == b'/').next().unwrap_or_default();
    if name == b"libc.so.6" {
        LIBC_BASE.store(info.dlpi_addr as usize, Relaxed);
    }
    for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0) {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        let end = start + header.p_memsz as usize;
        let text = match name {
            _ if (start..end).contains(&own) => &OWN,
            b"libc.so.6" => &LIBC,
            b"libpthread.so.0" => &PARTS[0],
            b"libdl.so.2" => &PARTS[1],
            b"librt.so.1" => &PARTS[2],
            _ if name.starts_with(b"ld-linux") || name.starts_with(b"ld-2.") => &LINKER,
            _ => continue,
        };
        text.extend(start, end);
    }
    0
}

/// Whether the C library was found. Without it this library cannot work.
pub fn known() -> bool {
    LIBC.len.load(Relaxed) > 0 && LINKER.len.load(Relaxed) > 0 && OWN.len.load(Relaxed) > 0
}

/// Where the C library begins; 0: there is none. Found before the start, too.
pub fn libc_base() -> usize {
    if LIBC_BASE.load(Relaxed) == 0 {
        find();
    }
    LIBC_BASE.load(Relaxed)
}

pub fn is_linker(address: usize) -> bool {
    LINKER.holds(address)
}

pub fn is_libc(address: usize) -> bool {
    LIBC.holds(address) || PARTS.iter().any(|p| p.holds(address))
}

pub fn is_own(address: usize) -> bool {
    OWN.holds(address)
}

/// Who has called the C library, whose code at `caller` has called this library: on the stack, the first address
/// above this call that lies behind a call and outside libraries of the system. Without one, it is `caller`.
pub fn past_libc(caller: usize) -> usize {
    /// Frames of malloc and of this library take less.
    const WORDS: usize = 256;
    if !is_libc(caller) {
        return caller;
    }
    let mut words = [0; WORDS];
    let read = sys::words_at(&raw const words as usize + size_of_val(&words), &mut words);
    let foreign = |address: &&usize| !is_libc(**address) && !is_own(**address) && !is_linker(**address);
    let above = words[..read].iter().skip_while(|address| **address != caller);
    above.filter(foreign).find(|address| is_behind_call(**address)).copied().unwrap_or(caller)
}

/// Whether the instruction before an address is a call.
fn is_behind_call(address: usize) -> bool {
    let Some(before) = address.checked_sub(8).and_then(sys::word_at) else { return false };
    let bytes = before.to_le_bytes();
    if cfg!(target_arch = "aarch64") {
        let last = (before >> 32) as u32;
        return last >> 26 == 0b10_0101 || last & 0xffff_fc1f == 0xd63f_0000;
    }
    // A call of an address, or of what a register or memory holds, with two to seven bytes.
    let indirect = |at: usize| bytes[at] == 0xff && bytes[at + 1] & 0x38 == 0x10;
    bytes[3] == 0xe8 || (1..=6).any(indirect)
}
