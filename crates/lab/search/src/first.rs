//! One look at the trace before the search: the pages that it touches, and its string of references, shortened.

use std::path::Path;

use coldframe_drivers::shorten::Short;
use coldframe_drivers::Stream;
use coldframe_store::Provenance;

use super::question::Question;
use coldframe_experiment::error::ExperimentError;
use coldframe_experiment::progress::Progress;
use coldframe_experiment::resolve;
use coldframe_experiment::settings::Settings;
use coldframe_experiment::string;
use coldframe_experiment::systems::front_end::FrontKey;

/// Most references of a shortened string: they take 4 bytes each, so 1 GiB.
const MOST: usize = 1 << 28;

/// The smallest size that is tried by default, in percent of the footprint.
pub(super) const SMALLEST: f64 = 1.0;

pub(super) struct First {
    /// Pages that the trace touches behind the front end.
    pub footprint: usize,
    /// Its string behind the front end; `None`: it is too long, or it has several tasks.
    pub short: Option<Short>,
}

impl First {
    pub(super) fn look(
        path: &Path,
        question: &Question,
        settings: &Settings,
        trace: &Provenance,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<First, ExperimentError> {
        let one = Settings { ram: None, frames: Some(1), ..settings.clone() };
        let front = resolve::string(&one, trace, &mut |_| Ok(1))?.front;
        let sized = settings.ram.is_some() || settings.frames.is_some();
        let mut shorten = |least: usize| {
            let allowed = question.limits.ram.map_or(usize::MAX, |ram| (ram.0 >> front.page_shift) as usize);
            string::shortened(path, &front, (least.min(allowed).max(1), MOST), progress)
        };
        if sees_all(&front) && !sized && !question.is_of_tasks() {
            if let Some(short) = shorten(smallest(pages_at_least(trace, &front)))? {
                return Ok(First { footprint: some(path, short.pages_touched())?, short: Some(short) });
            }
        }
        let footprint = some(path, string::pages_touched(path, &front)?)?;
        if question.is_of_tasks() {
            return Ok(First { footprint, short: None });
        }
        let least = match sized {
            true => resolve::string(settings, trace, &mut |_| Ok(footprint))?.frames,
            false => smallest(footprint),
        };
        Ok(First { footprint, short: shorten(least)? })
    }
}

/// Whether the front end shows every page that the trace touches.
fn sees_all(front: &FrontKey) -> bool {
    front.front_end.is_none() && front.stream == Stream::Both && front.skip == 0 && front.accesses.is_none()
}

/// The header counts granules of 1 KiB, and a page has at most this many of them.
fn pages_at_least(trace: &Provenance, front: &FrontKey) -> usize {
    (trace.pages_1KiB >> front.page_shift.saturating_sub(10)) as usize
}

fn some(path: &Path, pages: usize) -> Result<usize, ExperimentError> {
    if pages == 0 {
        let reason = "no reference is left after stream and front_end.paged; give another stream";
        return Err(ExperimentError::Unfit { path: path.display().to_string(), reason: reason.into() });
    }
    Ok(pages)
}

/// The smallest size for this many touched pages.
fn smallest(pages: usize) -> usize {
    (pages as f64 * SMALLEST / 100.0).max(1.0).round() as usize
}
