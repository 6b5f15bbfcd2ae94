//! Runs configurations over a trace. The trace is decoded once for all of them, block by block; the next block is
//! decoded during the work on one. Configurations behind the same front end share its work, too.

use std::path::Path;
use std::time::Instant;

use coldframe_core::policy::Made;
use coldframe_drivers::shorten::Short;
use coldframe_lane::{Lane, PageCost};
use coldframe_store::{Block, Reader};

use crate::error::ExperimentError;
use crate::fitness;
use crate::progress::{tell, Progress, Sink, Unit};
use crate::resolve::string as resolve;
use crate::result::RunResult;
use crate::settings::Settings;
use crate::systems::front_end::FrontKey;
use crate::traced::Trace;

mod certainty;
mod collect;
mod journal;
mod share;
mod trace;

use certainty::{bracket, with_neighbours};
use collect::collect;
use journal::{drain_journal, start_journal};
use share::{feed, placed_costs, shares, Share};
pub(crate) use trace::pages_by_front;
use trace::wanted;
pub use trace::{facts, pages_touched, sha256, shortened};

/// Runs every configuration over the trace and returns the results in their order.
pub fn run(
    path: &Path,
    all: &[Settings],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<RunResult>, ExperimentError> {
    simulate(path, all, Ask::default(), progress)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedCost {
    /// Its address space.
    pub space: u32,
    /// Its first byte.
    pub address: u64,
    /// Faults and their time.
    pub cost: PageCost,
}

/// A trace with known facts, for several runs over it.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub path: &'a Path,
    /// What results say of it.
    pub facts: &'a Trace,
    /// If given, the trace's shortened string behind the front end is used instead of the trace.
    pub short: Option<&'a Short>,
    /// Rows after which to stop; of a shortened string, the blocks with as many rows.
    pub rows_max: u64,
}

impl Known<'_> {
    fn ask(&self) -> Ask<'_> {
        Ask { rows_max: self.rows_max, facts: Some(self.facts), short: self.short, ..Ask::default() }
    }

    /// As [`run`].
    pub fn run(&self, all: &[Settings], progress: &mut dyn FnMut(Progress)) -> Result<Vec<RunResult>, ExperimentError> {
        simulate(self.path, all, self.ask(), progress)
    }

    /// Like [`run`]; also finds the cost of each page that faulted, under each configuration.
    pub fn page_costs(
        &self,
        all: &[Settings],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<(RunResult, Vec<PlacedCost>)>, ExperimentError> {
        let mut costs = vec![Vec::new(); all.len()];
        let results = simulate(self.path, all, Ask { page_costs: Some(&mut costs), ..self.ask() }, progress)?;
        Ok(results.into_iter().zip(costs).collect())
    }
}

/// Makes a policy for a number of frames and pages.
pub type MakePolicy<'a> = &'a mut dyn FnMut(usize, usize) -> Made;

/// Runs one configuration with a policy that has no name here; the result shows it as `name`. Its stages have Clock's
/// prices unless the settings give others.
pub fn run_with_policy(
    path: &Path,
    settings: &Settings,
    (name, make): (&str, MakePolicy<'_>),
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ExperimentError> {
    if settings.policy.is_some() {
        return Err(ExperimentError::setting("policy", "a policy object is given, too; leave one of them out"));
    }
    let settings = Settings { policy: Some("clock".into()), ..settings.clone() };
    let ask = Ask { policy: Some(make), ..Ask::default() };
    let mut result = simulate(path, std::slice::from_ref(&settings), ask, progress)?.remove(0);
    result.config.settings.policy = Some(name.into());
    result.policy = name.into();
    Ok(result)
}

/// The outputs of a run in addition to results.
pub(crate) struct Ask<'a> {
    /// The journal of the first configuration.
    pub(crate) journal: Option<Sink<'a>>,
    /// Rows after which to stop.
    pub(crate) rows_max: u64,
    pub(crate) page_costs: Option<&'a mut [Vec<PlacedCost>]>,
    /// Facts about the trace, if they are known.
    pub(crate) facts: Option<&'a Trace>,
    /// The shortened string to use instead of the trace.
    pub(crate) short: Option<&'a Short>,
    /// Makes the policy of the first configuration, instead of the one that the settings name.
    pub(crate) policy: Option<MakePolicy<'a>>,
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Ask { journal: None, rows_max: u64::MAX, page_costs: None, facts: None, short: None, policy: None }
    }
}

pub(crate) fn simulate(
    path: &Path,
    all: &[Settings],
    mut ask: Ask<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<RunResult>, ExperimentError> {
    let began = Instant::now();
    let mut reader = Reader::open(path)?;
    let trace = reader.provenance().clone();
    let mut footprint = pages_by_front(path);
    fitness::check_energy(path, &trace, all)?;
    let plans = all.iter().map(|s| resolve(s, &trace, &mut footprint)).collect::<Result<Vec<_>, _>>()?;
    fitness::check(path, &trace, &plans)?;
    let requested = plans.len();
    let plans = with_neighbours(plans, &trace);
    let front_end = |front: &FrontKey| ask.short.map_or_else(|| front.build(&trace), Short::front_end);
    let mut shares = shares(&plans, &trace, &front_end, ask.policy.take())?;
    if ask.journal.is_some() {
        start_journal(&plans, &mut shares)?;
    }
    if ask.page_costs.is_some() {
        shares.iter_mut().flat_map(|share| share.run.lanes_mut()).for_each(Lane::note_pages);
    }
    match ask.short {
        Some(short) => play(short, &mut shares, ask.rows_max, progress)?,
        None => go_through(&mut reader, &mut shares, &mut ask, progress)?,
    }
    if let Some(costs) = ask.page_costs {
        placed_costs(&mut shares, costs);
    }
    let facts = ask.facts.map_or_else(|| facts(path, &trace), |facts| Ok(facts.clone()))?;
    let mut results = bracket(collect(&plans, &mut shares, &facts), requested);
    if results.iter().any(|r| r.references() == 0) {
        let reason =
            "no reference is left after limit.skip, stream and front_end.paged; give less to skip, or another stream";
        return Err(ExperimentError::Unfit { path: facts.path, reason: reason.into() });
    }
    let seconds = began.elapsed().as_secs_f64();
    results.iter_mut().for_each(|result| result.host_seconds = seconds);
    Ok(results)
}

/// Runs the trace through all shares; the next block is decoded during the work on one.
fn go_through(
    reader: &mut Reader,
    shares: &mut [Share],
    ask: &mut Ask<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ExperimentError> {
    let (mut block, mut next) = (Block::new(), Block::new());
    let wanted = wanted(reader);
    let mut rows = reader.read(&mut block, wanted)? as u64;
    let mut at = 0u64;
    while rows > 0 {
        let (fed, read) = rayon::join(|| feed(shares, &block, at, rows), || reader.read(&mut next, wanted));
        fed?;
        if let Some(sink) = &mut ask.journal {
            drain_journal(shares, sink)?;
        }
        at += rows;
        tell(progress, (at, reader.rows()), Unit::Rows)?;
        if at >= ask.rows_max || shares.iter().all(|share| share.done) {
            break;
        }
        rows = read? as u64;
        std::mem::swap(&mut block, &mut next);
    }
    Ok(())
}

/// Runs a shortened string through all shares. Its rows are those of the trace that it represents.
fn play(
    short: &Short,
    shares: &mut [Share],
    rows_max: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ExperimentError> {
    let nothing = Block::new();
    for part in 0..short.parts() {
        // Skipped rows were skipped before it was shortened.
        feed(shares, &nothing, u64::MAX - 1, 1)?;
        let done = short.rows_until(part);
        tell(progress, (done, short.rows_until(short.parts() - 1)), Unit::Rows)?;
        if done >= rows_max || shares.iter().all(|share| share.done) {
            break;
        }
    }
    Ok(())
}
