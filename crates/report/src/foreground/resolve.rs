//! From settings to a plan.

use crate::systems::backing::{self, Backing, Compression};
use crate::systems::drswap::{PAGE, SWAP_MIB};
use crate::systems::lobi;
use crate::systems::{self, Driver};
use coldframe_core::fault::handler;
use coldframe_core::prefetch::LIST_MAX;
use coldframe_core::{Bytes, Ps, SlotsConfig};
use coldframe_device::quantity::{self, show_bytes};
use coldframe_device::sheet;
use coldframe_sim::foreground::Prefetch;
use coldframe_sim::machine::Route;
use coldframe_sim::{CollectTimes, ForegroundConfig, ForegroundPrices};
use coldframe_trace::journal::SwapHead;
use serde_json::{json, Value};

use super::prices::{prices, Area, BreakEven};
use crate::error::{nearest, ReportError};
use crate::plan::{failures, find_handler, find_policy};
use crate::settings::{ReadsMax, Settings, Swap};
use crate::swap;
use crate::workload::{self, MachineParameters};

/// SAP's activation moment, 75 % of a slice (table 1), of DR.Swap's minute in the foreground.
const ACTIVATION: &str = "45s";

/// What a reference takes in a trace without times: 1 ns, assumed.
const REFERENCE: Ps = Ps(1_000);

/// A configuration with every name resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// For the simulator.
    pub config: ForegroundConfig,
    /// The swap area.
    pub area: Area,
    /// What a reference takes where the trace has no times.
    pub reference: Ps,
    /// Writes after which start-gap moves its gap.
    pub start_gap: Option<u32>,
    /// Every setting in force.
    pub shown: Value,
}

impl Plan {
    /// A backing with `ram` and `size` bytes, all else as DR.Swap's experiment has it.
    ///
    /// # Errors
    /// As [`Area::of`].
    pub fn new(backing: &Backing, ram: Bytes, size: Bytes, machine: &MachineParameters) -> Result<Plan, ReportError> {
        Plan::with(&Settings::default(), backing, ram, size, machine)
    }

    /// The same with another device, handler, policy, threshold or prefetching.
    ///
    /// # Errors
    /// As [`resolve`].
    pub fn with(
        settings: &Settings,
        backing: &Backing,
        ram: Bytes,
        size: Bytes,
        machine: &MachineParameters,
    ) -> Result<Plan, ReportError> {
        plan(settings, Area::of(backing, settings.device.as_deref(), size)?, ram, machine)
    }
}

/// Resolves settings for a trace that touches so many bytes.
///
/// # Errors
/// Unknown names, quantities that cannot be, an area larger than its device, a setting that such runs do not have.
pub fn resolve(settings: &Settings, footprint: Bytes) -> Result<Plan, ReportError> {
    refuse_others(settings)?;
    swap_traces_only(&settings.swap)?;
    let machine = machine(settings)?;
    let backing = backing(settings)?;
    let text = settings.swap.size.clone().unwrap_or_else(|| format!("{}MiB", SWAP_MIB[0]));
    let backing = with_ratio(settings, backing)?;
    let device = settings.device.as_deref().filter(|_| backing.compression.is_none());
    let area = Area::of(&backing, device, size("swap.size", &text, footprint)?)?;
    let ram = match (&settings.ram, settings.frames) {
        (Some(_), Some(_)) => return bad("ram", "give ram or frames, not both: they mean the same thing"),
        (None, Some(frames)) => Bytes(frames.saturating_mul(PAGE.0)),
        (Some(text), None) => size("ram", text, footprint)?,
        (None, None) => return bad("ram", "is not given; give --ram SIZE, such as 400MB or 50%, or --frames N"),
    };
    plan(settings, area, ram, &machine)
}

fn plan(settings: &Settings, area: Area, ram: Bytes, m: &MachineParameters) -> Result<Plan, ReportError> {
    let policy = find_policy(settings.policy.as_deref().unwrap_or("clock"))?;
    let handler = find_handler(settings.handler.as_deref().unwrap_or(handler::sequential::HANDLER.name))?;
    if handler.needs_xip {
        return bad("handler", format!("{} runs pages from a device's buffer, and a swap area has none", handler.name));
    }
    let reference = match &settings.front_end.reference {
        Some(text) => quantity::time(text).map_err(|e| ReportError::quantity("front_end.reference", e))?,
        None => REFERENCE,
    };
    let frames = (left(&area, ram)?.0 / PAGE.0) as usize;
    let prices = prices(&area, m)?;
    let (flash, logs) = match log(settings, &area, &prices)? {
        Some((head, collect, shown)) => (Some((head, collect)), Some(shown)),
        None => (None, None),
    };
    let config = ForegroundConfig {
        policy,
        handler,
        frames,
        slots: SlotsConfig {
            slots: (area.size.0 / PAGE.0) as usize,
            files_min: (m.files_min_mb * 1_000_000 / PAGE.0) as usize,
        },
        flash,
        buffers: 1,
        failures: failures(settings)?,
        direct_read: area.direct_read,
        reads_max: reads_max(settings, &area)?,
        prefetch: prefetch(settings)?,
        services: Vec::new(),
        prices,
    };
    let mut shown = json!({
        "system": settings.system.as_deref().unwrap_or(systems::with_driver(Driver::Foreground).name), "policy": config.policy.to_string(), "handler": handler.name, "frames": frames, "page": show_bytes(PAGE),
        "swap": shown(settings, &area, config.reads_max)?,
        "machine": m,
    });
    if let Some(log) = logs {
        shown["swap"].as_object_mut().expect("it is one").extend(log);
    }
    Ok(Plan { config, area, reference, start_gap: start_gap(settings)?, shown })
}

/// A swap area with a backing under a driver of its own: slots that are rewritten in place, or a log of blocks there.
pub(crate) struct SwapArea {
    pub(crate) area: coldframe_sim::tasks::Area,
    pub(crate) route: Route,
    pub(crate) slot_read: Ps,
    pub(crate) reads_max: Option<u32>,
    pub(crate) direct_read: bool,
    /// RAM that the full area takes.
    pub(crate) takes: Bytes,
    pub(crate) collect: CollectTimes,
    /// Every setting in force.
    pub(crate) shown: Value,
}

impl SwapArea {
    /// `None`: the settings name no backing. `footprint`: bytes that the trace touches.
    pub(crate) fn resolve(
        settings: &Settings,
        footprint: &mut dyn FnMut() -> Result<Bytes, ReportError>,
    ) -> Result<Option<SwapArea>, ReportError> {
        let s = &settings.swap;
        for (field, given) in [
            ("swap.prefetch", s.prefetch.is_some()),
            ("swap.activation", s.activation.is_some()),
            ("swap.start_gap", s.start_gap.is_some()),
        ] {
            if given {
                return bad(field, "is for tasks in the foreground; tasks under a scheduler have tasks.prefetch");
            }
        }
        let of_system = systems::of(settings).is_some_and(|system| matches!(system.area, systems::Area::Backed(..)));
        if s.backing.is_none() && !of_system {
            return Ok(None);
        }
        swap_traces_only(s)?;
        let backing = backing(settings)?;
        let text = s.size.clone().unwrap_or_else(|| format!("{}MiB", SWAP_MIB[0]));
        let footprint = if text.ends_with('%') { footprint()? } else { Bytes::ZERO };
        let backing = with_ratio(settings, backing)?;
        let area = Area::of(&backing, None, size("swap.size", &text, footprint)?)?;
        let prices = prices(&area, &machine(settings)?)?;
        let machine = prices.machine();
        let reads_max = reads_max(settings, &area)?;
        let mut shown = shown(settings, &area, reads_max)?;
        let slots = (area.size.0 / PAGE.0) as usize;
        let (area_of, collect) = match log(settings, &area, &prices)? {
            Some((head, collect, settings)) => {
                shown.as_object_mut().expect("it is one").extend(settings);
                (coldframe_sim::tasks::Area::Flash(head), collect)
            }
            None => (coldframe_sim::tasks::Area::InPlace(SlotsConfig { slots, files_min: 0 }), CollectTimes::default()),
        };
        Ok(Some(SwapArea {
            area: area_of,
            route: machine.area,
            slot_read: machine.slot_read,
            reads_max,
            direct_read: area.direct_read,
            takes: area.takes,
            collect,
            shown,
        }))
    }
}

/// What only a run of a swap trace has.
fn swap_traces_only(s: &Swap) -> Result<(), ReportError> {
    for (field, given) in [
        ("swap.read_ahead", s.read_ahead.is_some()),
        ("swap.cache", s.cache.is_some()),
        ("swap.keep", s.keep.is_some()),
    ] {
        if given {
            return bad(field, "is for swap traces; an area with a backing is loaded a page at a time; leave it out");
        }
    }
    Ok(())
}

type LogOf = (SwapHead, CollectTimes, serde_json::Map<String, Value>);

/// The log, or Linux's map of slots, that the settings want in such an area; `None`: slots are rewritten in place. A collection's copies go
/// the way of any page, there and back; only a card erases.
fn log(settings: &Settings, area: &Area, prices: &ForegroundPrices) -> Result<Option<LogOf>, ReportError> {
    let s = &settings.swap;
    let asked = s.layout.is_some() || s.collector.is_some() || s.blocks.is_some() || s.slots_per_block.is_some();
    if !asked || area.size == Bytes::ZERO {
        return Ok(None);
    }
    if s.layout.as_deref() == Some("linux-ftl") {
        return bad(
            "swap.layout",
            "linux-ftl is a device behind its own translation layer, which only swap traces have; give log or linux",
        );
    }
    if s.blocks.is_some() && s.size.is_some() {
        return bad("swap.size", "give swap.blocks or swap.size, not both: they mean the same thing");
    }
    let block = u64::from(s.slots_per_block.unwrap_or(lobi::SLOTS_PER_BLOCK)).max(1) * PAGE.0;
    let blocks = s.blocks.clone().unwrap_or_else(|| (area.size.0 / block).to_string());
    let of = Swap { blocks: Some(blocks), size: None, backing: None, reads_max: None, phone: None, ..s.clone() };
    let plan = swap::resolve(&Settings { swap: of, device: None, ..Settings::default() })?;
    let card = prices.swap_on_card.then(|| sheet::find(&area.device).and_then(|sheet| sheet.erase())).transpose();
    let copy = match prices.swap_on_card {
        true => prices.card.load + prices.card.program.unwrap_or(Ps::ZERO),
        false => prices.swap_in + prices.swap_out,
    };
    let erase = card.ok().flatten().unwrap_or(Ps::ZERO);
    let mut shown = plan.shown["swap"].as_object().cloned().unwrap_or_default();
    for field in ["read_ahead", "cache", "keep"] {
        shown.remove(field);
    }
    let head = SwapHead { slots_per_block: plan.config.slots_per_block, areas: plan.config.areas };
    Ok(Some((head, CollectTimes { copy, erase }, shown)))
}

/// RAM for frames beside a full area.
fn left(area: &Area, ram: Bytes) -> Result<Bytes, ReportError> {
    match ram.0.saturating_sub(area.takes.0) {
        left if left >= PAGE.0 => Ok(Bytes(left)),
        _ => {
            let (takes, size, ram) =
                (show_bytes(area.takes), show_bytes(area.size), show_bytes(Bytes(ram.0 >> 10 << 10)));
            let reason =
                format!("{size} of pages take {takes} of the {ram} of RAM when they are compressed, and leave no frame; give less");
            bad("swap.size", reason)
        }
    }
}

/// A backing, with the ratio that the settings give to one that compresses.
fn with_ratio(settings: &Settings, backing: &Backing) -> Result<Backing, ReportError> {
    let Some(text) = &settings.swap.ratio else { return Ok(*backing) };
    let Some(compression) = backing.compression else {
        return bad(
            "swap.ratio",
            format!("is for backings that compress, and {} does not; leave it out", backing.name),
        );
    };
    let ratio = text.parse::<f64>().ok().filter(|ratio| (1.0..=1000.0).contains(ratio));
    let Some(ratio) = ratio else {
        return bad("swap.ratio", format!("`{text}` is none; give how many times smaller a page becomes, 1 to 1000"));
    };
    Ok(Backing { compression: Some(Compression { ratio, ..compression }), ..*backing })
}

/// The area's settings in force.
fn shown(settings: &Settings, area: &Area, reads_max: Option<u32>) -> Result<Value, ReportError> {
    let s = &settings.swap;
    let mut shown = json!({
        "backing": area.name, "device": area.device, "size": show_bytes(area.size), "direct_read": area.direct_read,
        "reads_max": reads_max, "start_gap": s.start_gap, "prefetch": s.prefetch, "activation": s.activation,
    });
    if area.takes > Bytes::ZERO {
        (shown["takes_ram"], shown["ratio"]) = (show_bytes(area.takes).into(), area.ratio().into());
    }
    Ok(shown)
}

fn bad<T>(field: &str, reason: impl Into<String>) -> Result<T, ReportError> {
    Err(ReportError::setting(field, reason))
}

/// What tasks in the foreground do not have.
fn refuse_others(s: &Settings) -> Result<(), ReportError> {
    let page = s.page.as_deref().filter(|page| !quantity::bytes(page).is_ok_and(|bytes| bytes == PAGE));
    for (field, given) in [
        ("page", page.is_some()),
        ("main_memory", s.main_memory.is_some()),
        ("front_end.name", s.front_end.name.as_deref().is_some_and(|name| name != "none")),
    ] {
        if given {
            return bad(field, "does not go with tasks in the foreground, whose pages are 4KiB and are loaded one at a time; leave it out");
        }
    }
    Ok(())
}

/// Reads that a page may have in its slot.
fn reads_max(settings: &Settings, area: &Area) -> Result<Option<u32>, ReportError> {
    match &settings.swap.reads_max {
        None => Ok(None),
        Some(ReadsMax::Lines(lines)) => Ok(Some(*lines)),
        Some(ReadsMax::Word(word)) if word == "sheet" => Ok(area.break_even()?.map(BreakEven::lines)),
        Some(ReadsMax::Word(word)) => {
            bad("swap.reads_max", format!("`{word}` is neither a number of lines nor `sheet`; give one of them"))
        }
    }
}

fn start_gap(settings: &Settings) -> Result<Option<u32>, ReportError> {
    match settings.swap.start_gap {
        Some(0) => bad("swap.start_gap", "is 0; give at least 1 write between moves, such as 100, or leave it out"),
        psi => Ok(psi),
    }
}

fn prefetch(settings: &Settings) -> Result<Option<Prefetch>, ReportError> {
    let s = &settings.swap;
    match (s.prefetch, &s.activation) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            bad("swap.activation", "says when lists are loaded, but there are none; give swap.prefetch=N too")
        }
        (Some(bound), _) if bound == 0 || bound > LIST_MAX => {
            bad("swap.prefetch", format!("is {bound}; give 1 to {LIST_MAX} pages"))
        }
        (Some(bound), text) => {
            let text = text.as_deref().unwrap_or(ACTIVATION);
            let activation = quantity::time(text).map_err(|e| ReportError::quantity("swap.activation", e))?;
            Ok(Some(Prefetch { bound, activation }))
        }
    }
}

fn machine(settings: &Settings) -> Result<MachineParameters, ReportError> {
    let Some(path) = &settings.swap.phone else { return Ok(workload::shipped().machine) };
    workload::read(path).map(|parameters| parameters.machine)
}

fn backing(settings: &Settings) -> Result<&'static Backing, ReportError> {
    let name = settings.swap.backing.as_deref().unwrap_or_else(|| backing::default_of(systems::of(settings)));
    let names = || backing::all().map(|backing| backing.name);
    backing::find(name).map_or_else(
        || {
            let list: Vec<_> = names().collect();
            let near = nearest(name, names());
            bad("swap.backing", format!("there is no backing `{name}`; there are {}{near}", list.join(", ")))
        },
        Ok,
    )
}

/// A size, or a percentage of what the trace touches; at least a page.
fn size(field: &str, text: &str, footprint: Bytes) -> Result<Bytes, ReportError> {
    /// Slots and frames are numbered in 29 bits.
    const MAX: u64 = PAGE.0 << 28;
    let size = match text.strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if percent > 0.0 && percent <= 1000.0 => {
            Bytes(((footprint.0 as f64 * percent / 100.0) as u64).max(PAGE.0))
        }
        Some(_) => {
            return bad(
                field,
                format!("`{text}` cannot be read; give a size such as 128MiB, or 1% to 1000% of the footprint"),
            )
        }
        None => quantity::bytes(text).map_err(|e| ReportError::quantity(field, e))?,
    };
    match size.0 {
        n if n < PAGE.0 => {
            bad(field, format!("{} is smaller than one page of 4KiB; give at least 4KiB", show_bytes(size)))
        }
        n if n > MAX => bad(
            field,
            format!("{} is more than the simulator holds; give at most {}", show_bytes(size), show_bytes(Bytes(MAX))),
        ),
        _ => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(sets: &[&str]) -> Result<Plan, ReportError> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        resolve(&Settings::read(None, &sets).unwrap(), Bytes(100 << 20))
    }

    #[test]
    fn sizes_are_bytes_or_parts_of_the_footprint() {
        let plan = resolved(&["ram=50%", "swap.size=8MiB", "swap.backing=nvm"]).unwrap();
        assert_eq!((plan.config.frames, plan.config.slots.slots), (12_800, 2_048));
        assert!(!plan.config.direct_read && resolved(&["ram=50%"]).unwrap().config.direct_read);
        let none = resolved(&["frames=7", "swap.backing=none", "swap.size=4GiB"]).unwrap();
        assert_eq!((none.config.frames, none.config.slots.slots), (7, 0));
    }

    #[test]
    fn the_threshold_is_a_number_or_the_sheets() {
        let of = |set: &str| resolved(&["ram=1MiB", set]).unwrap().config.reads_max;
        assert_eq!((of("swap.reads_max=7"), of("swap.backing=nvm")), (Some(7), None));
        // By energy after 99.35 lines (see prices.rs).
        assert_eq!(of("swap.reads_max=sheet"), Some(99));
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        for (sets, said) in [
            (&["ram=1MiB", "swap.backing=tape"][..], "swap.backing"),
            (&["ram=1MiB", "swap.backing=nvm_dr"], "did you mean `nvm-dr`"),
            (&["ram=1MiB", "swap.size=2GiB"], "1GiB of LPDDR2-PCM"),
            (&["ram=1MiB", "swap.size=0%"], "swap.size"),
            (&["ram=1KiB"], "ram"),
            (&["ram=-1MiB"], "ram"),
            (&["swap.size=1MiB"], "ram"),
            (&["ram=1MiB", "page=8KiB"], "page"),
            (&["ram=1MiB", "swap.read_ahead=block:8"], "swap.read_ahead"),
            (&["ram=1MiB", "swap.layout=linux-ftl"], "swap.layout"),
            (&["ram=1MiB", "handler=delayed-dual-buffering"], "handler"),
            (&["ram=1MiB", "policy=lru2"], "policy"),
            (&["ram=1MiB", "swap.prefetch=0"], "swap.prefetch"),
            (&["ram=1MiB", "swap.reads_max=often"], "`often` is neither"),
            (&["ram=1MiB", "swap.start_gap=0"], "swap.start_gap"),
            (&["ram=1MiB", "device=STT-MRAM", "swap.size=129MiB"], "128MiB of STT-MRAM"),
            (&["ram=1MiB", "swap.activation=3s"], "swap.prefetch=N"),
            (&["ram=1MiB", "swap.phone=nowhere.toml"], "nowhere.toml"),
            (&["ram=1MiB", "device=nowhere.toml"], "nowhere.toml"),
            (&["ram=1MiB", "front_end.reference=-3ns"], "front_end.reference"),
        ] {
            let error = resolved(sets).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(said), "{sets:?}: {error}");
        }
    }
}
