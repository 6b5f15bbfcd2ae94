//! Who is parked: a process for each program, with a socket in a folder of its user. It keeps the list in its memory until
//! the program ends, and holds the freeze together with a [`Guard`].
//!
//! ```text
//!   coldframe ── VERB TAB build TAB own process ──► the program's keeper      one line each way, then the socket closes
//!             ◄── ok TAB numbers, or no TAB why ──
//! ```

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{flock, FlockOperation};

use crate::parked::{Out, Parked};
use crate::tree::Tree;
use crate::{Guard, KernelError};

/// How often the keeper looks whether program and guard are there, seconds.
const LOOK: i64 = 1;

/// What a keeper is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Stop the program and push its pages out.
    Park,
    /// Fetch its list while it is parked.
    Soon,
    /// Let it run, and fetch its list beside it.
    Resume,
    /// Who it is.
    List,
}

impl Ask {
    const ALL: [(Ask, &'static str); 4] =
        [(Ask::Park, "park"), (Ask::Soon, "soon"), (Ask::Resume, "resume"), (Ask::List, "list")];

    fn word(self) -> &'static str {
        Ask::ALL.iter().find(|(ask, _)| *ask == self).map_or("", |(_, word)| word)
    }
}

/// A keeper's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The name that the program was parked by.
    pub name: String,
    /// It stands still.
    pub parked: bool,
    /// Where its data is.
    pub out: Out,
}

/// The programs of a user, by a folder for their sockets.
#[derive(Debug, Clone)]
pub struct Parking {
    folder: PathBuf,
    build: String,
}

impl Parking {
    /// In this folder. `build`: what keepers of other builds are told apart by.
    pub fn at(folder: impl Into<PathBuf>, build: &str) -> Parking {
        Parking { folder: folder.into(), build: build.into() }
    }

    /// A hash (FNV-1a), since the path of a socket is short and a name may be long.
    fn socket(&self, name: &str) -> PathBuf {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.folder.join(format!("{:016x}.park", name.bytes().fold(0xcbf2_9ce4_8422_2325, step)))
    }

    /// Asks the keeper of a program; `None`: it has none.
    ///
    /// # Errors
    /// The keeper refuses, or has ended.
    pub fn ask(&self, name: &str, ask: Ask) -> Result<Option<Answer>, KernelError> {
        self.ask_at(&self.socket(name), ask)
    }

    fn ask_at(&self, socket: &Path, ask: Ask) -> Result<Option<Answer>, KernelError> {
        let mut stream = match UnixStream::connect(socket) {
            Ok(stream) => stream,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
            Err(e) => return Err(KernelError::file(socket, e, "run it as the user who has parked it")),
        };
        let line = format!("{}\t{}\t{}\n", ask.word(), self.build, std::process::id());
        let mut reply = String::new();
        let done = stream.write_all(line.as_bytes()).and_then(|()| BufReader::new(stream).read_line(&mut reply));
        let words: Vec<_> = reply.trim_end().split('\t').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
        match (done, words.first()) {
            (Ok(_), Some(&"ok")) => Ok(Some(Answer {
                out: Out { swapped: number(1), stays: number(2), listed: number(3) },
                parked: number(4) == 1,
                name: words.get(5).map(ToString::to_string).unwrap_or_default(),
            })),
            (Ok(_), Some(&"no")) => Err(KernelError::Refused(words[1..].join(" "))),
            // It has ended meanwhile.
            _ => Ok(None),
        }
    }

    /// All programs that have a keeper.
    pub fn all(&self) -> Vec<Answer> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let sockets = entries.filter(|path| path.extension().is_some_and(|end| end == "park"));
        let mut all: Vec<_> = sockets.filter_map(|socket| self.ask_at(&socket, Ask::List).ok()?).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The keeper's work, until its program ends. `ready` is called when it can be asked.
    ///
    /// # Errors
    /// There is no such program, or it has a keeper.
    pub fn keep(
        &self,
        tree: &Tree,
        name: &str,
        guard: &dyn Fn() -> Result<Guard, KernelError>,
        ready: impl FnOnce(),
    ) -> Result<(), KernelError> {
        let mut parked = Parked::find(tree, name)?;
        let socket = self.socket(name);
        let listener = self.listen(&socket)?;
        ready();
        let look = Timespec { tv_sec: LOOK, tv_nsec: 0 };
        // One that could not be parked needs no keeper.
        let mut goes_on = true;
        while goes_on && parked.lives() {
            let came = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&look)).unwrap_or(0);
            if came == 0 {
                parked.rest();
            }
            // Without its guard it runs on.
            parked.held();
            if let Some(Ok((stream, _))) = (came > 0).then(|| listener.accept()) {
                goes_on = self.serve(&mut parked, stream, guard);
            }
        }
        let _ = std::fs::remove_file(socket);
        Ok(())
    }

    /// The socket. One that nobody listens at is of a keeper that was killed.
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

    /// False: nothing is to be kept.
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
        let ask = Ask::ALL.iter().find(|(_, word)| words.first() == Some(word)).map(|(ask, _)| *ask);
        let (Ok(_), Some(ask)) = (read, ask) else { return true };
        let name = parked.name().to_string();
        let lacks = |what: String, remedy: &str| Err(KernelError::lacks(what, remedy));
        let done = match ask {
            Ask::List => Ok(parked.now()),
            _ if words.get(1) != Some(&self.build.as_str()) => lacks(
                format!("{name} is kept by another build of coldframe ({})", self.build),
                &format!("use that one, or kill {}: then it runs, and its list is gone", std::process::id()),
            ),
            Ask::Park if parked.is_parked() => {
                lacks(format!("{name} is parked already"), "coldframe resume lets it run")
            }
            Ask::Park => parked.park(guard, words.get(2).and_then(|word| word.parse().ok()).unwrap_or(0)),
            _ if !parked.is_parked() => lacks(format!("{name} runs already"), "coldframe park stops it"),
            Ask::Soon => {
                parked.soon(move |out| answer(&mut stream, &Ok(out), true, &name));
                return true;
            }
            Ask::Resume => parked.resume(),
        };
        answer(&mut stream, &done, parked.is_parked(), &name);
        parked.was_parked()
    }
}

/// A client that is gone needs no answer.
fn answer(stream: &mut UnixStream, done: &Result<Out, KernelError>, parked: bool, name: &str) {
    let line = match done {
        Ok(out) => format!("ok\t{}\t{}\t{}\t{}\t{name}\n", out.swapped, out.stays, out.listed, u8::from(parked)),
        Err(why) => format!("no\t{}\n", why.to_string().replace('\n', " ")),
    };
    let _ = stream.write_all(line.as_bytes());
}
