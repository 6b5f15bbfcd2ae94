//! Runs configurations over a trace: the trace is decoded once for all of them, block by block, the next block beside the work on one;
//! configurations behind the same front end share that too.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use coldframe_core::policy::Policy;
use coldframe_core::swap::Swap;
use coldframe_core::{Bytes, Pj, SlotId};
use coldframe_device::sheet;
use coldframe_device::used::{self, Moved};
use coldframe_sim::oracle::OracleSpec;
use coldframe_sim::run::IdlePrices;
use coldframe_sim::{Lane, PageCost, Run};
use coldframe_trace::journal::{Head, Journal};
use coldframe_trace::{Block, Provenance, Reader, Wanted};
use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::certainty::{bracket, estimates, sampled_lru, with_neighbours, Certainty};
use crate::error::ReportError;
use crate::fitness;
use crate::owner::Owners;
use crate::plan::{resolve, Engine, FrontKey, Plan};
use crate::result::{Found, RunResult, TraceFacts};
use crate::settings::Settings;
use crate::slots::SlotPicture;

/// How far a run is. Whoever is told may end it.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Rows of the trace gone through.
    pub rows: u64,
    /// Rows of the trace.
    pub rows_total: u64,
    stop: &'a Cell<bool>,
}

impl Progress<'_> {
    /// Ends the run before the next block, with [`ReportError::Stopped`].
    pub fn stop(&self) {
        self.stop.set(true);
    }
}

/// Tells how far a run is.
///
/// # Errors
/// [`ReportError::Stopped`] if whoever is told ends it.
pub(crate) fn tell(progress: &mut dyn FnMut(Progress), rows: u64, rows_total: u64) -> Result<(), ReportError> {
    let stop = Cell::new(false);
    progress(Progress { rows, rows_total, stop: &stop });
    if stop.get() {
        return Err(ReportError::Stopped);
    }
    Ok(())
}

/// A share of a sweep: all configurations behind one front end.
struct Share {
    front: FrontKey,
    run: Run,
    /// Which configuration each lane is.
    lanes: Vec<usize>,
    /// Which configurations each oracle answers.
    oracles: Vec<(&'static OracleSpec, Vec<usize>)>,
    /// Of the lanes with a swap area.
    slots: Vec<Option<SlotPicture>>,
    done: bool,
}

/// Runs every configuration over the trace and returns the results in their order.
///
/// # Errors
/// Settings that do not resolve, a trace that cannot be read or does not hold what is asked of it.
pub fn run(path: &Path, all: &[Settings], progress: &mut dyn FnMut(Progress)) -> Result<Vec<RunResult>, ReportError> {
    simulate(path, all, Ask::default(), progress)
}

/// As [`run`], over the first `rows` rows of the trace only.
///
/// # Errors
/// As [`run`].
pub fn run_prefix(
    path: &Path,
    all: &[Settings],
    rows: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<RunResult>, ReportError> {
    simulate(path, all, Ask { rows_max: rows, ..Ask::default() }, progress)
}

/// What a page has cost, and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedCost {
    /// Its address space.
    pub space: u32,
    /// Its first byte.
    pub address: u64,
    /// Faults and their time.
    pub cost: PageCost,
}

/// Runs one configuration and finds out what each page that faulted has cost, too.
///
/// # Errors
/// As [`run`]; an oracle has no costs.
pub fn page_costs(
    path: &Path,
    settings: &Settings,
    progress: &mut dyn FnMut(Progress),
) -> Result<(RunResult, Vec<PlacedCost>), ReportError> {
    let mut costs = Vec::new();
    let ask = Ask { page_costs: Some(&mut costs), ..Ask::default() };
    let mut results = simulate(path, std::slice::from_ref(settings), ask, progress)?;
    Ok((results.remove(0), costs))
}

/// Runs one configuration and hands its journal to `sink`, piece by piece.
///
/// # Errors
/// As [`run`]; an oracle has no journal.
pub fn run_with_journal(
    path: &Path,
    settings: &Settings,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), ReportError>,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ReportError> {
    let ask = Ask { journal: Some(sink), ..Ask::default() };
    let mut results = simulate(path, std::slice::from_ref(settings), ask, progress)?;
    Ok(results.remove(0))
}

/// Makes a policy for a number of frames and pages.
pub type MakePolicy<'a> = &'a mut dyn FnMut(usize, usize) -> Box<dyn Policy>;

/// Runs one configuration with a policy that has no name here; the result shows it as `name`. Stages have Clock's prices unless the
/// settings give others.
///
/// # Errors
/// As [`run`]; the settings name a policy.
pub fn run_with_policy(
    path: &Path,
    settings: &Settings,
    (name, make): (&str, MakePolicy<'_>),
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ReportError> {
    if settings.policy.is_some() {
        return Err(ReportError::setting("policy", "a policy object is given, too; leave one of them out"));
    }
    let settings = Settings { policy: Some("clock".into()), ..settings.clone() };
    let ask = Ask { policy: Some(make), ..Ask::default() };
    let mut result = simulate(path, std::slice::from_ref(&settings), ask, progress)?.remove(0);
    result.config["policy"] = name.into();
    result.policy = name.into();
    Ok(result)
}

type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), ReportError>;

/// What is wanted beside results.
struct Ask<'a> {
    /// The journal of the first configuration.
    journal: Option<Sink<'a>>,
    /// Rows after which to stop.
    rows_max: u64,
    /// The costs of pages under the first configuration.
    page_costs: Option<&'a mut Vec<PlacedCost>>,
    /// Makes the policy of the first configuration, instead of the one that the settings name.
    policy: Option<MakePolicy<'a>>,
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Ask { journal: None, rows_max: u64::MAX, page_costs: None, policy: None }
    }
}

fn simulate(
    path: &Path,
    all: &[Settings],
    mut ask: Ask<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<RunResult>, ReportError> {
    let began = Instant::now();
    let mut reader = Reader::open(path)?;
    let trace = reader.provenance().clone();
    let mut footprints: Vec<(FrontKey, usize)> = Vec::new();
    let mut footprint = |front: &FrontKey| {
        let whole = whole_trace(front);
        if let Some(sample) = trace.reduction.filter(|reduction| reduction.rate().is_some()) {
            return Ok(sample.pages as usize);
        }
        if let Some((_, pages)) = footprints.iter().find(|(known, _)| *known == whole) {
            return Ok(*pages);
        }
        let pages = pages_touched(path, front)?;
        footprints.push((whole, pages));
        Ok(pages)
    };
    fitness::check_energy(path, &trace, all)?;
    let plans = all.iter().map(|s| resolve(s, &trace, &mut footprint)).collect::<Result<Vec<_>, _>>()?;
    fitness::check(path, &trace, &plans)?;
    let asked = plans.len();
    let plans = with_neighbours(plans, &trace);
    let mut shares = shares(&plans, &trace, ask.policy.take())?;
    if ask.journal.is_some() {
        start_journal(&plans, &mut shares, &trace)?;
    }
    if ask.page_costs.is_some() {
        shares.iter_mut().flat_map(|share| share.run.lanes_mut()).for_each(Lane::note_pages);
    }
    let owners = Owners::new(&trace);
    let (mut block, mut next) = (Block::new(), Block::new());
    let wanted = wanted(&reader);
    let mut rows = reader.read(&mut block, wanted)? as u64;
    let mut at = 0u64;
    while rows > 0 {
        let (fed, read) = rayon::join(|| feed(&mut shares, &block, at, rows), || reader.read(&mut next, wanted));
        fed?;
        shares.iter_mut().for_each(|share| share.look_at_slots(&owners));
        if let Some(sink) = &mut ask.journal {
            drain_journal(&mut shares, sink)?;
        }
        at += rows;
        tell(progress, at, reader.rows())?;
        if at >= ask.rows_max || shares.iter().all(|share| share.done) {
            break;
        }
        rows = read? as u64;
        std::mem::swap(&mut block, &mut next);
    }
    if let Some(costs) = ask.page_costs {
        *costs = placed_costs(&mut shares);
    }
    let facts = facts(path, &trace)?;
    let mut results = bracket(collect(&plans, &mut shares, &facts, &owners), asked);
    if results.iter().any(|r| r.references() == 0) {
        let reason =
            "no reference is left after limit.skip, stream and front_end.paged; give less to skip, or another stream";
        return Err(ReportError::Unfit { path: facts.path, reason: reason.into() });
    }
    let seconds = began.elapsed().as_secs_f64();
    results.iter_mut().for_each(|result| result.host_seconds = seconds);
    Ok(results)
}

impl Share {
    /// Notes who owns what slot of the lanes' swap areas now.
    fn look_at_slots(&mut self, owners: &Owners<'_>) {
        if self.slots.iter().all(Option::is_none) {
            return;
        }
        let (places, shift) = (self.run.places().to_vec(), self.front.page_shift);
        for (lane, picture) in self.run.lanes_mut().zip(&mut self.slots) {
            let (Some(swap), Some(picture)) = (lane.engine().swap(), picture) else { continue };
            picture.look(|slot| {
                let (space, page) = places.get(swap.page_in(SlotId(slot))?.index())?;
                Some(owners.of(*space, page << shift))
            });
        }
    }
}

/// Takes a block, which begins with row `at` of the trace, through every share that is not done.
fn feed(shares: &mut [Share], block: &Block, at: u64, rows: u64) -> Result<(), ReportError> {
    shares.par_iter_mut().filter(|share| !share.done && share.front.skip < at + rows).try_for_each(|share| {
        let from = share.front.skip.saturating_sub(at) as usize;
        share.done = !share.run.feed(block, from)?;
        Ok(())
    })
}

/// What each page that faulted has cost the lanes.
fn placed_costs(shares: &mut [Share]) -> Vec<PlacedCost> {
    let of_share = |share: &mut Share| {
        let (places, shift) = (share.run.places().to_vec(), share.front.page_shift);
        let of_lane = |lane: &mut Lane| {
            let costs = lane.page_costs().iter().copied().zip(&places).filter(|(cost, _)| cost.faults > 0);
            costs.map(|(cost, (space, page))| PlacedCost { space: *space, address: page << shift, cost }).collect()
        };
        share.run.lanes_mut().flat_map(|lane| -> Vec<PlacedCost> { of_lane(lane) }).collect::<Vec<_>>()
    };
    shares.iter_mut().flat_map(of_share).collect()
}

/// Columns that the file has and the simulator needs.
fn wanted(reader: &Reader) -> Wanted {
    let columns = reader.columns();
    Wanted { task: columns.task, count: columns.count, time: false, ..Wanted::ACCESS }
}

/// The front end that finds every page the trace can touch behind `front`.
fn whole_trace(front: &FrontKey) -> FrontKey {
    let paged = front.paged.clone().filter(|_| front.caches);
    FrontKey { reading: None, paged, skip: 0, accesses: None, idle: IdlePrices::default(), ..front.clone() }
}

/// Pages that the trace touches, for RAM given in percent.
///
/// # Errors
/// The trace cannot be read.
pub fn pages_touched(path: &Path, front: &FrontKey) -> Result<usize, ReportError> {
    let mut reader = Reader::open(path)?;
    let trace = reader.provenance().clone();
    let mut front_end = whole_trace(front).build(&trace);
    let (mut block, mut out) = (Block::new(), Vec::new());
    let wanted = wanted(&reader);
    while reader.read(&mut block, wanted)? > 0 {
        out.clear();
        front_end.filter(&block, 0, &mut out);
    }
    Ok(front_end.numbering().count())
}

fn shares(plans: &[Plan], trace: &Provenance, policy: Option<MakePolicy<'_>>) -> Result<Vec<Share>, ReportError> {
    let (mut shares, mut policy): (Vec<Share>, _) = (Vec::new(), policy);
    for plan in plans {
        if !shares.iter().any(|share| share.front == plan.front) {
            let front = plan.front.clone();
            let run = Run::new(front.build(trace), front.idle, front.pages_max(trace));
            shares.push(Share { front, run, lanes: Vec::new(), oracles: Vec::new(), slots: Vec::new(), done: false });
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
        let pages = share.front.pages_max(trace).max(1);
        for (lane, plan) in share.run.lanes_mut().zip(&share.lanes) {
            give_swap(lane, &plans[*plan], pages)?;
            share
                .slots
                .push(lane.engine().swap().map(|s| SlotPicture::new(s.block_count() as u32 * s.slots_per_block())));
            lane.set_read_ahead(plans[*plan].read_ahead);
        }
        for (spec, members) in &share.oracles {
            let frames: Vec<usize> = members.iter().map(|i| plans[*i].frames).collect();
            match trace.reduction.and_then(|reduction| reduction.rate()) {
                Some(rate) => sampled_lru(&frames, rate).into_iter().for_each(|oracle| share.run.add_oracle(oracle)),
                None => share.run.add_oracle((spec.build)(&frames)),
            }
        }
    }
    Ok(shares)
}

fn give_swap(lane: &mut Lane, plan: &Plan, pages: usize) -> Result<(), ReportError> {
    let Some((config, times)) = &plan.swap else { return Ok(()) };
    let swap = Swap::new(pages, config.slots_per_block, &config.areas);
    lane.set_swap(swap.map_err(|e| ReportError::setting("swap", e.to_string()))?, *times);
    Ok(())
}

fn start_journal(plans: &[Plan], shares: &mut [Share], trace: &Provenance) -> Result<(), ReportError> {
    let Engine::Lane(config) = &plans[0].engine else {
        return Err(ReportError::setting("journal", "an oracle decides nothing and has no journal; give a policy"));
    };
    if plans[0].swap.is_some() {
        let reason = "a journal does not know swap areas; leave out --system lobi and swap.*";
        return Err(ReportError::setting("journal", reason));
    }
    let pages = plans[0].front.pages_max(trace).max(1);
    let head = Head {
        policy: config.policy.to_string(),
        handler: config.handler.name.into(),
        config: coldframe_core::Config {
            frames: config.frames,
            pages,
            tasks: 1,
            evict_batch: config.evict_batch,
            caps: config.caps,
        },
        slots: None,
    };
    let lane = shares[0].run.lanes_mut().next().expect("the plan is a lane");
    lane.keep_journal(Journal::new(&head));
    Ok(())
}

fn drain_journal(shares: &mut [Share], sink: &mut Sink<'_>) -> Result<(), ReportError> {
    for lane in shares.iter_mut().flat_map(|share| share.run.lanes_mut()) {
        if let Some(mut journal) = lane.take_journal() {
            sink(&journal.drain())?;
            lane.keep_journal(journal);
        }
    }
    Ok(())
}

fn collect(plans: &[Plan], shares: &mut [Share], facts: &TraceFacts, owners: &Owners<'_>) -> Vec<RunResult> {
    let mut found: Vec<Option<(Found, Certainty)>> = vec![None; plans.len()];
    let mut slots: Vec<Option<Value>> = vec![None; plans.len()];
    for share in shares.iter_mut() {
        for (i, picture) in share.lanes.iter().zip(&share.slots) {
            slots[*i] = picture.as_ref().map(|picture| picture.json(|owner| owners.name(owner)));
        }
        for (i, result) in share.lanes.iter().zip(share.run.lane_results()) {
            found[*i] = Some((Found::Lane(Box::new(result)), Certainty::Exact));
        }
        for (i, answer) in oracle_answers(share, plans, facts) {
            found[i] = Some(answer);
        }
    }
    let result = |((plan, found), slots): ((&Plan, Option<(Found, Certainty)>), Option<Value>)| {
        let share = shares.iter().find(|share| share.front == plan.front).expect("each plan has a share");
        let (found, certainty) = found.expect("each plan has been run");
        let device_energy = if plan.memory.is_some() { Vec::new() } else { device_energy(plan, &found) };
        RunResult {
            trace: facts.clone(),
            pages: facts.sampled().map_or(share.run.pages_touched(), |whole| whole.pages as usize),
            policy: match &plan.engine {
                Engine::Lane(config) => config.policy.short(),
                Engine::Oracle(spec) => spec.name.into(),
            },
            handler: plan.config["handler"].as_str().unwrap_or_default().into(),
            config: plan.config.clone(),
            frames: plan.frames,
            page: Bytes(1 << plan.front.page_shift),
            front_end: *share.run.front_end(),
            has_icache: plan.front.reading.is_some() || plan.front.caches,
            has_dcache: plan.front.caches,
            idle: share.run.idle(),
            prices: match &plan.engine {
                Engine::Lane(config) => Some(config.prices),
                Engine::Oracle(_) => None,
            },
            memory: plan.memory.clone(),
            memory_time: share.run.memory(),
            found,
            certainty,
            slots,
            device_energy,
            host_seconds: 0.0,
        }
    };
    plans.iter().zip(found).zip(slots).map(result).collect()
}

/// Of all loads and writes, a collection's copies among them; none where the sheet lacks an energy.
fn device_energy(plan: &Plan, found: &Found) -> Vec<(&'static str, Pj)> {
    let (Found::Lane(lane), Some(device)) = (found, plan.config["device"].as_str()) else { return Vec::new() };
    let page = 1u64 << plan.front.page_shift;
    let written = lane.swap.as_ref().map_or(lane.counts.dirty_evictions, |s| s.counts.programs + s.counts.copies);
    let moved = Moved { read: Bytes(lane.counts.page_loads * page), written: Bytes(written * page) };
    sheet::find(device).and_then(|sheet| used::energy_terms(&sheet, moved)).unwrap_or_default()
}

/// What a share's oracles have found out, by configuration.
fn oracle_answers(share: &mut Share, plans: &[Plan], facts: &TraceFacts) -> Vec<(usize, (Found, Certainty))> {
    let answers = share.run.oracle_results();
    if let Some((whole, rate)) = facts.reduction.and_then(|reduction| Some((reduction, reduction.rate()?))) {
        // A sample answers for one oracle, which takes all answers.
        let members: Vec<usize> = share.oracles.iter().flat_map(|(_, members)| members.clone()).collect();
        let frames: Vec<usize> = members.iter().map(|i| plans[*i].frames).collect();
        return members.into_iter().zip(estimates(&answers, &frames, &whole, rate)).collect();
    }
    let exact = |(i, counts): (&usize, _)| (*i, (Found::Oracle(counts), Certainty::Exact));
    let oracles = share.oracles.iter().zip(answers);
    oracles.flat_map(|((_, members), counts)| members.iter().zip(counts).map(exact).collect::<Vec<_>>()).collect()
}

pub(crate) fn facts(path: &Path, trace: &Provenance) -> Result<TraceFacts, ReportError> {
    Ok(TraceFacts {
        path: path.display().to_string(),
        sha256: sha256(path)?,
        fidelity: serde_json::to_value(trace.fidelity)
            .ok()
            .and_then(|v| v.as_str().map(Into::into))
            .unwrap_or_default(),
        references: trace.references,
        instructions: trace.instructions,
        window: trace.window,
        reduction: trace.reduction,
        cuts: trace.cuts.clone(),
    })
}

/// The hash of a file, in hex.
///
/// # Errors
/// It cannot be read.
pub fn sha256(path: &Path) -> Result<String, ReportError> {
    let io = |e: std::io::Error| ReportError::Io { path: path.display().to_string(), reason: e.to_string() };
    let mut file = File::open(path).map_err(io)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).map_err(io)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
