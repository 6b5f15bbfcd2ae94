//! The search. Every family (all that is varied, without RAM) runs over a grid of sizes. Then finer sizes are tried
//! between the largest that misses a limit and the smallest that meets all.
//!
//! If all families over the whole trace are too much work, they are first tried on a shortened string ([`short`]);
//! only those near the answer run over the whole trace. If a shortened string is not possible, they are halved on
//! prefixes of the trace: each prefix is twice as long and has half as many families, namely those that meet the
//! limits with the least RAM so far. Both may drop the best family. OPT bounds the loss: no policy meets the slowdown
//! with less RAM than OPT's bound.

use std::collections::BTreeMap;
use std::path::Path;

use coldframe_core::Bytes;
use coldframe_drivers::shorten::Short;
use coldframe_lane::page_table::LANES;
use coldframe_sheet::quantity::show_bytes;
use coldframe_sheet::Sheet;
use coldframe_store::{Provenance, Reader};

use crate::first::{First, SMALLEST};
use crate::point::Point;
use crate::question::Question;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::progress::Progress;
use coldframe_experiment::resolve;
use coldframe_experiment::result::RunResult;
use coldframe_experiment::settings::{Settings, Swap};
use coldframe_experiment::sim_result::Trace;
use coldframe_experiment::string::{Known, PlacedCost};
use coldframe_experiment::{systems, tasks};

mod bound;
mod results;
mod short;

pub use bound::Bound;

/// Sizes of the grid: as many as one page table has lanes.
const GRID: usize = 16;
/// A size is found if the next smaller size that misses is closer than one part in this many.
const FINE: usize = 100;
/// Rows times configurations that are simulated in full: some tens of seconds on two cores.
const WORK_MAX: u64 = 4_000_000_000;
/// The same for several tasks. They cannot share a pass through the trace, since each configuration has its own order
/// of references.
const WORK_MAX_TASKS: u64 = 1_000_000_000;

/// Rows and families of a step of the halving.
pub type Remaining = (u64, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortened {
    pub references: u64,
    /// Families left after it.
    pub families: usize,
}

#[derive(Clone, Debug)]
pub struct Searched {
    pub families: usize,
    /// Configurations priced on the whole trace.
    pub configurations: usize,
    /// Rows and families of each round of the halving; empty: every family ran over the whole trace.
    pub rounds: Vec<Remaining>,
    /// The shortened string, if all families were tried on one, and the families that then ran over the whole trace.
    pub short: Option<Shortened>,
    /// The bound by OPT for all policies; the error says why it is not known.
    pub bound: Result<Bound, String>,
}

struct Family {
    settings: Settings,
    sheet: Sheet,
    /// By frames, on the whole trace.
    points: BTreeMap<usize, Point>,
}

pub(super) struct Tried<'a> {
    path: &'a Path,
    facts: &'a Trace,
    trace: Provenance,
    rows: u64,
    short: Option<Short>,
    /// OPT's true faults by size, once they are known.
    opt: Vec<(usize, u64)>,
    /// A size that OPT rules out, or 0: no smaller size is tried.
    hopeless: usize,
    /// Whether the points are those of the shortened string.
    playing: bool,
    /// The run of the best configuration so far, if the costs of its pages were noted.
    noted: Vec<(Point, Noted)>,
    question: &'a Question,
    families: Vec<Family>,
    /// Pages that the trace touches: with as many frames no page is evicted.
    whole: usize,
    /// The only size to try, if the settings have one.
    only: Option<usize>,
    page: Bytes,
    progress: &'a mut dyn FnMut(Progress),
}

/// A family's number and frames.
type Job = (usize, usize);
type Noted = (RunResult, Vec<PlacedCost>);

/// The most pages times configurations whose costs are noted during a run. Each takes a page's cost, 16 bytes, and
/// its place: some 200 MiB in all.
const NOTED_MAX: usize = 1 << 22;

impl<'a> Tried<'a> {
    pub(super) fn new(
        (path, facts): (&'a Path, &'a Trace),
        question: &'a Question,
        families: Vec<Settings>,
        first: First,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Tried<'a>, ExperimentError> {
        let First { footprint: whole, short } = first;
        let reader = Reader::open(path)?;
        let (trace, rows) = (reader.provenance().clone(), reader.rows());
        let own = resolve::string(&with_frames(&families[0], whole), &trace, &mut |_| Ok(whole))?;
        let page = Bytes(1 << own.front.page_shift);
        if let Some(limit) = question.limits.ram.filter(|limit| limit.0 < page.0) {
            let reason = format!("{} is less than one page of {}", show_bytes(limit), show_bytes(page));
            return Err(ExperimentError::setting("max-ram", reason));
        }
        let sized = families[0].ram.is_some() || families[0].frames.is_some();
        let only = sized.then(|| resolve::string(&families[0], &trace, &mut |_| Ok(whole))).transpose()?;
        let only = only.map(|plan| plan.frames);
        let family = |settings: Settings| -> Result<Family, ExperimentError> {
            let plain = Settings { swap: Swap::default(), ..with_frames(&settings, whole) };
            let plan = resolve::string(&plain, &trace, &mut |_| Ok(whole))?;
            if plan.lane().is_none() {
                let reason =
                    "is an oracle, which knows the future and has no cost; give policies that a machine can run";
                return Err(ExperimentError::setting("policy", reason));
            }
            let sheet = plan.sheet;
            let settings = with_swap(settings, question, &sheet, page)?;
            resolve::string(&with_frames(&settings, whole), &trace, &mut |_| Ok(whole))?;
            Ok(Family { sheet, settings, points: BTreeMap::new() })
        };
        let families = families.into_iter().map(family).collect::<Result<Vec<_>, _>>()?;
        let (opt, hopeless, playing, noted) = (Vec::new(), 0, false, Vec::new());
        Ok(Tried {
            path,
            facts,
            trace,
            rows,
            short,
            opt,
            hopeless,
            playing,
            noted,
            question,
            families,
            whole,
            only,
            page,
            progress,
        })
    }

    pub(super) fn page(&self) -> Bytes {
        self.page
    }

    pub(super) fn search(&mut self) -> Result<Searched, ExperimentError> {
        let sizes = self.sizes();
        let all: Vec<usize> = (0..self.families.len()).collect();
        let (mut short, mut rounds) = (None, Vec::new());
        let families = match self.is_too_much(all.len(), &sizes) {
            false => self.everywhere(all, &sizes)?,
            true if self.short_serves()? => {
                let (families, shortened) = self.search_short(&sizes)?;
                short = Some(shortened);
                families
            }
            true => {
                let families;
                (families, rounds) = self.halve(all, &sizes, &|s, left| s.is_too_much(left, &sizes))?;
                self.everywhere(families, &sizes)?
            }
        };
        self.refuse_unknown()?;
        self.refine(&families)?;
        Ok(Searched {
            families: self.families.len(),
            configurations: self.families.iter().map(|f| f.points.len()).sum(),
            rounds,
            short,
            bound: self.bound(&sizes)?,
        })
    }

    fn everywhere(&mut self, families: Vec<usize>, sizes: &[usize]) -> Result<Vec<usize>, ExperimentError> {
        self.try_all(families.iter().flat_map(|f| sizes.iter().map(|s| (*f, *s))).collect())?;
        Ok(families)
    }

    /// Tries finer sizes until the smallest that meets the limits is found.
    fn refine(&mut self, families: &[usize]) -> Result<(), ExperimentError> {
        loop {
            let best = self.best().map(|best| best.point.frames);
            let finer: Vec<Job> = families.iter().flat_map(|family| self.finer(*family, best)).collect();
            if self.try_all(finer)? == 0 {
                return Ok(());
            }
        }
    }

    /// Whether this many families over the whole trace are too much work.
    fn is_too_much(&self, families: usize, sizes: &[usize]) -> bool {
        let own = if self.question.is_of_tasks() { WORK_MAX_TASKS } else { WORK_MAX };
        let max = u128::from(self.question.work_max.unwrap_or(own));
        families > 1 && families as u128 * sizes.len() as u128 * u128::from(self.rows) > max
    }

    /// From one percent of the footprint to all of it, each about a third larger than the one before.
    fn sizes(&self) -> Vec<usize> {
        if let Some(only) = self.only {
            return if only < self.whole { vec![only, self.whole] } else { vec![self.whole, only] };
        }
        let low = (self.whole as f64 * SMALLEST / 100.0).max(1.0);
        let step = (self.whole as f64 / low).powf(1.0 / (GRID - 1) as f64);
        let mut sizes: Vec<usize> = (0..GRID).map(|i| (low * step.powi(i as i32)).round() as usize).collect();
        sizes.extend(self.largest_allowed());
        sizes.push(self.whole);
        sizes.retain(|size| *size <= self.whole);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn largest_allowed(&self) -> Option<usize> {
        let ram = self.question.limits.ram?;
        Some((ram.0 / self.page.0) as usize).filter(|frames| *frames > 0)
    }

    /// Reduces the families on prefixes of the trace.
    fn halve(
        &mut self,
        mut families: Vec<usize>,
        sizes: &[usize],
        too_much: &dyn Fn(&Self, usize) -> bool,
    ) -> Result<(Vec<usize>, Vec<Remaining>), ExperimentError> {
        let mut rounds = Vec::new();
        let mut rows = self.rows >> families.len().ilog2();
        while too_much(self, families.len()) {
            rows = (rows * 2).clamp(1, self.rows);
            rounds.push((rows, families.len()));
            let jobs: Vec<Job> = families.iter().flat_map(|f| sizes.iter().map(|s| (*f, *s))).collect();
            let points = self.points(&jobs, rows)?;
            let mut scored: Vec<_> = families.iter().map(|f| (self.score(*f, &points), *f)).collect();
            scored.sort_unstable();
            families = scored[..families.len().div_ceil(2)].iter().map(|(_, family)| *family).collect();
        }
        Ok((families, rounds))
    }

    /// The least frames that meet the limits on a prefix, then the total time in faults at all sizes.
    fn score(&self, family: usize, points: &[(Job, Point)]) -> (usize, u128) {
        let own = || points.iter().filter(|((f, _), _)| *f == family);
        let Some((_, whole)) = own().find(|((_, frames), _)| *frames == self.whole) else {
            return (usize::MAX, u128::MAX);
        };
        let meets = |point: &&(Job, Point)| self.candidate(family, &point.1, whole).misses.is_empty();
        let least = own().filter(meets).map(|((_, frames), _)| *frames).min().unwrap_or(usize::MAX);
        (least, own().map(|(_, point)| u128::from(point.paging.0)).sum())
    }

    /// Tries jobs that have not been tried on the whole trace yet. Returns their number.
    fn try_all(&mut self, mut jobs: Vec<Job>) -> Result<usize, ExperimentError> {
        jobs.retain(|(family, frames)| !self.families[*family].points.contains_key(frames));
        let points = self.points(&jobs, u64::MAX)?;
        let new = points.len();
        for ((family, frames), point) in points {
            self.families[family].points.insert(frames, point);
        }
        let best = self.best();
        self.noted.retain(|(point, _)| best.as_ref().is_some_and(|best| best.point == *point));
        Ok(new)
    }

    /// The result of each job on the first `rows` rows, simulated all at once. Sizes that a
    /// policy's parameters do not fit are left out.
    fn points(&mut self, jobs: &[Job], rows: u64) -> Result<Vec<(Job, Point)>, ExperimentError> {
        let mut todo = Vec::new();
        for job in jobs {
            let settings = with_frames(&self.families[job.0].settings, job.1);
            match resolve::string(&settings, &self.trace, &mut |_| Ok(self.whole)) {
                Err(ExperimentError::Policy(_)) if job.1 < self.whole => continue,
                plan => plan?,
            };
            todo.push((*job, settings));
        }
        let (jobs, settings): (Vec<Job>, Vec<Settings>) = dealt(todo).into_iter().unzip();
        if settings.is_empty() {
            return Ok(Vec::new());
        }
        Ok(jobs.into_iter().zip(self.simulate(&settings, rows)?).collect())
    }

    fn simulate(&mut self, settings: &[Settings], rows: u64) -> Result<Vec<Point>, ExperimentError> {
        if self.question.is_of_tasks() {
            let outcomes = tasks::run_prefix(self.path, settings, rows, None, self.progress)?;
            return Ok(outcomes.iter().map(Point::of_tasks).collect());
        }
        let short = self.played().cloned();
        let known = Known { path: self.path, facts: self.facts, short: short.as_ref(), rows_max: rows };
        if self.playing || rows < self.rows || settings.len().saturating_mul(self.whole) > NOTED_MAX {
            let results = known.run(settings, self.progress)?;
            return Ok(results.iter().filter_map(Point::new).collect());
        }
        let all = known.page_costs(settings, self.progress)?;
        let points: Vec<Point> = all.iter().filter_map(|(result, _)| Point::new(result)).collect();
        self.noted.extend(points.iter().cloned().zip(all));
        Ok(points)
    }

    /// The shortened string, while it is in use.
    fn played(&self) -> Option<&Short> {
        self.short.as_ref().filter(|_| self.playing)
    }

    /// Sizes between the largest that misses and the smallest that meets, below the best of all families.
    fn finer(&self, family: usize, best: Option<usize>) -> Vec<Job> {
        if self.only.is_some() {
            return Vec::new();
        }
        let all = self.candidates_of(family);
        let frames = |meets: bool| all.iter().filter(move |c| c.misses.is_empty() == meets).map(|c| c.point.frames);
        let Some(meets) = frames(true).min() else { return Vec::new() };
        let misses = frames(false).filter(|frames| *frames < meets).max().unwrap_or(0).max(self.hopeless);
        let best = best.map_or(meets, |best| best.min(meets));
        if best <= misses + 1 || best - misses <= best / FINE {
            return Vec::new();
        }
        let between = best - misses;
        let at = |i: usize| misses + (between * i).div_ceil(GRID);
        let mut sizes: Vec<usize> = (1..GRID).map(at).filter(|size| *size < best).collect();
        sizes.dedup();
        sizes.into_iter().map(|size| (family, size)).collect()
    }
}

/// Distributes jobs. Neighbours share a page table and a thread, so they get sizes of all kinds: small sizes fault
/// most.
fn dealt(mut todo: Vec<(Job, Settings)>) -> Vec<(Job, Settings)> {
    let hands = todo.len().div_ceil(LANES).max(rayon::current_num_threads()).max(1);
    todo.sort_by_key(|((family, frames), ..)| (*frames, *family));
    let mut numbered: Vec<_> = todo.into_iter().enumerate().map(|(i, job)| (i % hands, job)).collect();
    numbered.sort_by_key(|(hand, _)| *hand);
    numbered.into_iter().map(|(_, job)| job).collect()
}

fn with_frames(settings: &Settings, frames: usize) -> Settings {
    Settings { ram: None, frames: Some(frames as u64), ..settings.clone() }
}

/// Sets the swap area's blocks from its size, if one is simulated. A block has as many slots as the device's block
/// has pages.
fn with_swap(
    mut settings: Settings,
    question: &Question,
    sheet: &Sheet,
    page: Bytes,
) -> Result<Settings, ExperimentError> {
    let (Some(area), Some(_)) = (question.swap_area, &settings.swap.collector) else { return Ok(settings) };
    let of_sheet = sheet.block().map_or(systems::of_log().1.slots_per_block, |block| (block.0 / page.0).max(1) as u32);
    let slots = settings.swap.slots_per_block.unwrap_or(of_sheet);
    settings.swap.slots_per_block = Some(slots);
    let blocks = area.0 / (page.0 * u64::from(slots));
    if blocks == 0 {
        let reason = format!("is less than one block of {slots} pages");
        return Err(ExperimentError::setting("swap-area", reason));
    }
    settings.swap.blocks = Some(blocks.to_string());
    Ok(settings)
}
