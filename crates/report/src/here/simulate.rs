//! Runs a trace through the engines of many sizes of RAM at once, on all cores.

use coldframe_core::PageId;
use coldframe_sim::numbering::Numbering;
use coldframe_sim::page_table::{PageTable, LANES};
use coldframe_sim::PageRef;
use rayon::prelude::*;

use super::machine::{Counts, Lane, Near};
use super::rows::{Process, Rows};
use super::Pager;
use crate::error::ReportError;

/// The least frames of a lane. With fewer, an engine has no room for a batch of victims and the pages in flight.
const FRAMES_LEAST: usize = 8;

/// The counts of a run for each of these sizes of RAM, in bytes; every process has this much.
///
/// # Errors
/// The pager's configuration is not possible.
pub fn simulate(rows: &Rows, pager: &Pager, sizes: &[u64]) -> Result<Vec<Counts>, ReportError> {
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    // Each group has sizes far apart, so that groups take about the same time: small sizes fault most.
    let groups = sizes.len().div_ceil(LANES).max(rayon::current_num_threads()).min(sizes.len());
    let jobs: Vec<(usize, &Process)> =
        rows.processes.iter().flat_map(|process| (0..groups).map(move |group| (group, process))).collect();
    let done: Result<Vec<Vec<(usize, Counts)>>, ReportError> = jobs
        .par_iter()
        .map(|(group, process)| {
            let mine: Vec<usize> = (*group..sizes.len()).step_by(groups).collect();
            let frames: Vec<usize> = mine.iter().map(|i| frames(pager, sizes[*i], rows.sample)).collect();
            Ok(mine.into_iter().zip(pass(process, pager, &frames, rows.sample)?).collect())
        })
        .collect();
    let mut all = vec![Counts::default(); sizes.len()];
    done?.into_iter().flatten().for_each(|(i, counts)| all[i] += counts.times(1.0 / rows.sample));
    Ok(all)
}

/// The engine's frames for a share of the pages.
fn frames(pager: &Pager, bytes: u64, sample: f64) -> usize {
    ((pager.engine_frames(bytes) as f64 * sample).round() as usize).max(FRAMES_LEAST)
}

/// The neighbours of a process's pages.
struct Places<'a> {
    pages: &'a [u64],
    numbers: Numbering,
}

impl Near for Places<'_> {
    fn place(&self, page: PageId) -> u64 {
        self.pages[page.index()]
    }

    fn find(&self, place: u64) -> Option<PageId> {
        self.numbers.find(0, place).map(PageId)
    }
}

fn pass(process: &Process, pager: &Pager, frames: &[usize], sample: f64) -> Result<Vec<Counts>, ReportError> {
    let pages = process.pages.len();
    let mut numbers = Numbering::new(0);
    process.pages.iter().for_each(|page| _ = numbers.number(0, *page));
    let near = Places { pages: &process.pages, numbers };
    let mut table = PageTable::new(pages, frames.len());
    let masks = table.masks();
    let made = frames.iter().enumerate().map(|(i, frames)| Lane::new(pager, *frames, i as u32, pages, sample));
    let mut lanes = made.collect::<Result<Vec<Lane>, ReportError>>()?;
    let mut released = process.released.iter().peekable();
    for (i, row) in process.rows.iter().enumerate() {
        while let Some((_, gone)) = released.next_if(|(at, _)| *at <= i) {
            for lane in &mut lanes {
                gone.iter().for_each(|page| lane.release(&mut table, PageId(*page)));
            }
        }
        let (page, writing) = ((row >> 1) as usize, row & 1 == 1);
        let kind = PageRef::new(page as u32, writing, false).kind();
        if table.hit(&masks, page, kind) {
            continue;
        }
        let mut missing = table.miss(&masks, page, kind);
        while missing != 0 {
            let lane = missing.trailing_zeros();
            missing &= missing - 1;
            lanes[lane as usize].fault(&mut table, PageId(page as u32), writing, &near);
        }
    }
    Ok(lanes.iter().map(Lane::counts).collect())
}
