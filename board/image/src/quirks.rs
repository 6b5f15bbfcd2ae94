//! Differences between QEMU 7.2 and the hardware, and the workarounds. No other file of this image knows that it runs
//! under an emulator, except for the time of an instruction (`platform`). On hardware, each workaround is superfluous
//! and harmless.

use core::arch::asm;

/// Stale code in a reloaded DataRAM.
///
/// QEMU's OneNAND fills its DataRAM without the translator's knowledge: code that was translated from the page before
/// continues to run after the load, even if caches and TLBs are invalidated. A store by the processor drops the
/// translations, so each word is stored back. The problem needs different code at the same virtual address. The
/// self-test has this; a paged program, whose code does not change, has not.
pub fn drop_stale_translations(buffer: u32, bytes: u32) {
    // SAFETY: loads and stores of the same words, in a buffer of the chip that no Rust reference points into.
    unsafe {
        asm!(
            "1: ldmia {at}, {{r4, r5, r8, r10}}",
            "stmia {at}!, {{r4, r5, r8, r10}}",
            "cmp {at}, {end}",
            "blo 1b",
            at = inout(reg) buffer => _, end = in(reg) buffer + bytes,
            out("r4") _, out("r5") _, out("r8") _, out("r10") _, options(nostack));
    }
}

/// Partial invalidation of the TLB.
///
/// The boards have target pages of 1 KiB, and an invalidation by address forgets only the jumps into 1 KiB: code
/// further up in an unmapped page of 4 KiB continues to run. So each KiB is invalidated. Returns the addresses to
/// invalidate for one page.
pub fn tlb_steps(address: u32, page: u32) -> impl Iterator<Item = u32> {
    (address..address + page).step_by(1024)
}
