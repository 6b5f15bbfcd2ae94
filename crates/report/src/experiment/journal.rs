//! The journal of a run's first configuration, drained as it goes.

use coldframe_trace::journal::Journal;
use coldframe_trace::Provenance;

use super::share::Share;
use super::Sink;
use crate::error::ReportError;
use crate::plan::{Engine, Plan};

pub(super) fn start_journal(plans: &[Plan], shares: &mut [Share], trace: &Provenance) -> Result<(), ReportError> {
    let Engine::Lane(config) = &plans[0].engine else {
        return Err(ReportError::setting("journal", "an oracle decides nothing and has no journal; give a policy"));
    };
    if plans[0].swap.is_some() {
        let reason = "a journal does not know swap areas; leave out --system lobi and swap.*";
        return Err(ReportError::setting("journal", reason));
    }
    let pages = plans[0].front.pages_max(trace).max(1);
    let lane = shares[0].run.lanes_mut().next().expect("the plan is a lane");
    lane.keep_journal(Journal::new(&config.journal_head(pages)));
    Ok(())
}

pub(super) fn drain_journal(shares: &mut [Share], sink: &mut Sink<'_>) -> Result<(), ReportError> {
    for lane in shares.iter_mut().flat_map(|share| share.run.lanes_mut()) {
        if let Some(mut journal) = lane.take_journal() {
            sink(&journal.drain())?;
            lane.keep_journal(journal);
        }
    }
    Ok(())
}
