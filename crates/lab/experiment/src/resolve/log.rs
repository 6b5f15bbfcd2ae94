//! A swap area on flash: a log of erase blocks, or Linux's map of slots.

use coldframe_core::prefetch::Window;
use coldframe_core::swap::{linux, AreaConfig, Layout, SwapAreas};
use coldframe_drivers::swap::{Keep, ReadAhead, SwapConfig};
use coldframe_lane::CollectTimes;
use coldframe_sheet::{quantity, sheet, Sheet};

use super::names;
use crate::error::{nearest, ExperimentError};
use crate::in_force::InForce;
use crate::settings::{FrontEnd, Machine, Settings, Swap, Tasks};
use crate::systems::{self, LogDefaults};

/// The names of slot allocations.
pub const LAYOUTS: [&str; 4] = ["log", "linux", "linux-ftl", "linux-discard"];

/// Linux's default cluster of pages read ahead (vm.page-cluster 3), and what LOBI starts with.
const READ_AHEAD_DEFAULT: u32 = 8;

/// Pages in the swap cache: 4 MiB. Neither slides nor kernel bound it by number; the kernel's is bounded by its RAM.
const CACHE: usize = 1024;

/// A swap area on flash under the engine.
#[derive(Clone, Debug)]
pub struct LogArea {
    pub areas: SwapAreas,
    /// The device's time for a collection.
    pub collect: CollectTimes,
    pub settings: Swap,
}

/// A configuration for swap traces with every name resolved.
#[derive(Clone, Debug)]
pub struct SwapPlan {
    pub config: SwapConfig,
    pub settings: Swap,
    /// For times and life.
    pub sheet: Sheet,
}

impl SwapPlan {
    pub fn shown(&self) -> InForce {
        let (system, device) = (Some(systems::of_log().0.name.into()), Some(self.sheet.name.clone()));
        Settings { system, device, swap: self.settings.clone(), ..Settings::default() }.into()
    }
}

fn bad<T>(field: &str, reason: impl Into<String>) -> Result<T, ExperimentError> {
    Err(ExperimentError::setting(format!("swap.{field}"), reason))
}

/// Resolves settings for a swap trace.
pub fn swaps(settings: &Settings) -> Result<SwapPlan, ExperimentError> {
    refuse_references(settings)?;
    let (s, defaults) = (&settings.swap, systems::of_log().1);
    let (areas, mut shown) = areas(s, defaults, blocks(s, defaults)?)?;
    let (read_ahead, text) = read_ahead(s)?;
    let (keep, keep_text) = match s.keep.as_deref() {
        None | Some("trace") => (Keep::Trace, "trace"),
        Some("until-touched") => (Keep::UntilTouched, "until-touched"),
        Some("until-read") => (Keep::UntilRead, "until-read"),
        Some(other) => return bad("keep", format!("`{other}` is not known; give trace, until-touched or until-read")),
    };
    let layout = self::layout(s)?;
    if s.logs == Some(0) {
        return bad("logs", "0 logs take no page; give 1 or more");
    }
    (shown.read_ahead, shown.keep, shown.logs) = (Some(text), Some(keep_text.into()), logs(s));
    Ok(SwapPlan {
        config: SwapConfig {
            areas,
            slots_per_block: slots_per_block(s),
            translation: matches!(layout, "linux-ftl" | "linux-discard"),
            discard: layout == "linux-discard",
            read_ahead,
            cache: CACHE,
            keep,
            failures: super::failures(settings)?,
        },
        settings: shown,
        sheet: sheet::find(settings.device.as_deref().unwrap_or(defaults.device))?,
    })
}

/// Refuses settings that need references; a swap trace has none.
fn refuse_references(s: &Settings) -> Result<(), ExperimentError> {
    const WHY: &str =
        "is for traces of references; a swap trace tells what its kernel's own paging swapped; leave it out";
    if let Some(system) = super::names::system(s)?.filter(|system| !system.has_log()) {
        let (name, logs) = (system.name, systems::names(systems::System::has_log));
        let reason = format!(
            "a swap trace has no references, only a swap area can take it, and {name} is not known; give {logs}"
        );
        return Err(ExperimentError::setting("system", reason));
    }
    super::refuse(&[
        ("policy", s.policy.is_some(), WHY),
        ("handler", s.handler.is_some(), WHY),
        ("ram", s.ram.is_some(), WHY),
        ("frames", s.frames.is_some(), WHY),
        ("page", s.page.is_some(), WHY),
        ("stream", s.stream.is_some(), WHY),
        ("main_memory", s.main_memory.is_some(), WHY),
        ("front_end", s.front_end != FrontEnd::default(), WHY),
        ("machine", s.machine != Machine::default(), WHY),
        ("tasks", s.tasks != Tasks::default(), WHY),
        ("swap.backing", s.swap.backing.is_some(), WHY),
    ])
}

/// The area for the settings under the engine, with `blocks_own` blocks if they give neither a number of blocks nor a
/// size.
pub(super) fn under_engine(
    s: &Swap,
    collect: CollectTimes,
    blocks_own: Option<u64>,
) -> Result<LogArea, ExperimentError> {
    if let name @ ("linux-ftl" | "linux-discard") = layout(s)? {
        let why = "is a device behind its own translation layer, which only swap traces have; give log or linux";
        return bad("layout", format!("{name} {why}"));
    }
    refuse_kernel(s)?;
    let defaults = systems::of_log().1;
    let blocks = match blocks_own {
        Some(own) => s.blocks.clone().unwrap_or_else(|| own.to_string()),
        None => blocks(s, defaults)?,
    };
    let (areas, settings) = areas(s, defaults, blocks)?;
    Ok(LogArea { areas: SwapAreas { slots_per_block: slots_per_block(s), areas }, collect, settings })
}

/// Refuses settings of the kernel's part above an area; only swap traces have it.
pub(super) fn refuse_kernel(s: &Swap) -> Result<(), ExperimentError> {
    const WHY: &str = "is for swap traces; under the engine a page that is loaded keeps its slot; leave it out";
    const ALONE: &str = "is for swap traces, and for tasks without a backing; leave it out";
    const LOGS: &str = "is for swap traces; here one log takes all pages; leave it out";
    super::refuse(&[
        ("swap.read_ahead", s.read_ahead.is_some(), ALONE),
        ("swap.keep", s.keep.is_some(), WHY),
        ("swap.logs", s.logs.is_some(), LOGS),
    ])
}

/// The slots that tasks read together with a page, and the setting in force; a page alone if nothing is set.
pub(super) fn window(s: &Swap) -> Result<(Window, Option<String>), ExperimentError> {
    if s.read_ahead.is_none() {
        return Ok((Window::Alone, None));
    }
    match read_ahead(s)? {
        (ReadAhead::Slots(window), text) => Ok((window, Some(text))),
        (ReadAhead::Pages(_), text) => {
            bad("read_ahead", format!("`{text}` goes by a swap trace's page numbers; give none, block:8 or aligned:8"))
        }
    }
}

/// Bytes of an erase block.
pub(super) fn block_bytes(s: &Swap) -> u64 {
    u64::from(slots_per_block(s)).max(1) * systems::of_log().1.slot.0
}

fn slots_per_block(s: &Swap) -> u32 {
    s.slots_per_block.unwrap_or(systems::of_log().1.slots_per_block)
}

/// Erase blocks of the areas, as text.
fn blocks(s: &Swap, defaults: &LogDefaults) -> Result<String, ExperimentError> {
    match (&s.blocks, &s.size) {
        (Some(_), Some(_)) => bad("size", "give swap.blocks or swap.size, not both: they mean the same thing"),
        (Some(blocks), None) => Ok(blocks.clone()),
        (None, None) => Ok(defaults.blocks.to_string()),
        (None, Some(size)) => {
            let size = quantity::bytes(size).map_err(|e| ExperimentError::quantity("swap.size", e))?;
            Ok((size.0 / block_bytes(s)).to_string())
        }
    }
}

/// The areas and the settings in force.
fn areas(s: &Swap, defaults: &LogDefaults, blocks: String) -> Result<(Vec<AreaConfig>, Swap), ExperimentError> {
    let layout = layout(s)?;
    let (collector, victims) = names::collector(s.collector.as_deref().unwrap_or("greedy"))?;
    let logs = logs(s).unwrap_or(1);
    let area = |part: &str| {
        let (blocks, priority) = part.split_once('@').unwrap_or((part, "0"));
        Some(AreaConfig {
            priority: priority.trim().parse().ok()?,
            layout: if layout == "linux" { Layout::Linux { cluster: linux::CLUSTER } } else { Layout::Log },
            victims,
            collector,
            start: defaults.start,
            stop: defaults.start,
            logs,
            ..AreaConfig::log(blocks.trim().parse().ok()?)
        })
    };
    let Some(areas) = blocks.split(',').map(area).collect::<Option<Vec<_>>>() else {
        let reason = format!("`{blocks}` cannot be read; give 1024, or 512@5,1024@0 for areas with priorities");
        return bad("blocks", reason);
    };
    let settings = Swap {
        layout: Some(layout.into()),
        blocks: Some(blocks),
        slots_per_block: Some(slots_per_block(s)),
        collector: Some(format!("{}:{victims}", collector.name)),
        ..Swap::default()
    };
    Ok((areas, settings))
}

/// The logs of an area. The kernel's layouts have none, so that a run of several layouts can give logs to one.
fn logs(s: &Swap) -> Option<u32> {
    s.logs.filter(|_| s.layout.as_deref().unwrap_or("log") == "log")
}

fn layout(s: &Swap) -> Result<&'static str, ExperimentError> {
    let name = s.layout.as_deref().unwrap_or("log");
    let Some(layout) = LAYOUTS.into_iter().find(|layout| *layout == name) else {
        let near = nearest(name, LAYOUTS.into_iter());
        return bad("layout", format!("there is no layout `{name}`; there are {}{near}", LAYOUTS.join(", ")));
    };
    Ok(layout)
}

/// `name:size`; Linux's own where the layout is Linux's.
fn read_ahead(s: &Swap) -> Result<(ReadAhead, String), ExperimentError> {
    let own = if s.layout.as_deref().is_none_or(|layout| layout == "log") { "block" } else { "aligned" };
    let text = s.read_ahead.clone().unwrap_or_else(|| format!("{own}:{READ_AHEAD_DEFAULT}"));
    let (name, size) = text.split_once(':').unwrap_or((&text, ""));
    let size = match size.parse::<u32>() {
        _ if name == "none" && size.is_empty() => 1,
        Ok(n) if (1..=1024).contains(&n) && n.is_power_of_two() => n,
        _ => {
            return bad(
                "read_ahead",
                format!("`{text}` is not known; give none, block:8, aligned:8 or pages:8, a power of two up to 1024"),
            )
        }
    };
    let read_ahead = match name {
        "none" => ReadAhead::Slots(Window::Alone),
        "block" => ReadAhead::Slots(Window::Block(size)),
        "aligned" => ReadAhead::Slots(Window::Aligned(size)),
        "pages" => ReadAhead::Pages(size),
        other => return bad("read_ahead", format!("`{other}` is not known; give none, block:8, aligned:8 or pages:8")),
    };
    Ok((read_ahead, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &str) -> Result<SwapPlan, ExperimentError> {
        swaps(&Settings::read(None, &[format!("swap.{set}")])?)
    }

    #[test]
    fn names_are_resolved_and_wrong_ones_named() {
        let plan = with("collector=cost-age-times:4").unwrap();
        assert_eq!(plan.config.areas[0].victims, 4);
        assert_eq!(with("blocks=512@5,1024@-1").unwrap().config.areas[1].priority, -1);
        assert_eq!(with("layout=linux").unwrap().settings.read_ahead.as_deref(), Some("aligned:8"));
        for (set, reason) in [
            ("layout=lug", "did you mean `log`"),
            ("collector=gredy", "did you mean `greedy`"),
            ("collector=greedy:5", "1 to 4"),
            ("read_ahead=block", "block:8"),
            ("read_ahead=block:7", "power of two"),
            ("read_ahead=blok:8", "block:8"),
            ("keep=ever", "until-touched"),
            ("blocks=many", "512@5"),
            ("colector=greedy", "colector"),
        ] {
            let error = with(set).unwrap_err();
            assert!(error.to_string().contains(reason), "{set}: {error}");
            assert_eq!(error.code(), 2);
        }
    }
}
