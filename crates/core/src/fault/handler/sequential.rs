//! Sequential: a frame is found first, then the device is asked. As for a disk, which needs the destination with the request.

use super::Handler;
use crate::fault::{get_freeframe, load_stopover, post_process, pre_process, trans_host_mem, update_mmu, Fault};

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "sequential",
    summary: "find a frame, then load the page",
    source: "SWL (LCTES 2007) figure 4 and equation 1",
    needs_xip: false,
    fault,
    loaded,
};

fn fault(fault: &mut Fault<'_>) {
    pre_process(fault);
    get_freeframe(fault);
    load_stopover(fault);
}

fn loaded(fault: &mut Fault<'_>) {
    trans_host_mem(fault);
    update_mmu(fault);
    post_process(fault);
}
