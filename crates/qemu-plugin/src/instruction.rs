//! Finds the instructions that are really in a translated block.
//!
//! If an instruction crosses the page's end, QEMU's x86 translator gives it up, unless it is the first of its block,
//! and begins the next block with it. Up to 7.2 the plugin is still shown the abandoned instruction, as the last of
//! the block, with the bytes before the border. If it were counted, every fetch over a page border would count twice.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::api::{self, Block};
use crate::{guest, length};

/// The guest's page size. QEMU's translator stops at the page's end.
const PAGE: u64 = 4096;

static X86_64: AtomicBool = AtomicBool::new(false);

pub fn set_machine(target: &str) {
    X86_64.store(target == "x86_64", Relaxed);
}

/// Instructions in a block.
///
/// # Safety
/// Only inside the translation callback of `block`.
pub unsafe fn count(block: *const Block) -> usize {
    // SAFETY: the caller's; the index is below the number of instructions.
    let (count, start, shown) = unsafe {
        let count = api::qemu_plugin_tb_n_insns(block);
        if count < 2 {
            return count;
        }
        let last = api::qemu_plugin_tb_get_insn(block, count - 1);
        (count, api::qemu_plugin_insn_vaddr(last), api::qemu_plugin_insn_size(last))
    };
    let at_the_end = (start + shown as u64).is_multiple_of(PAGE) && X86_64.load(Relaxed);
    if at_the_end && is_cut(start, shown) {
        count - 1
    } else {
        count
    }
}

/// Whether the instruction is longer than the `shown` bytes up to the page's end.
#[cold]
fn is_cut(start: u64, shown: usize) -> bool {
    let Some(base) = guest::base() else { return false };
    if shown > length::X86_MAX {
        return false;
    }
    // SAFETY: QEMU has just read these bytes, up to the page's end and no further.
    let code = unsafe { std::slice::from_raw_parts((base + start) as *const u8, shown) };
    // An instruction that does not end in these bytes continues behind them.
    length::x86_64(code).is_none_or(|length| length > shown)
}
