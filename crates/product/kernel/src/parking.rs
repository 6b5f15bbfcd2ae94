//! The parking processes: one for each parked program, with a socket in a folder of its user. It keeps the list in its
//! memory until the program ends, and holds the freeze together with a [`Guard`].
//!
//! ```text
//!   coldframe ── VERB TAB build TAB own process ──► its parking process      one line each way, then the socket closes
//!             ◄── its state, or why not, as JSON ──
//! ```

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{flock, FlockOperation};

use crate::files::hash;
use crate::{Guard, KernelError};
use coldframe_proc::Tree;

mod lists;
mod order;
mod pages;
pub(crate) mod parked;

use parked::{Parked, Program};

/// How often the parking process checks that program and guard run, seconds.
const LOOK: i64 = 1;

/// The programs of a user, by a folder for their sockets.
#[derive(Debug, Clone)]
pub struct Parking {
    folder: PathBuf,
    lists: PathBuf,
    build: String,
}

impl Parking {
    /// In this folder, with the lists of earlier starts in `lists`. `build` distinguishes the parking processes of
    /// other builds.
    pub fn new(folder: impl Into<PathBuf>, lists: impl Into<PathBuf>, build: &str) -> Parking {
        Parking { folder: folder.into(), lists: lists.into(), build: build.into() }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{:016x}.park", hash(name)))
    }

    /// Asks the parking process of a program to `park` it, to fetch its list `soon`, to `resume` it, or to `list` it;
    /// `None`: it has no parking process.
    ///
    /// # Errors
    /// The parking process refuses, or is another user's.
    pub fn ask(&self, name: &str, verb: &str) -> Result<Option<Program>, KernelError> {
        self.ask_at(&self.socket(name), verb)
    }

    fn ask_at(&self, socket: &Path, verb: &str) -> Result<Option<Program>, KernelError> {
        let mut stream = match UnixStream::connect(socket) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
            Err(e) => return Err(KernelError::file(socket, e, "run it as the user who has parked it")),
        };
        let line = format!("{verb}\t{}\t{}\n", self.build, std::process::id());
        let mut reply = String::new();
        let done = stream.write_all(line.as_bytes()).and_then(|()| BufReader::new(stream).read_line(&mut reply));
        match (done, serde_json::from_str::<Result<Program, String>>(&reply)) {
            (Ok(_), Ok(answer)) => answer.map(Some).map_err(KernelError::Refused),
            // It has just ended.
            _ => Ok(None),
        }
    }

    /// All programs that have a parking process.
    pub fn programs(&self) -> Vec<Program> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let sockets = entries.filter(|path| path.extension().is_some_and(|end| end == "park"));
        let mut programs: Vec<_> = sockets.filter_map(|socket| self.ask_at(&socket, "list").ok()?).collect();
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        programs
    }

    /// The work of a parking process, until its program ends. `ready` is called when it accepts commands.
    ///
    /// # Errors
    /// There is no such program, it has a parking process, or the socket cannot be made.
    pub fn keep(
        &self,
        tree: &Tree,
        name: &str,
        guard: &dyn Fn() -> Result<Guard, KernelError>,
        ready: impl FnOnce(),
    ) -> Result<(), KernelError> {
        let mut parked = Parked::find(tree, name, &self.lists)?;
        let socket = self.socket(name);
        let listener = self.listen(&socket)?;
        ready();
        let look = Timespec { tv_sec: LOOK, tv_nsec: 0 };
        // A program that could not be parked needs no parking process.
        let mut needed = true;
        while needed && parked.is_alive() {
            let came = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&look)).unwrap_or(0);
            if came == 0 {
                parked.end_idle_guard();
            }
            // Without its guard the program continues.
            parked.check_guard();
            if let Some(Ok((stream, _))) = (came > 0).then(|| listener.accept()) {
                needed = self.serve(&mut parked, stream, guard);
            }
        }
        let _ = std::fs::remove_file(socket);
        Ok(())
    }

    /// The socket. One without a listener is left from a parking process that was killed.
    fn listen(&self, socket: &Path) -> Result<UnixListener, KernelError> {
        let failed = |e| KernelError::file(&self.folder, e, "XDG_RUNTIME_DIR must be a folder of your own");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let lock = std::fs::File::create(self.folder.join("lock")).map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
        if UnixStream::connect(socket).is_ok() {
            return Err(KernelError::lacks("another coldframe parks it at this moment", "try again"));
        }
        let _ = std::fs::remove_file(socket);
        UnixListener::bind(socket).map_err(failed)
    }

    /// False: the parking process is not needed any more.
    fn serve(
        &self,
        parked: &mut Parked,
        mut stream: UnixStream,
        guard: &dyn Fn() -> Result<Guard, KernelError>,
    ) -> bool {
        let mut line = String::new();
        let _ = stream.set_read_timeout(Some(Duration::from_secs(LOOK as u64)));
        let read = stream.try_clone().and_then(|stream| BufReader::new(stream).read_line(&mut line));
        let words: Vec<_> = line.trim_end().split('\t').collect();
        let (Ok(_), &[verb, build, asking]) = (read, words.as_slice()) else { return true };
        let name = parked.name.clone();
        let lacks = |what: String, remedy: &str| Err(KernelError::lacks(what, remedy));
        let done = match verb {
            "list" => Ok(parked.status()),
            _ if build != self.build => lacks(
                format!("{name} is kept by another build of coldframe ({})", self.build),
                &format!("use that one, or kill {}: then it runs, and its list is gone", std::process::id()),
            ),
            "park" if parked.is_parked() => {
                lacks(format!("{name} is parked already"), &format!("`coldframe resume {name}` lets it run"))
            }
            "park" => parked.park(guard, asking.parse().unwrap_or(0)),
            _ if !parked.is_held() => {
                lacks(format!("{name} runs already"), &format!("`coldframe park {name}` stops it"))
            }
            "soon" => {
                parked.prefetch(move |state| answer(&mut stream, Ok(state)));
                return true;
            }
            _ => parked.resume(),
        };
        answer(&mut stream, done);
        parked.was_parked()
    }
}

/// A client that is gone needs no answer.
fn answer(stream: &mut UnixStream, done: Result<Program, KernelError>) {
    let line = serde_json::to_string(&done.map_err(|why| why.to_string())).expect("plain data has a JSON form");
    let _ = writeln!(stream, "{line}");
}
