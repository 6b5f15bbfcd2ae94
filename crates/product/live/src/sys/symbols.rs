//! Symbols of ELF files that are in memory: of the kernel's own (vDSO), and of the C library, whatever is loaded before
//! it. Nothing is allocated, so this works inside malloc and before the first constructor.

use std::ffi::CStr;
use std::ops::Range;

/// The addresses of a symbol; `None`: the file does not define it. By the ELF specification: program headers (1: a part
/// of the file in memory, 2: the dynamic section), and in that the tables of strings (5, and 10: its length) and
/// symbols (6), which is before it. A linker may have turned the values there into addresses.
///
/// # Safety
/// A whole and correct ELF file of 64 bits is at `base`.
pub unsafe fn symbol_in(base: usize, name: &CStr) -> Option<Range<usize>> {
    // SAFETY: the caller's file.
    let word = |at: usize| unsafe { (at as *const usize).read_unaligned() };
    let short = |at: usize| word(at) & 0xffff;
    let headers = (0..short(base + 56)).map(|i| base + word(base + 32) + i * short(base + 54));
    let of = |kind: usize| headers.clone().find(move |header| word(*header) as u32 as usize == kind);
    let loaded = of(1)?;
    let shift = (base + word(loaded + 8)).wrapping_sub(word(loaded + 16));
    let dynamic = shift.wrapping_add(word(of(2)? + 16));
    let entry = |tag: usize| {
        let mut entries = (0..64).map(|i| dynamic + i * 16).take_while(|entry| word(*entry) != 0);
        entries.find(|entry| word(*entry) == tag).map(|entry| word(entry + 8))
    };
    let placed = |value: usize| if value < base { shift.wrapping_add(value) } else { value };
    let (strings, symbols, len) = (placed(entry(5)?), placed(entry(6)?), entry(10)?);
    let wanted = name.to_bytes_with_nul();
    // A symbol: name (4 bytes), kind (2), section (2; 0: defined elsewhere), value (8), size (8).
    let named = |symbol: &usize| {
        let at = word(*symbol) as u32 as usize;
        let is = |(i, byte): (usize, &u8)| word(strings + at + i) as u8 == *byte;
        short(symbol + 6) != 0 && at + wanted.len() <= len && wanted.iter().enumerate().all(is)
    };
    let symbol = (symbols..strings).step_by(24).find(named)?;
    let start = shift.wrapping_add(word(symbol + 8));
    Some(start..start + word(symbol + 16))
}
