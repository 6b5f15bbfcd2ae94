//! The search on a shortened string: which families and sizes are worth the whole trace.
//!
//! ```text
//!   all families   x  sizes that OPT does not rule out    on the shortened string, then finer; the results are dropped
//!   those near the best  x  sizes around what each needs  on the whole trace
//!   the best alone       x  all sizes                     on the whole trace, for the curve
//! ```
//!
//! Policies behave nearly the same on a shortened string, which has a tenth of the references or fewer; see
//! `drivers/src/shorten.rs` for what it loses. No number of the answer comes from it. If it misses the best family, OPT
//! bounds the loss, as in any search here that does not try everything.

use coldframe_drivers::run::IdlePrices;

use super::{Job, Shortened, Tried};
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::systems::front_end::FrontKey;

/// Families that run over the whole trace: those that need at most one part in `NEAR` more than the best, with an
/// upper limit.
const NEAR: usize = 50;
const FAMILIES_MAX: usize = 4;
/// Sizes around a family's need: this many steps up and down, each one part in that many of it. The finest step is half
/// of what the search leaves open at its end.
const STEPS: usize = 4;
const STEP: usize = 200;
/// Limit of the faults that are simulated on the shortened string, in all. One takes some half a microsecond, so this
/// takes some tens of seconds on two cores.
const FAULTS_MAX: u64 = 50_000_000;

impl<'a> Tried<'a> {
    /// Whether a shortened string can represent the trace for all families: they need the same front end (prices
    /// aside), and nothing that counts single references.
    pub(super) fn short_serves(&self) -> Result<bool, ExperimentError> {
        let Some(short) = &self.short else { return Ok(false) };
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        let unpriced = |front: &FrontKey| FrontKey { idle: IdlePrices::default(), ..front.clone() };
        let same = plans.iter().all(|plan| unpriced(&plan.front) == unpriced(&plans[0].front));
        let reads = plans.iter().filter_map(|plan| plan.lane()).any(|lane| lane.handler.needs_xip);
        Ok(same && !reads && short.counts().quiet == 0 && !self.question.is_of_tasks())
    }

    /// Tries on the whole trace what is near the answer on the shortened string, and the best family at all sizes.
    /// Returns the families.
    pub(super) fn search_short(&mut self, sizes: &[usize]) -> Result<(Vec<usize>, Shortened), ExperimentError> {
        self.playing = true;
        let looked = self.look(sizes);
        self.playing = false;
        self.families.iter_mut().for_each(|family| family.points.clear());
        let (families, jobs) = looked?;
        self.try_all(jobs)?;
        let references = self.short.as_ref().map_or(0, |short| short.references().len() as u64);
        let shortened = Shortened { references, families: families.len() };
        Ok((families, shortened))
    }

    /// The families to run over the whole trace, the best first, and the sizes to try.
    fn look(&mut self, sizes: &[usize]) -> Result<(Vec<usize>, Vec<Job>), ExperimentError> {
        let all: Vec<usize> = (0..self.families.len()).collect();
        let all = self.everywhere(all, &[self.whole])?;
        let hopeful = self.hopeful(sizes)?;
        let faults: u64 = self.opt.iter().filter(|(size, _)| hopeful.contains(size)).map(|(_, faults)| faults).sum();
        let too_much = |_: &Self, left: usize| left > 1 && left as u64 * faults > FAULTS_MAX;
        let (left, _) = self.halve(all, &hopeful, &too_much)?;
        let left = self.everywhere(left, &hopeful)?;
        self.refuse_unknown()?;
        let left = self.refine_half(left)?;
        let needs = self.needs(&left);
        let families: Vec<usize> = needs.iter().map(|(family, _)| *family).collect();
        let mut jobs: Vec<Job> = sizes.iter().map(|size| (families[0], *size)).collect();
        for (family, need) in needs {
            let around =
                need.iter().flat_map(|need| (0..=2 * STEPS).map(move |i| need - STEPS * need / STEP + i * need / STEP));
            let around = around.filter(|size| (1..=self.whole).contains(size));
            jobs.extend(
                hopeful.first().copied().into_iter().chain([self.whole]).chain(around).map(|size| (family, size)),
            );
        }
        jobs.sort_unstable();
        jobs.dedup();
        Ok((families, jobs))
    }

    /// Tries finer sizes, each time with the better half of the families. Returns those that are left.
    fn refine_half(&mut self, mut left: Vec<usize>) -> Result<Vec<usize>, ExperimentError> {
        loop {
            let best = self.best().map(|best| best.point.frames);
            let finer: Vec<Job> = left.iter().flat_map(|family| self.finer(*family, best)).collect();
            if self.try_all(finer)? == 0 {
                return Ok(left);
            }
            left.sort_by_cached_key(|family| self.rank(*family));
            left.truncate(left.len().div_ceil(2).max(FAMILIES_MAX));
        }
    }

    /// The least frames that meet the limits; then the time in faults with the most frames that do not.
    fn rank(&self, family: usize) -> (usize, u64) {
        let all = self.candidates_of(family);
        let need = all.iter().filter(|c| c.misses.is_empty()).map(|c| c.point.frames).min().unwrap_or(usize::MAX);
        let below = all.iter().filter(|c| c.point.frames < need).max_by_key(|c| c.point.frames);
        (need, below.map_or(0, |c| c.point.paging.0))
    }

    /// The sizes at which OPT meets the slowdown; all sizes if there is no such limit.
    fn hopeful(&mut self, sizes: &[usize]) -> Result<Vec<usize>, ExperimentError> {
        let own = self.candidates().next().and_then(|candidate| candidate.point.own);
        self.opt_curve(sizes)?;
        if let Some(limit) = self.question.limits.slowdown {
            self.hopeless = self.opt_misses(limit, own)?.into_iter().max().unwrap_or(0);
        }
        Ok(sizes.iter().copied().filter(|size| *size > self.hopeless || *size == self.whole).collect())
    }

    /// The families that need least, with their need, the best first. If none meets the limits, the one that costs
    /// least.
    fn needs(&self, families: &[usize]) -> Vec<(usize, Option<usize>)> {
        let need = |family: &usize| {
            let meets = self.candidates_of(*family).into_iter().filter(|candidate| candidate.misses.is_empty());
            let least = meets.min_by_key(|candidate| (candidate.point.frames, candidate.point.paging))?;
            Some((least.point.frames, least.point.paging, *family))
        };
        let mut needs: Vec<_> = families.iter().filter_map(need).collect();
        needs.sort_unstable();
        let Some(best) = needs.first().map(|need| need.0) else {
            let paging = |family: &usize| -> u128 {
                self.candidates_of(*family).iter().map(|candidate| u128::from(candidate.point.paging.0)).sum()
            };
            return families.iter().copied().min_by_key(paging).map(|family| (family, None)).into_iter().collect();
        };
        needs.retain(|need| need.0 <= best + best / NEAR);
        needs.truncate(FAMILIES_MAX);
        needs.into_iter().map(|(frames, _, family)| (family, Some(frames))).collect()
    }
}
