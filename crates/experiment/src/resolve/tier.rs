//! The compressed tier of one string of references.

use coldframe_core::tier::TABLE_BYTES;
use coldframe_core::{Bytes, Ps, TierConfig};
use coldframe_lane::{DeviceTimes, Sizes, TierTimes};
use coldframe_sheet::quantity::show_time;
use serde_json::{json, Value};

use crate::error::ExperimentError;
use crate::settings::{Settings, Tier};
use crate::systems::backing::{self, Compression};

/// A tier with everything resolved.
#[derive(Clone, Debug)]
pub struct TierPlan {
    /// Its bounds and prices.
    pub config: TierConfig,
    /// The processor's times for it.
    pub times: TierTimes,
    /// The settings, with defaults filled in.
    settings: Tier,
}

impl TierPlan {
    /// The settings in force, in the form of `-c`.
    pub fn shown(&self) -> Value {
        let mut shown = serde_json::to_value(&self.settings).expect("settings are plain data");
        shown["compress"] = json!(show_time(self.times.compress));
        shown["decompress"] = json!(show_time(self.times.decompress));
        shown
    }
}

/// Frames that the pool never gets: this part of all, with a lower limit. Guesses, as are the next two.
const LEFT_PART: usize = 8;
const LEFT_MIN: usize = 16;
/// As long as nothing is known of the run, the border starts at this part.
const FIRST_PART: usize = 2;
/// The largest compressed page that is kept, in quarters of a page.
const KEPT_QUARTERS: u32 = 3;

/// The tier for the settings.
///
/// # Errors
/// An unknown name, a ratio below 1, sizes that cannot be read, too little RAM.
pub(super) fn tier(
    settings: &Settings,
    frames: usize,
    page: Bytes,
    device: DeviceTimes,
    buffers: u32,
) -> Result<Option<TierPlan>, ExperimentError> {
    let asked = &settings.tier;
    let bad = |field: &'static str, reason: String| Err(ExperimentError::setting(field, reason));
    let name = match asked.name.as_deref() {
        None if *asked == Tier::default() => return Ok(None),
        Some("none") => return Ok(None),
        None => return bad("tier.name", "is missing; give lz4 or zstd".into()),
        Some(name) => name,
    };
    let Some(compression) = backing::compressor(name) else {
        return bad("tier.name", format!("`{name}` is not known; give none, lz4 or zstd"));
    };
    if !(256..=16384).contains(&page.0) {
        return bad("page", format!("is {} bytes; pages of 256 to 16384 bytes can be compressed", page.0));
    }
    let left = (frames / LEFT_PART).max(LEFT_MIN + buffers as usize);
    if left + coldframe_core::tier::BIN_FRAMES > frames {
        return bad("tier.name", format!("needs {} frames at least, and there are {frames}", left + 4));
    }
    let mut shown = Tier { name: Some(name.into()), ..asked.clone() };
    let sizes = sizes(&mut shown, compression, page)?;
    // As measured for pages of 4 KiB.
    let scaled = |time: Ps| Ps((time.0 * page.0).div_ceil(4096));
    let (compress, decompress) = (scaled(compression.compress), scaled(compression.decompress));
    let times = TierTimes { compress, decompress, sizes };
    let ns = |time: Ps| (time.0 / 1000).clamp(1, u64::from(u32::MAX)) as u32;
    let frames_max = frames - left;
    let config = TierConfig {
        frames_max,
        frames_first: frames_max / FIRST_PART,
        page_bytes: page.0 as u32,
        size_max: page.0 as u32 * KEPT_QUARTERS / 4,
        load_price: ns(device.load),
        pool_price: ns(times.compress + times.decompress),
        table_bytes: TABLE_BYTES,
    };
    Ok(Some(TierPlan { config, times, settings: shown }))
}

/// The same ratio for all pages.
fn sizes(shown: &mut Tier, compression: Compression, page: Bytes) -> Result<Sizes, ExperimentError> {
    let text = shown.ratio.get_or_insert_with(|| format!("{}", compression.ratio));
    let ratio = text.parse::<f64>().ok().filter(|ratio| *ratio >= 1.0 && *ratio <= 4096.0);
    let ratio = ratio
        .ok_or_else(|| ExperimentError::setting("tier.ratio", format!("`{text}` is not known; give 1 to 4096")))?;
    Ok(Sizes::all((page.0 as f64 / ratio).round() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceTimes = DeviceTimes { load: Ps(80_000_000), program: None };

    fn of(sets: &[&str]) -> Result<Option<TierPlan>, String> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let settings = Settings::read(None, &sets).unwrap();
        tier(&settings, 1000, Bytes(4096), DEVICE, 2).map_err(|e| e.to_string())
    }

    #[test]
    fn a_tier_is_resolved_with_its_prices_and_what_cannot_be_is_named() {
        assert!(of(&[]).unwrap().is_none() && of(&["tier.name=none"]).unwrap().is_none());
        let plan = of(&["tier.name=lz4", "tier.ratio=4"]).unwrap().unwrap();
        // An eighth stays with the frames; half of the rest is the pool's at first; at most three quarters of a page
        // are kept.
        assert_eq!((plan.config.frames_max, plan.config.frames_first, plan.config.size_max), (875, 437, 3072));
        assert_eq!((plan.config.load_price, plan.times.sizes.clone()), (80_000, Sizes::all(1024)));
        for (sets, said) in [
            (&["tier.name=lzo"][..], "lz4 or zstd"),
            (&["tier.name=lz4+zstd"], "lz4 or zstd"),
            (&["tier.ratio=2"], "tier.name"),
            (&["tier.name=lz4", "tier.ratio=0.5"], "1 to 4096"),
        ] {
            let error = of(sets).unwrap_err();
            assert!(error.contains(said), "{sets:?}: {error}");
        }
    }
}
