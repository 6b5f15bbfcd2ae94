//! The guards of this user: how they are started, and what killed ones have left.

use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use coldframe_kernel::{left_behind, Guard, KernelError, Left, Tree};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::error::AnswerError;
use crate::listener::Listener;

/// The folder for what concerns this user's machine until it is restarted; `None`: the user has none.
pub(crate) fn folder() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = if rustix::process::geteuid().is_root() { Some("/run".into()) } else { runtime };
    folder.map(|folder| folder.join("coldframe"))
}

/// This program, for a hidden verb.
pub(crate) fn this(verb: &str) -> Result<Command, AnswerError> {
    let exe = std::env::current_exe();
    let exe = exe.map_err(|e| AnswerError::new(4, format!("coldframe does not find its own program: {e}")))?;
    let mut command = Command::new(exe);
    command.arg(verb);
    Ok(command)
}

/// Starts a guard.
pub(crate) fn guard() -> Result<Guard, KernelError> {
    let command = this("kernel-guard").map_err(|e: AnswerError| KernelError::Refused(e.to_string()))?;
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let name = format!("{}-{now:x}.guard", std::process::id());
    Guard::start(command, folder().map(|folder| folder.join(name)))
}

/// What killed guards have left, and the line that reverts it; `None`: nothing.
pub(crate) fn left() -> Option<Left> {
    let guards = left_behind(&Tree::machine(), &folder()?);
    let joined = |part: fn(&Left) -> &str, between: &str| guards.iter().map(part).collect::<Vec<_>>().join(between);
    (!guards.is_empty()).then(|| Left { what: joined(|left| &left.what, "; "), undo: joined(|left| &left.undo, "; ") })
}

/// Names that.
pub fn warn(listener: &dyn Listener) {
    if let Some(Left { what, undo }) = left() {
        let line =
            format!("coldframe: a guard was killed earlier, and has left {what}. This line reverts it:\n  {undo}\n");
        listener.warn(&line);
    }
}

/// The guard's process. It is in a session of its own, so that neither Ctrl-C nor the end of the terminal reaches it.
/// `complain` prints what it could not take away. Returns whether all is taken away.
pub fn serve(complain: impl Fn(&str)) -> bool {
    let _ = rustix::process::setsid();
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        let _ = signal_hook::flag::register(signal, ignored.clone());
    }
    let (complaints, rest) =
        coldframe_kernel::serve(&Tree::machine(), std::io::stdin().lock(), std::io::stdout().lock());
    complaints.iter().for_each(|complaint| complain(complaint));
    // Who reads coldframe's stderr to its end does not wait for the rest.
    let _ = std::fs::File::create("/dev/null").map(rustix::stdio::dup2_stderr);
    rest.finish(std::io::stdout().lock());
    complaints.is_empty()
}
