//! Runs a trace through the engines of many sizes of RAM at once, on all cores.

use coldframe_core::fault::handler;
use coldframe_core::policy::PolicyChoice;
use coldframe_core::{Event, PageId, Ps};
use coldframe_lane::numbering::Numbering;
use coldframe_lane::page_table::{PageTable, LANES};
use coldframe_lane::{DeviceTimes, Lane, LaneConfig, PageRef};
use coldframe_plan::{Pager, Plan, BUFFERED, HANDLER};
use coldframe_sheet::StagePrices;
use rayon::prelude::*;

use crate::counts::Counts;
use crate::error::AnswerError;
use crate::rows::{Process, Rows};

/// The counts of a run for each of these sizes of RAM, in bytes; every process has this much.
///
/// # Errors
/// The pager's configuration is not possible.
pub fn simulate(rows: &Rows, pager: &Pager, sizes: &[u64]) -> Result<Vec<Counts>, AnswerError> {
    Ok(simulate_by_use(rows, pager, sizes, 1)?.into_iter().map(|levels| levels.into_iter().sum()).collect())
}

/// The same, apart for each level of use: the counts while a process used up to one part in `levels` of the memory that
/// it uses at most, up to two, ...
///
/// # Errors
/// As [`simulate`].
pub fn simulate_by_use(
    rows: &Rows,
    pager: &Pager,
    sizes: &[u64],
    levels: usize,
) -> Result<Vec<Vec<Counts>>, AnswerError> {
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    // Each group has sizes far apart, so that groups take about the same time: small sizes fault most.
    let groups = sizes.len().div_ceil(LANES).max(rayon::current_num_threads()).min(sizes.len());
    let jobs: Vec<(usize, &Process)> =
        rows.processes.iter().flat_map(|process| (0..groups).map(move |group| (group, process))).collect();
    let done = jobs
        .par_iter()
        .map(|(group, process)| {
            let mine: Vec<usize> = (*group..sizes.len()).step_by(groups).collect();
            let plans: Vec<Plan> = mine.iter().map(|i| pager.with(sizes[*i]).sampled(rows.sample)).collect();
            Ok(mine
                .into_iter()
                .zip(pass(process, pager, &plans, rows.sample, levels, &mut |_| {})?)
                .collect::<Vec<_>>())
        })
        .collect::<Result<Vec<_>, AnswerError>>();
    let mut all = vec![vec![Counts::default(); levels]; sizes.len()];
    for (i, counts) in done?.into_iter().flatten() {
        all[i].iter_mut().zip(counts).for_each(|(sum, counts)| *sum += counts.times(1.0 / rows.sample));
    }
    Ok(all)
}

/// How often each page of a process faults with this much RAM, in bytes.
///
/// # Errors
/// As [`simulate`].
pub fn faulting(process: &Process, pager: &Pager, ram: u64, sample: f64) -> Result<Vec<u32>, AnswerError> {
    let mut faults = vec![0; process.pages.len()];
    pass(process, pager, &[pager.with(ram).sampled(sample)], sample, 1, &mut |page| faults[page] += 1)?;
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
    lane.note_sources((BUFFERED as f64 * sample).round() as u32);
    Ok(lane)
}

fn pass(
    process: &Process,
    pager: &Pager,
    plans: &[Plan],
    sample: f64,
    levels: usize,
    faults: &mut dyn FnMut(usize),
) -> Result<Vec<Vec<Counts>>, AnswerError> {
    let pages = process.pages.len();
    let most = if levels > 1 { process.peak() } else { pages };
    let (mut there, mut used, mut level) = (vec![false; pages], 0, 0);
    let mut counts_by_plan = vec![vec![Counts::default(); levels]; plans.len()];
    let mut numbers = Numbering::new(0);
    process.pages.iter().for_each(|page| _ = numbers.number(0, *page));
    let mut table = PageTable::new(pages, plans.len());
    let masks = table.masks();
    let made = plans.iter().enumerate().map(|(i, plan)| lane(pager, plan, i, pages, sample));
    let mut lanes = made.collect::<Result<Vec<Lane>, AnswerError>>()?;
    let mut released = process.released.iter().peekable();
    for (i, row) in process.rows.iter().enumerate() {
        while let Some((_, gone)) = released.next_if(|(at, _)| *at <= i) {
            for lane in &mut lanes {
                gone.iter().for_each(|page| lane.tell(&mut table, Event::Released { page: PageId(*page) }));
            }
            gone.iter().for_each(|page| used -= usize::from(std::mem::take(&mut there[*page as usize])));
        }
        let (page, writing) = ((row >> 1) as usize, row & 1 == 1);
        if levels > 1 {
            used += usize::from(!std::mem::replace(&mut there[page], true));
            let now = used * levels / (most + 1);
            if now != level {
                close(&lanes, &mut counts_by_plan, level);
                level = now;
            }
        }
        let kind = PageRef::new(page as u32, writing, false).kind();
        if table.hit(&masks, page, kind) {
            continue;
        }
        let mut missing = table.miss(&masks, page, kind);
        faults(page);
        while missing != 0 {
            let lane = &mut lanes[missing.trailing_zeros() as usize];
            missing &= missing - 1;
            lane.fault(&mut table, PageId(page as u32), writing, false, Ps::ZERO, Some(&numbers));
        }
    }
    close(&lanes, &mut counts_by_plan, level);
    Ok(counts_by_plan)
}

/// Adds what has happened since the last time to the counts of this level.
fn close(lanes: &[Lane], counts_by_plan: &mut [Vec<Counts>], level: usize) {
    for (lane, levels_of_lane) in lanes.iter().zip(counts_by_plan) {
        let before: Counts = levels_of_lane.iter().copied().sum();
        levels_of_lane[level] +=
            Counts::of(lane.engine().counts(), &lane.sources()).with(&before, |now, before| now - before);
    }
}

#[cfg(test)]
mod tests {
    use coldframe_core::policy::active_inactive;
    use coldframe_plan::{BATCH_MAX, PAGE};

    use super::*;

    #[test]
    fn what_happens_is_counted_at_the_level_of_use_at_that_time() {
        // Grows to 1000 pages and reads them twice, gives all back, and uses 100.
        let (grow, read) = ((0..1000).map(|page| (page << 1) | 1), (0..2000).map(|i| (i % 1000) << 1));
        let rows = grow.chain(read).chain((0..100).map(|page| (page << 1) | 1)).collect();
        let released = vec![(3000, (0..1000).collect())];
        let process = Process { rows, worked: Vec::new(), pages: (0..1000).collect(), released, threads: 1 };
        let pager = Pager { policy: active_inactive::SPEC.name.into(), read_ahead: 0, evict_batch: BATCH_MAX };
        let plans = [pager.with(500 * PAGE as u64)];
        let of = |levels| pass(&process, &pager, &plans, 1.0, levels, &mut |_| {}).unwrap().remove(0);
        let (all, by_use) = (of(1), of(4));
        assert_eq!(by_use.iter().copied().sum::<Counts>(), all[0]);
        let loads: Vec<f64> = by_use.iter().map(|c| c.device_reads() + c.memory_loads).collect();
        assert_eq!(loads[..3], [0.0; 3]);
        assert!(loads[3] >= 1000.0, "{loads:?}");
        assert_eq!(by_use[0].zero_fills, 250.0 + 100.0);
    }
}
