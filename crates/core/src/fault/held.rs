//! Pages held in buffers: mapped there read-only, without a frame, until they move (delayed dual buffering).
//!
//! `Buffers` lists them in the order of their loads. No policy knows them, so none can choose one as its victim, unmap it or ask for
//! its bit: a policy first hears of a page when it moves, and the touch in the buffer is then the reference that its bit starts with.

use super::get_freeframe::find_frame;
use super::update_mmu::settle;
use crate::buffers::Held;
use crate::command::{Command, Stage};
use crate::ids::{FrameId, TaskId, Ticket};
use crate::page_state::PageState;
use crate::place::Place;
use crate::turn::Turn;

/// Maps the loaded page where it is.
pub(super) fn hold(turn: &mut Turn<'_>, ticket: Ticket) {
    let flight = turn.flights.get_mut(ticket);
    let page = flight.page;
    let buffer = flight.buffer.take().expect("the page has been loaded");
    turn.buffers.hold((page, buffer));
    turn.pages.set(page, PageState::Held(buffer));
    turn.issue(Command::Map { page, place: Place::Buffer(buffer), writable: false, referenced: true });
    turn.mark(Stage::UpdateMMU);
}

/// Finds a frame for a held page and moves it there; `writing` if a write is about to happen.
pub(crate) fn move_held(turn: &mut Turn<'_>, held: Held, writing: bool) -> FrameId {
    let frame = find_frame(turn);
    move_into(turn, held, frame, writing);
    frame
}

/// Moves a held page into a frame that has been found. Readers can go on meanwhile: the buffer keeps its bytes until the page table
/// points at the frame.
pub(super) fn move_into(turn: &mut Turn<'_>, (page, from): Held, frame: FrameId, writing: bool) {
    turn.issue(Command::Move { page, from, to: frame });
    turn.buffers.forget(page);
    turn.count_move();
    turn.mark(Stage::TransHostMem);
    settle(turn, page, frame, writing);
    turn.mark(Stage::UpdateMMU);
}

/// A fault on a held page: a write, which moves it first, or a touch that another task's fault has answered in the meantime. False: it
/// must wait, since every frame is promised to a load.
pub(crate) fn touched(turn: &mut Turn<'_>, task: TaskId, held: Held, writing: bool) -> bool {
    if writing && !turn.ram.has_frame_to_give() {
        return false;
    }
    turn.mark(Stage::PreProcess);
    if writing {
        turn.counts.write_faults += 1;
        move_held(turn, held, true);
    }
    turn.mark(Stage::PostProcess);
    turn.issue(Command::Resume { task });
    true
}
