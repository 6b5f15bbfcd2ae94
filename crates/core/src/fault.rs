//! The way of one page fault: six stages, one file each, put in order by a handler.
//!
//! A true fault goes through a handler twice: `fault` when the task stands still, `loaded` when the device is done. A false fault
//! needs no device and no handler.

use crate::command::{Command, Stage, Work};
use crate::engine::Engine;
use crate::frames::{Frame, Residents};
use crate::ids::{BufferId, FrameId, PageId, TaskId, Ticket};
use crate::machine::Machine;

mod get_freeframe;
pub mod handler;
pub(crate) mod held;
pub(crate) mod in_slot;
mod load_stopover;
mod low_memory;
mod post_process;
mod pre_process;
mod trans_host_mem;
mod update_mmu;

pub(crate) use get_freeframe::frame_behind_slice;
use get_freeframe::get_freeframe;
use load_stopover::load_stopover;
use post_process::post_process;
use pre_process::pre_process;
use trans_host_mem::trans_host_mem;
use update_mmu::update_mmu;

/// A true fault on its way.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// Who stands still for it; nobody for a prefetch.
    pub(crate) task: Option<TaskId>,
    pub(crate) page: PageId,
    pub(crate) writing: bool,
    pub(crate) buffer: Option<BufferId>,
    pub(crate) frame: Option<FrameId>,
    pub(crate) tries: u8,
}

/// What a stage works on: one fault, the engine, and the machine.
pub struct Fault<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) machine: &'a mut dyn Machine,
    pub(crate) ticket: Ticket,
    pub(crate) work: Work,
}

impl Fault<'_> {
    pub(crate) fn in_flight(&mut self) -> &mut InFlight {
        self.engine.in_flight[self.ticket.index()].as_mut().expect("the ticket is in flight")
    }

    /// Marks the end of a stage with the work done since the last mark.
    pub(crate) fn mark(&mut self, stage: Stage) {
        mark(self.machine, stage, &mut self.work);
    }

    /// GetFreeframe for whatever page needs one now.
    pub(crate) fn find_frame(&mut self) -> FrameId {
        let frame = get_freeframe::find_frame(self.engine, self.machine, &mut self.work);
        self.mark(Stage::GetFreeframe);
        frame
    }
}

fn mark(machine: &mut dyn Machine, stage: Stage, work: &mut Work) {
    let work = core::mem::take(work);
    machine.issue(Command::Stage { stage, work });
}

/// A touch of a page that is in RAM. Three cases, none of which needs the device: the page waits unmapped for its second chance (a
/// false fault), or it is mapped read-only to learn of the first write, or another task's fault has mapped it in the meantime.
pub(crate) fn resident(engine: &mut Engine, machine: &mut dyn Machine, task: TaskId, frame: FrameId, writing: bool) {
    let Frame { mapped, dirty, .. } = *engine.frames.get(frame);
    let caps = engine.config.caps;
    let mut work = Work { false_fault: !mapped, ..Work::default() };
    let mark = |machine: &mut dyn Machine, stage, work: &mut Work| {
        machine.issue(Command::Stage { stage, work: *work });
        *work = Work { false_fault: work.false_fault, ..Work::default() };
    };
    mark(machine, Stage::PreProcess, &mut work);
    if !mapped {
        engine.counts.false_faults += 1;
        let mut residents = Residents { frames: &mut engine.frames, machine, caps, work: &mut work };
        residents.map(frame, true, writing);
        engine.policy.promote(frame, &mut residents);
    } else if writing && !dirty && !caps.dirty_bit {
        engine.counts.write_faults += 1;
        let referenced = engine.frames.get(frame).referenced;
        Residents { frames: &mut engine.frames, machine, caps, work: &mut work }.map(frame, referenced, true);
    }
    mark(machine, Stage::UpdateMMU, &mut work);
    mark(machine, Stage::PostProcess, &mut work);
    machine.issue(Command::Resume { task });
}
