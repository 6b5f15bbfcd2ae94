//! The handling of one page fault: six stages, one file each, in the order of a handler.
//!
//! A true fault calls a handler twice: `fault` when the task has faulted, and `loaded` when the device has loaded the
//! page. A false fault needs no device and no handler.
//!
//! Imports go one way: the engine starts a [`Turn`] for an event and calls a handler; the handler calls stages;
//! stages work on the turn's rooms. No room knows the rooms above it.

use crate::command::{Command, Stage};
use crate::frames::Frame;
use crate::ids::{FrameId, TaskId};
use turn::Turn;

pub(crate) mod block_size;
pub(crate) mod buffers;
mod evict;
pub(crate) mod first_touch;
pub(crate) mod flights;
pub(crate) mod get_freeframe;
pub mod handler;
pub(crate) mod held;
pub(crate) mod in_slot;
mod load_stopover;
mod low_memory;
mod post_process;
mod pre_process;
mod trans_host_mem;
pub mod turn;
mod update_mmu;

/// A fault on a page in RAM. There are three cases, and none needs the device: the page is unmapped and gets its
/// second chance (a false fault); or it is mapped read-only so that the first write shows; or another task's fault
/// has mapped it in the meantime.
pub(crate) fn resident(turn: &mut Turn<'_>, task: TaskId, frame: FrameId, writing: bool) {
    let Frame { mapped, referenced, dirty, .. } = *turn.ram.frames.get(frame);
    let mark = |turn: &mut Turn<'_>, stage| {
        turn.work.false_fault = !mapped;
        turn.mark(stage);
    };
    mark(turn, Stage::PreProcess);
    if !mapped {
        turn.counts.false_faults += 1;
        let (policy, mut residents) = turn.policy_and_residents();
        residents.map(frame, true, writing);
        policy.promote(frame, &mut residents);
    } else if writing && !dirty && !turn.config.caps.dirty_bit {
        turn.counts.write_faults += 1;
        let (_, mut residents) = turn.policy_and_residents();
        residents.map(frame, referenced, true);
    }
    mark(turn, Stage::UpdateMMU);
    mark(turn, Stage::PostProcess);
    turn.issue(Command::Resume { task });
}
