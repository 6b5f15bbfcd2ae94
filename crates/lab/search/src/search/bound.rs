//! A lower bound for all policies: OPT's misses, each with the shortest load.

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::oracle::opt_curve;

use super::{with_frames, Tried};
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::resolve::{self, Plan};

/// OPT next to the search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// RAM with which not even OPT meets the slowdown, on the device that loads fastest; 0: there is no such size.
    pub ram: Bytes,
    /// OPT's true faults at each size, RAM ascending.
    pub faults: Vec<(Bytes, u64)>,
}

impl<'a> Tried<'a> {
    /// The largest size at which not even OPT meets the slowdown: each of its faults takes at least a load.
    pub(super) fn bound(&mut self, sizes: &[usize]) -> Result<Result<Bound, String>, ExperimentError> {
        let Some(limit) = self.question.limits.slowdown else { return Ok(Err("no slowdown is asked for".into())) };
        if self.question.is_of_tasks() {
            return Ok(Err("the order of the tasks' references depends on who waits for what".into()));
        }
        let best = self.best().map_or(usize::MAX, |best| best.point.frames);
        let Some(point) = self.candidates().next().map(|c| c.point) else { return Ok(Err("nothing was tried".into())) };
        if point.quiet > 0 {
            return Ok(Err("the front end hides references that OPT would see".into()));
        }
        if self.opt_curve(sizes)?.is_none() {
            return Ok(Err("OPT needs the whole string, whose working sets are too many to keep it".into()));
        }
        let missing = self.opt_misses(limit, point.own)?;
        let ram = |frames: usize| Bytes(frames as u64 * self.page.0);
        let bound = missing.into_iter().filter(|frames| *frames < best).max().map(ram).unwrap_or_default();
        Ok(Ok(Bound { ram: bound, faults: self.opt.iter().map(|(frames, faults)| (ram(*frames), *faults)).collect() }))
    }

    /// OPT's true faults at these sizes, exact; frames include buffers that hold pages. `None`: the string is too long.
    pub(super) fn opt_curve(&mut self, sizes: &[usize]) -> Result<Option<&[(usize, u64)]>, ExperimentError> {
        let Some(short) = &self.short else { return Ok(None) };
        if self.opt.is_empty() {
            let mut sizes: Vec<usize> = sizes.iter().copied().filter(|size| *size >= short.exact_from()).collect();
            sizes.sort_unstable();
            let buffers = self.buffers_held()?;
            let with: Vec<usize> = sizes.iter().map(|size| size + buffers).collect();
            let faults = opt_curve::misses(short.references(), &with);
            self.opt = sizes.into_iter().zip(faults).collect();
        }
        Ok(Some(&self.opt))
    }

    /// The sizes of the curve at which OPT misses the slowdown, for a program with this own time.
    pub(super) fn opt_misses(&self, limit: f64, own: Option<Ps>) -> Result<Vec<usize>, ExperimentError> {
        let (Some(own), Some(load)) = (own, self.fastest_load()?) else { return Ok(Vec::new()) };
        let misses = |faults: u64| 100.0 * (load.0 as f64 * faults as f64) / own.0.max(1) as f64 > limit;
        let cold = self.whole as u64;
        let missing = self.opt.iter().filter(|(_, faults)| misses(faults.saturating_sub(cold)));
        Ok(missing.map(|(frames, _)| *frames).collect())
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = Result<Plan, ExperimentError>> + use<'_, 'a> {
        self.families
            .iter()
            .map(|f| resolve::string(&with_frames(&f.settings, self.whole), &self.trace, &mut |_| Ok(self.whole)))
    }

    fn fastest_load(&self) -> Result<Option<Ps>, ExperimentError> {
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        Ok(plans.iter().filter_map(|plan| Some(plan.lane()?.device.load)).min())
    }

    /// Buffers that hold pages, in addition to the frames.
    fn buffers_held(&self) -> Result<usize, ExperimentError> {
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        let holders = plans.iter().filter_map(Plan::lane).filter(|lane| lane.handler.needs_xip);
        Ok(holders.map(|lane| lane.caps.buffers as usize).max().unwrap_or(0))
    }
}
