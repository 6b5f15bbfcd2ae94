//! A program before it starts: which binary runs, whether our pager can serve its heap, and how it is started with it.

use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::rights::{examine, is_ram, Finding, Health};
use coldframe_live::Options;

use crate::error::AnswerError;
use crate::run::bundle;
use crate::run::lookup::{interpreter, library_places, resolve, sanitizer};
use crate::run::signals::hand_down;

/// The library that holds the program's heap.
pub const PRELOAD: &str = "libcoldframe_preload.so";
/// Programs that start another one in another root.
const ROOTS: [&str; 4] = ["chroot", "schroot", "bwrap", "systemd-nspawn"];

/// Folders that a program may be in, one in the other; a program in more does not load the library.
const FOLDERS_MAX: usize = 64;

/// The folder of temporary files, or one on a disk if that folder is in RAM.
pub fn default_backing() -> PathBuf {
    let usual = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or("/tmp".into(), PathBuf::from);
    let disk = PathBuf::from("/var/tmp");
    if is_ram(&usual) && disk.is_dir() {
        disk
    } else {
        usual
    }
}

/// A command line as a shell reads it.
pub fn line<W: AsRef<OsStr>>(command: &[W]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    shlex::try_join(words.iter().map(AsRef::as_ref)).unwrap_or_else(|_| words.join(" "))
}

/// A command line, and the binary that the kernel will load. It is looked up once, whatever the question.
#[derive(Clone, Debug)]
pub struct Executable {
    words: Vec<OsString>,
    binary: PathBuf,
}

impl Executable {
    /// Looks a command line's program up.
    ///
    /// # Errors
    /// It is not there, or cannot be executed.
    ///
    /// # Panics
    /// If there is no word.
    pub fn find(command: &[OsString]) -> Result<Executable, AnswerError> {
        proc_is_mounted()?;
        let search = std::env::var_os("PATH").unwrap_or_default();
        let (program, arguments) = command.split_first().expect("a command line has a program");
        Ok(Executable { words: command.to_vec(), binary: resolve(program, arguments, &search)?.binary })
    }

    /// The binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }
}

impl Deref for Executable {
    type Target = [OsString];

    fn deref(&self) -> &[OsString] {
        &self.words
    }
}

/// Whether our pager can serve the program's heap.
pub fn manageable(program: &Executable) -> Result<(), AnswerError> {
    let binary = program.binary.as_path();
    let refuse = |why: &str| Err(AnswerError::new(4, format!("{} cannot be paged: {why}", binary.display())));
    let mode = std::fs::metadata(binary).map(|m| m.permissions().mode()).unwrap_or(0);
    if mode & 0o6000 != 0 {
        return refuse(
            "it is setuid or setgid, and the dynamic linker then ignores LD_PRELOAD; run a copy without that bit",
        );
    }
    if binary.file_name().and_then(OsStr::to_str).is_some_and(|name| ROOTS.contains(&name)) {
        return refuse("in the new root the program does not find our library; start coldframe in that root");
    }
    match interpreter(binary) {
        Err(error) => refuse(&format!("{error}")),
        Ok(None) => refuse("it is linked statically, so nothing can take its place of malloc; link it dynamically"),
        Ok(Some(linker)) if linker.to_string_lossy().contains("musl") => {
            refuse("it is linked with musl; only glibc's programs can be paged")
        }
        Ok(Some(linker)) if !linker.exists() => {
            refuse(&format!("it is for another machine: its dynamic linker {} is not here", linker.display()))
        }
        Ok(Some(_)) => match sanitizer(binary) {
            Some(name) => {
                refuse(&format!("it was built with {name}, which keeps notes of all memory at addresses of its own"))
            }
            None => Ok(()),
        },
    }
}

/// Processes, and this program's own file, are found by `/proc`.
pub(crate) fn proc_is_mounted() -> Result<(), AnswerError> {
    match Path::new("/proc/self/exe").exists() {
        true => Ok(()),
        false => Err(AnswerError::new(4, "/proc is not there; as root: mount -t proc proc /proc")),
    }
}

/// The preload library.
pub fn find_preload() -> Result<PathBuf, AnswerError> {
    proc_is_mounted()?;
    bundle::library(PRELOAD)?.ok_or_else(|| {
        let exe = std::env::current_exe().unwrap_or_default();
        let folder = exe.parent().unwrap_or(Path::new("."));
        let places: Vec<_> = library_places(folder, PRELOAD).iter().map(|p| p.display().to_string()).collect();
        let places = places.join(", ");
        AnswerError::new(
            4,
            format!("{PRELOAD} not found in {places}; build it with `cargo build --release -p coldframe-preload`"),
        )
    })
}

/// What this machine lacks to page with this folder for the swap file.
pub fn allowed(backing: &Path) -> Result<(), AnswerError> {
    lacks(backing, |_| true)
}

/// Whether our pager can record the program.
pub fn pageable(program: &Executable) -> Result<(), AnswerError> {
    manageable(program)?;
    find_preload()?;
    // No folder is checked: all recorded pages stay in RAM.
    lacks(Path::new(""), |finding| finding.name != "swap file")
}

fn lacks(backing: &Path, matters: impl Fn(&Finding) -> bool) -> Result<(), AnswerError> {
    let missing = |finding: &Finding| finding.health == Health::Missing && matters(finding);
    let Some(missing) = examine(backing).into_iter().find(missing) else { return Ok(()) };
    let code = if missing.name == "swap file" { 5 } else { 4 };
    Err(AnswerError::new(code, format!("{}: {}; {}", missing.name, missing.state, missing.remedy)))
}

/// The command that starts the program with our pager.
pub fn with_pager(command: &[OsString], options: &Options) -> Result<Command, AnswerError> {
    let mut process = preloading(command)?;
    process.env("COLDFRAME_OPTIONS", options.encode());
    Ok(process)
}

/// The command that starts the program with our library.
pub(crate) fn preloading(command: &[OsString]) -> Result<Command, AnswerError> {
    // Ours is loaded first, then the user's own.
    let mut preload = from_program(&find_preload()?);
    if let Some(preloaded) = std::env::var_os("LD_PRELOAD").filter(|preloaded| !preloaded.is_empty()) {
        preload.push(OsStr::new(":"));
        preload.push(preloaded);
    }
    let mut process = plain(command);
    process.arg0(&command[0]).env("LD_PRELOAD", preload);
    Ok(process)
}

/// The library's path, from the folder of the program that loads it. glibc puts that folder in place of `$ORIGIN`. The
/// dynamic linker of musl does not, finds no such file and starts the program without the library; it could not load
/// the library, and would not start the program.
fn from_program(library: &Path) -> OsString {
    let root = format!("$ORIGIN{}", "/..".repeat(FOLDERS_MAX));
    let library = std::path::absolute(library).unwrap_or_else(|_| library.into());
    OsString::from_iter([OsStr::new(&root), library.as_os_str()])
}

/// Whether this user may make swap.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The command as it is, with the signals that coldframe was started with.
pub fn plain(command: &[OsString]) -> Command {
    let mut process = Command::new(&command[0]);
    hand_down(process.args(&command[1..]));
    process
}

/// Opens a page in the user's browser, if that is possible.
pub fn show(page: &Path) -> bool {
    let (out, errors) = (std::process::Stdio::null(), std::process::Stdio::null());
    Command::new("xdg-open").arg(page).stdout(out).stderr(errors).status().is_ok_and(|status| status.success())
}
