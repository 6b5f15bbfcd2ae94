//! Runs configurations over a trace: the trace is decoded once for all of them, block by block, the next block beside the work on one;
//! configurations behind the same front end share that too.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use coldframe_core::swap::Swap;
use coldframe_core::{Bytes, Pj, SlotId};
use coldframe_device::sheet;
use coldframe_device::used::{self, Moved};
use coldframe_sim::oracle::OracleSpec;
use coldframe_sim::run::IdlePrices;
use coldframe_sim::{Lane, PageCost, Run};
use coldframe_trace::journal::{Head, Journal};
use coldframe_trace::{Block, Fidelity, Provenance, Reader, Wanted};
use rayon::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::ReportError;
use crate::owner::Owners;
use crate::plan::{resolve, Engine, FrontKey, Plan};
use crate::result::{Found, RunResult, TraceFacts};
use crate::settings::Settings;
use crate::slots::SlotPicture;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Rows of the trace gone through.
    pub rows: u64,
    /// Rows of the trace.
    pub rows_total: u64,
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

type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), ReportError>;

/// What is wanted beside results.
struct Ask<'a> {
    /// The journal of the first configuration.
    journal: Option<Sink<'a>>,
    /// Rows after which to stop.
    rows_max: u64,
    /// The costs of pages under the first configuration.
    page_costs: Option<&'a mut Vec<PlacedCost>>,
}

impl Default for Ask<'_> {
    fn default() -> Self {
        Ask { journal: None, rows_max: u64::MAX, page_costs: None }
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
        if let Some((_, pages)) = footprints.iter().find(|(known, _)| *known == whole) {
            return Ok(*pages);
        }
        let pages = pages_touched(path, front)?;
        footprints.push((whole, pages));
        Ok(pages)
    };
    let plans = all.iter().map(|s| resolve(s, &trace, &mut footprint)).collect::<Result<Vec<_>, _>>()?;
    check_fidelity(path, &trace, &plans)?;
    let mut shares = shares(&plans, &trace)?;
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
        progress(Progress { rows: at, rows_total: reader.rows() });
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
    let mut results = collect(&plans, &mut shares, &facts, &owners);
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

fn check_fidelity(path: &Path, trace: &Provenance, plans: &[Plan]) -> Result<(), ReportError> {
    let unfit = |reason: &str| Err(ReportError::Unfit { path: path.display().to_string(), reason: reason.into() });
    let exact = trace.fidelity == Fidelity::ExactReferences;
    if !exact && plans.iter().any(|plan| plan.front.reading.is_some() || plan.front.caches) {
        return unfit(
            "the front ends swl and l1 need every reference, but the trace is reduced; record it with --level exact",
        );
    }
    if trace.fidelity == Fidelity::Sampled {
        return unfit(
            "the trace is sampled: it shows working sets and heat, but no policy's misses; record every reference or fault",
        );
    }
    let oracle = plans.iter().any(|plan| matches!(plan.engine, Engine::Oracle(_)));
    if oracle && trace.fidelity == Fidelity::Faults {
        return unfit("an oracle needs every reference, but the trace holds faults only; record it anew");
    }
    check_window(path, trace, plans)
}

/// Below twice its window a trace of entries bounds nothing.
fn check_window(path: &Path, trace: &Provenance, plans: &[Plan]) -> Result<(), ReportError> {
    let Some(window) = trace.window else { return Ok(()) };
    let ram = |plan: &Plan| (plan.frames as u64) << plan.front.page_shift;
    let least = 2 * window * trace.page_size.unwrap_or(1);
    match plans.iter().find(|plan| ram(plan) < least) {
        Some(plan) => Err(ReportError::Unfit {
            path: path.display().to_string(),
            reason: format!(
                "{} bytes of RAM are asked for, but the trace was filtered by a window of {window} pages, which says nothing below {least} \
                 bytes; give more RAM, or record it with a smaller --window",
                ram(plan)
            ),
        }),
        None => Ok(()),
    }
}

fn shares(plans: &[Plan], trace: &Provenance) -> Result<Vec<Share>, ReportError> {
    let mut shares: Vec<Share> = Vec::new();
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
        share.run.add_lanes(&configs)?;
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
            share.run.add_oracle(spec, &frames);
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
    let mut found: Vec<Option<Found>> = vec![None; plans.len()];
    let mut slots: Vec<Option<Value>> = vec![None; plans.len()];
    for share in shares.iter_mut() {
        for (i, picture) in share.lanes.iter().zip(&share.slots) {
            slots[*i] = picture.as_ref().map(|picture| picture.json(|owner| owners.name(owner)));
        }
        for (i, result) in share.lanes.iter().zip(share.run.lane_results()) {
            found[*i] = Some(Found::Lane(Box::new(result)));
        }
        let answers = share.run.oracle_results();
        for ((_, members), counts) in share.oracles.iter().zip(answers) {
            members.iter().zip(counts).for_each(|(i, counts)| found[*i] = Some(Found::Oracle(counts)));
        }
    }
    let result = |((plan, found), slots): ((&Plan, Option<Found>), Option<Value>)| {
        let share = shares.iter().find(|share| share.front == plan.front).expect("each plan has a share");
        let found = found.expect("each plan has been run");
        let device_energy = if plan.memory.is_some() { Vec::new() } else { device_energy(plan, &found) };
        RunResult {
            trace: facts.clone(),
            pages: share.run.pages_touched(),
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
            memory: plan.memory.clone(),
            memory_time: share.run.memory(),
            found,
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
