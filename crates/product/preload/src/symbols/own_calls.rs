//! This library's own calls of the C library go to the C library itself, though another preloaded library has a
//! function of that name (libfaketime has `clock_gettime`). That function would run before its own constructor, and in
//! the pager's process with a clock that may stand still. The dynamic linker has put the first function of each name
//! into this library's table of addresses; [`bind`] replaces those that are not the C library's.

use std::ffi::{c_char, c_void, CStr};

use coldframe_live::PAGE;

use crate::symbols::caller;
use crate::symbols::libc_symbols::Symbol;
use crate::symbols::next::{call_at, look};
use crate::sys;

extern "C" {
    /// The start of this library. The static linker defines it.
    static __ehdr_start: libc::Elf64_Ehdr;
}

static DLOPEN: Symbol = Symbol::own(c"dlopen");
static DLSYM: Symbol = Symbol::own(c"dlsym");

/// Tags of the dynamic section (ELF specification): strings and symbols; tables of relocations, and their lengths.
const STRINGS: usize = 5;
const SYMBOLS: usize = 6;
const RELOCATIONS: [(usize, usize); 2] = [(7, 8), (23, 2)];
/// Relocations of an entry in the table of addresses: R_X86_64_GLOB_DAT and JUMP_SLOT, or their R_AARCH64 equals.
const ENTRIES: [u64; 2] = if cfg!(target_arch = "x86_64") { [6, 7] } else { [1025, 1026] };
const FUNCTION: u8 = 2;

/// The C library's function of that name; 0: it has none.
unsafe fn find(name: *const c_char) -> usize {
    let own = |symbol: &Symbol, name: &CStr| if symbol.address() == 0 { look(name) } else { symbol.address() };
    // SAFETY: the linker's functions of these names have these types.
    unsafe {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let libc: *mut c_void = call_at!(own(&DLOPEN, c"dlopen"), (c"libc.so.6".as_ptr(), flags));
        call_at!(own(&DLSYM, c"dlsym"), (libc, name))
    }
}

/// Replaces the addresses that are not the C library's.
unsafe fn replace(base: usize, dynamic: usize) {
    // SAFETY: the caller's dynamic section, which an entry of zeros ends; a linker may have turned values there into
    // addresses. What they refer to is a part of this library.
    unsafe {
        let entries = (0..).map(|i| (dynamic as *const [usize; 2]).add(i).read()).take_while(|entry| entry[0] != 0);
        let value = |tag: usize| entries.clone().find(|entry| entry[0] == tag).map_or(0, |entry| entry[1]);
        let placed = |tag: usize| if value(tag) < base { base + value(tag) } else { value(tag) };
        let relocations = RELOCATIONS.iter().flat_map(|(table, len)| {
            let count = value(*len) / size_of::<libc::Elf64_Rela>();
            std::slice::from_raw_parts(placed(*table) as *const libc::Elf64_Rela, count)
        });
        for relocation in relocations.filter(|relocation| ENTRIES.contains(&(relocation.r_info & 0xffff_ffff))) {
            let symbol = &*(placed(SYMBOLS) as *const libc::Elf64_Sym).add((relocation.r_info >> 32) as usize);
            let place = (base + relocation.r_offset as usize) as *mut usize;
            let is_function = symbol.st_shndx == 0 && symbol.st_info & 15 == FUNCTION;
            if is_function && *place != 0 && !caller::is_libc(*place) {
                let own = find((placed(STRINGS) + symbol.st_name as usize) as *const c_char);
                *place = if own == 0 { *place } else { own };
            }
        }
    }
}

/// Call this first in the constructor, when the C library has been found.
pub fn bind() {
    // SAFETY: this library's own headers and table. No other thread runs, and what the linker has made read-only is so
    // again afterwards.
    unsafe {
        let (head, base) = (&__ehdr_start, &raw const __ehdr_start as usize);
        let headers = (base + head.e_phoff as usize) as *const libc::Elf64_Phdr;
        let headers = std::slice::from_raw_parts(headers, head.e_phnum.into());
        let part = |kind: u32| {
            let header = headers.iter().find(|header| header.p_type == kind);
            header.map_or(base..base, |h| base + h.p_vaddr as usize..base + (h.p_vaddr + h.p_memsz) as usize)
        };
        let fixed = part(libc::PT_GNU_RELRO);
        let (start, end) = (fixed.start / PAGE * PAGE, fixed.end / PAGE * PAGE);
        let protect = |how: i32| sys::call(libc::SYS_mprotect, [start, end - start, how as usize, 0, 0, 0]);
        protect(libc::PROT_READ | libc::PROT_WRITE);
        replace(base, part(libc::PT_DYNAMIC).start);
        protect(libc::PROT_READ);
    }
}
