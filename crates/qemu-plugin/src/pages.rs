//! Page level: references collapsed to runs of one page, inside the callbacks.
//!
//! Instruction fetches and data accesses are two streams. In each stream, references are collapsed while the page
//! does not change. A data run that begins with reads ends at the first write, so a run's kind says whether the page
//! is dirty from its first reference on. A run's word is written when the run begins, and its count grows there. So
//! runs of both streams are in the exact program order of their first references. The positions of a run's later
//! references between other pages' references are lost.
//!
//! Only the step from one reference to two matters (`policies.md` section 1), but the whole count is kept, up to a
//! million for each word.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering::Relaxed;

use crate::api::{self, Block};
use crate::stream::{Stream, Streams};
use crate::{decode, instruction, wire, PAGE_SHIFT, WIDE_IN_HALVES};

const FETCH: u64 = 0;

/// A segment is the part of a block that is on one page. The callback data says how often it references the page.
///
/// ```text
/// 63..20   19          18..0
/// page     continued   references
/// ```
/// `continued`: the first reference is the second half of an instruction that began on the page before.
const SEGMENT_PAGE_SHIFT: u32 = 20;
const SEGMENT_CONTINUED: u64 = 1 << 19;

pub extern "C" fn on_block_translated(_: u64, block: *const Block) {
    let shift = PAGE_SHIFT.load(Relaxed);
    // SAFETY: `block` and its instructions are valid during this call; the callbacks have the right types.
    unsafe {
        let count = instruction::count(block);
        let at = |index| api::qemu_plugin_tb_get_insn(block, index);
        let register = |index: usize, segment: u64| {
            let data = segment as usize as *mut c_void;
            api::qemu_plugin_register_vcpu_insn_exec_cb(at(index), on_segment, api::NO_REGISTERS, data);
        };
        let mut open: Option<(usize, u64)> = None;
        for index in 0..count {
            let start = api::qemu_plugin_insn_vaddr(at(index)) & wire::ADDRESS_MASK;
            let size = api::qemu_plugin_insn_size(at(index)).max(1) as u64;
            let (first, last) = (start >> shift, (start + size - 1) >> shift);
            match &mut open {
                Some((_, segment)) if *segment >> SEGMENT_PAGE_SHIFT == first => *segment += 1,
                _ => {
                    if let Some((begin, segment)) = open.take() {
                        register(begin, segment);
                    }
                    open = Some((index, first << SEGMENT_PAGE_SHIFT | 1));
                }
            }
            if last != first {
                if let Some((begin, segment)) = open.take() {
                    register(begin, segment);
                }
                open = Some((index, last << SEGMENT_PAGE_SHIFT | SEGMENT_CONTINUED | 1));
            }
            api::qemu_plugin_register_vcpu_mem_cb(
                at(index),
                on_access,
                api::NO_REGISTERS,
                api::READ_WRITE,
                index as *mut c_void,
            );
        }
        if let Some((begin, segment)) = open {
            register(begin, segment);
        }
    }
}

extern "C" fn on_segment(vcpu: c_uint, segment: *mut c_void) {
    let Some(stream) = Streams::get(vcpu) else { return };
    let segment = segment as usize as u64;
    stream.finish();
    stream.runs.turn += 1;
    let page = segment >> SEGMENT_PAGE_SHIFT;
    let count = segment & (SEGMENT_CONTINUED - 1);
    if page == stream.runs.fetch_page {
        let word = &stream.chunk().words[stream.runs.fetch_place as usize];
        let old = word.load(Relaxed);
        if (old >> wire::RUN_COUNT_SHIFT) + count <= wire::RUN_COUNT_MAX {
            word.store(old.wrapping_add(count << wire::RUN_COUNT_SHIFT), Relaxed);
        } else {
            begin_fetch(stream, page, count);
        }
    } else {
        begin_fetch(stream, page, count);
    }
    let instructions = count - u64::from(segment & SEGMENT_CONTINUED != 0);
    let counter = &stream.chunk().instructions;
    counter.store(counter.load(Relaxed) + instructions, Relaxed);
}

fn begin_fetch(stream: &mut Stream, page: u64, count: u64) {
    let place =
        stream.push(count << wire::RUN_COUNT_SHIFT | FETCH << wire::RUN_KIND_SHIFT | page & wire::RUN_PAGE_MASK);
    stream.runs.fetch_place = place as u32;
    stream.runs.fetch_page = page;
}

extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, instruction: *mut c_void) {
    let Some(stream) = Streams::get(vcpu) else { return };
    let (shift, store) = decode(info);
    let start = address & wire::ADDRESS_MASK;
    let end = start + (1 << shift);
    let runs = &mut stream.runs;
    let by = runs.turn << 10 | instruction as u64;
    if runs.pending {
        if by == runs.pending_by {
            if store && !runs.pending_store && start == runs.pending_start && end == runs.pending_end {
                runs.pending_store = true;
                return;
            }
            let grown = end - runs.pending_start.min(end);
            let halves = store == runs.pending_store && start == runs.pending_end && shift == 3;
            if halves && grown.is_multiple_of(8) && grown <= 32 && WIDE_IN_HALVES.load(Relaxed) {
                runs.pending_end = end;
                return;
            }
        }
        stream.commit();
    }
    let runs = &mut stream.runs;
    runs.pending = true;
    runs.pending_by = by;
    runs.pending_start = start;
    runs.pending_end = end;
    runs.pending_store = store;
}
