//! The low memory killer: when the swap area is full and a frame is needed, a task is ended, and its frames and slots are free
//! (DR.Swap, TCAD 2016, section III.A). Whom it takes is `slots.rs`'s rule. Pages of files stay where they are, since others can read them
//! and what was written to them must not be lost; they leave as any page does.

use crate::command::Command;
use crate::engine::Engine;
use crate::ids::TaskId;
use crate::machine::Machine;

/// Ends tasks until a frame is free, or a page can leave, or nobody may be ended.
pub(super) fn relieve(engine: &mut Engine, machine: &mut dyn Machine) {
    while engine.frames.free() == 0 {
        let Some(slots) = engine.backing.slots.as_ref().filter(|slots| slots.is_tight()) else { return };
        let Some(task) = slots.victim(|task| engine.may_end(task)) else { return };
        end(engine, machine, task);
    }
}

fn end(engine: &mut Engine, machine: &mut dyn Machine, task: TaskId) {
    engine.counts.kills += 1;
    machine.issue(Command::Kill { task });
    let mut page = None;
    while let Some(next) = engine.backing.slots.as_ref().and_then(|slots| slots.next_page(task, page)) {
        if engine.backing.wants_slot(next) {
            engine.release(next, machine);
        }
        page = Some(next);
    }
    if let Some(slots) = &mut engine.backing.slots {
        slots.ended(task);
    }
}
