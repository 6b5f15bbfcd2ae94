//! Words and halfwords at an address: registers of devices, page tables, buffers, frames.
//!
//! The addresses come from the map of the board (`chip`, `platform`) and from statics of this image. No other address
//! may be passed; the safety of this file depends on it.

use core::ptr::{read_volatile, write_volatile};

/// Reads 16 bits.
#[cfg(not(feature = "versatilepb"))]
pub fn read16(at: u32) -> u16 {
    // SAFETY: a register of the chip, see above.
    unsafe { read_volatile(at as *const u16) }
}

/// Writes 16 bits.
#[cfg(not(feature = "versatilepb"))]
pub fn write16(at: u32, value: u16) {
    // SAFETY: a register of the chip, see above.
    unsafe { write_volatile(at as *mut u16, value) }
}

/// Reads 32 bits.
pub fn read32(at: u32) -> u32 {
    // SAFETY: a register, a table's entry, or memory that only this image uses.
    unsafe { read_volatile(at as *const u32) }
}

/// Writes 32 bits.
pub fn write32(at: u32, value: u32) {
    // SAFETY: a register, a table's entry, or memory that no Rust reference points into.
    unsafe { write_volatile(at as *mut u32, value) }
}

/// Copies whole words between a buffer and a frame.
pub fn copy(from: u32, to: u32, bytes: u32) {
    debug_assert!(from % 4 == 0 && to % 4 == 0 && bytes % 4 == 0);
    // SAFETY: buffers of the chip and frames are page-sized, aligned and disjoint, and no Rust reference to them
    // exists.
    unsafe { core::ptr::copy_nonoverlapping(from as *const u32, to as *mut u32, bytes as usize / 4) }
}

/// Copies bytes that the user program points at; each may fault on the way, as if the program had read it.
pub fn copy_from_user(from: u32, to: &mut [u8]) {
    for (i, byte) in to.iter_mut().enumerate() {
        // SAFETY: the program's own pointer; a page of it that is not mapped is brought by the abort handler.
        *byte = unsafe { read_volatile((from as usize + i) as *const u8) };
    }
}
