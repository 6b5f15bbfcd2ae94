//! Starts a pager.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use coldframe_core::fault::handler;
use coldframe_core::policy::{Made, PolicyChoice};
use coldframe_core::swap::Swap;
use coldframe_core::{Below, ConfigError, Engine};
use coldframe_journal::Head;
use coldframe_recording::plan::{fitting, Plan, BATCH_MAX};

use super::fork::Forks;
use super::Inner;
use crate::fault::gate::{Decider, Gate};
use crate::fault::machine::UnderLock;
use crate::fault::Faults;
use crate::measure::{self, Measured};
use crate::memory::budget::{Reserve, Share};
use crate::memory::kernel_owned::KernelOwned;
use crate::memory::space::{self, Space};
use crate::memory::Memory;
use crate::record::journal::JournalFile;
use crate::record::own_file;
use crate::record::recorder::{self, Recording};
use crate::record::window::{Knobs, Watched};
use crate::region::ManagedMemory;
use crate::stats::{Chosen, Stats};
use crate::swap::area::areas;
use crate::swap::device::Device;
use crate::swap::files::SwapFiles;
use crate::swap::log::{Log, SEGMENT};
use crate::swap::seal::Sealer;
use crate::swap::slow::Slow;
use crate::sys::{self, Errno, High, Notify, Own, Source};
use crate::task::{Tasks, LOADS, TASKS};
use crate::threads::calls::WORKERS;
use crate::threads::Threads;
use crate::work::Work;
use crate::{LiveError, Options, Wait, FRAMES_MIN, PAGE, READ_AHEAD_MAX};

pub fn start(options: Options) -> Result<Arc<Inner>, LiveError> {
    let source = Source::find(Notify::Message).or_else(|_| Source::find(Notify::UserMessage));
    let inner = made(options, source.map_err(missing)?, false)?;
    super::process::register(&inner);
    Ok(inner)
}

pub fn start_for_program(options: Options) -> Result<Arc<Inner>, LiveError> {
    // Handlers, writer, the server of children, the lender, the pager process itself, and the one that makes it.
    sys::thread::reserve(options.handlers.max(1) + 4 + WORKERS + usize::from(options.one_budget));
    // A recorder reads the clocks of the program's threads, which only threads of the same process may.
    let own_process = options.record.is_none();
    let inner = made(options, Source::find(Notify::Message).map_err(missing)?, own_process)?;
    // The pager process works in its memory until the process ends.
    std::mem::forget(inner.clone());
    Ok(inner)
}

/// A pager with its threads; `own_process`: in a pager process.
fn made(mut options: Options, mut source: Source, own_process: bool) -> Result<Arc<Inner>, LiveError> {
    // A recording computes the cost of a fault from the processor time of the handler threads.
    source.may_poll &= options.record.is_none();
    let began = (recorder::in_ram(recorder::open(c"/proc/self/statm").as_ref()), sys::now());
    // Memory is not watched before it has to be. A recording and a journal have every first touch, and so has the
    // engine's swap area.
    let kernel_owned = own_process && options.journal.is_none() && options.swap.is_none() && options.slow.is_none();
    super::locked::refuse_locked()?;
    // Before the statistics, which are in a file themselves.
    crate::swap::device::refuse_small(&options.backing)?;
    let alone = options.record.is_some() || options.swap.is_some() || options.slow.is_some();
    options.one_budget &= own_process && !alone;
    let stats = crate::stats::file::of(options.stats_fd, own_process)?;
    let known = stats.0.measured();
    let inner = Arc::new(build(options, source, kernel_owned, stats, known, began)?);
    inner.managed.begin_at_floor();
    inner.count_in();
    let locked = inner.keep_plaintext();
    if known.is_none() {
        inner.say_limits(locked);
    }
    let kept = inner.options.stats_fd;
    // SAFETY: nothing has asked for its threads yet; its end stops them, or it has none.
    unsafe { inner.threads.start(&inner.managed, own_process, inner.forks.folder(), kept)? };
    Ok(inner)
}

fn build(
    mut options: Options,
    source: Source,
    kernel_owned: bool,
    (stats, stats_fd): (&'static Stats, Option<High>),
    known: Option<Measured>,
    began: (u64, u64),
) -> Result<Inner, LiveError> {
    options.handlers = options.handlers.max(1);
    if options.record.is_some() {
        recorder::fit(&mut options);
    }
    let pages = pages(&options)?;
    if options.record.is_some() {
        options.ram = options.ram.min((pages * PAGE) as u64);
    }
    let frames = frames(&options)?;
    options.max_memory = (pages * PAGE) as u64;
    let slow = options.slow.clone().map(|place| open_slow(&mut options, &place, pages)).transpose()?;
    let (slow, slow_device) = slow.unzip();
    let uffd = source.make(slow.is_some()).map_err(|error| match (&slow, error) {
        (Some(_), Errno::INVAL) => LiveError::Missing {
            feature: "slow memory",
            reason: sys::words(error).to_string(),
            remedy: "the kernel needs to be 6.4 or newer",
        },
        _ => missing(error),
    })?;
    let file = slow.as_ref().map(Slow::file);
    let space = Space::new(pages * PAGE, options.base.map(|base| base as usize), file)?;
    uffd.register(space.aside_range()).map_err(|e| LiveError::os("watch memory (UFFDIO_REGISTER)", e))?;
    let device = slow_device.map_or_else(|| Device::swap(&options.backing, options.inject), Ok)?;
    // A write beyond the limit on file sizes raises a signal, so the swap file stays below the limit.
    options.backing_max = options.backing_max.into_iter().chain(device.limit()).min();
    let measured = match known {
        Some(measured) => measured,
        // A recording does not wait for a device, and slow memory is none.
        None if options.record.is_some() || slow.is_some() => Measured { read_ns: 1, step_ns: 1 },
        None => measure::measure(&device.to_measure()?, &uffd, &space)?,
    };
    options.policy = Some(measured.policy(options.policy.as_deref()));
    let wait = match options.wait {
        Wait::Auto if measured.overlaps() => Wait::Brief,
        Wait::Auto => Wait::Read,
        given => given,
    };
    let tasks = tasks(&mut options, wait)?;
    let usual = fitting(measured.evict_batch(options.wait != Wait::Read), frames);
    let batch = options.evict_batch.map_or(usual, |n| n as usize);
    if batch == 0 || batch > BATCH_MAX.min(frames / 2) {
        let most = BATCH_MAX.min(frames / 2);
        return Err(LiveError::setting("evict_batch", format!("`{batch}` is not from 1 to {most}")));
    }
    options.evict_batch = Some(batch as u32);
    if options.read_ahead > READ_AHEAD_MAX {
        let given = options.read_ahead;
        return Err(LiveError::setting("read_ahead", format!("`{given}` is more than {READ_AHEAD_MAX} pages")));
    }
    if options.block > SEGMENT as u32 || !(options.block == 0 || options.block.is_power_of_two()) {
        let reason = format!("`{}` is no power of two up to {SEGMENT} slots", options.block);
        return Err(LiveError::Setting { field: "block", reason });
    }
    let plan = Plan::of(frames, batch);
    let plan = if options.record.is_some() { plan.without_reserve() } else { plan };
    let knobs = options.record.as_ref().map(recorder::knobs_of);
    let areas = |asked: &crate::SwapArea| areas(asked, &device, pages, options.backing_max);
    let below = Below { slots: None, swap: options.swap.as_ref().map(areas).transpose()? };
    let (engine, head) = engine(&options, &plan, pages, below, knobs.clone())?;
    stats.device_read_ns.store(measured.read_ns, Ordering::Relaxed);
    let policy = options.policy.clone().unwrap_or_default();
    stats.set_chosen(&Chosen { policy, wait: options.wait, evict_batch: batch as u32 });
    stats.walk_step_ns.store(measured.step_ns, Ordering::Relaxed);
    let blocks = engine.swap().map(Swap::block_count);
    let journal = journal(&options, &head)?;
    let loads = buffers(plan.buffers)?;
    let under_lock = UnderLock::new(loads.clone(), plan.buffers, journal);
    let sealer = if options.encrypt { Some(Sealer::new()?) } else { None };
    crate::sys::pause::set(options.inject.map_or(0, |inject| inject.pause));
    let swap_files = SwapFiles::open(&options.backing, options.inject)?;
    let mut log = Log::new(device, pages, options.backing_max, sealer, blocks)?;
    log.slow = slow;
    // SAFETY: a page of zeros.
    let zeros = unsafe { log.sum(space.zeros) };
    let begin = |asked| Recording::create(asked, knobs.clone().unwrap_or_default(), (space.start, pages), zeros);
    let mut recording = options.record.as_ref().map(begin).transpose()?;
    if let Some(recording) = &mut recording {
        recording.set_own(began);
    }
    let kernel_owned = if kernel_owned { KernelOwned::up_to(plan.frames) } else { KernelOwned::default() };
    stats.magic.store(Stats::MAGIC, Ordering::Release);
    let share = Share::new(stats, if options.one_budget { frames } else { 0 }, batch);
    let memory = Memory::new(space, uffd, Reserve::of(plan.reserve), share, kernel_owned, stats)?;
    let poll_ns = measured.read_ns + measured.read_ns / 2;
    let work = Work::new(memory, tasks, log, recording, loads, poll_ns, &options);
    let faults = Faults::new(work, Gate::new(Decider::new(engine, &options, under_lock)));
    Ok(Inner {
        managed: ManagedMemory::new(faults),
        threads: Threads::new(options.handlers),
        forks: Forks::new(swap_files),
        source: Own::new(source),
        stats,
        statistics: Own::new(stats_fd),
        left_statistics: AtomicBool::new(false),
        options,
    })
}

/// Slow memory, and what does not go with it.
fn open_slow(options: &mut Options, place: &str, pages: usize) -> Result<(Slow, Device), LiveError> {
    let others = [(options.record.is_some(), "record"), (options.swap.is_some(), "swap"), (options.encrypt, "encrypt")];
    if let Some((_, field)) = others.into_iter().find(|(given, _)| *given) {
        return Err(LiveError::setting(field, "does not go with `slow`"));
    }
    // A page that is read in its place is not read ahead.
    (options.read_ahead, options.block, options.wait) = (0, 0, Wait::Read);
    Slow::open(place, pages)
}

/// Memory for the engine's buffers, and for those that replace them.
fn buffers(count: usize) -> Result<Range<usize>, LiveError> {
    // Each task keeps one. This many more may wait in the task that needs another one; the rest comes back by itself.
    let bytes = (count + 2 * TASKS + LOADS) * PAGE;
    let memory = sys::map_memory(bytes).map_err(|e| LiveError::os("memory for buffers", e))?;
    Ok(memory..memory + bytes)
}

/// The tasks, and how to wait for the device. If the options do not say, and there are no rings (a kernel, a
/// container or a filter without io_uring), by plain reads.
fn tasks(options: &mut Options, wait: Wait) -> Result<Tasks, LiveError> {
    // Besides its handlers' faults, a program may map, discard, pin and fork at the same time.
    let count = (options.handlers + 6).min(TASKS);
    let asked = std::mem::replace(&mut options.wait, wait);
    match Tasks::new(count, wait != Wait::Read) {
        Err(_) if asked == Wait::Auto && wait != Wait::Read => {
            options.wait = Wait::Read;
            Tasks::new(count, false)
        }
        made => made,
    }
}

fn frames(options: &Options) -> Result<usize, LiveError> {
    let frames = options.ram as usize / PAGE;
    if frames < FRAMES_MIN {
        let least = FRAMES_MIN * PAGE / 1024;
        let reason = format!("{} bytes are too few; give at least {least}KiB ({FRAMES_MIN} pages)", options.ram);
        return Err(LiveError::Setting { field: "ram", reason });
    }
    Ok(frames)
}

fn pages(options: &Options) -> Result<usize, LiveError> {
    // A recorder takes all the RAM that there is, and does with less.
    let least = if options.record.is_some() { FRAMES_MIN } else { (options.ram as usize).div_ceil(PAGE) };
    let mut pages = (options.max_memory as usize).div_ceil(PAGE).max(least);
    if options.max_memory == Options::MAX_MEMORY {
        while pages / 2 >= least && !space::fits(pages * PAGE, options.base.map(|base| base as usize)) {
            pages /= 2;
        }
        if pages < Options::MAX_MEMORY as usize / PAGE {
            let mib = (pages * PAGE) >> 20;
            crate::sys::fatal::say(format_args!(
                "the limits of this process (`ulimit -v`, `ulimit -d`, vm.overcommit_memory) or what lies in its \
                 memory already leave addresses for {mib} MiB of managed memory"
            ));
        }
    }
    if pages >= 1 << 29 {
        let reason = format!("{} bytes are too many; give less than 2 TiB", options.max_memory);
        return Err(LiveError::Setting { field: "max_memory", reason });
    }
    Ok(pages)
}

fn engine(
    options: &Options,
    plan: &Plan,
    pages: usize,
    below: Below,
    knobs: Option<Arc<Knobs>>,
) -> Result<(Engine, Head), LiveError> {
    let text = options.policy.as_deref().unwrap_or_default();
    let choice = PolicyChoice::parse(text).map_err(|e| LiveError::setting("policy", e.to_string()))?;
    let policy = match knobs {
        Some(knobs) => Made { policy: Box::new(Watched::new(plan.frames, knobs)), insert_bit: true },
        None => choice.build(plan.frames, pages).map_err(|e| LiveError::setting("policy", e.to_string()))?,
    };
    let usable = |h: &&handler::Handler| !h.needs_xip;
    let handler = handler::find(&options.handler).filter(usable).ok_or_else(|| {
        let names: Vec<_> = handler::ALL.iter().copied().filter(usable).map(|h| h.name).collect();
        let (asked, names) = (&options.handler, names.join(", "));
        LiveError::setting("handler", format!("there is no handler `{asked}` for this machine; there are {names}"))
    })?;
    let mut config = plan.config(pages, below.swap.is_none());
    config.caps.direct_read = options.slow.is_some();
    let head = Head { below: below.clone(), ..Head::new(choice.to_string(), handler, config) };
    let engine = Engine::builder(config, policy, handler).below(below).build();
    let engine = engine.map_err(|error| match error {
        ConfigError::Swap(error) => LiveError::setting("swap", error.to_string()),
        error => LiveError::setting("ram", error.to_string()),
    })?;
    Ok((engine, head))
}

fn journal(options: &Options, head: &Head) -> Result<Option<JournalFile>, LiveError> {
    let Some(path) = &options.journal else { return Ok(None) };
    let file = if path.is_dir() { own_file(path) } else { File::create(path) };
    let file = file.map_err(|e| LiveError::Backing { path: path.clone(), reason: e.to_string() })?;
    let journal = JournalFile::new(head, file);
    let refused = |error: sys::Errno| LiveError::Backing { path: path.clone(), reason: sys::words(error).to_string() };
    journal.map(Some).map_err(refused)
}

fn missing(error: sys::Errno) -> LiveError {
    let remedy = match error {
        Errno::PERM => {
            "allow it with `sudo sysctl -w vm.unprivileged_userfaultfd=1`, give access to /dev/userfaultfd, or run as \
             root; in a container allow the system call in the seccomp profile"
        }
        Errno::NOSYS => "the kernel needs CONFIG_USERFAULTFD",
        _ => "the kernel needs to be 5.7 or newer",
    };
    LiveError::Missing { feature: "userfaultfd", reason: sys::words(error).to_string(), remedy }
}
