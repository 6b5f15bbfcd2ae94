//! The low memory killer. If the swap area is full and a frame is needed, a task is ended, and its frames and slots
//! become free (DR.Swap, TCAD 2016, section III.A). `swap/slots.rs` chooses the task. Pages of files stay in RAM, since
//! other tasks can read them and their writes must not be lost; they are evicted as usual.
//!
//! The killer is in the core, though only one machine needs it: it acts between two commands of one fault, the load
//! and the eviction, and needs the engine's state: free frames, flights and waiting faults. A machine without slots
//! never gets `Command::Kill`.

use crate::command::Command;
use crate::fault::turn::Turn;
use crate::ids::TaskId;

/// Ends tasks until a frame is free, a page can leave RAM, or no task may be ended.
pub(super) fn relieve(turn: &mut Turn<'_>) {
    while turn.ram.frames.free() == 0 {
        let Some(slots) = turn.backing.only_slots().filter(|slots| slots.is_tight()) else { return };
        let Some(task) = slots.victim(|task| turn.may_end(task)) else { return };
        end(turn, task);
    }
}

fn end(turn: &mut Turn<'_>, task: TaskId) {
    turn.counts.kills += 1;
    turn.issue(Command::Kill { task });
    let mut page = None;
    while let Some(next) = turn.backing.slots.as_ref().and_then(|slots| slots.next_page(task, page)) {
        if turn.backing.wants_slot(next) {
            turn.release(next);
        }
        page = Some(next);
    }
    if let Some(slots) = turn.backing.slots.as_mut() {
        slots.ended(task);
    }
}
