//! Tasks under a scheduler.

use coldframe_core::prefetch::Window;
use coldframe_core::prefetch::{Arrival, LIST_MAX};
use coldframe_core::{Below, Bytes, Caps, Ps};
use coldframe_drivers::tasks::{Activation, ListRule, OnFault, Prefetching, TasksConfig, CAPS};
use coldframe_lane::machine::{MachineConfig, Zeros};
use coldframe_lane::{DeviceTimes, LaneConfig};
use coldframe_sheet::quantity::{self, show_bytes};
use coldframe_sheet::StagePrices;
use coldframe_store::Provenance;

use super::backed::{self, BackedArea};
use super::log;
use super::{front, names, refuse, string, Pages, Plan};
use crate::error::ExperimentError;
use crate::in_force::InForce;
use crate::settings::{self, Sap, Settings, Swap, Tasks};
use crate::systems::backing::PAGE;
use crate::systems::{self, System};

/// The part of a [`TasksPlan`] that only tasks in the foreground have.
#[derive(Clone, Debug)]
pub struct ForegroundPlan {
    pub system: &'static System,
    /// Time of a reference if the trace has no times.
    pub reference: Ps,
}

/// A configuration of tasks under a scheduler with every name resolved.
#[derive(Clone, Debug)]
pub struct TasksPlan {
    pub base: Base,
    pub config: TasksConfig,
    /// The swap area with a backing; `None`: home slots, or a log on the device.
    pub backed: Option<BackedArea>,
    pub settings: Tasks,
    /// Settings of prefetching in force.
    pub sap: Sap,
}

#[derive(Clone, Debug)]
pub enum Base {
    /// A machine as for one string of references: system, page, policy, handler, device.
    Machine(Box<Plan>),
    /// A phone with a card, where tasks take turns in the foreground.
    Phone(ForegroundPlan),
}

impl TasksPlan {
    /// The part that only tasks in the foreground have.
    pub fn foreground(&self) -> Option<&ForegroundPlan> {
        match &self.base {
            Base::Machine(_) => None,
            Base::Phone(phone) => Some(phone),
        }
    }

    /// Bytes of a page.
    pub fn page(&self) -> Bytes {
        match &self.base {
            Base::Machine(plan) => plan.front.page(),
            Base::Phone(_) => PAGE,
        }
    }

    pub fn shown(&self) -> InForce {
        let (mut shown, log) = match &self.base {
            Base::Machine(plan) => {
                let shown = plan.shown();
                let mut shown = shown;
                if self.config.read_together > 1 {
                    shown.swap.log.read_ahead = Some(format!("aligned:{}", self.config.read_together));
                }
                let (tasks, sap) = (self.settings.clone(), self.sap.clone());
                let settings = Settings { tasks, sap, ..shown.settings };
                (InForce { settings, ..shown }, plan.area.as_ref())
            }
            Base::Phone(plan) => (self.shown_on_phone(plan).into(), None),
        };
        if let Some(backed) = &self.backed {
            shown.swap = backed.shown(log);
            shown.settings.frames = Some(self.config.frames as u64);
            shown.machine.phone = self.foreground().map(|_| backed.phone);
        }
        shown
    }

    fn shown_on_phone(&self, plan: &ForegroundPlan) -> Settings {
        Settings {
            system: Some(plan.system.name.into()),
            policy: Some(self.config.policy.to_string()),
            handler: Some(self.config.handler.name.into()),
            page: Some(show_bytes(PAGE)),
            ..Settings::default()
        }
    }

    /// Whether the device's sheet has no time for a page that is written.
    pub fn writes_unpriced(&self) -> bool {
        let Base::Machine(plan) = &self.base else { return false };
        plan.lane().is_some_and(|lane| lane.device.program.is_none())
    }
}

/// Resolves settings for several tasks.
pub fn tasks(settings: &Settings, trace: &Provenance, touched: Pages<'_>) -> Result<TasksPlan, ExperimentError> {
    let (own, defaults) = systems::of_tasks();
    let mut settings = settings.clone();
    settings.system.get_or_insert_with(|| own.name.into());
    one_string_only(&settings)?;
    // A system with a backing names the device of its area. Pages outside any area are on a device that loads by
    // itself.
    if systems::of(&settings).is_some_and(System::has_backing) {
        settings.device.get_or_insert_with(|| own.defaults.device.into());
    }
    // Front ends filter one string of references; here the tasks' references go straight to the page table.
    settings.front_end.name = Some("none".into());
    let (area, flash) = areas(&settings);
    let backed = backed(&Settings { swap: area, ..settings.clone() }, trace, touched)?;
    let swap = if backed.is_some() && flash.blocks.is_none() { Swap::default() } else { flash };
    let mut base = string(&Settings { swap, ..settings.clone() }, trace, touched)?;
    let (window, read_together) = window(&settings, &mut base)?;
    let Some(lane) = base.lane() else {
        let reason = format!("an oracle schedules no tasks; give a policy, such as {}", own.defaults.policy);
        return Err(ExperimentError::setting("policy", reason));
    };
    let t = &settings.tasks;
    let (name, scheduler) = names::scheduler(t.scheduler.as_deref().unwrap_or(SCHEDULER))?;
    let follow = t.follow.unwrap_or(false);
    let prefetch = t.prefetch.clone().unwrap_or_else(|| PREFETCH.into());
    let mut machine = machine(&settings, lane, base.front.page())?;
    // A handler that runs pages from the device's buffers has as many as the device; others have one for each load.
    let buffers = if lane.handler.needs_xip { lane.caps.buffers } else { CAPS.buffers };
    let queued = if lane.handler.needs_xip { 0 } else { window.slots() - 1 };
    let mut caps = Caps { buffers: buffers + queued, ..lane.caps };
    machine.window = window;
    let (mut area, mut frames) = (Below::default(), lane.frames);
    if let Some(log) = &base.area {
        (area, machine.collect) = (log.areas.clone().into(), log.collect);
    }
    if let Some(backed) = &backed {
        let of = backed.prices.machine();
        frames = backed.leaves(frames)?;
        (machine.area, machine.slot_read, machine.reads_max) = (of.area, of.slot_read, backed.reads_max);
        caps.direct_read = backed.area.direct_read;
        let slots = backed.slots(0);
        if let Some(log) = &backed.log {
            (area, machine.collect) = (log.areas.clone().into(), log.collect);
        } else {
            if area.swap.is_some() {
                machine.area_slots = slots.slots;
            }
            area.slots = Some(slots);
        }
    }
    let reference = base.front.idle.reference;
    let (sap, list, list_max) = lists(&settings.sap)?;
    let config = TasksConfig {
        policy: lane.policy.clone(),
        handler: lane.handler,
        frames,
        evict_batch: lane.evict_batch,
        machine,
        caps,
        area,
        xip_surplus: xip_surplus(&settings, &base, lane)?,
        reference: if reference == Ps::ZERO { defaults.reference } else { reference },
        tick: defaults.tick,
        scheduler,
        slice: None,
        on_fault: OnFault::Sleeps,
        prefetching: Prefetching {
            activation: activation(&prefetch)?,
            list_max,
            list,
            guard: sap.guard != Some(false),
            depth: defaults.depth,
            ready_min: defaults.ready_min,
            follow,
            // Section 5.3: what is loaded "before a context switch happens".
            past_switch: sap.past_switch == Some(true),
            // If only a window is read ahead, slices are not kept apart, and no page would be behind one.
            arrival: match (window != Window::Alone || read_together > 1) && prefetch == "off" {
                true => Arrival::Mapped,
                false => Arrival::MappedBehindSlice,
            },
        },
        read_together,
    };
    let settings = Tasks { scheduler: Some(name.into()), prefetch: Some(prefetch), follow: Some(follow) };
    Ok(TasksPlan { base: Base::Machine(Box::new(base)), config, backed, settings, sap })
}

/// A list's rule and the pages on it.
fn lists(sap: &Sap) -> Result<(Sap, ListRule, usize), ExperimentError> {
    /// Pages that Linux reads with a fault (`page-cluster` 3).
    const CLUSTER: usize = 8;
    let name = sap.list.as_deref().unwrap_or("oldest-leaves");
    let (rule, list_max) = match name {
        "oldest-leaves" => (ListRule::OldestLeaves, LIST_MAX),
        "full" => (ListRule::TakesNoMore, LIST_MAX),
        "majors-of-8" => (ListRule::OldestLeaves, LIST_MAX * CLUSTER),
        _ => {
            let reason = format!("`{name}` is not known; give oldest-leaves, full or majors-of-8");
            return Err(ExperimentError::setting("sap.list", reason));
        }
    };
    let (guard, past_switch) = (sap.guard.or(Some(true)), sap.past_switch.or(Some(false)));
    Ok((Sap { list: Some(name.into()), guard, past_switch }, rule, list_max))
}

/// The slots that are read together with a page of the log, and the pages with one that is on the device.
fn window(settings: &Settings, base: &mut Plan) -> Result<(Window, u32), ExperimentError> {
    match &mut base.area {
        Some(log) => {
            let (window, shown) = log::window(&settings.swap)?;
            log.settings.read_ahead = shown;
            Ok((window, 1))
        }
        None => match log::window(&settings.swap)?.0 {
            Window::Alone => Ok((Window::Alone, 1)),
            Window::Aligned(pages) => Ok((Window::Alone, pages)),
            Window::Block(_) => {
                let reason = "block:8 reads slots of an erase block, and there is no area on flash: give aligned:8 or \
                              swap.layout";
                Err(ExperimentError::setting("swap.read_ahead", reason))
            }
        },
    }
}

/// The settings of an area with a backing, and those of an area on the device's flash. There are both if one has a size
/// and the other has blocks: then the flash takes what the first has no room for.
fn areas(settings: &Settings) -> (Swap, Swap) {
    let s = &settings.swap;
    if !(backed::is_wanted(settings) && s.size.is_some() && s.blocks.is_some()) {
        return (s.clone(), Swap { read_ahead: None, ..s.clone() });
    }
    let Swap { layout, blocks, slots_per_block, collector, .. } = s.clone();
    let area =
        Swap { layout: None, blocks: None, slots_per_block: None, collector: None, read_ahead: None, ..s.clone() };
    (area, Swap { layout, blocks, slots_per_block, collector, ..Swap::default() })
}

/// Either the device moves a page by itself (section 3 of SAP needs DMA), so that the transfer is the device's time,
/// at the load or, where a page is first read in a buffer, later; or the processor moves it.
fn machine(settings: &Settings, lane: &LaneConfig, page: Bytes) -> Result<MachineConfig, ExperimentError> {
    let mut machine = if settings.machine.dma.unwrap_or(true) {
        let transfer = lane.prices.trans_host_mem;
        let (at_load, moves) = if lane.handler.needs_xip { (Ps::ZERO, transfer) } else { (transfer, Ps::ZERO) };
        let device = DeviceTimes { load: lane.device.load + at_load, program: lane.device.program };
        let stages = StagePrices { trans_host_mem: Ps::ZERO, ..lane.prices };
        MachineConfig { moves, ..MachineConfig::device(stages, device, Zeros::Once) }
    } else {
        let machine = MachineConfig::device(lane.prices, lane.device, Zeros::Once);
        MachineConfig { moves_loaded_only: true, ..machine }
    };
    machine.failures = lane.failures;
    if let Some(text) = &settings.machine.cache_line {
        let line = quantity::bytes(text).map_err(|e| ExperimentError::quantity("machine.cache_line", e))?;
        if line.0 == 0 || line > page {
            let reason = format!("`{text}` is no part of a page of {}; give 32B or 64B", show_bytes(page));
            return Err(ExperimentError::setting("machine.cache_line", reason));
        }
        machine.lines = (page.0 / line.0) as u32;
    }
    Ok(machine)
}

/// The extra time of a cache block read in a buffer over one in RAM: zero, unless settings or sheet give a time.
fn xip_surplus(settings: &Settings, base: &Plan, lane: &LaneConfig) -> Result<Ps, ExperimentError> {
    if !lane.handler.needs_xip {
        return Ok(Ps::ZERO);
    }
    let t = &settings.time;
    let near = settings::time("time.main_read", &t.main_read)?;
    let far = settings::time("time.xip_read", &t.xip_read)?.or_else(|| base.sheet.read().ok());
    Ok(far.map_or(Ps::ZERO, |far| far.saturating_sub(near.unwrap_or(Ps::ZERO))))
}

/// The default scheduler: that of the papers' kernels.
const SCHEDULER: &str = "cfs";
/// The default time for loading the next task's pages.
const PREFETCH: &str = "75";

/// The area with a backing, if settings or system ask for one.
fn backed(settings: &Settings, trace: &Provenance, touched: Pages<'_>) -> Result<Option<BackedArea>, ExperimentError> {
    if !backed::is_wanted(settings) {
        return Ok(None);
    }
    let defaults = names::system(settings)?.map(|system| system.defaults);
    let front = front::front_key(settings, defaults, trace, super::page(settings, defaults)?)?;
    backed::backed(settings, None, &front, touched).map(Some)
}

/// Refuses settings that only one string of references has.
fn one_string_only(s: &Settings) -> Result<(), ExperimentError> {
    let front_end = s.front_end.name.as_deref().is_some_and(|name| name != "none");
    refuse(&[
        ("front_end.name", front_end, "filters one string of references, and several tasks have as many; leave it out"),
        (
            "main_memory",
            s.main_memory.is_some(),
            "needs a front end, which filters one string of references; leave it out",
        ),
        (
            "limit.skip",
            s.limit.skip.is_some_and(|rows| rows > 0),
            "counts rows of one string of references; leave it out",
        ),
        (
            "machine.read_ahead",
            s.machine.read_ahead.is_some_and(|pages| pages > 0),
            "follows streams of one string of references; leave it out",
        ),
        ("limit.sample", s.limit.sample.is_some(), "estimates misses of one string of references; leave it out"),
        ("limit.accesses", s.limit.accesses.is_some(), "counts accesses of one string of references; leave it out"),
    ])
}

/// `off`, `75`, `50`, `xi=0.6` or `timer=0.6`.
fn activation(text: &str) -> Result<Activation, ExperimentError> {
    let bad = || {
        let reason = format!("`{text}` is not known; give off, 75, 50, xi=0..1 or timer=0..1");
        ExperimentError::setting("tasks.prefetch", reason)
    };
    let part = |text: &str| text.parse::<f64>().ok().filter(|xi| (0.0..=1.0).contains(xi)).ok_or_else(bad);
    match (text, text.split_once('=')) {
        ("off", _) => Ok(Activation::Never),
        (_, Some(("xi", xi))) => Ok(Activation::Tick(part(xi)?)),
        (_, Some(("timer", xi))) => Ok(Activation::Timer(part(xi)?)),
        (percent, None) => match percent.parse::<u32>() {
            Ok(percent @ 0..=100) => Ok(Activation::Tick(f64::from(percent) / 100.0)),
            _ => Err(bad()),
        },
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activation_is_a_word_a_percentage_or_a_fraction() {
        assert_eq!(activation("off").unwrap(), Activation::Never);
        assert_eq!(activation("75").unwrap(), Activation::Tick(0.75));
        assert_eq!(activation("xi=0.6").unwrap(), Activation::Tick(0.6));
        assert_eq!(activation("timer=1").unwrap(), Activation::Timer(1.0));
        for bad in ["", "adaptive", "101", "-1", "xi=", "xi=1.1", "xi=nan", "timer", "soon=1"] {
            let error = activation(bad).unwrap_err();
            assert!(error.to_string().contains("tasks.prefetch"), "{bad}: {error}");
        }
    }
}
