//! The journal of a run's first configuration, drained as it goes.

use super::share::Share;
use crate::error::ExperimentError;
use crate::progress::Sink;
use crate::resolve::Plan;

pub(super) fn start_journal(plans: &[Plan], shares: &mut [Share]) -> Result<(), ExperimentError> {
    if plans[0].lane().is_none() {
        return Err(ExperimentError::setting("journal", "an oracle decides nothing and has no journal; give a policy"));
    }
    let lane = shares[0].run.lanes_mut().next().expect("the plan is a lane");
    lane.keep_journal();
    Ok(())
}

pub(super) fn drain_journal(shares: &mut [Share], sink: &mut Sink<'_>) -> Result<(), ExperimentError> {
    for lane in shares.iter_mut().flat_map(|share| share.run.lanes_mut()) {
        let bytes = lane.drain_journal();
        if !bytes.is_empty() {
            sink(&bytes)?;
        }
    }
    Ok(())
}
