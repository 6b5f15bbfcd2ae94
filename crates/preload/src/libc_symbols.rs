//! Finds the C library's own functions, whatever is loaded before it. An allocator that the user preloads replaces
//! even `__libc_malloc`, and dlsym cannot be used inside malloc. So this file reads the C library's symbol table. It
//! allocates nothing, and works before the first constructor.
//!
//! The layout is that of ELF's dynamic section (`Elf64_Dyn`, `Elf64_Sym`, DT_GNU_HASH). The dynamic linker reads it
//! in the same way.

use std::ffi::{c_int, c_void, CStr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// One entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: u64,
    value: u64,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// The addresses of the C library's tables.
#[derive(Default)]
struct Tables {
    base: usize,
    strings: usize,
    symbols: usize,
    hash: usize,
}

unsafe extern "C" fn object(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the linker shows a valid object for the length of this call; `found` is what `look` gave.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Tables>()) };
    // SAFETY: of the same object: its name, a C string, and its headers.
    let named = |end: &[u8]| unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().ends_with(end);
    if info.dlpi_name.is_null() || !named(b"/libc.so.6") {
        return 0;
    }
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return 0 };
    found.base = info.dlpi_addr as usize;
    let mut entry = (found.base + header.p_vaddr as usize) as *const Dynamic;
    // SAFETY: the dynamic section ends with an entry of tag 0.
    while let Dynamic { tag: tag @ 1.., value } = unsafe { &*entry } {
        let value = *value as usize;
        // On some machines the linker has turned the values into addresses.
        let address = if value < found.base { found.base + value } else { value };
        match *tag {
            DT_STRTAB => found.strings = address,
            DT_SYMTAB => found.symbols = address,
            DT_GNU_HASH => found.hash = address,
            _ => (),
        }
        entry = entry.wrapping_add(1);
    }
    1
}

fn hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

/// The address of a function of the C library; 0: it has none of that name.
fn look(name: &CStr) -> usize {
    let mut tables = Tables::default();
    // SAFETY: `object` matches the callback's type and writes only to `tables`. The tables are the C library's, which
    // is never unloaded: buckets lead to chains of hashes, and the lowest bit marks the last hash of a chain.
    unsafe {
        libc::dl_iterate_phdr(Some(object), (&raw mut tables).cast());
        if tables.hash == 0 || tables.symbols == 0 || tables.strings == 0 {
            return 0;
        }
        let head = tables.hash as *const u32;
        let (buckets, first, bloom) = (*head, *head.add(1), *head.add(2));
        let buckets_at = head.add(4 + 2 * bloom as usize);
        let chains = buckets_at.add(buckets as usize);
        let wanted = hash(name);
        let mut i = *buckets_at.add((wanted % buckets) as usize);
        while i >= first {
            let chain = *chains.add((i - first) as usize);
            let symbol = &*(tables.symbols as *const Symbol).add(i as usize);
            let here = CStr::from_ptr((tables.strings + symbol.name as usize) as *const _);
            if chain | 1 == wanted | 1 && here == name && symbol.section != 0 {
                return tables.base + symbol.value as usize;
            }
            if chain & 1 != 0 {
                return 0;
            }
            i += 1;
        }
    }
    0
}

/// A function of the C library. It is looked up at its first use.
pub struct Own(&'static CStr, AtomicUsize);

impl Own {
    /// By name.
    pub const fn new(name: &'static CStr) -> Own {
        Own(name, AtomicUsize::new(0))
    }

    /// Its address; 0: there is none.
    pub fn address(&self) -> usize {
        match self.1.load(Relaxed) {
            0 => {
                let found = look(self.0);
                self.1.store(found, Relaxed);
                found
            }
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_says_is_what_the_linker_says() {
        for name in [c"malloc", c"free", c"__libc_memalign", c"getpid", c"malloc_usable_size"] {
            // SAFETY: looks a name up.
            let theirs = unsafe {
                let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
                libc::dlsym(library, name.as_ptr()) as usize
            };
            assert_eq!(Own::new(name).address(), theirs, "{name:?}");
        }
        assert_eq!(Own::new(c"no_such_function_anywhere").address(), 0);
    }
}
