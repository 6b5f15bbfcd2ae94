//! `coldframe run --by kernel`: a memory group with the kernel's swap. And the two hidden verbs that it starts: the
//! guard, and the process that becomes the program.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use coldframe_kernel::{join, Group, Guard, KernelError, Place, SwapKind, SwapSpace, Swaps, Tree, Watch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::failure::Failure;
use crate::kernel_summary::Summary;
use crate::output;
use crate::running::{code, Running};

/// The variable that says that this process is in a scope of systemd's that it asked for.
const SCOPED: &str = "COLDFRAME_SCOPED";

/// Where and how the kernel can page a program.
pub struct Ready {
    place: Place,
    swap: Option<SwapKind>,
}

/// Whether the kernel can page a program here.
///
/// # Errors
/// It cannot: the reason and the remedy.
pub fn ready(swap: Option<SwapKind>) -> Result<Ready, Failure> {
    let tree = Tree::machine();
    let root = rustix::process::geteuid().is_root();
    match &swap {
        None => Swaps::read(&tree).ready()?,
        Some(kind) => swappable(&tree, kind)?,
    }
    match Place::find(&tree) {
        Ok(place) => Ok(Ready { place, swap }),
        Err(error) if root || std::env::var_os(SCOPED).is_some() => Err(error.into()),
        Err(error) => Err(scope(error)),
    }
}

/// Whether this user can make this swap here.
///
/// # Errors
/// It cannot be made: the reason and the remedy.
pub fn swappable(tree: &Tree, kind: &SwapKind) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        let message = "--swap makes and turns on swap, which only root may; run it as root, or without --swap";
        return Err(Failure::Other { message: message.into(), code: 4 });
    }
    kind.there(tree)?;
    if kind.file().is_some_and(|path| path.as_os_str().is_empty()) {
        return Err(Failure::usage("--swap: the name of the file is empty; give zram, or the path of a new file"));
    }
    match kind.file().filter(|path| path.exists()) {
        Some(path) => {
            let message = format!("--swap: {} is there already; give the path of a new file", path.display());
            Err(Failure::usage(message))
        }
        None => Ok(()),
    }
}

/// Starts this command again in a scope of the user's systemd, whose groups the user may write to. Returns only if that
/// is not possible.
fn scope(why: KernelError) -> Failure {
    let sockets = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("systemd/private"));
    if !sockets.is_some_and(|socket| socket.exists()) {
        return why.into();
    }
    let mut again = Command::new("systemd-run");
    again.args(["--user", "--scope", "--quiet", "--collect", "--"]).args(std::env::args_os()).env(SCOPED, "1");
    let error = again.exec();
    Failure::Other { message: format!("{why}; systemd-run cannot be started: {error}"), code: 4 }
}

/// A run that has ended.
pub struct Done {
    /// Its statistics.
    pub summary: Summary,
    /// Its exit code.
    pub code: u8,
}

/// Runs a program in so many bytes of RAM and waits for it. `size`: bytes of the swap to make, if not by the machine.
///
/// # Errors
/// The group, the swap or the program cannot be made; what was made is taken away.
pub fn go(ready: Ready, ram: u64, size: Option<u64>, program: &[OsString]) -> Result<Done, Failure> {
    let mut guard = Guard::start(this("kernel-guard")?)?;
    let done = inside(&ready, (ram, size), program, &mut guard);
    if !guard.end() && std::io::stderr().is_terminal() {
        output::tell("processes of the program still run; when they have ended, their group and swap are taken away\n");
    }
    done
}

fn inside(
    ready: &Ready,
    (ram, size): (u64, Option<u64>),
    program: &[OsString],
    guard: &mut Guard,
) -> Result<Done, Failure> {
    let tree = Tree::machine();
    let space = match &ready.swap {
        Some(kind) => SwapSpace::of(&tree, ready.place.version, guard.swap(kind, kind.size(&tree, size))?),
        None => SwapSpace::on(&tree, ready.place.version),
    };
    let group = guard.group(&ready.place, &format!("coldframe-{}", std::process::id()))?;
    let watch = Watch::start(&tree, &group, &space, ram)?;
    let began = Instant::now();
    let status = start(&group, program).and_then(|running| running.wait_with_signals(None));
    let took = began.elapsed();
    let watched = watch.end();
    let code = code(status?);
    Ok(Done { summary: Summary::new(ram, &group, &space, watched, code, took), code })
}

/// This program, for a hidden verb.
pub fn this(verb: &str) -> Result<Command, Failure> {
    let exe = std::env::current_exe()
        .map_err(|e| Failure::Other { message: format!("coldframe does not find its own program: {e}"), code: 4 })?;
    let mut command = Command::new(exe);
    command.arg(verb);
    Ok(command)
}

fn start(group: &Group, program: &[OsString]) -> Result<Running, Failure> {
    let mut start = this("kernel-start")?;
    for door in group.doors() {
        start.arg("--door").arg(door);
    }
    start.arg("--").args(program);
    Running::start(start, &program[0])
}

/// What the hidden verb that becomes the program reads.
#[derive(clap::Args)]
pub struct StartArgs {
    /// Files that put this process into the groups.
    #[arg(long)]
    door: Vec<PathBuf>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Joins the groups and becomes the program.
pub fn become_program(args: StartArgs) -> Result<ExitCode, Failure> {
    join(&args.door).map_err(|(path, error)| Failure::Other {
        message: format!("{}: {error}; the program is not started", path.display()),
        code: 126,
    })?;
    let (program, arguments) = args.command.split_first().expect("clap requires one");
    let error = Command::new(program).args(arguments).exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Err(Failure::Other { message: format!("{} cannot be started: {error}", Path::new(program).display()), code })
}

/// The guard's process. It is in a session of its own, so that neither Ctrl-C nor the end of the terminal reaches it.
pub fn guard() -> Result<ExitCode, Failure> {
    let _ = rustix::process::setsid();
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        let _ = signal_hook::flag::register(signal, ignored.clone());
    }
    let complaints = coldframe_kernel::serve(&Tree::machine(), std::io::stdin().lock(), std::io::stdout().lock());
    for complaint in &complaints {
        eprintln!("coldframe: {complaint}");
    }
    Ok(ExitCode::from(if complaints.is_empty() { 0 } else { 5 }))
}
