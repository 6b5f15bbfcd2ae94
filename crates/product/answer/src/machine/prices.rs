//! What a page costs on this machine that comes back from the kernel's swap.

use crate::machine::costs::{page_read, swap_costs, swap_is_compressed, SwapCosts};
use coldframe_kernel::SwapKind;

use coldframe_sheet::sheet::machine::Spread;

use crate::error::AnswerError;
use crate::machine::sheet;
use crate::run::program::default_backing;

/// What a page costs that comes back from the kernel's swap and pushes another one out.
#[derive(Clone, PartialEq, Debug)]
pub struct Price {
    /// A page at a random place.
    pub fault: Spread,
    /// A page of a stream.
    pub ahead: Spread,
    /// The kind of swap, for people.
    pub kind: String,
    /// Whether pages that left take RAM, compressed.
    pub compressed: bool,
    /// What swap `coldframe run` has to make, since none is on.
    pub make: Option<String>,
    /// The source, for people.
    pub source: String,
}

/// The prices of a page from the kernel's swap, at least one: without those of [`swaps`] it is that of the disk.
pub fn prices() -> Result<Vec<Price>, AnswerError> {
    let (backing, known) = (default_backing(), swaps());
    if !known.is_empty() {
        return Ok(known);
    }
    let fault = page_read(&backing)?;
    let source = format!("the disk of {}, measured now", backing.display());
    let make = swap_is_compressed().is_none().then(swap_file);
    Ok(vec![Price { fault, ahead: fault, kind: "disk".into(), compressed: false, make, source }])
}

/// A swap file that the user can make.
pub(crate) fn swap_file() -> String {
    default_backing().join("coldframe.swap").display().to_string()
}

/// The prices of a page from the swap that is on: as this machine is known, or measured now. If none is on, those of
/// each swap that `coldframe doctor --calibrate --swap` has measured.
pub fn swaps() -> Vec<Price> {
    let (sheet, on) = (sheet::known(&default_backing()), swap_is_compressed());
    let cost = |key: &'static str| sheet.as_ref().and_then(|sheet| sheet.cost(key).ok());
    let price = |compressed, fault, ahead, when: &str| {
        let zram = SwapKind::Zram.to_string();
        let (kind, new) = if compressed { (zram.clone(), zram) } else { ("disk".into(), swap_file()) };
        let source = format!("the kernel's swap on {kind}, {when}");
        Price { fault, ahead, kind, compressed, make: on.is_none().then_some(new), source }
    };
    let stored = |compressed: bool| {
        let [fault, ahead] = match compressed {
            true => [cost("live.zram_fault")?; 2],
            false => [cost("live.swap_fault")?, cost("live.swap_ahead")?],
        };
        Some(price(compressed, fault, ahead, "from `coldframe doctor --calibrate`"))
    };
    let now = || {
        let SwapCosts { compressed, fault, ahead } = swap_costs()?;
        Some(price(compressed, fault, ahead, "measured now"))
    };
    match on {
        Some(compressed) => stored(compressed).or_else(now).into_iter().collect(),
        None => [true, false].into_iter().filter_map(stored).collect(),
    }
}
