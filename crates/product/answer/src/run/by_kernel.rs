//! A run by the kernel: a memory group with the kernel's swap; and the process of coldframe that becomes the program.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use coldframe_kernel::{join, Group, Guard, KernelError, LimitWatch, Place, SwapKind, SwapSpace, Swaps, Tree};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::child::{below_since, Care};
use crate::run::guards::{self, guard, this};
use crate::run::order::{Order, Program, NO_LIMIT};
use crate::run::program::plain;
use crate::SCHEMA_VERSION;

/// The variable that says that this process is in a scope of systemd's that it asked for.
const SCOPED: &str = "COLDFRAME_SCOPED";

/// The time between two looks at a group: one takes some 100 us.
const GROUP_PAUSE: Duration = Duration::from_millis(5);

/// Runs of this process: processes of an earlier one may still be in its group.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// Where and how the kernel can page a program.
pub struct Ready {
    place: Place,
    swap: Option<SwapKind>,
}

/// Whether the kernel can page a program here.
pub fn ready(swap: Option<SwapKind>) -> Result<Ready, AnswerError> {
    let root = rustix::process::geteuid().is_root();
    match ready_here(swap) {
        Err(AnswerError::Kernel(error)) if !root && std::env::var_os(SCOPED).is_none() => Err(scope(error)),
        done => done,
    }
}

/// The same without a start of this command in a scope of its own.
pub fn ready_here(swap: Option<SwapKind>) -> Result<Ready, AnswerError> {
    let tree = Tree::machine();
    match &swap {
        None => Swaps::read(&tree).ready()?,
        Some(SwapKind::None) => {}
        Some(kind) => swappable(&tree, kind)?,
    }
    Ok(Ready { place: Place::find(&tree)?, swap })
}

/// Whether this user can make this swap here.
pub fn swappable(tree: &Tree, kind: &SwapKind) -> Result<(), AnswerError> {
    if *kind == SwapKind::None {
        return Err(AnswerError::usage("--swap none: only `run` has it; give zram, or the path of a new file"));
    }
    if !rustix::process::geteuid().is_root() {
        let message = "--swap makes and turns on swap, which only root may; run it as root, or without --swap";
        return Err(AnswerError::new(4, message));
    }
    kind.check(tree)?;
    if kind.file().is_some_and(|path| path.as_os_str().is_empty()) {
        return Err(AnswerError::usage("--swap: the name of the file is empty; give zram, or the path of a new file"));
    }
    match kind.file().filter(|path| path.exists()) {
        Some(path) => {
            let message = format!("--swap: {} is there already; give the path of a new file", path.display());
            Err(AnswerError::usage(message))
        }
        None => Ok(()),
    }
}

/// Starts this command again in a scope of the user's systemd, whose groups the user may write to. Returns only if that
/// is not possible.
fn scope(why: KernelError) -> AnswerError {
    let sockets = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("systemd/private"));
    if !sockets.is_some_and(|socket| socket.exists()) {
        return why.into();
    }
    let mut again = Command::new("systemd-run");
    again.args(["--user", "--scope", "--quiet", "--collect", "--"]).args(std::env::args_os()).env(SCOPED, "1");
    let error = again.exec();
    AnswerError::new(4, format!("{why}; systemd-run cannot be started: {error}"))
}

/// A run by the kernel.
#[derive(Serialize, JsonSchema)]
pub struct KernelRun {
    /// Version of this object's form.
    pub schema_version: u32,
    /// Version of coldframe.
    pub version: &'static str,
    /// `kernel`.
    pub by: &'static str,
    /// What the program was given.
    pub config: Given,
    /// Events of the group; bytes of swap are those of the whole machine.
    pub counts: GroupCounts,
    /// GroupMemory.
    pub memory: GroupMemory,
    /// Time in which the program waited for memory.
    pub stall: Stall,
    /// What became of the program.
    pub program: Program,
}

/// What the program was given.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Given {
    /// Bytes of RAM.
    pub ram: u64,
    /// The kind of swap.
    pub swap: String,
}

/// Events of the group.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct GroupCounts {
    /// Page faults.
    pub faults: u64,
    /// Of those, faults that waited for swap or files.
    pub major_faults: u64,
    /// Pages that came back soon after they had left.
    pub refaults: u64,
    /// Of those, pages of files.
    pub file_refaults: u64,
    /// Bytes written to swap.
    pub swap_out_bytes: u64,
    /// Bytes read from swap.
    pub swap_in_bytes: u64,
    /// Processes that the kernel killed for lack of memory.
    pub killed: u64,
}

/// The memory of the group.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct GroupMemory {
    /// The most bytes at a time; null: this kernel does not count them.
    pub peak_bytes: Option<u64>,
    /// Bytes of files in the cache.
    pub files_bytes: u64,
    /// The last limit of the group.
    pub limit_bytes: u64,
    /// Bytes that do not count in `--ram`: code, stacks, page tables.
    pub outside_heap_bytes: u64,
    /// Bytes of RAM that compressed pages took, at most.
    pub compressed_bytes: u64,
    /// The most bytes of RAM at one time of what counts in `--ram`: data in the group, and compressed pages. More than
    /// `--ram` if the data does not compress.
    pub together_bytes: u64,
}

/// Time in which the program waited for memory.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Stall {
    /// Some thread waited; null: this kernel does not count it.
    pub some_seconds: Option<f64>,
    /// All threads waited.
    pub full_seconds: Option<f64>,
    /// Waits for swap or files, by the processes' own counts.
    pub device_seconds: f64,
}

/// Runs the program and waits for it.
///
/// # Errors
/// The group, the swap or the program cannot be made; what was made is taken away.
pub fn by_kernel(ready: Ready, order: &Order, listener: &dyn Listener) -> Result<KernelRun, AnswerError> {
    if RUNS.load(Relaxed) == 0 {
        guards::warn(listener);
    }
    let mut guard = guard()?;
    let done = inside(&ready, order, &mut guard);
    if !guard.end() && std::io::stderr().is_terminal() {
        let left = "processes of the program still run; when they have ended, their group and swap are taken away\n";
        listener.warn(left);
    }
    done
}

fn inside(ready: &Ready, order: &Order, guard: &mut Guard) -> Result<KernelRun, AnswerError> {
    let (ram, size) = (order.options.ram, order.options.backing_max);
    let tree = Tree::machine();
    let space = match &ready.swap {
        Some(SwapKind::None) => SwapSpace::none(&tree, ready.place.version),
        Some(kind) => SwapSpace::new(&tree, ready.place.version, guard.swap(kind, kind.size(&tree, size))?),
        None => SwapSpace::on(&tree, ready.place.version),
    };
    let name = match RUNS.fetch_add(1, Relaxed) {
        0 => format!("coldframe-{}", std::process::id()),
        n => format!("coldframe-{}-{n}", std::process::id()),
    };
    let group = guard.group(&ready.place, &name, !space.is_none())?;
    let limit = (ram != NO_LIMIT).then_some((ram, order.in_all));
    let watch = limit.map(|limit| LimitWatch::start(&tree, &group, &space, limit)).transpose()?;
    let (began, others) = (Instant::now(), below_since());
    let ended = in_group(&group, order.command).and_then(|command| {
        let child = order.start(command)?;
        let (process, care) = (child.id(), Care { others: &others, ..order.care() });
        match order.group_look {
            Some(look) => child.wait(&Care { look: &|| look(&group, process), pause: GROUP_PAUSE, ..care }),
            None => child.wait(&care),
        }
    });
    let watched = watch.map(LimitWatch::end).unwrap_or_default();
    let (counters, stall) = (group.counters(), group.stall());
    Ok(KernelRun {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        by: "kernel",
        config: Given { ram, swap: space.words() },
        counts: GroupCounts {
            faults: counters.faults,
            major_faults: counters.major_faults,
            refaults: counters.refaults,
            file_refaults: counters.file_refaults,
            swap_out_bytes: space.out(),
            swap_in_bytes: space.back(),
            killed: counters.killed,
        },
        memory: GroupMemory {
            peak_bytes: group.peak(),
            files_bytes: counters.files,
            limit_bytes: watched.limit,
            outside_heap_bytes: watched.outside_heap,
            compressed_bytes: watched.compressed,
            together_bytes: watched.together,
        },
        stall: Stall {
            some_seconds: stall.map(|stall| stall.some.as_secs_f64()),
            full_seconds: stall.map(|stall| stall.full.as_secs_f64()),
            device_seconds: watched.delay.as_secs_f64(),
        },
        program: Program::ended(ended?, began),
    })
}

/// The command that joins the group and becomes the program.
fn in_group(group: &Group, program: &[OsString]) -> Result<Command, AnswerError> {
    let mut start = this("kernel-start")?;
    for door in group.doors() {
        start.arg("--door").arg(door);
    }
    start.arg("--").args(program);
    Ok(start)
}

/// Joins the groups by these files and becomes the program. Returns only if that is not possible.
pub fn become_program(doors: &[PathBuf], command: &[OsString]) -> AnswerError {
    if let Err((path, error)) = join(doors) {
        return AnswerError::new(126, format!("{}: {error}; the program is not started", path.display()));
    }
    let error = plain(command).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    AnswerError::new(code, format!("{} cannot be started: {error}", command[0].display()))
}
