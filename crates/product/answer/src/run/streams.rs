//! The standard streams of a program that is run several times: each run reads the same input, its output is shown
//! once, whoever asks first, and compared afterwards.
//!
//! ```text
//!   stdin   a file: each run opens it at the same place     a pipe: read once, kept in a file without a name
//!           a terminal: only the first run has it           anything else: the first run has it, the others none
//!   stdout  first run: to the user, and digested on its way (a pipe) or afterwards (a file); later runs: digested only
//! ```
//! A terminal's output is not digested: a program behaves differently if it does not write to one.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use coldframe_proc::unmade;
use rustix::termios::{tcgetattr, Termios};

use crate::error::AnswerError;
use crate::run::program::default_backing;

/// The most input that is kept for other runs.
pub const INPUT_MAX: u64 = 1 << 30;
/// How long the end of an output is awaited: a process in the background may hold it open.
const END: Duration = Duration::from_secs(1);

/// What a run wrote, as a digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Output {
    /// Of all bytes.
    exact: u64,
    /// Of all bytes but digits.
    words: u64,
}

/// How two outputs differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Difference {
    /// Not at all.
    None,
    /// In numbers, such as times.
    Numbers,
    /// In words.
    Words,
}

impl Output {
    /// How it differs from another one.
    pub fn differs(&self, other: &Output) -> Difference {
        match (self.exact == other.exact, self.words == other.words) {
            (true, _) => Difference::None,
            (false, true) => Difference::Numbers,
            (false, false) => Difference::Words,
        }
    }

    /// Of a text.
    pub fn digest(text: &str) -> Output {
        Output::read(text.as_bytes(), io::sink())
    }

    /// Reads to the end, and passes all on.
    fn read(mut from: impl Read, mut to: impl Write) -> Output {
        let (mut exact, mut words, mut digit) = (Fnv::new(), Fnv::new(), false);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let bytes = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => &buffer[..n],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            // A reader that has gone ends the program as without coldframe: its pipe is closed.
            if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
                break;
            }
            for byte in bytes {
                exact.add(*byte);
                // A number is one byte, however long it is.
                if !byte.is_ascii_digit() || !digit {
                    words.add(if byte.is_ascii_digit() { b'0' } else { *byte });
                }
                digit = byte.is_ascii_digit();
            }
        }
        Output { exact: exact.0, words: words.0 }
    }
}

/// The hash FNV-1a of 64 bits (Fowler, Noll, Vo), which takes one byte after the other.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

/// An output that is being read.
struct OutputReader(Receiver<Output>);

impl OutputReader {
    fn start(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Result<OutputReader, AnswerError> {
        let (end, reading) = channel();
        thread::Builder::new().spawn(move || end.send(Output::read(from, to))).map_err(failed)?;
        Ok(OutputReader(reading))
    }

    fn end(self) -> Option<Output> {
        self.0.recv_timeout(END).ok()
    }
}

/// Where the input of the runs comes from.
enum Source {
    File { offset: u64 },
    Pipe(Arc<Kept>),
    Terminal(Option<Box<Termios>>),
    Other,
}

/// The input that was read from a pipe.
struct Kept {
    file: File,
    /// A run has read it, or reads it.
    read: AtomicBool,
    /// It was more than is kept, or than the disk has room for.
    lost: AtomicBool,
}

/// The streams of all runs of a program.
pub struct Streams {
    source: Source,
    /// Whether there was a first run.
    shown: AtomicBool,
    /// Whether the first run uses the terminal as its input.
    interactive: AtomicBool,
    /// Where the output of the first run begins in the user's file, unless errors go there, too.
    start: Mutex<Option<u64>>,
    reading: Mutex<Option<OutputReader>>,
}

impl Streams {
    /// The streams of coldframe itself, for a program.
    pub fn new() -> Result<Streams, AnswerError> {
        let stdin = std::io::stdin();
        let kind = std::fs::metadata("/proc/self/fd/0").map(|data| data.file_type());
        let source = match kind {
            Ok(kind) if kind.is_file() => Source::File { offset: place(&stdin).unwrap_or(0) },
            Ok(kind) if kind.is_fifo() || kind.is_socket() => {
                let file = tempfile::tempfile_in(default_backing());
                let file = file.map_err(|e| AnswerError::new(5, format!("no temporary file: {e}; set TMPDIR")))?;
                Source::Pipe(Arc::new(Kept { file, read: AtomicBool::new(false), lost: AtomicBool::new(false) }))
            }
            Ok(_) if stdin.is_terminal() => Source::Terminal(tcgetattr(&stdin).ok().map(Box::new)),
            _ => Source::Other,
        };
        let (start, reading) = (Mutex::new(None), Mutex::new(None));
        let [shown, interactive] = [false, false].map(AtomicBool::new);
        Ok(Streams { source, shown, interactive, start, reading })
    }

    /// The streams of a run that the user sees if it is the first one: a later run's output would be there twice. Who
    /// types the input has to see all of it.
    pub fn shown_once(&self, command: &mut Command) -> Result<(), AnswerError> {
        if self.shown.swap(true, Relaxed) && !self.is_interactive() {
            return self.again(command).map(drop);
        }
        if let Source::Pipe(_) = &self.source {
            command.stdin(self.input().map_err(failed)?);
        }
        let [out, errors] = ["/proc/self/fd/1", "/proc/self/fd/2"].map(|path| std::fs::metadata(path).ok());
        let id = |data: &Metadata| (data.dev(), data.ino());
        let apart = out.as_ref().map(id) != errors.as_ref().map(id);
        *lock(&self.start) = if apart { place(&io::stdout()).ok() } else { None };
        if out.is_some_and(|out| out.file_type().is_fifo() || out.file_type().is_socket()) {
            let (from, to) = io::pipe().map_err(failed)?;
            command.stdout(to);
            *lock(&self.reading) = Some(OutputReader::start(from, io::stdout())?);
        }
        Ok(())
    }

    /// Looks whether the first run, which is this process, reads from a terminal.
    pub fn look(&self, process: u32) {
        let Source::Terminal(before) = &self.source else { return };
        let changed = match (before, tcgetattr(io::stdin())) {
            (Some(before), Ok(now)) => before.local_modes != now.local_modes,
            _ => false,
        };
        if changed || coldframe_proc::Process::of(process).reads_stdin() {
            self.interactive.store(true, Relaxed);
        }
    }

    /// Whether the first run reads from a terminal.
    pub fn is_interactive(&self) -> bool {
        self.interactive.load(Relaxed)
    }

    /// The output of the first run, which has ended; `None`: it is not known.
    pub fn first_output(&self) -> Option<Output> {
        if let Some(reading) = lock(&self.reading).take() {
            return reading.end();
        }
        let (start, end) = ((*lock(&self.start))?, place(&io::stdout()).ok()?);
        let mut file = opened("/proc/self/fd/1")?;
        file.seek(SeekFrom::Start(start)).ok()?;
        let bytes = end.checked_sub(start)?;
        Some(Output::read(file.take(bytes), io::sink()))
    }

    /// Why another run has not the input of the first one.
    pub fn lost(&self) -> Option<&'static str> {
        match &self.source {
            Source::Pipe(input) if input.lost.load(Relaxed) => Some("it reads more input than could be kept"),
            Source::Terminal(_) if self.is_interactive() => Some("it reads from the terminal"),
            _ => None,
        }
    }

    /// The streams of a run that nobody sees: the same input, an output that nobody sees, and the digest of that output
    /// at the end.
    ///
    /// # Errors
    /// The input is not there any more; there are no more pipes.
    pub fn again(&self, command: &mut Command) -> Result<impl FnOnce() -> Option<Output> + use<>, AnswerError> {
        let (from, to) = io::pipe().map_err(failed)?;
        command.stdin(self.input().map_err(failed)?).stdout(to).stderr(Stdio::null());
        let reading = OutputReader::start(from, io::sink())?;
        Ok(move || reading.end())
    }

    fn input(&self) -> io::Result<Stdio> {
        let file = |path: &str, offset| {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file.into())
        };
        match &self.source {
            Source::File { offset } => file("/proc/self/fd/0", *offset),
            Source::Pipe(input) if input.read.swap(true, Relaxed) => {
                file(&format!("/proc/self/fd/{}", input.file.as_raw_fd()), 0)
            }
            Source::Pipe(input) => {
                let (from, to) = io::pipe()?;
                let input = Arc::clone(input);
                thread::Builder::new().spawn(move || input.keep(to))?;
                Ok(from.into())
            }
            Source::Terminal(_) | Source::Other => Ok(Stdio::null()),
        }
    }
}

impl Kept {
    /// Passes the input of coldframe on, and keeps it.
    fn keep(&self, mut to: impl Write) {
        let mut buffer = vec![0; 1 << 16];
        let (mut file, mut bytes) = (&self.file, 0);
        while let Ok(n) = io::stdin().lock().read(&mut buffer) {
            if n == 0 {
                break;
            }
            bytes += n as u64;
            if !self.lost.load(Relaxed) && (bytes > INPUT_MAX || file.write_all(&buffer[..n]).is_err()) {
                self.lost.store(true, Relaxed);
                let _ = file.set_len(0);
            }
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
    }
}

fn failed(error: io::Error) -> AnswerError {
    AnswerError::new(5, format!("the program's input or output cannot be passed on: {}", unmade(&error)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A regular file that can be read.
fn opened(path: &str) -> Option<File> {
    let regular = std::fs::metadata(path).is_ok_and(|data| data.is_file());
    regular.then(|| File::open(path).ok()).flatten()
}

fn place(stream: &impl std::os::fd::AsFd) -> io::Result<u64> {
    Ok(rustix::fs::tell(stream)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_differ_in_numbers_only_are_told_from_others() {
        let one = Output::digest("took 9 ms\n");
        assert_eq!(one.differs(&Output::digest("took 9 ms\n")), Difference::None);
        assert_eq!(one.differs(&Output::digest("took 11 ms\n")), Difference::Numbers);
        for other in ["took 9 s\n", "took 9 ms\n\n", "", "took ms\n"] {
            assert_eq!(one.differs(&Output::digest(other)), Difference::Words, "{other}");
        }
    }
}
