//! Shares of a sweep: configurations behind one front end. Each block of the trace goes through the front end once.

use coldframe_drivers::oracle::OracleSpec;
use coldframe_drivers::{FrontEnd, Run};
use coldframe_store::{Block, Provenance};
use rayon::prelude::*;

use super::{MakePolicy, PlacedCost};
use crate::error::ExperimentError;
use crate::resolve::{Engine, Plan};
use crate::systems::front_end::FrontKey;

/// A share of a sweep: all configurations behind one front end.
pub(super) struct Share {
    pub(super) front: FrontKey,
    pub(super) run: Run,
    /// The configuration of each lane.
    pub(super) lanes: Vec<usize>,
    /// The configurations that each oracle answers.
    pub(super) oracles: Vec<(&'static OracleSpec, Vec<usize>)>,
    pub(super) done: bool,
}

pub(super) fn shares(
    plans: &[Plan],
    trace: &Provenance,
    front_end: &dyn Fn(&FrontKey) -> Box<dyn FrontEnd>,
    policy: Option<MakePolicy<'_>>,
) -> Result<Vec<Share>, ExperimentError> {
    let (mut shares, mut policy): (Vec<Share>, _) = (Vec::new(), policy);
    for plan in plans {
        if !shares.iter().any(|share| share.front == plan.front) {
            let front = plan.front.clone();
            let run = Run::new(front_end(&front), front.idle, front.pages_max(trace));
            shares.push(Share { front, run, lanes: Vec::new(), oracles: Vec::new(), done: false });
        }
    }
    for share in &mut shares {
        let mut configs = Vec::new();
        for (i, plan) in plans.iter().enumerate().filter(|(_, plan)| plan.front == share.front) {
            match &plan.engine {
                Engine::Lane(config) => {
                    configs.push((**config).clone());
                    share.lanes.push(i);
                }
                Engine::Oracle(spec) => match share.oracles.iter_mut().find(|(s, _)| s.name == spec.name) {
                    Some((_, plans)) => plans.push(i),
                    None => share.oracles.push((spec, vec![i])),
                },
            }
        }
        match &mut policy {
            Some(make) => configs.iter().try_for_each(|config| share.run.add_lane(config, make))?,
            None => share.run.add_lanes(&configs)?,
        }
        for (lane, plan) in share.run.lanes_mut().zip(&share.lanes) {
            lane.set_read_ahead(plans[*plan].read_ahead);
        }
        for (spec, members) in &share.oracles {
            let frames: Vec<usize> = members.iter().map(|i| plans[*i].simulated()).collect();
            share.run.add_oracle((spec.build)(&frames));
        }
    }
    Ok(shares)
}

/// Passes a block, which begins with row `at` of the trace, to every share that is not finished.
pub(super) fn feed(shares: &mut [Share], block: &Block, at: u64, rows: u64) -> Result<(), ExperimentError> {
    shares.par_iter_mut().filter(|share| !share.done && share.front.skip < at + rows).try_for_each(|share| {
        let from = share.front.skip.saturating_sub(at) as usize;
        share.done = !share.run.feed(block, from)?;
        Ok(())
    })
}

/// The cost of each page that faulted, for each configuration.
pub(super) fn placed_costs(shares: &mut [Share], costs: &mut [Vec<PlacedCost>]) {
    for share in shares {
        let (places, shift) = (share.run.places().to_vec(), share.front.page_shift);
        for (lane, plan) in share.run.lanes_mut().zip(&share.lanes) {
            // The neighbours that a window trace adds come after the configurations asked for.
            let Some(costs) = costs.get_mut(*plan) else { continue };
            let own = lane.page_costs().iter().copied().zip(&places).filter(|(cost, _)| cost.faults > 0);
            *costs =
                own.map(|(cost, (space, page))| PlacedCost { space: *space, address: page << shift, cost }).collect();
        }
    }
}
