//! From lanes and oracles to results.

use coldframe_core::{Bytes, Pj};
use coldframe_sheet::flash::{self, Moved};

use super::share::Share;
use crate::resolve::{size, Plan};
use crate::result::{Certainty, RunResult, Simulated};
use crate::traced::Trace;

pub(super) fn collect(plans: &[Plan], shares: &mut [Share], facts: &Trace) -> Vec<RunResult> {
    let mut simulated: Vec<Option<(Simulated, Certainty)>> = vec![None; plans.len()];
    for share in shares.iter_mut() {
        for (i, result) in share.lanes.iter().zip(share.run.lane_results()) {
            simulated[*i] = Some((Simulated::Lane(Box::new(result)), Certainty::Exact));
        }
        for (i, answer) in oracle_answers(share) {
            simulated[i] = Some(answer);
        }
    }
    let result = |plan: &Plan, simulated: Option<(Simulated, Certainty)>| {
        let share = shares.iter().find(|share| share.front == plan.front).expect("each plan has a share");
        let (simulated, certainty) = simulated.expect("each plan has been run");
        let device_energy =
            if plan.memory.is_some() || !plan.priced { Vec::new() } else { device_energy(plan, &simulated) };
        RunResult {
            trace: facts.clone(),
            pages: size::all(&plan.front, share.run.pages_touched()),
            policy: plan.lane().map_or_else(|| plan.policy.clone(), |lane| lane.policy.short()),
            handler: plan.lane().map(|lane| lane.handler.name.into()).unwrap_or_default(),
            config: plan.shown(),
            frames: plan.frames,
            page: Bytes(1 << plan.front.page_shift),
            front_end: *share.run.front_end(),
            has_icache: plan.front.front_end.is_some(),
            has_dcache: plan.front.has_data_cache(),
            idle: share.run.idle(),
            priced: plan.priced,
            prices: plan.lane().map(|lane| lane.prices),
            memory: plan.memory.clone(),
            memory_time: share.run.memory(),
            simulated,
            sample: plan.front.sample.map(|sample| sample.share()),
            certainty,
            device_energy,
            host_seconds: 0.0,
        }
    };
    plans.iter().zip(simulated).map(|(plan, simulated)| result(plan, simulated)).collect()
}

/// For all loads and writes, including a collection's copies; empty if the sheet lacks an energy.
fn device_energy(plan: &Plan, simulated: &Simulated) -> Vec<(&'static str, Pj)> {
    let Simulated::Lane(lane) = simulated else { return Vec::new() };
    let page = 1u64 << plan.front.page_shift;
    let written = lane.swap.as_ref().map_or(lane.counts.dirty_evictions, |s| s.counts.programs + s.counts.copies);
    let moved = Moved { read: Bytes(lane.counts.page_loads * page), written: Bytes(written * page) };
    flash::energy(&plan.sheet, moved).unwrap_or_default()
}

/// The results of a share's oracles, by configuration.
fn oracle_answers(share: &mut Share) -> Vec<(usize, (Simulated, Certainty))> {
    let answers = share.run.oracle_results();
    let exact = |(i, counts): (&usize, _)| (*i, (Simulated::Oracle(counts), Certainty::Exact));
    let oracles = share.oracles.iter().zip(answers);
    oracles.flat_map(|((_, members), counts)| members.iter().zip(counts).map(exact).collect::<Vec<_>>()).collect()
}
