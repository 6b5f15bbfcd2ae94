//! A run by the kernel: a memory group with the kernel's swap; and the process of coldframe that becomes the program.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use coldframe_kernel::{
    join, stay, Group, Guard, KernelError, LimitWatch, Place, Pool, SwapKind, SwapSpace, Swaps, Tree,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::AnswerError;
use crate::listener::Listener;
use crate::run::child::{below_since, Care};
use crate::run::guards::{self, guard, this};
use crate::run::order::{Order, Program, NO_LIMIT};
use crate::run::program::{default_backing, plain};
use crate::run::signals::hand_down;
use crate::SCHEMA_VERSION;

/// The variable that says that this process is in a scope of systemd's that it asked for.
const SCOPED: &str = "COLDFRAME_SCOPED";

/// How often it is asked whether pages should go to a disk.
const LOOK: Duration = Duration::from_millis(2);
/// The time between two looks at a group: one takes some 100 us.
const GROUP_LOOK: Duration = Duration::from_millis(5);

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
        return Err(AnswerError::usage("--swap none: nothing could leave; give zram, or the path of a new file"));
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

/// Whether this user's systemd runs.
fn has_session() -> bool {
    let sockets = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("systemd/private"));
    sockets.is_some_and(|socket| socket.exists())
}

/// Whether that one gives scopes whose memory the user may limit: with cgroup v2 only.
pub(crate) fn has_scopes(tree: &Tree) -> bool {
    let controllers = std::fs::read_to_string(tree.path("/sys/fs/cgroup/cgroup.controllers")).unwrap_or_default();
    has_session() && controllers.split_whitespace().any(|name| name == "memory")
}

/// Starts this command again in a scope of the user's systemd, whose groups the user may write to. Returns only if that
/// is not possible.
fn scope(why: KernelError) -> AnswerError {
    if !has_session() {
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
    /// Events of the group.
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
    /// Bytes of RAM, for all memory of the program and what it starts.
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
    /// Bytes written to swap. Where the kernel does not count them for a group (cgroup v1): what came back and was out
    /// at one time, at most.
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
    /// Bytes of RAM that compressed pages took, at most.
    pub compressed_bytes: u64,
    /// The most bytes of RAM at one time: the group's, and compressed pages.
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
    let version = ready.place.version;
    let _ = std::thread::Builder::new().spawn(move || stay(&Tree::machine(), version));
    let guard = Mutex::new(guard()?);
    let done = inside(&ready, order, &guard, listener);
    if !guard.into_inner().unwrap_or_else(PoisonError::into_inner).end() && std::io::stderr().is_terminal() {
        let left = "processes of the program still run; when they have ended, their group and swap are taken away\n";
        listener.warn(left);
    }
    done
}

fn inside(
    ready: &Ready,
    order: &Order,
    guard: &Mutex<Guard>,
    listener: &dyn Listener,
) -> Result<KernelRun, AnswerError> {
    let change = || guard.lock().unwrap_or_else(PoisonError::into_inner);
    let (ram, size) = (order.options.ram, order.options.backing_max);
    let tree = Tree::machine();
    let space = match &ready.swap {
        Some(SwapKind::None) => SwapSpace::none(&tree, ready.place.version),
        Some(kind) => SwapSpace::new(&tree, ready.place.version, change().swap(kind, kind.size(&tree, size))?),
        None => SwapSpace::on(&tree, ready.place.version),
    };
    let name = match RUNS.fetch_add(1, Relaxed) {
        0 => format!("coldframe-{}", std::process::id()),
        n => format!("coldframe-{}-{n}", std::process::id()),
    };
    let group = change().group(&ready.place, &name, !space.is_none())?;
    let watch = (ram != NO_LIMIT).then(|| LimitWatch::start(&tree, &group, &space, ram)).transpose()?;
    let (zram, disk) = (ready.swap == Some(SwapKind::Zram), OnceLock::new());
    let look = || {
        let Some(watch) = watch.as_ref().filter(|_| zram) else { return };
        let Some(pool) = watch.full() else { return };
        let taken = disk.get_or_init(|| take_disk(pool, &group, ram, &mut change(), listener));
        taken.iter().for_each(|_| watch.go_on());
    };
    let (began, others) = (Instant::now(), below_since());
    let ended = in_group(&group, order.command).and_then(|command| {
        let child = order.start(command)?;
        let (process, group_look) = (child.id(), order.group_look);
        let look = || {
            look();
            group_look.iter().for_each(|look| look(&group, process));
        };
        let pause = if zram { LOOK } else { GROUP_LOOK };
        child.wait(&Care { others: &others, look: &look, pause, ..order.care() })
    });
    let watched = watch.map(LimitWatch::end).unwrap_or_default();
    let (counters, stall) = (group.counters(), group.stall());
    Ok(KernelRun {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION"),
        by: "kernel",
        config: Given {
            ram,
            swap: space.words() + &disk.into_inner().flatten().map_or_else(String::new, |file| format!(", {file}")),
        },
        counts: GroupCounts {
            faults: counters.faults,
            major_faults: counters.major_faults,
            refaults: counters.refaults,
            file_refaults: counters.file_refaults,
            swap_out_bytes: watched.swapped_out,
            swap_in_bytes: watched.swapped_in,
            killed: counters.killed,
        },
        memory: GroupMemory {
            peak_bytes: group.peak(),
            files_bytes: counters.files,
            limit_bytes: watched.limit,
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

/// Has further pages go to a disk, since compressing them does not pay, and says so. Returns the swap file.
fn take_disk(pool: Pool, group: &Group, ram: u64, guard: &mut Guard, listener: &dyn Listener) -> Option<String> {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let name = group.folder().file_name().unwrap_or_default().display();
    let path = default_backing().join(format!("{name}.swap"));
    // Room on a disk takes milliseconds for each GiB, and the program waits for it.
    let size = SwapKind::File(path.clone()).size(&Tree::machine(), None).min((4 * ram).max(2 << 30));
    let file = guard.disk(group, &path, size);
    let rest = match &file {
        Ok(file) => format!("the rest goes to {file}"),
        Err(why) => format!("and there is no disk for the rest ({why}), so it takes more than --ram"),
    };
    let (held, taken) = (mib(pool.held), mib(pool.taken));
    listener.note(&format!("note: zram takes {taken} MiB for {held} MiB of this data; {rest}\n"));
    file.ok()
}

/// The command that joins the group and becomes the program.
fn in_group(group: &Group, program: &[OsString]) -> Result<Command, AnswerError> {
    let mut start = this("kernel-start")?;
    for door in group.doors() {
        start.arg("--door").arg(door);
    }
    hand_down(start.arg("--").args(program));
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
