//! Pages held in buffers: mapped there read-only, without a frame, until they move (delayed dual buffering).
//!
//! `Engine::held` lists them in the order of their loads. No policy knows them, so none can choose one as its victim, unmap it or ask for
//! its bit: a policy first hears of a page when it moves, and the touch in the buffer is then the reference that its bit starts with.

use super::get_freeframe::find_frame;
use super::update_mmu::settle;
use super::{mark, Fault};
use crate::command::{Command, Stage, Work};
use crate::engine::Engine;
use crate::ids::{BufferId, FrameId, PageId, TaskId};
use crate::machine::Machine;
use crate::page_state::PageState;
use crate::place::Place;

/// A page and the buffer that holds it.
pub(crate) type Held = (PageId, BufferId);

/// Maps the loaded page where it is.
pub(super) fn hold(fault: &mut Fault<'_>) {
    let page = fault.in_flight().page;
    let buffer = fault.in_flight().buffer.take().expect("the page has been loaded");
    fault.engine.held.push((page, buffer));
    fault.engine.pages.set(page, PageState::Held(buffer));
    fault.machine.issue(Command::Map { page, place: Place::Buffer(buffer), writable: false, referenced: true });
    fault.mark(Stage::UpdateMMU);
}

/// Finds a frame for a held page and moves it there; `writing` if a write is about to happen.
pub(crate) fn move_held(engine: &mut Engine, machine: &mut dyn Machine, held: Held, writing: bool) {
    let mut work = Work::default();
    let frame = find_frame(engine, machine, &mut work);
    mark(machine, Stage::GetFreeframe, &mut work);
    move_into(engine, machine, held, frame, writing);
}

/// Moves a held page into a frame that has been found. Readers can go on meanwhile: the buffer keeps its bytes until the page table
/// points at the frame.
pub(crate) fn move_into(
    engine: &mut Engine,
    machine: &mut dyn Machine,
    (page, from): Held,
    frame: FrameId,
    writing: bool,
) {
    let mut work = Work::default();
    machine.issue(Command::Move { page, from, to: frame });
    engine.forget_held(page);
    engine.count_move();
    mark(machine, Stage::TransHostMem, &mut work);
    settle(engine, machine, &mut work, page, frame, writing);
    mark(machine, Stage::UpdateMMU, &mut work);
}

/// A fault on a held page: a write, which moves it first, or a touch that another task's fault has answered in the meantime. False: it
/// must wait, since every frame is promised to a load.
pub(crate) fn touched(engine: &mut Engine, machine: &mut dyn Machine, task: TaskId, held: Held, writing: bool) -> bool {
    if writing && !engine.has_frame_to_give() {
        return false;
    }
    let mut work = Work::default();
    mark(machine, Stage::PreProcess, &mut work);
    if writing {
        engine.counts.write_faults += 1;
        move_held(engine, machine, held, true);
    }
    mark(machine, Stage::PostProcess, &mut work);
    machine.issue(Command::Resume { task });
    true
}
