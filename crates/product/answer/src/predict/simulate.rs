//! Runs a trace through the engines of many sizes of RAM at once, on all cores.

use std::error::Error;
use std::sync::OnceLock;

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Event, PageId, Ps};
use coldframe_lane::numbering::Numbering;
use coldframe_lane::page_table::{PageTable, LANES};
use coldframe_lane::{DeviceTimes, Lane, LaneConfig, PageRef};
use coldframe_proc::unmade;
use coldframe_recording::plan::{Pager, Plan, BUFFERED, HANDLER};
use coldframe_sheet::StagePrices;
use rayon::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::error::AnswerError;
use crate::predict::counts::Counts;
use crate::predict::rows::{Process, Rows};

/// Makes the threads that simulate and that encode traces, if they are not there.
pub fn threads() -> Result<(), AnswerError> {
    static MADE: OnceLock<Result<(), String>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        // Without a source of the error, somebody else in this process has made them.
        ThreadPoolBuilder::new().build_global().or_else(|error| match error.source() {
            None => Ok(()),
            Some(source) => Err(source.downcast_ref().map_or_else(|| error.to_string(), unmade)),
        })
    });
    made.clone().map_err(|why| AnswerError::new(4, format!("threads cannot be made: {why}")))
}

/// The counts of a run for each of these sizes of RAM, in bytes; every process has this much.
pub fn simulate(rows: &Rows, pager: &Pager, sizes: &[u64]) -> Result<Vec<Counts>, AnswerError> {
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    threads()?;
    // Each group has sizes far apart, so that groups take about the same time: small sizes fault most.
    let groups = sizes.len().div_ceil(LANES).max(rayon::current_num_threads()).min(sizes.len());
    let jobs: Vec<(usize, &Process)> =
        rows.processes.iter().flat_map(|process| (0..groups).map(move |group| (group, process))).collect();
    let done = jobs
        .par_iter()
        .map(|(group, process)| {
            let mine: Vec<usize> = (*group..sizes.len()).step_by(groups).collect();
            let plans: Vec<Plan> = mine.iter().map(|i| pager.with(sizes[*i]).sampled(rows.sample)).collect();
            let counts = pass(process, pager, &plans, rows.sample, &mut |_| {})?;
            Ok(mine.into_iter().zip(counts).collect::<Vec<_>>())
        })
        .collect::<Result<Vec<_>, AnswerError>>();
    let mut all = vec![Counts::default(); sizes.len()];
    for (i, counts) in done?.into_iter().flatten() {
        all[i] += counts.times(1.0 / rows.sample);
    }
    Ok(all)
}

/// How often each page of a process faults with this much RAM, in bytes.
pub fn faulting(process: &Process, pager: &Pager, ram: u64, sample: f64) -> Result<Vec<u32>, AnswerError> {
    let mut faults = vec![0; process.pages.len()];
    pass(process, pager, &[pager.with(ram).sampled(sample)], sample, &mut |page| faults[page] += 1)?;
    Ok(faults)
}

/// The lane of the live pager. Only counts are needed, so no event takes time: a faulting thread waits for all that its
/// fault causes, as in a live run. The log's buffers keep the pages written last.
fn lane(pager: &Pager, plan: &Plan, number: usize, pages: usize, sample: f64) -> Result<Lane, AnswerError> {
    let engine = plan.config(pages, true);
    let (policy, handler) = (PolicyChoice::parse(&pager.policy)?, handler::find(HANDLER).expect("it is there"));
    let (prices, device) = (StagePrices::uniform(Ps::ZERO), DeviceTimes { load: Ps::ZERO, program: Some(Ps::ZERO) });
    let config = LaneConfig::new(policy, handler, engine.frames, prices, device);
    let config = LaneConfig { evict_batch: engine.evict_batch, caps: engine.caps, ..config };
    let mut lane = Lane::new(&config, number as u32, pages, 1)?;
    lane.set_read_ahead(pager.read_ahead);
    if sample == 1.0 {
        lane.set_blocks();
    }
    lane.note_sources((BUFFERED as f64 * sample).round() as u32);
    Ok(lane)
}

fn pass(
    process: &Process,
    pager: &Pager,
    plans: &[Plan],
    sample: f64,
    faults: &mut dyn FnMut(usize),
) -> Result<Vec<Counts>, AnswerError> {
    let pages = process.pages.len();
    let mut numbers = Numbering::new(0);
    // The lanes number pages in the order of their addresses.
    let mut sorted: Vec<usize> = (0..pages).collect();
    sorted.sort_unstable_by_key(|page| process.pages[*page]);
    let mut place = vec![0; pages];
    sorted.iter().for_each(|page| place[*page] = numbers.number(0, process.pages[*page]));
    let mut table = PageTable::new(pages, plans.len());
    let masks = table.masks();
    let made = plans.iter().enumerate().map(|(i, plan)| lane(pager, plan, i, pages, sample));
    let mut lanes = made.collect::<Result<Vec<Lane>, AnswerError>>()?;
    let mut released = process.released.iter().peekable();
    for (i, row) in process.rows.iter().enumerate() {
        while let Some((_, gone)) = released.next_if(|(at, _)| *at <= i) {
            for lane in &mut lanes {
                gone.iter()
                    .for_each(|page| lane.tell(&mut table, Event::Released { page: PageId(place[*page as usize]) }));
            }
        }
        let (page, writing) = ((row >> 1) as usize, row & 1 == 1);
        let (dense, kind) = (place[page], PageRef::new(page as u32, writing, false).kind());
        if table.hit(&masks, dense as usize, kind) {
            continue;
        }
        let mut missing = table.miss(&masks, dense as usize, kind);
        faults(page);
        while missing != 0 {
            let lane = &mut lanes[missing.trailing_zeros() as usize];
            missing &= missing - 1;
            lane.fault(&mut table, PageId(dense), writing, false, Ps::ZERO, Some(&numbers));
        }
    }
    Ok(lanes.iter().map(|lane| Counts::of(lane.engine().counts(), &lane.sources())).collect())
}
