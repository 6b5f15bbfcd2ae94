//! Parallel (search while load): the device is asked first and a frame is found while it works. That swap of two lines is the paper.

use super::Handler;
use crate::fault::{get_freeframe, load_stopover, post_process, pre_process, trans_host_mem, update_mmu, Fault};

/// The entry of the table of handlers.
pub const HANDLER: Handler = Handler {
    name: "parallel",
    summary: "load the page, find a frame while the device works",
    source: "SWL (LCTES 2007) figure 5 and equation 2",
    needs_xip: false,
    fault,
    loaded,
};

fn fault(fault: &mut Fault<'_>) {
    pre_process(fault);
    load_stopover(fault);
    get_freeframe(fault);
}

fn loaded(fault: &mut Fault<'_>) {
    trans_host_mem(fault);
    update_mmu(fault);
    post_process(fault);
}
