//! A swap area with a backing: slots that are rewritten in place, or a log of erase blocks on the backing.

use coldframe_core::{Bytes, Ps, SlotsConfig};
use coldframe_lane::CollectTimes;
use coldframe_sheet::quantity::show_bytes;
use coldframe_sheet::sheet;

use super::log::{self, LogArea};
use super::{bad, names, size, FrontKey, Pages};
use crate::error::ExperimentError;
use crate::in_force::{Area as Shown, Backed};
use crate::phone::{self, MachineParameters};
use crate::settings::{Settings, Swap};
use crate::swap_prices::{prices, PhoneArea, PhonePrices};
use crate::systems::backing::{self, Backing, Compression, PAGE};
use crate::systems::{self, System};

#[derive(Clone, Debug)]
pub struct BackedArea {
    pub area: PhoneArea,
    /// The cost of pages to and from it on this phone.
    pub prices: PhonePrices,
    pub phone: MachineParameters,
    /// References after which a page that is read in its slot is copied.
    pub reads_max: Option<u32>,
    /// The log on the backing; `None`: slots are rewritten in place.
    pub log: Option<LogArea>,
    pub settings: Backed,
}

/// The area for the settings. `device`: another device than the backing's own.
pub(super) fn backed(
    settings: &Settings,
    device: Option<&str>,
    front: &FrontKey,
    touched: Pages<'_>,
) -> Result<BackedArea, ExperimentError> {
    let backing = with_ratio(settings, backing(settings)?)?;
    let size = match &settings.swap.size {
        Some(text) => size::bytes(size::pages("swap.size", text, front, touched)?, front),
        None => systems::of_foreground().1.area,
    };
    let device = device.filter(|_| backing.compression.is_none());
    in_area(settings, PhoneArea::of(&backing, device, size)?, phone(settings)?)
}

pub(super) fn in_area(
    settings: &Settings,
    area: PhoneArea,
    phone: MachineParameters,
) -> Result<BackedArea, ExperimentError> {
    let s = &settings.swap;
    let prices = prices(&area, &phone)?;
    let log = log(s, &area, &prices)?;
    let settings = Backed {
        backing: area.name.into(),
        device: area.device.clone(),
        size: show_bytes(area.size),
        direct_read: area.direct_read,
        reads_max: s.reads_max,
        takes_ram: (area.takes > Bytes::ZERO).then(|| show_bytes(area.takes)),
        ratio: area.ratio().filter(|_| area.takes > Bytes::ZERO),
    };
    Ok(BackedArea { area, prices, phone, reads_max: s.reads_max, log, settings })
}

impl BackedArea {
    /// The area in force; `log`: that on the device, if there is one.
    pub(super) fn shown(&self, log: Option<&LogArea>) -> Shown {
        let log = log.or(self.log.as_ref()).map(|log| log.settings.clone()).unwrap_or_default();
        Shown { backed: Some(self.settings.clone()), log }
    }

    /// Slots that are rewritten in place; this many pages of files are kept in RAM.
    pub(super) fn slots(&self, files_min: usize) -> SlotsConfig {
        SlotsConfig { slots: (self.area.size.0 / PAGE.0) as usize, files_min }
    }

    /// The frames that a full area leaves, of `frames`.
    pub(super) fn leaves(&self, frames: usize) -> Result<usize, ExperimentError> {
        match (frames as u64).saturating_sub(self.area.takes.0.div_ceil(PAGE.0)) {
            0 => {
                let ram = show_bytes(Bytes(frames as u64 * PAGE.0));
                let (takes, size) = (show_bytes(self.area.takes), show_bytes(self.area.size));
                let reason = format!(
                    "{size} of pages take {takes} of the {ram} of RAM when they are compressed, and leave no frame; \
                     give less"
                );
                bad("swap.size", reason)
            }
            left => Ok(left as usize),
        }
    }
}

/// Whether settings or system need such an area.
pub(super) fn is_wanted(settings: &Settings) -> bool {
    settings.swap.backing.is_some() || systems::of(settings).is_some_and(System::has_backing)
}

/// A collection's copies take the same way as any page, in both directions; only a card erases.
fn log(s: &Swap, area: &PhoneArea, prices: &PhonePrices) -> Result<Option<LogArea>, ExperimentError> {
    log::refuse_kernel(s)?;
    let has_log_settings =
        s.layout.is_some() || s.collector.is_some() || s.blocks.is_some() || s.slots_per_block.is_some();
    if !has_log_settings || area.size == Bytes::ZERO {
        return Ok(None);
    }
    if s.blocks.is_some() && s.size.is_some() {
        return bad("swap.size", "give swap.blocks or swap.size, not both: they mean the same thing");
    }
    let collect = match prices.swap_on_card {
        true => CollectTimes {
            copy: prices.card.load + prices.card.program.unwrap_or(Ps::ZERO),
            erase: sheet::find(&area.device)?.erase().unwrap_or(Ps::ZERO),
        },
        false => CollectTimes { copy: prices.swap_in + prices.swap_out, erase: Ps::ZERO },
    };
    log::under_engine(s, collect, Some(area.size.0 / log::block_bytes(s))).map(Some)
}

fn backing(settings: &Settings) -> Result<&'static Backing, ExperimentError> {
    names::backing(settings.swap.backing.as_deref().unwrap_or_else(|| backing::default_of(systems::of(settings))))
}

/// A backing. If it compresses, it gets the ratio of the settings.
fn with_ratio(settings: &Settings, backing: &Backing) -> Result<Backing, ExperimentError> {
    const FIELD: &str = "swap.ratio";
    let Some(text) = &settings.swap.ratio else { return Ok(*backing) };
    let Some(compression) = backing.compression else {
        return bad(FIELD, format!("is for backings that compress, and {} does not; leave it out", backing.name));
    };
    let ratio = text.parse::<f64>().ok().filter(|ratio| (1.0..=1000.0).contains(ratio));
    let Some(ratio) = ratio else {
        return bad(FIELD, format!("`{text}` is not known; give how many times smaller a page becomes, 1 to 1000"));
    };
    Ok(Backing { compression: Some(Compression { ratio, ..compression }), ..*backing })
}

fn phone(settings: &Settings) -> Result<MachineParameters, ExperimentError> {
    settings.swap.phone.as_ref().map_or_else(|| Ok(phone::shipped()), |path| phone::read(path))
}
