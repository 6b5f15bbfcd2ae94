//! From settings to what the simulator needs: names are resolved here, once, and nowhere else.

use crate::systems::{self, ddb, swl, System};
use coldframe_core::fault::handler::{self, Handler};
use coldframe_core::policy::{self, PolicyChoice, PolicyError};
use coldframe_core::{Bytes, Caps, Ps};
use coldframe_device::quantity::{self, show_bytes, show_time};
use coldframe_device::{sheet, time as device_time, Sheet, StagePrices};
use coldframe_sim::front_end::instruction::{Instruction, Reading, Shape};
use coldframe_sim::front_end::l1::{self, L1};
use coldframe_sim::front_end::plain::Plain;
use coldframe_sim::front_end::write_back::Replacement;
use coldframe_sim::front_end::{FrontEnd, Spaces};
use coldframe_sim::oracle::{self, OracleSpec};
use coldframe_sim::run::IdlePrices;
use coldframe_sim::swap::SwapConfig;
use coldframe_sim::DeviceTimes;
use coldframe_sim::{CollectTimes, Failures, LaneConfig, Stream};
use coldframe_trace::Provenance;
use serde_json::{json, Value};

use crate::error::{nearest, ReportError};
use crate::memory::{self, MemoryPrices, PageTimes};
use crate::settings::{Settings, Swap};
use crate::swap;

/// What decides whether two configurations can share one pass through a front end.
#[derive(Clone, PartialEq, Debug)]
pub struct FrontKey {
    /// log2 of the page size.
    pub page_shift: u32,
    /// References looked at.
    pub stream: Stream,
    /// The SWL front end under this reading; `None`: another one.
    pub reading: Option<Reading>,
    /// Instruction and data cache (`l1`).
    pub caches: bool,
    /// Which line of their sets a new one replaces.
    pub l1_replacement: Replacement,
    /// Demand-paged ranges; `None`: all.
    pub paged: Option<Vec<(u64, u64)>>,
    /// Rows skipped.
    pub skip: u64,
    /// Accesses after which to stop.
    pub accesses: Option<u64>,
    /// Prices outside of faults.
    pub idle: IdlePrices,
}

/// What simulates a configuration.
#[derive(Clone, Debug)]
pub enum Engine {
    /// The engine with a policy.
    Lane(Box<LaneConfig>),
    /// An oracle.
    Oracle(&'static OracleSpec),
}

/// A configuration with every name resolved.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Front end.
    pub front: FrontKey,
    /// Policy or oracle.
    pub engine: Engine,
    /// Frames.
    pub frames: usize,
    /// Prices of accesses to memory, where they have some.
    pub memory: Option<MemoryPrices>,
    /// Most pages of a sequential stream that are read ahead.
    pub read_ahead: u32,
    /// The swap area that pages are written to, and what a collection takes the device.
    pub swap: Option<(SwapConfig, CollectTimes)>,
    /// Every setting in force, as `-c` takes it.
    pub config: Value,
}

/// Distinct pages of a trace, by page shift and stream.
pub type Footprint<'a> = dyn FnMut(&FrontKey) -> Result<usize, ReportError> + 'a;

/// Resolves settings for a trace.
///
/// # Errors
/// Unknown names, quantities that cannot be, parameters that do not fit.
pub fn resolve(settings: &Settings, trace: &Provenance, footprint: &mut Footprint<'_>) -> Result<Plan, ReportError> {
    let system = settings.system.as_deref().map(find_system).transpose()?;
    let defaults = system.map(|s| (s.defaults)());
    let text = |own: &Option<String>, of_system: Option<&str>, none: &str| {
        own.clone().unwrap_or_else(|| of_system.unwrap_or(none).to_string())
    };
    let page = match &settings.page {
        Some(text) => quantity::bytes(text).map_err(|e| ReportError::quantity("page", e))?,
        None => defaults.map_or(Bytes(4096), |d| d.page),
    };
    let page_shift = page_shift(page, trace)?;
    let front_name = settings.front_end.chosen().or(defaults.map(|d| d.front_end)).unwrap_or("none").to_string();
    let all_it_sees = if front_name == "swl" { "I" } else { "ID" };
    let stream = stream(&text(&settings.stream, defaults.map(|d| d.stream), all_it_sees))?;
    let mut front = front_key(settings, trace, &front_name, page_shift, stream)?;
    let frames = frames(settings, page, &front, footprint)?;
    let policy_name = text(&settings.policy, defaults.map(|d| d.policy), "clock");
    let handler_name = text(&settings.handler, defaults.map(|d| d.handler), "parallel");
    let handler = find_handler(&handler_name)?;
    let sheet = sheet::find(&text(&settings.device, defaults.map(|d| d.device), "KFG1G16Q2M"))?;
    let plain_policy = policy_name.split(':').next().unwrap_or_default().to_string();
    let (prices, device) = times(settings, system, &plain_policy, &sheet, page)?;
    let machine = &settings.machine;
    let caps = Caps {
        reference_bit: machine.reference_bit.unwrap_or(true),
        dirty_bit: machine.dirty_bit.unwrap_or(true),
        buffers: buffers(settings, &sheet, page, handler)?,
        direct_read: false,
        places: false,
    };
    let pages = PageTimes { load: device.load, page_move: prices.trans_host_mem };
    let memory = match memory::main_memory(settings, defaults.and_then(|d| d.main_memory), front.caches)? {
        Some(ram) => Some(memory::prices(settings, &ram, &sheet, page, pages, handler.needs_xip)?),
        None => None,
    };
    if let Some(memory) = &memory {
        front.idle.main_read = memory.times.main_read;
        front.idle.main_write = memory.times.main_write;
        front.idle.xip_surplus = memory.times.xip_read - memory.times.main_read;
    }
    let evict_batch = machine.evict_batch.unwrap_or(1);
    if evict_batch == 0 || evict_batch > frames.max(1) {
        let reason = format!("`{evict_batch}` is not from 1 to the {frames} frames of RAM");
        return Err(ReportError::setting("machine.evict_batch", reason));
    }
    let (engine, policy_text) = match oracle::find(&plain_policy) {
        Some(spec) if plain_policy == policy_name => (Engine::Oracle(spec), policy_name),
        Some(_) => return Err(ReportError::setting("policy", format!("oracle `{plain_policy}` has no parameters"))),
        None => {
            let policy = find_policy(&policy_name)?;
            policy.build(frames, frames.max(1))?;
            let text = policy.to_string();
            (
                Engine::Lane(Box::new(LaneConfig {
                    policy,
                    handler,
                    frames,
                    evict_batch,
                    caps,
                    prices,
                    device,
                    failures: failures(settings)?,
                })),
                text,
            )
        }
    };
    let mut config =
        config(settings, &front, &front_name, &engine, policy_text, handler.name, frames, page, &sheet, caps);
    if let Some(memory) = &memory {
        memory.put_config(&mut config, matches!(engine, Engine::Lane(_)));
    }
    let read_ahead = read_ahead(settings, handler)?;
    if read_ahead > 0 {
        config["machine"]["read_ahead"] = read_ahead.into();
    }
    let swap = match &engine {
        Engine::Lane(_) => swap_area(settings, &sheet, device)?,
        Engine::Oracle(_) => None,
    };
    if let Some((_, _, shown)) = &swap {
        config["swap"] = shown.clone();
    }
    let swap = swap.map(|(area, times, _)| (area, times));
    Ok(Plan { front, engine, frames, memory, read_ahead, swap, config })
}

/// More buffers than any device has; a bound on what a slip of the pen can allocate.
const BUFFERS_MAX: u32 = 1 << 16;

/// A page that stays in its buffer must fit there.
fn buffers(settings: &Settings, sheet: &Sheet, page: Bytes, handler: &Handler) -> Result<u32, ReportError> {
    let buffers = settings.machine.buffers.map_or_else(|| sheet.buffers(), Ok)?;
    if !(1..=BUFFERS_MAX).contains(&buffers) {
        let reason = format!("is {buffers}; a load needs at least 1, and no device has more than {BUFFERS_MAX}");
        return Err(ReportError::setting("machine.buffers", reason));
    }
    let buffer = sheet.page();
    if handler.needs_xip && !buffer.clone()?.0.is_multiple_of(page.0) {
        let (page, buffer, device) = (show_bytes(page), show_bytes(buffer?), &sheet.name);
        let reason = format!(
            "{page} does not divide the buffers of {buffer} of {device}, from which {} reads; give {buffer} or less",
            handler.name
        );
        return Err(ReportError::setting("page", reason));
    }
    Ok(buffers)
}

/// Pages read ahead need a place that is not a buffer.
fn read_ahead(settings: &Settings, handler: &Handler) -> Result<u32, ReportError> {
    let pages = settings.machine.read_ahead.unwrap_or(0);
    if pages > 0 && handler.needs_xip {
        let reason =
            format!("is not for {}, which keeps loaded pages in buffers; give 0 or another handler", handler.name);
        return Err(ReportError::setting("machine.read_ahead", reason));
    }
    Ok(pages)
}

/// The swap area of LOBI, or of any `swap` setting; what a collection takes; the settings in force.
fn swap_area(
    settings: &Settings,
    sheet: &Sheet,
    device: DeviceTimes,
) -> Result<Option<(SwapConfig, CollectTimes, Value)>, ReportError> {
    let s = &settings.swap;
    if !systems::of(settings).is_some_and(System::has_log) && *s == Swap::default() {
        return Ok(None);
    }
    for (field, given) in [
        ("swap.read_ahead", s.read_ahead.is_some()),
        ("swap.cache", s.cache.is_some()),
        ("swap.keep", s.keep.is_some()),
        ("swap.layout", s.layout.as_deref() == Some("linux-ftl")),
    ] {
        if given {
            return Err(ReportError::setting(field, "is for swap traces; the paging engine reads a page at a time"));
        }
    }
    for (field, given) in [
        ("swap.backing", s.backing.is_some()),
        ("swap.size", s.size.is_some()),
        ("swap.reads_max", s.reads_max.is_some()),
        ("swap.start_gap", s.start_gap.is_some()),
        ("swap.prefetch", s.prefetch.is_some()),
        ("swap.activation", s.activation.is_some()),
        ("swap.phone", s.phone.is_some()),
    ] {
        if given {
            return Err(ReportError::setting(field, "is for tasks in the foreground; give the system drswap"));
        }
    }
    let plan = swap::resolve(settings)?;
    let mut shown = plan.shown["swap"].clone();
    for field in ["read_ahead", "cache", "keep"] {
        shown.as_object_mut().and_then(|s| s.remove(field));
    }
    let copy = device.load + device.program.unwrap_or(Ps::ZERO);
    Ok(Some((plan.config, CollectTimes { copy, erase: sheet.erase()? }, shown)))
}

/// Which transfers of the device fail.
///
/// # Errors
/// A rate that is no part of all transfers.
pub(crate) fn failures(settings: &Settings) -> Result<Option<Failures>, ReportError> {
    let Some(text) = &settings.fail.rate else {
        return match settings.fail.seed {
            Some(_) => Err(ReportError::setting("fail.seed", "says which transfers fail, but none do; give fail.rate")),
            None => Ok(None),
        };
    };
    let rate = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let bad =
        || ReportError::setting("fail.rate", format!("`{text}` is none; give 0 to 1, such as 0.001, or 0% to 100%"));
    let rate = rate.ok().filter(|rate| (0.0..=1.0).contains(rate)).ok_or_else(bad)?;
    Ok(Some(Failures { rate, seed: settings.fail.seed.unwrap_or(1) }))
}

fn find_system(name: &str) -> Result<&'static System, ReportError> {
    systems::find(name).ok_or_else(|| {
        let names = || systems::ALL.iter().map(|s| s.name);
        let list: Vec<_> = names().collect();
        let reason = format!("there is no system `{name}`; there are {}{}", list.join(", "), nearest(name, names()));
        ReportError::setting("system", reason)
    })
}

pub(crate) fn find_handler(name: &str) -> Result<&'static Handler, ReportError> {
    handler::find(name).ok_or_else(|| {
        let names = || handler::ALL.iter().map(|h| h.name);
        let list: Vec<_> = names().collect();
        let reason = format!("there is no handler `{name}`; there are {}{}", list.join(", "), nearest(name, names()));
        ReportError::setting("handler", reason)
    })
}

pub(crate) fn find_policy(text: &str) -> Result<PolicyChoice, ReportError> {
    PolicyChoice::parse(text).map_err(|error| match error {
        PolicyError::UnknownPolicy { name } => {
            let names = || policy::ALL.iter().map(|s| s.name).chain(oracle::ALL.iter().map(|s| s.name));
            let list: Vec<_> = names().collect();
            let near = nearest(&name, names());
            ReportError::setting("policy", format!("there is no policy `{name}`; there are {}{near}", list.join(", ")))
        }
        other => other.into(),
    })
}

fn page_shift(page: Bytes, trace: &Provenance) -> Result<u32, ReportError> {
    let bad = |reason: String| Err(ReportError::setting("page", reason));
    match page.0 {
        0 => bad("is 0; give a power of two from 1 byte to 1 GiB".into()),
        n if !n.is_power_of_two() || !(1..=1 << 30).contains(&n) => {
            bad(format!("{n} bytes cannot be; give a power of two from 1 byte to 1 GiB"))
        }
        n if trace.page_size.is_some_and(|reduced| n < reduced) => {
            let reduced = show_bytes(Bytes(trace.page_size.unwrap_or_default()));
            bad(format!(
                "{} is smaller than the {reduced} pages that the trace was reduced to; give {reduced} or more",
                show_bytes(page)
            ))
        }
        n => Ok(n.trailing_zeros()),
    }
}

fn stream(text: &str) -> Result<Stream, ReportError> {
    match text {
        "I" => Ok(Stream::Instructions),
        "D" => Ok(Stream::Data),
        "ID" => Ok(Stream::Both),
        other => Err(ReportError::setting("stream", format!("`{other}` is none; give I, D or ID"))),
    }
}

/// A time that may be given.
///
/// # Errors
/// It is none.
pub(crate) fn optional_time(field: &str, text: &Option<String>) -> Result<Option<Ps>, ReportError> {
    let read = |t: &String| quantity::time(t).map_err(|e| ReportError::quantity(field, e));
    text.as_ref().map(read).transpose()
}

fn front_key(
    settings: &Settings,
    trace: &Provenance,
    name: &str,
    page_shift: u32,
    stream: Stream,
) -> Result<FrontKey, ReportError> {
    let front = &settings.front_end;
    let reading = match (name, front.reading.as_deref()) {
        ("none" | "l1", None) => None,
        ("none" | "l1", Some(_)) => return Err(ReportError::setting("front_end.reading", "needs the front end swl")),
        ("swl", None | Some("A")) => Some(Reading::A),
        ("swl", Some("C")) => Some(Reading::C),
        ("swl", Some("D")) => Some(Reading::D),
        ("swl", Some(other)) => {
            return Err(ReportError::setting("front_end.reading", format!("`{other}` is none; give A, C or D")))
        }
        (other, _) => {
            let near = nearest(other, ["none", "swl", "l1"].into_iter());
            let reason = format!("there is no front end `{other}`; there are none, swl, l1 (or ddb){near}");
            return Err(ReportError::setting("front_end.name", reason));
        }
    };
    if reading.is_some() && stream != Stream::Instructions {
        return Err(ReportError::setting("stream", "the front end swl sees instruction fetches only; give I"));
    }
    if reading.is_some() && page_shift < swl::FRONT_END.line.trailing_zeros() {
        return Err(ReportError::setting("page", "is smaller than a cache line of the front end swl (32 bytes)"));
    }
    let caches = name == "l1";
    if caches && page_shift < ddb::L1.line.trailing_zeros() {
        return Err(ReportError::setting("page", "is smaller than a cache line of the front end l1 (32 bytes)"));
    }
    let paged = match front.paged.as_deref() {
        Some(_) if name == "none" => {
            return Err(ReportError::setting("front_end.paged", "needs the front end swl or l1"))
        }
        Some("all") => None,
        Some(text) => Some(ranges(text)?),
        None if caches => Some(mapped_read_only(trace)?),
        // The program's own code and that of its libraries, where the recorder has noted the mappings.
        None if reading.is_some() => mapped_code(trace),
        None => None,
    };
    let own = |field, text: &Option<String>, default: Option<Ps>| {
        optional_time(field, text).map(|t| t.or(default).unwrap_or(Ps::ZERO))
    };
    let swl_only = |time: Ps| reading.map(|_| time);
    let instruction = if caches { Some(ddb::L1.instruction) } else { swl_only(swl::FRONT_END.instruction) };
    let idle = IdlePrices {
        instruction: own("front_end.instruction", &front.instruction, instruction)?,
        icache_miss: own("front_end.icache_miss", &front.icache_miss, swl_only(swl::FRONT_END.icache_miss))?,
        reference: own("front_end.reference", &front.reference, None)?,
        ..IdlePrices::default()
    };
    if settings.limit.accesses == Some(0) {
        return Err(ReportError::setting("limit.accesses", "is 0; give at least 1 or leave it out"));
    }
    let (skip, accesses) = (settings.limit.skip.unwrap_or(0), settings.limit.accesses);
    let l1_replacement = l1_replacement(front.l1_replacement.as_deref(), caches)?;
    Ok(FrontKey { page_shift, stream, reading, caches, l1_replacement, paged, skip, accesses, idle })
}

fn l1_replacement(text: Option<&str>, caches: bool) -> Result<Replacement, ReportError> {
    const FIELD: &str = "front_end.l1_replacement";
    let Some(text) = text else { return Ok(Replacement::default()) };
    if !caches {
        return Err(ReportError::setting(FIELD, "needs the front end l1; give front_end.name=l1"));
    }
    let found = Replacement::ALL.into_iter().find(|one| one.name() == text);
    found.ok_or_else(|| ReportError::setting(FIELD, format!("`{text}` is none; give round-robin or lru")))
}

fn mapped_code(trace: &Provenance) -> Option<Vec<(u64, u64)>> {
    let code = trace.mappings.iter().filter(|m| m.protection.contains('x') && m.name.starts_with('/'));
    let ranges: Vec<_> = code.map(|m| (m.start, m.end)).collect();
    (!ranges.is_empty()).then_some(ranges)
}

/// `.text` and `.rodata`: what is mapped from files and cannot be written.
fn mapped_read_only(trace: &Provenance) -> Result<Vec<(u64, u64)>, ReportError> {
    let read_only = trace.mappings.iter().filter(|m| !m.protection.contains('w') && m.name.starts_with('/'));
    let ranges: Vec<_> = read_only.map(|m| (m.start, m.end)).collect();
    if ranges.is_empty() {
        let reason =
            "is not given and the trace has no mappings that say what is read-only; give 0xSTART-0xEND, or all";
        return Err(ReportError::setting("front_end.paged", reason));
    }
    Ok(ranges)
}

fn ranges(text: &str) -> Result<Vec<(u64, u64)>, ReportError> {
    let number = |t: &str| t.trim().strip_prefix("0x").and_then(|h| u64::from_str_radix(h, 16).ok());
    let range = |part: &str| {
        let (start, end) = part.split_once('-').map(|(a, b)| (number(a), number(b)))?;
        start.zip(end).filter(|(start, end)| start < end)
    };
    text.split(',')
        .map(|part| {
            range(part).ok_or_else(|| {
                let reason =
                    format!("`{part}` is no address range; give 0xSTART-0xEND with START below END, commas between");
                ReportError::setting("front_end.paged", reason)
            })
        })
        .collect()
}

fn frames(
    settings: &Settings,
    page: Bytes,
    front: &FrontKey,
    footprint: &mut Footprint<'_>,
) -> Result<usize, ReportError> {
    const FRAMES_MAX: u64 = 1 << 26;
    let bad = |field: &str, reason: String| Err(ReportError::setting(field, reason));
    let (field, frames) = match (&settings.ram, settings.frames) {
        (Some(_), Some(_)) => return bad("ram", "give ram or frames, not both: they mean the same thing".into()),
        (None, Some(0)) => return bad("frames", "is 0; give at least 1".into()),
        (None, Some(n)) => ("frames", n),
        (Some(text), None) => match text.strip_suffix('%').map(str::parse::<f64>) {
            Some(Ok(percent)) if percent > 0.0 && percent <= 1000.0 => {
                ("ram", ((footprint(front)? as f64 * percent / 100.0).round() as u64).max(1))
            }
            Some(_) => {
                return bad(
                    "ram",
                    format!("`{text}` cannot be read; give a size such as 64KiB, or 1% to 1000% of the footprint"),
                )
            }
            None => {
                let ram = quantity::bytes(text).map_err(|e| ReportError::quantity("ram", e))?;
                if ram.0 < page.0 {
                    let (ram, page) = (show_bytes(ram), show_bytes(page));
                    return bad("ram", format!("{ram} is smaller than one page of {page}; give at least {page}"));
                }
                ("ram", ram.0 / page.0)
            }
        },
        (None, None) => return bad("ram", "is not given; give --ram SIZE, such as 64KiB or 50%, or --frames N".into()),
    };
    if frames > FRAMES_MAX {
        return bad(
            field,
            format!(
                "{frames} frames are more than the {FRAMES_MAX} that the simulator holds; give less, or larger pages"
            ),
        );
    }
    Ok(frames as usize)
}

fn times(
    settings: &Settings,
    system: Option<&'static System>,
    policy: &str,
    sheet: &Sheet,
    page: Bytes,
) -> Result<(StagePrices, DeviceTimes), ReportError> {
    let defaults = system.map(|s| (s.defaults)());
    // Without a system the processor is that of SWL's board, the only one whose handler has been measured stage by stage, and the
    // transfer is the sheet's.
    let mut prices = system.map_or_else(|| swl::prices(policy), |s| (s.prices)(policy));
    prices.trans_host_mem = match defaults.and_then(|d| d.trans_host_mem.map(|t| (d.page, t))) {
        Some((own, time)) => Ps((time.0 * page.0).div_ceil(own.0)),
        None => device_time::transfer(sheet, page)?,
    };
    let load = match defaults.and_then(|d| d.load_stopover.map(|t| (d.page, t))) {
        Some((own, time)) if own == page => time,
        _ => device_time::load(sheet, page)?,
    };
    let t = &settings.time;
    for (field, text, price) in [
        ("time.pre_process", &t.pre_process, &mut prices.pre_process),
        ("time.get_freeframe", &t.get_freeframe, &mut prices.get_freeframe),
        ("time.walk_step", &t.walk_step, &mut prices.walk_step),
        ("time.delayed_downgrade", &t.delayed_downgrade, &mut prices.delayed_downgrade),
        ("time.trans_host_mem", &t.trans_host_mem, &mut prices.trans_host_mem),
        ("time.update_mmu", &t.update_mmu, &mut prices.update_mmu),
        ("time.post_process", &t.post_process, &mut prices.post_process),
        ("time.false_fault_reference", &t.false_fault_reference, &mut prices.false_fault_reference),
        ("time.false_fault_rest", &t.false_fault_rest, &mut prices.false_fault_rest),
    ] {
        if let Some(time) = optional_time(field, text)? {
            *price = time;
        }
    }
    let load = optional_time("time.load_stopover", &t.load_stopover)?.unwrap_or(load);
    let program = match optional_time("time.program", &t.program)? {
        Some(time) => Some(time),
        None => device_time::program(sheet, page).ok(),
    };
    Ok((prices, DeviceTimes { load, program }))
}

#[allow(clippy::too_many_arguments)] // One flat list of what is in force; a struct would only repeat it.
fn config(
    settings: &Settings,
    front: &FrontKey,
    front_name: &str,
    engine: &Engine,
    policy: String,
    handler: &str,
    frames: usize,
    page: Bytes,
    sheet: &Sheet,
    caps: Caps,
) -> Value {
    let mut front_end = json!({ "name": front_name });
    if let Some(reading) = front.reading {
        front_end["reading"] = reading.name().into();
    }
    if let Some(paged) = &front.paged {
        let ranges: Vec<_> = paged.iter().map(|(a, b)| format!("{a:#x}-{b:#x}")).collect();
        front_end["paged"] = ranges.join(",").into();
    } else if front.caches {
        front_end["paged"] = "all".into();
    }
    if front.caches {
        front_end["l1_replacement"] = front.l1_replacement.name().into();
    }
    for (key, time) in [
        ("instruction", front.idle.instruction),
        ("icache_miss", front.idle.icache_miss),
        ("reference", front.idle.reference),
    ] {
        if time != Ps::ZERO {
            front_end[key] = show_time(time).into();
        }
    }
    let mut config = json!({
        "policy": policy,
        "frames": frames,
        "page": show_bytes(page),
        "stream": front.stream.name(),
        "front_end": front_end,
        "limit": { "skip": front.skip },
    });
    if let Some(system) = &settings.system {
        config["system"] = system.clone().into();
    }
    if let Some(accesses) = front.accesses {
        config["limit"]["accesses"] = accesses.into();
    }
    if let Engine::Lane(lane) = engine {
        config["handler"] = handler.into();
        config["device"] =
            settings.device.clone().filter(|d| d.ends_with(".toml")).unwrap_or_else(|| sheet.name.clone()).into();
        config["machine"] = json!({ "reference_bit": caps.reference_bit, "dirty_bit": caps.dirty_bit, "buffers": caps.buffers, "evict_batch": lane.evict_batch });
        let mut time = serde_json::to_value(lane.prices).expect("prices are plain data");
        time["load_stopover"] = show_time(lane.device.load).into();
        if let Some(program) = lane.device.program {
            time["program"] = show_time(program).into();
        }
        config["time"] = time;
    }
    config
}

impl FrontKey {
    /// Makes the front end for a trace.
    pub fn build(&self, trace: &Provenance) -> Box<dyn FrontEnd> {
        let spaces = spaces(trace);
        if self.caches {
            let (line_shift, ddb::Caches { sets, ways, .. }) = (ddb::L1.line.trailing_zeros(), ddb::L1);
            let shape = l1::Shape { line_shift, sets, ways, replacement: self.l1_replacement };
            return Box::new(L1::new(shape, self.stream, self.page_shift, spaces, self.paged.clone(), self.accesses));
        }
        match self.reading {
            None => Box::new(Plain::new(self.stream, self.page_shift, spaces, self.accesses)),
            Some(reading) => {
                let s = swl::FRONT_END;
                let shape = Shape {
                    line_shift: s.line.trailing_zeros(),
                    sets: s.sets,
                    ways: s.ways,
                    tlb_sets: s.tlb_sets,
                    tlb_ways: s.tlb_ways,
                };
                let paged = self.paged.clone();
                Box::new(Instruction::new(shape, reading, self.page_shift, spaces, paged, self.accesses))
            }
        }
    }

    /// The most pages the trace can touch, from the granules that its header counts.
    pub fn pages_max(&self, trace: &Provenance) -> usize {
        let granules = trace.pages_1KiB as usize;
        match self.page_shift {
            shift @ 0..=9 => granules << (10 - shift),
            _ => granules,
        }
    }
}

/// Threads share the address space of their process.
pub(crate) fn spaces(trace: &Provenance) -> Spaces {
    let mut spaces: Vec<u32> = Vec::new();
    for task in &trace.tasks {
        let id = task.id as usize;
        if id < 1 << 20 {
            while spaces.len() <= id {
                spaces.push(spaces.len() as u32);
            }
            spaces[id] = task.space;
        }
    }
    Spaces(spaces)
}
