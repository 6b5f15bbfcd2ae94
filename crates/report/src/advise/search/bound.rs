//! What no policy whatever can do better: OPT's misses, each with the shortest load.

use coldframe_core::{Bytes, Ps};

use super::{with_frames, Tried};
use crate::error::ReportError;
use crate::experiment;
use crate::resolve::{self, Plan};
use crate::settings::Settings;

/// Rows times sizes for which OPT is computed: it keeps the string and takes some hundred nanoseconds for each row, however often the row's
/// page is referenced in turn.
const OPT_MAX: u64 = 400_000_000;

/// OPT beside the search.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    /// RAM with which not even OPT meets the slowdown, on the device that loads fastest; zero: there was none among the sizes.
    pub ram: Bytes,
    /// OPT's true faults at each size that it was computed for, RAM ascending.
    pub faults: Vec<(Bytes, u64)>,
}

impl<'a> Tried<'a> {
    /// The largest of the sizes at which not even OPT meets the slowdown: each of its faults takes a load at least.
    pub(super) fn bound(&mut self, sizes: &[usize]) -> Result<Result<Bound, String>, ReportError> {
        let Some(limit) = self.question.limits.slowdown else { return Ok(Err("no slowdown is asked for".into())) };
        if self.question.is_of_tasks() {
            return Ok(Err("the order of the tasks' references depends on who waits for what".into()));
        }
        let below: Vec<usize> = match self.best() {
            Some(best) => sizes.iter().copied().filter(|size| *size < best.point.frames).collect(),
            None => sizes.to_vec(),
        };
        let Some(point) = self.candidates().next().map(|c| c.point) else { return Ok(Err("nothing was tried".into())) };
        if point.quiet > 0 {
            return Ok(Err("the front end hides references that OPT would see".into()));
        }
        if self.rows.saturating_mul(below.len() as u64) > OPT_MAX {
            return Ok(Err(format!("OPT at {} sizes is too much work for {} rows", below.len(), self.rows)));
        }
        let (Some(own), Some(load), false) = (point.own, self.fastest_load()?, below.is_empty()) else {
            return Ok(Ok(Bound::default()));
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
        let ram = |frames: usize| Bytes(frames as u64 * self.page.0);
        let faults: Vec<_> = below.iter().zip(&results).map(|(frames, r)| (ram(*frames), r.true_faults())).collect();
        let missing = faults.iter().filter(|(_, faults)| misses(faults.saturating_sub(cold)));
        Ok(Ok(Bound { ram: missing.map(|(ram, _)| *ram).max().unwrap_or_default(), faults }))
    }

    fn plans(&self) -> impl Iterator<Item = Result<Plan, ReportError>> + use<'_, 'a> {
        self.families
            .iter()
            .map(|f| resolve::string(&with_frames(&f.settings, self.whole), &self.trace, &mut |_| Ok(self.whole)))
    }

    fn fastest_load(&self) -> Result<Option<Ps>, ReportError> {
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        Ok(plans.iter().filter_map(|plan| Some(plan.lane()?.device.load)).min())
    }

    /// Buffers that hold pages beside the frames.
    fn buffers_held(&self) -> Result<usize, ReportError> {
        let plans = self.plans().collect::<Result<Vec<_>, _>>()?;
        let holders = plans.iter().filter_map(Plan::lane).filter(|lane| lane.handler.needs_xip);
        Ok(holders.map(|lane| lane.caps.buffers as usize).max().unwrap_or(0))
    }
}
