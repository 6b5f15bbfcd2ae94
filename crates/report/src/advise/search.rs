//! The search: every family (all that is varied but RAM) over a grid of sizes, then finer between the largest size that misses a limit
//! and the smallest that meets all.
//!
//! Where all families over the whole trace are too much work, they are halved on prefixes of it: a prefix twice as long for half as many
//! families, those that meet the limits with the least RAM so far. What that may have dropped is bounded by OPT: no policy whatever
//! meets the slowdown with less RAM than the bound.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use coldframe_core::fault::handler;
use coldframe_core::{Bytes, Ps};
use coldframe_device::{quantity, sheet, Sheet};
use coldframe_trace::{Provenance, Reader};

use crate::advise::cache::{self, Cache};
use crate::advise::cost::Cost;
use crate::advise::point::Point;
use crate::advise::question::{Limits, Question};
use crate::advise::Candidate;
use crate::error::ReportError;
use crate::experiment::{self, Progress};
use crate::plan::{self, Plan};
use crate::settings::Settings;

/// Sizes of the grid: as many as one page table has lanes.
const GRID: usize = 16;
/// The smallest size of the grid, in percent of the footprint.
const SMALLEST: f64 = 1.0;
/// A size is found when the next smaller one that misses is closer than one part in so many.
const FINE: usize = 100;
/// Rows times configurations simulated in full: some tens of seconds on two cores.
const WORK_MAX: u64 = 4_000_000_000;
/// References times sizes for which OPT is computed: it keeps the string and takes some hundred nanoseconds for each.
const OPT_MAX: u64 = 400_000_000;

/// Rows and families of a step of the halving.
pub type Rung = (u64, usize);

/// How it was searched.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Families in all.
    pub families: usize,
    /// Configurations priced on the whole trace.
    pub configurations: usize,
    /// Of all that were asked for, those that the cache had.
    pub cached: usize,
    /// Rows and families of each rung of the halving; empty: every family ran over the whole trace.
    pub rungs: Vec<Rung>,
    /// RAM with which not even OPT meets the slowdown, on the device that loads fastest; zero: there was none among the sizes.
    /// The error says why it is not known.
    pub bound: Result<Bytes, String>,
}

struct Family {
    settings: Settings,
    sheet: Sheet,
    /// By frames, on the whole trace.
    points: BTreeMap<usize, Point>,
}

/// Everything tried so far.
pub(super) struct Tried<'a> {
    path: &'a Path,
    trace: Provenance,
    rows: u64,
    question: &'a Question,
    families: Vec<Family>,
    /// Pages that the trace touches: with so many frames nothing is evicted.
    whole: usize,
    /// The only size to be tried, if the settings have one.
    only: Option<usize>,
    page: Bytes,
    cache: &'a mut Cache,
    progress: &'a mut dyn FnMut(Progress),
}

/// A family's number and frames.
type Job = (usize, usize);

impl<'a> Tried<'a> {
    pub(super) fn new(
        path: &'a Path,
        question: &'a Question,
        families: Vec<Settings>,
        whole: usize,
        cache: &'a mut Cache,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Tried<'a>, ReportError> {
        let reader = Reader::open(path)?;
        let (trace, rows) = (reader.provenance().clone(), reader.rows());
        let own = plan::resolve(&with_frames(&families[0], whole), &trace, &mut |_| Ok(whole))?;
        let page = Bytes(1 << own.front.page_shift);
        let sized = families[0].ram.is_some() || families[0].frames.is_some();
        let only = sized.then(|| plan::resolve(&families[0], &trace, &mut |_| Ok(whole))).transpose()?;
        let only = only.map(|plan| plan.frames);
        let family = |settings: Settings| -> Result<Family, ReportError> {
            let settings = with_swap(settings, question, page)?;
            let plan = plan::resolve(&with_frames(&settings, whole), &trace, &mut |_| Ok(whole))?;
            let Some(device) = plan.config["device"].as_str() else {
                let reason =
                    "is an oracle, which knows the future and has no cost; give policies that a machine can run";
                return Err(ReportError::setting("policy", reason));
            };
            Ok(Family { sheet: sheet::find(device)?, settings, points: BTreeMap::new() })
        };
        let families = families.into_iter().map(family).collect::<Result<Vec<_>, _>>()?;
        Ok(Tried { path, trace, rows, question, families, whole, only, page, cache, progress })
    }

    pub(super) fn page(&self) -> Bytes {
        self.page
    }

    pub(super) fn search(&mut self) -> Result<Searched, ReportError> {
        let sizes = self.sizes();
        let (families, rungs) = self.halve(&sizes)?;
        self.try_all(families.iter().flat_map(|f| sizes.iter().map(|s| (*f, *s))).collect())?;
        self.refuse_unknown()?;
        loop {
            let finer: Vec<Job> = families.iter().flat_map(|family| self.finer(*family)).collect();
            if self.try_all(finer)? == 0 {
                break;
            }
        }
        Ok(Searched {
            families: self.families.len(),
            configurations: self.families.iter().map(|f| f.points.len()).sum(),
            cached: self.cache.found(),
            rungs,
            bound: self.bound(&sizes)?,
        })
    }

    /// From one percent of the footprint to all of it, each about a third more than the one before.
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

    /// The frames of `--max-ram`.
    fn largest_allowed(&self) -> Option<usize> {
        let ram = self.question.limits.ram?;
        Some((ram.0 / self.page.0) as usize).filter(|frames| *frames > 0)
    }

    /// The families worth the whole trace.
    fn halve(&mut self, sizes: &[usize]) -> Result<(Vec<usize>, Vec<Rung>), ReportError> {
        let mut families: Vec<usize> = (0..self.families.len()).collect();
        let max = self.question.work_max.unwrap_or(WORK_MAX) as u128;
        let work = |families: usize, rows: u64| families as u128 * sizes.len() as u128 * u128::from(rows);
        let mut rungs = Vec::new();
        let mut rows = self.rows >> families.len().ilog2();
        while families.len() > 1 && work(families.len(), self.rows) > max {
            rows = (rows * 2).clamp(1, self.rows);
            rungs.push((rows, families.len()));
            let jobs: Vec<Job> = families.iter().flat_map(|f| sizes.iter().map(|s| (*f, *s))).collect();
            let points = self.points(&jobs, rows)?;
            let mut scored: Vec<_> = families.iter().map(|f| (self.score(*f, &points), *f)).collect();
            scored.sort_unstable();
            families = scored[..families.len().div_ceil(2)].iter().map(|(_, family)| *family).collect();
        }
        Ok((families, rungs))
    }

    /// The least frames that meet the limits on a prefix, then the time in faults at all sizes together.
    fn score(&self, family: usize, points: &[(Job, Point)]) -> (usize, u128) {
        let own = || points.iter().filter(|((f, _), _)| *f == family);
        let Some((_, whole)) = own().find(|((_, frames), _)| *frames == self.whole) else {
            return (usize::MAX, u128::MAX);
        };
        let meets = |point: &&(Job, Point)| self.candidate(family, &point.1, whole).misses.is_empty();
        let least = own().filter(meets).map(|((_, frames), _)| *frames).min().unwrap_or(usize::MAX);
        (least, own().map(|(_, point)| u128::from(point.paging.0)).sum())
    }

    /// Tries what has not been tried on the whole trace yet; returns how many that were.
    fn try_all(&mut self, mut jobs: Vec<Job>) -> Result<usize, ReportError> {
        jobs.retain(|(family, frames)| !self.families[*family].points.contains_key(frames));
        let points = self.points(&jobs, u64::MAX)?;
        let new = points.len();
        for ((family, frames), point) in points {
            self.families[family].points.insert(frames, point);
        }
        Ok(new)
    }

    /// What each job does on the first `rows` rows, from the cache or simulated all at once. A size that a policy's parameters do not fit
    /// is left out.
    fn points(&mut self, jobs: &[Job], rows: u64) -> Result<Vec<(Job, Point)>, ReportError> {
        let mut known = Vec::new();
        let (mut todo, mut keys) = (Vec::new(), Vec::new());
        for job in jobs {
            let settings = with_frames(&self.families[job.0].settings, job.1);
            let plan = match plan::resolve(&settings, &self.trace, &mut |_| Ok(self.whole)) {
                Err(ReportError::Policy(_)) if job.1 < self.whole => continue,
                plan => plan?,
            };
            let key = cache::key(&plan, rows);
            match self.cache.get(&key) {
                Some(point) => known.push((*job, point)),
                None => {
                    todo.push((*job, settings));
                    keys.push(key);
                }
            }
        }
        let settings: Vec<Settings> = todo.iter().map(|(_, settings)| settings.clone()).collect();
        let results = match settings.is_empty() {
            true => Vec::new(),
            false => experiment::run_prefix(self.path, &settings, rows, self.progress)?,
        };
        let points: Vec<Point> = results.iter().filter_map(Point::new).collect();
        self.cache.put(keys.into_iter().zip(points.iter().cloned()).collect())?;
        known.extend(todo.into_iter().map(|(job, _)| job).zip(points));
        Ok(known)
    }

    fn candidate(&self, family: usize, point: &Point, whole: &Point) -> Candidate {
        let cost = Cost::new(point, whole, &self.families[family].sheet, self.question.swap_area);
        let misses = misses(&self.question.limits, point, &cost);
        Candidate { point: point.clone(), cost, misses }
    }

    fn candidates_of(&self, family: usize) -> Vec<Candidate> {
        let points = &self.families[family].points;
        let Some(whole) = points.get(&self.whole) else { return Vec::new() };
        let tried = points.iter().filter(|(frames, _)| self.only.is_none_or(|only| only == **frames));
        tried.map(|(_, point)| self.candidate(family, point, whole)).collect()
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate> + use<'_, 'a> {
        (0..self.families.len()).flat_map(|family| self.candidates_of(family))
    }

    /// A limit on what no configuration has a price for is refused.
    fn refuse_unknown(&self) -> Result<(), ReportError> {
        let limits = &self.question.limits;
        let all: Vec<Candidate> = self.candidates().collect();
        let lacks = |asked: bool, of: &dyn Fn(&Cost) -> Option<String>| {
            let reasons = all.iter().map(|c| of(&c.cost)).collect::<Option<Vec<_>>>().filter(|_| asked)?;
            reasons.into_iter().next()
        };
        for (field, reason) in [
            ("max-slowdown", lacks(limits.slowdown.is_some(), &|c| c.slowdown.clone().err())),
            ("max-p99", lacks(limits.p99.is_some(), &|c| c.p99.clone().err())),
            ("min-life", lacks(limits.life.is_some(), &|c| c.life.clone().err())),
            ("max-energy", lacks(limits.energy.is_some(), &|c| c.energy.clone().err())),
        ] {
            if let Some(reason) = reason {
                return Err(ReportError::setting(field, format!("cannot be judged: {reason}")));
            }
        }
        Ok(())
    }

    /// Sizes between the largest that misses and the smallest that meets, below the best of all families.
    fn finer(&self, family: usize) -> Vec<Job> {
        if self.only.is_some() {
            return Vec::new();
        }
        let all = self.candidates_of(family);
        let frames = |meets: bool| all.iter().filter(move |c| c.misses.is_empty() == meets).map(|c| c.point.frames);
        let Some(meets) = frames(true).min() else { return Vec::new() };
        let misses = frames(false).filter(|frames| *frames < meets).max().unwrap_or(0);
        let best = self.best().map_or(meets, |best| best.point.frames.min(meets));
        if best <= misses + 1 || best - misses <= best / FINE {
            return Vec::new();
        }
        let between = best - misses;
        let at = |i: usize| misses + (between * i).div_ceil(GRID);
        let mut sizes: Vec<usize> = (1..GRID).map(at).filter(|size| *size < best).collect();
        sizes.dedup();
        sizes.into_iter().map(|size| (family, size)).collect()
    }

    /// The smallest RAM that meets the limits; of equal ones the one with the least time in faults.
    pub(super) fn best(&self) -> Option<Candidate> {
        let meets = self.candidates().filter(|candidate| candidate.misses.is_empty());
        meets.min_by_key(|candidate| (candidate.point.frames, candidate.point.paging))
    }

    /// The next smaller size that was tried with the same family.
    pub(super) fn below(&self, best: &Candidate) -> Option<Candidate> {
        let family = |family: &usize| self.families[*family].points.values().any(|point| *point == best.point);
        let family = (0..self.families.len()).find(family)?;
        self.candidates_of(family)
            .into_iter()
            .filter(|c| c.point.frames < best.point.frames)
            .max_by_key(|c| c.point.frames)
    }

    /// The misses of the candidate that misses fewest limits, the one with the most RAM that is allowed first: what no RAM mends.
    pub(super) fn binds(&self) -> Vec<String> {
        let too_large = |c: &Candidate| self.question.limits.ram.is_some_and(|limit| c.point.ram() > limit);
        let rank = |c: &Candidate| (too_large(c), c.misses.len(), Reverse(c.point.frames), c.point.paging);
        let Some(closest) = self.candidates().min_by_key(rank) else { return Vec::new() };
        let with = format!("with {} and {}", crate::advise::words::ram(closest.point.ram()), closest.point.family());
        closest.misses.iter().map(|miss| format!("{miss} ({with})")).collect()
    }

    /// The least slowdown for each RAM, as far as more RAM has less.
    pub(super) fn front(&self) -> Vec<Candidate> {
        let mut all: Vec<(f64, Candidate)> =
            self.candidates().filter_map(|c| Some((c.cost.slowdown.clone().ok()?.high, c))).collect();
        all.sort_by(|(a, x), (b, y)| x.point.frames.cmp(&y.point.frames).then(a.total_cmp(b)));
        let mut least = f64::INFINITY;
        all.retain(|(slowdown, _)| {
            let better = *slowdown < least;
            least = least.min(*slowdown);
            better
        });
        all.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// The largest of the sizes at which not even OPT meets the slowdown: each of its faults takes a load at least.
    fn bound(&mut self, sizes: &[usize]) -> Result<Result<Bytes, String>, ReportError> {
        let Some(limit) = self.question.limits.slowdown else { return Ok(Err("no slowdown is asked for".into())) };
        let below: Vec<usize> = match self.best() {
            Some(best) => sizes.iter().copied().filter(|size| *size < best.point.frames).collect(),
            None => sizes.to_vec(),
        };
        let Some(point) = self.candidates().next().map(|c| c.point) else { return Ok(Err("nothing was tried".into())) };
        if point.quiet > 0 {
            return Ok(Err("the front end hides references that OPT would see".into()));
        }
        if point.references.saturating_mul(below.len() as u64) > OPT_MAX {
            return Ok(Err(format!(
                "OPT at {} sizes is too much work for {} references",
                below.len(),
                point.references
            )));
        }
        let (Some(own), Some(load), false) = (point.own, self.fastest_load()?, below.is_empty()) else {
            return Ok(Ok(Bytes(0)));
        };
        let buffers = self.buffers_held()?;
        let opt = |frames: &usize| Settings {
            policy: Some("opt".into()),
            ..with_frames(&self.families[0].settings, frames + buffers)
        };
        let settings: Vec<Settings> = below.iter().map(opt).collect();
        let results = experiment::run(self.path, &settings, self.progress)?;
        let misses = |faults: u64| 100.0 * (load.0 as f64 * faults as f64) / own.0.max(1) as f64 > limit;
        let cold = self.whole as u64;
        let frames = below.iter().zip(&results).filter(|(_, r)| misses(r.true_faults().saturating_sub(cold)));
        Ok(Ok(Bytes(frames.map(|(frames, _)| *frames as u64 * self.page.0).max().unwrap_or(0))))
    }

    fn plans(&self) -> impl Iterator<Item = Result<Plan, ReportError>> + use<'_, 'a> {
        self.families
            .iter()
            .map(|f| plan::resolve(&with_frames(&f.settings, self.whole), &self.trace, &mut |_| Ok(self.whole)))
    }

    fn fastest_load(&self) -> Result<Option<Ps>, ReportError> {
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        let load = |plan: &Plan| quantity::time(plan.config["time"]["load_stopover"].as_str()?).ok();
        Ok(plans.iter().filter_map(load).min())
    }

    /// Buffers that hold pages beside the frames.
    fn buffers_held(&self) -> Result<usize, ReportError> {
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        let held = |plan: &Plan| {
            let handler = handler::find(plan.config["handler"].as_str()?)?;
            handler.needs_xip.then(|| plan.config["machine"]["buffers"].as_u64().unwrap_or(0) as usize)
        };
        Ok(plans.iter().filter_map(held).max().unwrap_or(0))
    }
}

fn with_frames(settings: &Settings, frames: usize) -> Settings {
    Settings { ram: None, frames: Some(frames as u64), ..settings.clone() }
}

/// The swap area's blocks by its size, where one is simulated.
fn with_swap(mut settings: Settings, question: &Question, page: Bytes) -> Result<Settings, ReportError> {
    let (Some(area), Some(_)) = (question.swap_area, &settings.swap.collector) else { return Ok(settings) };
    let slots = settings.swap.slots_per_block.unwrap_or(coldframe_systems::lobi::SLOTS_PER_BLOCK);
    let blocks = area.0 / (page.0 * u64::from(slots));
    if blocks == 0 {
        let reason = format!("is less than one block of {slots} pages");
        return Err(ReportError::setting("swap-area", reason));
    }
    settings.swap.blocks = Some(blocks.to_string());
    Ok(settings)
}

/// The limits that a price misses, or that it cannot be held against.
fn misses(limits: &Limits, point: &Point, cost: &Cost) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(limit) = limits.slowdown {
        match &cost.slowdown {
            Ok(found) if found.high <= limit => {}
            Ok(found) => all.push(format!("slowdown is {:.1} %, above {limit} %", found.high)),
            Err(reason) => all.push(format!("slowdown is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.p99 {
        let shown = crate::table::human_time;
        match &cost.p99 {
            Ok(found) if *found <= limit => {}
            Ok(found) => all.push(format!("p99 of a fault is {}, above {}", shown(*found), shown(limit))),
            Err(reason) => all.push(format!("p99 of a fault is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.life {
        match &cost.life {
            Ok(None) => {}
            Ok(Some(found)) if found.low >= limit => {}
            Ok(Some(found)) => all.push(format!("life is {:.3} years, below {limit} years", found.low)),
            Err(reason) => all.push(format!("life is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.energy {
        let limit = limit.0 as f64 / 1e12;
        match &cost.energy {
            Ok(found) if found.high <= limit => {}
            Ok(found) => all.push(format!("energy is {:.3} mJ, above {:.3} mJ", found.high * 1e3, limit * 1e3)),
            Err(reason) => all.push(format!("energy is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.ram.filter(|limit| point.ram() > *limit) {
        let shown = crate::advise::words::ram;
        all.push(format!("RAM is {}, above {}", shown(point.ram()), shown(limit)));
    }
    all
}
