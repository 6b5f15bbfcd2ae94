//! Writes the journal to a file in pieces.
//!
//! The thread that serves a fault writes entries under the engine's lock, so nothing is allocated there: a buffer of
//! fixed size goes to the file when it is full. If the file takes no more bytes, the journal ends and the program
//! continues. The file is then cut after the last complete event, so that it replays to its end.
//!
//! `coldframe_journal::Journaled` cannot be used here: it keeps the journal in memory. This journal goes to
//! its file in the middle of an event if the buffer is full.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use coldframe_journal::{Entry, Head, Journal};

use crate::swap::device::swallow_signal;
use crate::sys::{self, fatal, Errno, High, Sys};

const ROOM: usize = 64 << 10;
/// If there is less room than this before an event, the buffer goes to the file. An event rarely takes more.
const LOW: usize = ROOM / 2;
/// More than the longest entry: a tag and four numbers of at most ten bytes each.
const ENTRY: usize = 64;

pub struct JournalFile {
    journal: Journal,
    /// Stays open after a failure: the thread that finds out may not close a file.
    file: High,
    ended: bool,
    length: u64,
    /// Bytes of complete events.
    whole: u64,
}

impl JournalFile {
    /// A journal with this head. The head goes to the file at once, so a program that executes another one before its
    /// first fault still leaves a journal.
    ///
    /// # Errors
    /// The file does not even take the head.
    pub fn new(head: &Head, file: File) -> Sys<JournalFile> {
        let mut journal = Journal::new(head);
        journal.reserve(ROOM);
        let file = sys::move_high(file.into());
        let mut this = JournalFile { journal, file, ended: false, length: 0, whole: 0 };
        this.drain()?;
        this.whole = this.length;
        Ok(this)
    }

    pub fn event(&mut self, entry: &Entry) {
        if self.journal.len() > ROOM - LOW {
            self.flush();
        }
        self.write(entry);
    }

    pub fn write(&mut self, entry: &Entry) {
        if self.journal.len() + ENTRY > ROOM {
            let drained = self.drain();
            self.look(drained);
        }
        if !self.ended {
            self.journal.write(entry);
        }
    }

    /// Writes the buffer to the file. Call it between two events.
    pub fn flush(&mut self) {
        if !self.ended {
            let drained = self.drain();
            self.whole = if drained.is_ok() { self.length } else { self.whole };
            self.look(drained);
        }
    }

    fn drain(&mut self) -> Sys<()> {
        let JournalFile { journal, file, length, .. } = self;
        let mut written = Ok(());
        journal.drain_with(|bytes| written = write_all(file.as_raw_fd(), bytes, length));
        written.inspect_err(swallow_signal)
    }

    /// If the file cannot be cut (a pipe), the journal ends in the middle of an event, and its reader reports that.
    fn look(&mut self, drained: Sys<()>) {
        let Err(error) = drained else { return };
        self.ended = true;
        // SAFETY: no pointers.
        let _ = unsafe {
            sys::call(libc::SYS_ftruncate, [self.file.as_raw_fd() as usize, self.whole as usize, 0, 0, 0, 0])
        };
        let (whole, error) = (self.whole, sys::words(error));
        fatal::say(format_args!("the journal ends after {whole} bytes: {error}; the program goes on without it"));
    }
}

/// Counts what the file has taken.
fn write_all(file: RawFd, bytes: &[u8], length: &mut u64) -> Sys<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let a = [file as usize, rest.as_ptr() as usize, rest.len(), 0, 0, 0];
        // SAFETY: the bytes live through the call.
        match sys::again(|| unsafe { sys::call(libc::SYS_write, a) })? {
            0 => return Err(Errno::IO),
            n => (*length, rest) = (*length + n as u64, &rest[n..]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::os::fd::FromRawFd;

    use coldframe_core::{Access, Caps, Command, Config, Event, PageId, TaskId};

    use super::*;

    fn head() -> Head {
        let caps = Caps { reference_bit: false, dirty_bit: true, buffers: 4, direct_read: false, places: false };
        let config = Config { frames: 64, pages: 512, tasks: 4, evict_batch: 8, caps };
        Head {
            policy: "fifo".into(),
            handler: "parallel".into(),
            config,
            below: coldframe_core::Below::default(),
            arrival: coldframe_core::prefetch::Arrival::Mapped,
        }
    }

    fn file_of(bytes: i64) -> File {
        // SAFETY: a name and numbers; the descriptor is new.
        unsafe {
            let file = libc::memfd_create(c"journal".as_ptr(), libc::MFD_ALLOW_SEALING);
            assert!(file >= 0 && libc::ftruncate(file, bytes) == 0);
            assert_eq!(libc::fcntl(file, libc::F_ADD_SEALS, libc::F_SEAL_GROW), 0);
            File::from_raw_fd(file)
        }
    }

    /// This many events, each with this many commands, into a file and into memory.
    fn write(file: File, events: u32, commands: u32) -> (JournalFile, Vec<u8>) {
        let mut journal = JournalFile::new(&head(), file).unwrap();
        let mut memory = Journal::new(&head());
        for i in 0..events {
            let event = Event::Fault { task: TaskId(0), page: PageId(i % 512), access: Access::Write };
            let first = Entry::Event { now: u64::from(i) << 40, event };
            journal.event(&first);
            memory.write(&first);
            for page in 0..commands {
                let entry = Entry::Command(Command::Unmap { page: PageId(page) });
                journal.write(&entry);
                memory.write(&entry);
            }
        }
        (journal, memory.drain())
    }

    fn content(journal: &JournalFile) -> Vec<u8> {
        let (mut file, mut bytes) = (File::from(journal.file.try_clone().unwrap()), Vec::new());
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_room_is_never_left_however_much_an_event_brings() {
        for (events, commands) in [(20_000, 3), (3, 100_000)] {
            let (mut journal, wanted) = write(tempfile::tempfile().unwrap(), events, commands);
            let room = journal.journal.capacity();
            journal.flush();
            assert!(content(&journal) == wanted, "{events} events");
            assert!(room < 2 * ROOM, "it has grown to {room} bytes");
        }
    }

    #[test]
    fn a_file_that_takes_no_more_ends_behind_a_whole_event() {
        for (events, commands) in [(20_000, 3), (6, 20_000)] {
            let (mut journal, wanted) = write(file_of(150_000), events, commands);
            journal.flush();
            let cut = content(&journal);
            assert!(wanted.starts_with(&cut) && cut.len() > 60_000, "{} bytes", cut.len());
            let mut entries = coldframe_journal::open(&cut).unwrap().1;
            let mut since = None;
            while let Some(entry) = entries.next_entry().unwrap() {
                since = if matches!(entry, Entry::Event { .. }) { Some(0) } else { since.map(|n| n + 1) };
            }
            assert_eq!(since, Some(commands), "commands of the last event");
        }
    }

    #[test]
    fn a_file_that_does_not_take_the_head_is_refused() {
        assert_eq!(JournalFile::new(&head(), File::create("/dev/full").unwrap()).err(), Some(Errno::NOSPC));
    }
}
