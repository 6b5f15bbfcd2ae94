//! Pages held in buffers: mapped there read-only, without a frame, until they move (delayed dual buffering).
//!
//! `Buffers` lists them in the order of their loads. Policies do not know held pages, so a policy cannot choose one
//! as a victim, unmap it or read its bit. A policy first learns of a page when the page moves; its reference bit then
//! starts set, for the touch in the buffer.

use super::get_freeframe::find_frame;
use super::update_mmu::settle;
use crate::command::{Command, Stage};
use crate::fault::buffers::Held;
use crate::fault::turn::Turn;
use crate::ids::{FrameId, TaskId, Ticket};
use crate::page_state::PageState;
use crate::place::Place;

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

/// Finds a frame for a held page and moves the page there; `writing` if a write comes next.
pub(crate) fn move_held(turn: &mut Turn<'_>, held: Held, writing: bool) -> FrameId {
    let frame = find_frame(turn);
    move_into(turn, held, frame, writing);
    frame
}

/// Moves a held page into a free frame. Other tasks can read it during the move: the buffer keeps its bytes
/// until the page table points at the frame.
pub(super) fn move_into(turn: &mut Turn<'_>, (page, from): Held, frame: FrameId, writing: bool) {
    turn.issue(Command::Move { page, from, to: frame });
    turn.buffers.forget(page);
    turn.count_move();
    turn.mark(Stage::TransHostMem);
    settle(turn, page, frame, writing);
    turn.mark(Stage::UpdateMMU);
}

/// A fault on a held page: a write, which moves the page first, or a touch of a page that another task's fault has
/// mapped in the meantime. Returns false if the fault must wait because every frame is reserved for a load.
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
