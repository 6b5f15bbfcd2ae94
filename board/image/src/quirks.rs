//! What QEMU 7.2 does otherwise than the hardware, and what we do about it. Nothing else in this image knows that it runs under an emulator,
//! but for the time that an instruction takes (`platform`). On hardware each of these is superfluous and does no harm.

use core::arch::asm;

/// Stale code in a reloaded DataRAM.
///
/// QEMU's OneNAND fills its DataRAM behind the translator's back: code that was translated from the page before goes on running after the
/// load, whatever caches and TLBs are invalidated. A store by the processor drops the translations, so each word is stored back. It takes other code at
/// the same virtual address for that, which the self-test has, and a paged program that stays as it is has not.
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
/// The boards have target pages of 1 KiB, and an invalidation by address forgets the jumps into 1 KiB only: code further up in an
/// unmapped page of 4 KiB goes on running. So each KiB is invalidated. The steps of an invalidation of one page:
pub fn tlb_steps(address: u32, page: u32) -> impl Iterator<Item = u32> {
    (address..address + page).step_by(1024)
}
