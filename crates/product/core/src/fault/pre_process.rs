//! PreProcess: registers are saved (the machine's business) and the page's slot is known.

use crate::command::Stage;
use crate::fault::turn::Turn;

pub(super) fn pre_process(turn: &mut Turn<'_>) {
    turn.mark(Stage::PreProcess);
}
