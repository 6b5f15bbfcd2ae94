//! The journal of a small pager as a trace: a row for each page that entered its window of N mapped pages, first in, first out.
//!
//! ```text
//! program ── every reference ──► window of N pages ── each entry ──► trace
//!                                  hits: unseen
//! ```
//! What the rows preserve, for a memory of C pages, when the program's misses are M and those of the rows alone are R:
//!
//! - OPT: R(C) <= M(C) <= R(C - N) for C > N. Fewer references never cost more, which is the first; and who has C pages can follow the
//!   best plan for the rows in C - N of them and keep the window in the other N, in which every reference finds its page.
//! - LRU: R(C + N) <= M(C) <= R(C - N) for C >= 2 N. Between a page's entry and its last hit fewer than N pages enter, and a page touched
//!   after that hit has entered since or was in the window then: so distances in rows and in references differ by less than N, and
//!   those of hits are below 2 N. A page that stays longer (pinned) breaks this, and is noted.
//!
//! A row is a write if the page was written to at any time while it was in the window, so what is written back is known.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use coldframe_core::{Access, Command, Event, PageId, TaskId};
use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::error::TraceError;
use crate::fidelity::Fidelity;
use crate::journal::{self, Entries, Entry, JournalError};
use crate::provenance::{Provenance, Task};
use crate::reference::{Kind, Reference};
use crate::store::{Columns, Summary, Writer};

/// Picoseconds of a nanosecond.
const PS: u64 = 1000;
/// Bytes read at a time.
const PIECE: usize = 1 << 20;
/// The head of a journal fits into its first piece.
const HEAD_MAX: usize = 4096;
/// Longer than any entry: a tag and at most six numbers of ten bytes each (see `journal.rs`).
const ENTRY_MAX: usize = 64;
/// Stays kept open, in windows: beyond that a page is pinned, and its row goes out as it is.
const STAYS: usize = 4;

/// Where a journal comes from.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The journal.
    pub journal: PathBuf,
    /// Address of page 0.
    pub base: u64,
    /// Bytes of a page.
    pub page: u64,
    /// The command line.
    pub command: Option<String>,
}

/// Writes the trace of a journal to `to`.
///
/// # Errors
/// A journal that is none, a policy that is not first in first out, an empty journal, as [`Writer`].
pub fn window(watched: &Watched, to: &Path) -> Result<Summary, TraceError> {
    let mut pieces = Pieces::open(&watched.journal)?;
    let mut stays =
        Stays::new(pieces.frames, watched, Writer::create(to, Columns { time: true, task: true, count: false })?);
    while let Some(entry) = pieces.next()? {
        stays.take(entry)?;
    }
    stays.finish(watched, &pieces)
}

/// A journal read piece by piece.
struct Pieces {
    path: PathBuf,
    file: File,
    bytes: Vec<u8>,
    at: usize,
    now: u64,
    ended: bool,
    /// Whether the last entry was cut off, as when the program was killed while it wrote it.
    cut: bool,
    frames: usize,
}

impl Pieces {
    fn open(path: &Path) -> Result<Pieces, TraceError> {
        let file = File::open(path).map_err(|e| io(path, e))?;
        let (path, bytes) = (path.to_owned(), Vec::new());
        let mut pieces = Pieces { path, file, bytes, at: 0, now: 0, ended: false, cut: false, frames: 0 };
        while pieces.bytes.len() < HEAD_MAX && !pieces.ended {
            pieces.refill()?;
        }
        let (head, entries) = journal::open(&pieces.bytes).map_err(|e| pieces.damaged(&e))?;
        if head.policy != "fifo" {
            let found = format!("{} decided what left the window", head.policy);
            let remedy = "only `fifo` has the bounds of a window trace".into();
            return Err(TraceError::Usage { what: pieces.path.display().to_string(), found, remedy });
        }
        (pieces.frames, pieces.at) = (head.config.frames, entries.at());
        Ok(pieces)
    }

    fn refill(&mut self) -> Result<(), TraceError> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let read = self.file.by_ref().take(PIECE as u64).read_to_end(&mut self.bytes).map_err(|e| io(&self.path, e))?;
        self.ended = read == 0;
        Ok(())
    }

    /// The next entry. One that the piece cuts off is read again with the next piece.
    fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            let mut entries = Entries::resume(&self.bytes[self.at..], self.now);
            match entries.next_entry() {
                Ok(Some(entry)) => {
                    (self.at, self.now) = (self.at + entries.at(), entries.now());
                    return Ok(Some(entry));
                }
                Ok(None) if self.ended => return Ok(None),
                Err(_) if self.ended && self.bytes.len() - self.at < ENTRY_MAX => {
                    self.cut = true;
                    return Ok(None);
                }
                Err(error) if self.ended => return Err(self.damaged(&error)),
                _ => self.refill()?,
            }
        }
    }

    fn damaged(&self, error: &JournalError) -> TraceError {
        let (path, found) = (self.path.clone(), error.to_string());
        TraceError::Damaged { path, row: 0, found, remedy: "record the program again".into() }
    }
}

fn io(path: &Path, source: std::io::Error) -> TraceError {
    let (path, remedy) = (path.to_owned(), "check the path and its permissions".into());
    TraceError::Io { path, action: "read", source, remedy }
}

/// A fault whose page is not loaded yet.
struct Waiting {
    task: TaskId,
    page: PageId,
    kind: Kind,
    thread: u32,
}

/// A page's time in the window.
struct Stay {
    row: Reference,
    page: PageId,
    over: bool,
}

/// The window as the journal shows it. Rows go out in the order of entry, each when its stay is over.
struct Stays {
    frames: usize,
    base: u64,
    page: u64,
    queue: VecDeque<Stay>,
    /// Stays that have left the queue.
    out: u64,
    /// Number of each page's open stay.
    open: FxHashMap<PageId, u64>,
    waiting: Vec<Waiting>,
    threads: Vec<u32>,
    thread: u32,
    now: u64,
    started: Option<u64>,
    pinned: u64,
    block: Block,
    writer: Writer,
}

impl Stays {
    fn new(frames: usize, watched: &Watched, writer: Writer) -> Stays {
        Stays {
            frames,
            base: watched.base,
            page: watched.page,
            queue: VecDeque::new(),
            out: 0,
            open: FxHashMap::default(),
            waiting: Vec::new(),
            threads: Vec::new(),
            thread: 0,
            now: 0,
            started: None,
            pinned: 0,
            block: Block::new(),
            writer,
        }
    }

    fn take(&mut self, entry: Entry) -> Result<(), TraceError> {
        match entry {
            Entry::Thread { thread } => self.thread = thread,
            Entry::Event { now, event } => self.event(now, event),
            Entry::Command(Command::Load { page, .. }) => self.enter(page),
            Entry::Command(Command::Evict { page, .. }) => self.leave(page),
            Entry::Command(Command::Resume { task }) => self.waiting.retain(|fault| fault.task != task),
            Entry::Dirty { page, value: true } => self.written(page),
            _ => {}
        }
        self.drain()
    }

    fn event(&mut self, now: u64, event: Event) {
        self.now = now / PS;
        match event {
            Event::Fault { task, page, access } => {
                let kind = if access == Access::Write { Kind::Write } else { Kind::Read };
                if kind == Kind::Write {
                    self.written(page);
                }
                self.waiting.push(Waiting { task, page, kind, thread: self.thread });
            }
            Event::Released { page } => self.leave(page),
            Event::Pinned { .. } => self.pinned += 1,
            _ => {}
        }
    }

    /// A load begins. One that is tried again has its row already; one that nobody faulted for was wished for, and is a read of the
    /// thread that faulted last.
    fn enter(&mut self, page: PageId) {
        if self.open.contains_key(&page) {
            return;
        }
        let fault = self.waiting.iter().find(|fault| fault.page == page);
        let (kind, thread) = fault.map_or((Kind::Read, self.thread), |fault| (fault.kind, fault.thread));
        let task = self.task(thread);
        let time = self.now - *self.started.get_or_insert(self.now);
        let address = self.base + u64::from(page.0) * self.page;
        let row = Reference { task, time, ..Reference::new(address, 1, kind) };
        self.open.insert(page, self.out + self.queue.len() as u64);
        self.queue.push_back(Stay { row, page, over: false });
    }

    fn task(&mut self, thread: u32) -> u32 {
        let known = self.threads.iter().position(|other| *other == thread);
        known.unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        }) as u32
    }

    fn stay(&mut self, page: PageId) -> Option<&mut Stay> {
        let number = self.open.get(&page)?;
        self.queue.get_mut((number - self.out) as usize)
    }

    fn written(&mut self, page: PageId) {
        if let Some(stay) = self.stay(page) {
            stay.row.kind = Kind::Write;
        }
    }

    fn leave(&mut self, page: PageId) {
        if let Some(stay) = self.stay(page) {
            stay.over = true;
            self.open.remove(&page);
        }
    }

    /// Lets rows out that nothing can change any more.
    fn drain(&mut self) -> Result<(), TraceError> {
        while self.queue.front().is_some_and(|stay| stay.over) || self.queue.len() > STAYS * self.frames {
            self.put_front()?;
        }
        Ok(())
    }

    fn put_front(&mut self) -> Result<(), TraceError> {
        let Some(stay) = self.queue.pop_front() else { return Ok(()) };
        if !stay.over {
            self.open.remove(&stay.page);
        }
        self.out += 1;
        self.block.push(stay.row);
        if self.block.len() == self.block.capacity() {
            self.writer.write(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    fn finish(mut self, watched: &Watched, pieces: &Pieces) -> Result<Summary, TraceError> {
        while !self.queue.is_empty() {
            self.put_front()?;
        }
        if !self.block.is_empty() {
            self.writer.write(&self.block)?;
        }
        if self.out == 0 {
            let (path, remedy) =
                (watched.journal.clone(), "no managed page was touched; record a program with a heap".into());
            return Err(TraceError::Empty { path, lines: 0, skipped: 0, remedy });
        }
        let mut provenance = provenance(watched, pieces.frames);
        provenance.started = self.started;
        let task = |(id, thread): (usize, &u32)| Task { id: id as u32, name: format!("thread {thread}"), space: 0 };
        provenance.tasks = self.threads.iter().enumerate().map(task).collect();
        if self.pinned > 0 {
            let pinned = self.pinned;
            provenance
                .notes
                .push(format!("pages were pinned {pinned} times: the bound for LRU does not hold for them"));
        }
        if pieces.cut {
            provenance.notes.push("the program was ended while it wrote its last entry, which is left out".into());
        }
        self.writer.finish(provenance)
    }
}

fn provenance(watched: &Watched, frames: usize) -> Provenance {
    let mut provenance = Provenance::new("window of mapped pages", Fidelity::Window);
    provenance.command = watched.command.clone();
    (provenance.page_size, provenance.window) = (Some(watched.page), Some(frames as u64));
    provenance.clock = Some("CLOCK_MONOTONIC".into());
    provenance.notes = vec![
        format!("filtered by a window of {frames} pages, first in first out: a row is a page's entry, a write if it was written to in its stay"),
        format!("with C pages OPT's misses M lie between those of the rows: R(C) <= M(C) <= R(C - {frames}); LRU's R(C + {frames}) <= M(C) <= R(C - {frames}) from C = {} on", 2 * frames),
        "heap and large private anonymous mappings only: no code, stacks or files".into(),
    ];
    provenance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Head, Journal};
    use crate::store::{Reader, Wanted};
    use coldframe_core::{BufferId, Caps, Config, FrameId, SlotId, Ticket};

    fn head(policy: &str) -> Head {
        let caps = Caps { reference_bit: false, dirty_bit: true, buffers: 2, direct_read: false, places: false };
        let config = Config { frames: 2, pages: 16, tasks: 4, evict_batch: 1, caps };
        Head {
            policy: policy.into(),
            handler: "parallel".into(),
            config,
            slots: None,
            swap: None,
            arrival: Default::default(),
        }
    }

    fn fault(now: u64, page: u32, access: Access) -> Entry {
        Entry::Event { now: now * PS, event: Event::Fault { task: TaskId(0), page: PageId(page), access } }
    }

    fn load(page: u32) -> Entry {
        Entry::Command(Command::Load { ticket: Ticket(0), page: PageId(page), from: SlotId(page), into: BufferId(0) })
    }

    fn trace(head: &Head, entries: &[Entry]) -> Result<Vec<Reference>, TraceError> {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("journal"), dir.path().join("out.parquet"));
        let mut journal = Journal::new(head);
        entries.iter().for_each(|entry| journal.write(entry));
        std::fs::write(&from, journal.drain()).unwrap();
        let watched = Watched { journal: from, base: 0x1000, page: 16, command: None };
        window(&watched, &to)?;
        let mut reader = Reader::open(&to)?;
        assert_eq!((reader.provenance().fidelity, reader.provenance().window), (Fidelity::Window, Some(2)));
        let mut block = Block::new();
        reader.read(&mut block, Wanted::ALL)?;
        Ok(block.iter().collect())
    }

    #[test]
    fn a_row_is_an_entry_and_a_write_if_its_stay_had_one() {
        let evict = Entry::Command(Command::Evict { page: PageId(3), from: FrameId(0) });
        let entries = [
            Entry::Thread { thread: 70 },
            fault(100, 3, Access::Read),
            load(3),
            Entry::Thread { thread: 71 },
            fault(140, 5, Access::Read),
            load(5),
            load(5), // The first load failed.
            Entry::Dirty { page: PageId(3), value: true },
            evict,
            Entry::Thread { thread: 70 },
            fault(150, 3, Access::Read),
            load(3),
        ];
        let row = |address, kind, task, time| Reference { task, time, ..Reference::new(address, 1, kind) };
        let expected = [row(0x1030, Kind::Write, 0, 0), row(0x1050, Kind::Read, 1, 40), row(0x1030, Kind::Read, 0, 50)];
        assert_eq!(trace(&head("fifo"), &entries).unwrap(), expected);
    }

    #[test]
    fn an_entry_that_the_end_cuts_off_is_left_out_and_said() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("journal"), dir.path().join("out.parquet"));
        let mut journal = Journal::new(&head("fifo"));
        [fault(100, 3, Access::Read), load(3), fault(1 << 40, 5, Access::Read)].iter().for_each(|e| journal.write(e));
        let bytes = journal.drain();
        let watched = Watched { journal: from, base: 0, page: 16, command: None };
        for (kept, said) in [(bytes.len(), false), (bytes.len() - 1, true)] {
            std::fs::write(&watched.journal, &bytes[..kept]).unwrap();
            assert_eq!(window(&watched, &to).unwrap().rows, 1);
            let notes = Reader::open(&to).unwrap().provenance().notes.join("; ");
            assert_eq!(notes.contains("last entry, which is left out"), said, "{notes}");
        }
        // Damage in the middle is no cut.
        let mut damaged = bytes.clone();
        damaged.extend([0xff; 100]);
        std::fs::write(&watched.journal, &damaged).unwrap();
        assert!(matches!(window(&watched, &to), Err(TraceError::Damaged { .. })));
    }

    #[test]
    fn a_journal_of_another_policy_or_without_loads_is_refused() {
        assert!(matches!(trace(&head("clock"), &[load(1)]), Err(TraceError::Usage { .. })));
        assert!(matches!(trace(&head("fifo"), &[]), Err(TraceError::Empty { .. })));
    }
}
