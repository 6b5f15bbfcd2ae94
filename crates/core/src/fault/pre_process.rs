//! PreProcess: registers are saved (the machine's business) and the page's slot is known.

use super::Fault;
use crate::command::Stage;

pub(super) fn pre_process(fault: &mut Fault<'_>) {
    fault.mark(Stage::PreProcess);
}
