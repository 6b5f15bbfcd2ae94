//! Sizes: bytes, or a part of what the trace touches.

use coldframe_core::Bytes;
use coldframe_sheet::quantity::{self, show_bytes};

use super::{bad, FrontKey, Pages};
use crate::error::ExperimentError;
use crate::settings::Settings;

/// Frames and slots have numbers of 29 bits; the simulator can hold this many.
const PAGES_MAX: u64 = 1 << 26;

/// Whole pages of a size such as `64KiB` or `50%`; at least one.
pub(super) fn pages(field: &str, text: &str, front: &FrontKey, touched: Pages<'_>) -> Result<u64, ExperimentError> {
    let pages = match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if percent > 0.0 && percent <= 1000.0 => {
            ((all(front, touched(front)?) as f64 * percent / 100.0).round() as u64).max(1)
        }
        Some(_) => {
            let reason = format!("`{text}` cannot be read; give a size such as 64KiB, or 1% to 1000% of the footprint");
            return bad(field, reason);
        }
        None => {
            let size = quantity::bytes(text).map_err(|e| ExperimentError::quantity(field, e))?;
            if size < front.page() {
                let (size, page) = (show_bytes(size), show_bytes(front.page()));
                return bad(field, format!("{size} is smaller than one page of {page}; give at least {page}"));
            }
            size.0 / front.page().0
        }
    };
    within(field, pages)
}

fn within(field: &str, pages: u64) -> Result<u64, ExperimentError> {
    match pages {
        0..=PAGES_MAX => Ok(pages),
        _ => {
            let reason = format!(
                "{pages} pages are more than the {PAGES_MAX} that the simulator holds; give less, or larger pages"
            );
            bad(field, reason)
        }
    }
}

/// The frames of the settings: from RAM, or their number.
pub(super) fn frames(settings: &Settings, front: &FrontKey, touched: Pages<'_>) -> Result<usize, ExperimentError> {
    let frames = match (&settings.ram, settings.frames) {
        (Some(_), Some(_)) => return bad("ram", "give ram or frames, not both: they mean the same thing"),
        (None, Some(0)) => return bad("frames", "is 0; give at least 1"),
        (None, Some(frames)) => within("frames", frames)?,
        (Some(text), None) => pages("ram", text, front, touched)?,
        (None, None) => return bad("ram", "is not given; give --ram SIZE, such as 64KiB or 50%, or --frames N"),
    };
    Ok(frames as usize)
}

/// All pages, from those of a sample.
pub(crate) fn all(front: &FrontKey, pages: usize) -> usize {
    front.sample.map_or(pages, |sample| (pages as f64 / sample.share()).round() as usize)
}

pub(super) fn bytes(pages: u64, front: &FrontKey) -> Bytes {
    Bytes(pages * front.page().0)
}
