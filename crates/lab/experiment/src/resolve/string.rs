//! One string of references.

use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::{Bytes, Caps, Ps};
use coldframe_drivers::front_end::Sample;
use coldframe_drivers::oracle::{self, OracleSpec};
use coldframe_lane::{CollectTimes, DeviceTimes, LaneConfig};
use coldframe_sheet::quantity::{show_bytes, show_time};
use coldframe_sheet::{sheet, time as device_time, Sheet, StagePrices};
use coldframe_store::Provenance;

use super::log::{self, LogArea};
use super::{failures, front, names, refuse, size, FrontKey, Pages};
use crate::error::ExperimentError;
use crate::in_force::InForce;
use crate::memory::{self, MemoryPrices, PageTimes};
use crate::settings::{self, Limit, Machine, Settings, Swap, Tasks, Time};
use crate::systems::{self, System};

/// The simulator of a configuration.
#[derive(Clone, Debug)]
pub enum Engine {
    Lane(Box<LaneConfig>),
    Oracle(&'static OracleSpec),
}

/// A configuration of one string of references with every name resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    pub system: Option<&'static System>,
    pub front: FrontKey,
    /// Policy or oracle.
    pub engine: Engine,
    /// Policy or oracle, with its parameters.
    pub policy: String,
    pub frames: usize,
    pub sheet: Sheet,
    pub device: String,
    /// Whether a device's times say something: somebody named one, or the references are a program's.
    pub priced: bool,
    pub memory: Option<MemoryPrices>,
    /// The most pages of a sequential stream that are read ahead.
    pub read_ahead: u32,
    /// The swap area for pages that are written; `None`: their home slots.
    pub area: Option<LogArea>,
}

impl Plan {
    /// The engine's configuration; `None`: an oracle answers.
    pub fn lane(&self) -> Option<&LaneConfig> {
        match &self.engine {
            Engine::Lane(lane) => Some(lane),
            Engine::Oracle(_) => None,
        }
    }

    pub fn oracle(&self) -> Option<&'static OracleSpec> {
        match &self.engine {
            Engine::Lane(_) => None,
            Engine::Oracle(spec) => Some(spec),
        }
    }

    /// Frames of the simulator: of a sample as many fewer.
    pub fn simulated(&self) -> usize {
        self.front.sample.map_or(self.frames, |sample| sample.frames(self.frames))
    }

    /// The same for a part of its sample.
    pub(crate) fn part(&self, sample: Sample) -> Plan {
        let mut plan = Plan { front: FrontKey { sample: Some(sample), ..self.front.clone() }, ..self.clone() };
        let frames = plan.simulated();
        if let Engine::Lane(lane) = &mut plan.engine {
            lane.frames = frames;
        }
        plan
    }

    /// Every setting in force, in the form of `-c`.
    pub fn shown(&self) -> InForce {
        let shown = Settings {
            system: self.system.map(|system| system.name.into()),
            policy: Some(self.policy.clone()),
            frames: Some(self.frames as u64),
            page: Some(show_bytes(self.front.page())),
            stream: Some(self.front.stream.name().into()),
            main_memory: self.memory.as_ref().map(|memory| memory.ram.clone()),
            front_end: front::shown(&self.front),
            limit: Limit {
                skip: Some(self.front.skip),
                accesses: self.front.accesses,
                sample: self.front.sample.map(|sample| sample.share().to_string()),
            },
            swap: self.area.as_ref().map(|area| area.settings.clone()).unwrap_or_default(),
            ..Settings::default()
        };
        let Some(lane) = self.lane() else { return shown.into() };
        let times = self.memory.as_ref().map(|memory| &memory.times);
        let shown = Settings {
            handler: Some(lane.handler.name.into()),
            device: self.priced.then(|| self.device.clone()),
            machine: Machine {
                reference_bit: Some(lane.caps.reference_bit),
                dirty_bit: Some(lane.caps.dirty_bit),
                buffers: Some(lane.caps.buffers),
                evict_batch: Some(lane.evict_batch),
                read_ahead: Some(self.read_ahead).filter(|pages| *pages > 0),
                ..Machine::default()
            },
            time: Time {
                program: lane.device.program.filter(|_| self.priced).map(show_time),
                main_read: times.map(|times| show_time(times.main_read)),
                xip_read: times.map(|times| show_time(times.xip_read)),
            },
            ..shown
        };
        shown.into()
    }
}

/// Resolves settings for one string of references.
pub fn string(settings: &Settings, trace: &Provenance, touched: Pages<'_>) -> Result<Plan, ExperimentError> {
    let system = names::system(settings)?;
    let defaults = system.map(|s| s.defaults);
    let text = |own: &Option<String>, of_system: Option<&str>, none: &str| {
        own.clone().unwrap_or_else(|| of_system.unwrap_or(none).to_string())
    };
    let page = super::page(settings, defaults)?;
    let mut front = front::front_key(settings, defaults, trace, page)?;
    let frames = size::frames(settings, &front, touched)?;
    let simulated = simulated(&front, frames)?;
    let policy = text(&settings.policy, defaults.map(|d| d.policy), "clock");
    let handler =
        names::handler(&text(&settings.handler, defaults.map(|d| d.handler), handler::parallel::HANDLER.name))?;
    let own_device = systems::measured().defaults.device;
    let device = text(&settings.device, defaults.map(|d| d.device), own_device);
    let sheet = sheet::find(&device)?;
    let plain = policy.split(':').next().unwrap_or_default();
    let (prices, times) = prices(settings, system, plain, &sheet, page)?;
    let memory = memory(
        settings,
        &mut front,
        &sheet,
        PageTimes { load: times.load, page_move: prices.trans_host_mem },
        handler,
    )?;
    let machine = &settings.machine;
    if machine.dma.is_some() && settings.tasks == Tasks::default() && !system.is_some_and(System::schedules) {
        return Err(ExperimentError::setting(
            "machine.dma",
            "is for tasks; the processor moves the pages of one string",
        ));
    }
    let caps = Caps {
        reference_bit: machine.reference_bit.unwrap_or(true),
        dirty_bit: machine.dirty_bit.unwrap_or(true),
        buffers: buffers(settings, &sheet, page, handler)?,
        direct_read: false,
        places: false,
    };
    let evict_batch = evict_batch(settings, simulated)?;
    let (mut engine, policy) = match oracle::find(plain) {
        Some(spec) if plain == policy => (Engine::Oracle(spec), policy),
        Some(_) => return Err(ExperimentError::setting("policy", format!("oracle `{plain}` has no parameters"))),
        None => {
            let policy = names::policy(&policy)?;
            policy.build(simulated, simulated.max(1))?;
            let (text, failures) = (policy.to_string(), failures(settings)?);
            let lane = LaneConfig::new(policy, handler, simulated, prices, times);
            let lane = LaneConfig { evict_batch, caps, failures, ..lane };
            (Engine::Lane(Box::new(lane)), text)
        }
    };
    let area = match &engine {
        Engine::Lane(_) => area(settings, system, &sheet, times)?,
        Engine::Oracle(_) => None,
    };
    let read_ahead = read_ahead(settings, handler)?;
    if let (Engine::Lane(lane), Some(area)) = (&mut engine, &area) {
        lane.area = Some((area.areas.clone(), area.collect));
    }
    let device = if device.ends_with(".toml") { device } else { sheet.name.clone() };
    let priced = front.sample.is_none() && (trace.fidelity.of_a_program() || names_device(settings));
    let why = "prices a device, and there is none; give device, and all references";
    refuse(&[("time.program", !priced && settings.time.program.is_some(), why)])?;
    Ok(Plan { system, front, engine, policy, frames, sheet, device, priced, memory, read_ahead, area })
}

/// The least frames of a part of a sample.
const PART_LEAST: usize = 4;

/// Frames of the simulator; refuses a sample that is too small for this memory.
fn simulated(front: &FrontKey, frames: usize) -> Result<usize, ExperimentError> {
    let Some(sample) = front.sample else { return Ok(frames) };
    let (simulated, least) = (sample.frames(frames), PART_LEAST * Sample::PARTS as usize);
    if simulated < least {
        let percent = 100.0 * least as f64 / frames as f64;
        let reason = match percent > 100.0 {
            true => format!("is not for so small a memory as {frames} frames; leave it out"),
            false => format!("leaves {simulated} of {frames} frames, too few; give {percent:.2}% or more"),
        };
        return Err(ExperimentError::setting("limit.sample", reason));
    }
    Ok(simulated)
}

/// Whether somebody named a device: by itself, as a swap area, or by a system.
pub(crate) fn names_device(settings: &Settings) -> bool {
    settings.device.is_some() || settings.system.is_some() || settings.swap.backing.is_some()
}

/// Prices of accesses to memory. The clock of the front end uses them, too.
fn memory(
    settings: &Settings,
    front: &mut FrontKey,
    sheet: &Sheet,
    pages: PageTimes,
    handler: &Handler,
) -> Result<Option<MemoryPrices>, ExperimentError> {
    let of_system = names::system(settings)?.and_then(|system| system.defaults.main_memory);
    let Some(ram) = memory::main_memory(settings, of_system, front.has_data_cache())? else { return Ok(None) };
    let memory = memory::prices(settings, &ram, sheet, front.page(), pages, handler.needs_xip)?;
    front.idle.main_read = memory.times.main_read;
    front.idle.main_write = memory.times.main_write;
    front.idle.xip_surplus = memory.times.xip_read - memory.times.main_read;
    Ok(Some(memory))
}

fn evict_batch(settings: &Settings, frames: usize) -> Result<usize, ExperimentError> {
    let batch = settings.machine.evict_batch.unwrap_or(1);
    match batch {
        0 => {}
        n if n > frames.max(1) => {}
        n => return Ok(n),
    }
    let reason = format!("`{batch}` is not from 1 to the {frames} frames of RAM");
    Err(ExperimentError::setting("machine.evict_batch", reason))
}

/// The log, or Linux's map of slots, if the system or any `swap` setting asks for one.
fn area(
    settings: &Settings,
    system: Option<&System>,
    sheet: &Sheet,
    device: DeviceTimes,
) -> Result<Option<LogArea>, ExperimentError> {
    let s = &settings.swap;
    if !system.is_some_and(System::has_log) && *s == Swap::default() {
        return Ok(None);
    }
    let why = format!("is for tasks in the foreground; give the system {}", systems::names(System::takes_turns));
    refuse(&[
        ("swap.backing", s.backing.is_some(), &why),
        ("swap.size", s.size.is_some(), &why),
        ("swap.reads_max", s.reads_max.is_some(), &why),
        ("swap.phone", s.phone.is_some(), &why),
    ])?;
    let copy = device.load + device.program.unwrap_or(Ps::ZERO);
    log::under_engine(s, CollectTimes { copy, erase: sheet.erase()? }, None).map(Some)
}

/// More buffers than any device has; a limit on what a typing error can allocate.
const BUFFERS_MAX: u32 = 1 << 16;

/// A page that stays in its buffer must fit there.
fn buffers(settings: &Settings, sheet: &Sheet, page: Bytes, handler: &Handler) -> Result<u32, ExperimentError> {
    let buffers = settings.machine.buffers.map_or_else(|| sheet.buffers(), Ok)?;
    if !(1..=BUFFERS_MAX).contains(&buffers) {
        let reason = format!("is {buffers}; a load needs at least 1, and no device has more than {BUFFERS_MAX}");
        return Err(ExperimentError::setting("machine.buffers", reason));
    }
    let buffer = sheet.page();
    if handler.needs_xip && !buffer.clone()?.0.is_multiple_of(page.0) {
        let (page, buffer, device) = (show_bytes(page), show_bytes(buffer?), &sheet.name);
        let reason = format!(
            "{page} does not divide the buffers of {buffer} of {device}, from which {} reads; give {buffer} or less",
            handler.name
        );
        return Err(ExperimentError::setting("page", reason));
    }
    Ok(buffers)
}

/// Pages read ahead need a place that is not a buffer.
fn read_ahead(settings: &Settings, handler: &Handler) -> Result<u32, ExperimentError> {
    let pages = settings.machine.read_ahead.unwrap_or(0);
    if pages > 0 && handler.needs_xip {
        let reason =
            format!("is not for {}, which keeps loaded pages in buffers; give 0 or another handler", handler.name);
        return Err(ExperimentError::setting("machine.read_ahead", reason));
    }
    Ok(pages)
}

/// The processor's cost of the stages, and the device's cost of a page.
fn prices(
    settings: &Settings,
    system: Option<&'static System>,
    policy: &str,
    sheet: &Sheet,
    page: Bytes,
) -> Result<(StagePrices, DeviceTimes), ExperimentError> {
    let defaults = system.map(|s| s.defaults);
    // Without a system, the processor is that of SWL's board, the only one whose handler has been measured stage by
    // stage, and the transfer is that of the sheet.
    let mut prices = system.map_or_else(|| (systems::measured().prices)(policy), |s| (s.prices)(policy));
    prices.trans_host_mem = match defaults.and_then(|d| d.trans_host_mem.map(|t| (d.page, t))) {
        Some((own, time)) => Ps((time.0 * page.0).div_ceil(own.0)),
        None => device_time::transfer(sheet, page)?,
    };
    let load = match defaults.and_then(|d| d.load_stopover.map(|t| (d.page, t))) {
        Some((own, time)) if own == page => time,
        _ => device_time::load(sheet, page)?,
    };
    let program = settings::time("time.program", &settings.time.program)?;
    let program = program.or_else(|| device_time::program(sheet, page).ok());
    Ok((prices, DeviceTimes { load, program }))
}
