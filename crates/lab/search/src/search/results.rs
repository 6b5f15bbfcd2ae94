//! The results of the search so far: the best configuration, the limits that bind, the front.

use std::cmp::Reverse;

use coldframe_sheet::quantity::human_size;

use super::{Noted, Tried};
use crate::cost::Cost;
use crate::limits::misses;
use crate::point::Point;
use crate::Candidate;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::string::Known;

impl<'a> Tried<'a> {
    pub(super) fn candidate(&self, family: usize, point: &Point, whole: &Point) -> Candidate {
        let cost = Cost::new(point, whole, &self.families[family].sheet, self.question.swap_area);
        let misses = misses(&self.question.limits, point, &cost);
        Candidate { point: point.clone(), cost, misses }
    }

    pub(super) fn candidates_of(&self, family: usize) -> Vec<Candidate> {
        let points = &self.families[family].points;
        let Some(whole) = points.get(&self.whole) else { return Vec::new() };
        let tried = points.iter().filter(|(frames, _)| self.only.is_none_or(|only| only == **frames));
        tried.map(|(_, point)| self.candidate(family, point, whole)).collect()
    }

    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> + use<'_, 'a> {
        (0..self.families.len()).flat_map(|family| self.candidates_of(family))
    }

    /// Refuses a limit for which no configuration has a price.
    pub(super) fn refuse_unknown(&self) -> Result<(), ExperimentError> {
        let limits = &self.question.limits;
        let all: Vec<Candidate> = self.candidates().collect();
        let lacks = |has_limit: bool, of: &dyn Fn(&Cost) -> Option<String>| {
            let reasons = all.iter().map(|c| of(&c.cost)).collect::<Option<Vec<_>>>().filter(|_| has_limit)?;
            reasons.into_iter().next()
        };
        for (field, reason) in [
            ("max-slowdown", lacks(limits.slowdown.is_some(), &|c| c.slowdown.clone().err())),
            ("max-p99", lacks(limits.p99.is_some(), &|c| c.p99.clone().err())),
            ("min-life", lacks(limits.life.is_some(), &|c| c.life.clone().err())),
            ("max-energy", lacks(limits.energy.is_some(), &|c| c.energy.clone().err())),
        ] {
            if let Some(reason) = reason {
                return Err(ExperimentError::setting(field, format!("cannot be judged: {reason}")));
            }
        }
        Ok(())
    }

    /// The smallest RAM that meets the limits; of equal ones, the one with the least time in faults.
    pub(crate) fn best(&self) -> Option<Candidate> {
        let meets = self.candidates().filter(|candidate| candidate.misses.is_empty());
        meets.min_by_key(|candidate| (candidate.point.frames, candidate.point.paging))
    }

    /// The run of the best configuration with the cost of each page: noted before, or from one more run.
    pub(crate) fn run_of(&mut self, best: &Candidate) -> Result<Noted, ExperimentError> {
        if let Some(at) = self.noted.iter().position(|(point, _)| *point == best.point) {
            return Ok(self.noted.swap_remove(at).1);
        }
        let known = Known { path: self.path, facts: self.facts, short: None, rows_max: u64::MAX };
        let settings = best.point.config.settings()?;
        Ok(known.page_costs(&[settings], self.progress)?.remove(0))
    }

    /// The next smaller size that was tried with the same family.
    pub(crate) fn below(&self, best: &Candidate) -> Option<Candidate> {
        let family = |family: &usize| self.families[*family].points.values().any(|point| *point == best.point);
        let family = (0..self.families.len()).find(family)?;
        self.candidates_of(family)
            .into_iter()
            .filter(|c| c.point.frames < best.point.frames)
            .max_by_key(|c| c.point.frames)
    }

    /// The missed limits of the candidate that misses fewest limits; of equal ones, the one with the most allowed
    /// RAM. No RAM can help there.
    pub(crate) fn binds(&self) -> Vec<String> {
        let too_large = |c: &Candidate| self.question.limits.ram.is_some_and(|limit| c.point.ram() > limit);
        let rank = |c: &Candidate| (too_large(c), c.misses.len(), Reverse(c.point.frames), c.point.paging);
        let Some(closest) = self.candidates().min_by_key(rank) else { return Vec::new() };
        let with = format!("with {} and {}", human_size(closest.point.ram().0), closest.point.family());
        closest.misses.iter().map(|miss| format!("{miss} ({with})")).collect()
    }

    /// The least slowdown for each RAM, as long as more RAM means less slowdown.
    pub(crate) fn front(&self) -> Vec<Candidate> {
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

    /// Everything tried with each family, RAM ascending.
    pub(crate) fn curves(&self) -> Vec<Vec<Candidate>> {
        (0..self.families.len()).map(|family| self.candidates_of(family)).filter(|all| !all.is_empty()).collect()
    }
}
