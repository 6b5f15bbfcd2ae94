//! Linux as a machine. A short command is carried out at once; other commands are noted. The thread that serves the
//! fault carries out the noted commands when it has released the engine's lock.
//!
//! ```text
//!   lock   Event::Fault ─► engine ─► Load (submitted), Protect, Unmap, Write, Evict (noted), Stage
//!   ─────────────────────────────────────────────────────────────────────────────────────
//!   no lock   move unmapped pages to the shelf; put the dirty victims into a pipe, zap them, read the final bytes back;
//!             wait for the page
//!   lock   Event::Written..., Event::Loaded ─► engine ─► Move, Map (noted), Resume
//!   ─────────────────────────────────────────────────────────────────────────────────────
//!   no lock   copy the page in
//! ```
//! Between `Evict` and the zap, the engine takes the page as gone, but the hardware still has it. A touch in this
//! time is a hit that the engine does not see; a write in this time is in the bytes that are read back. The same
//! holds between `Unmap` and the move. A fault in this time finds the page `Leaving` and sleeps. A search that wants
//! the page as a victim sleeps too; that is safe, because the thread that moves the page waits for no lock before the
//! move. If that thread is the searching thread itself, it first carries out the noted commands for the page.

use coldframe_core::{After, Command, Machine, PageId, Place, SlotId};
use coldframe_journal::Entry;

use crate::fault::pager::Inner;
use crate::page::pages::{Owner, Where};
use crate::record::journal::JournalFile;
use crate::stats::Stats;
use crate::swap::area::Told;
use crate::sys;
use crate::sys::fatal;
use crate::task::{CopyIn, Load, Move, Todo, Victim, MOVES, VICTIMS};

/// What the machine keeps under the engine's lock.
pub struct Side {
    /// The memory of each of the engine's buffers.
    pub buffers: Vec<usize>,
    /// Memory that takes a buffer's place while its page is being copied in.
    pub spare: Vec<usize>,
    /// What a page was before `Protect`.
    pub protected: Option<(usize, Where)>,
    /// The last page of `Move`.
    pub moved: Option<(usize, usize)>,
    /// The last page of `Write`.
    pub written: Option<usize>,
    /// The last page of `Compress`, and whether its slot has older bytes.
    pub compressing: Option<(usize, bool)>,
    pub journal: Option<JournalFile>,
    pub told: Told,
}

/// The machine for the time of one event.
pub struct Linux<'a> {
    pub pager: &'a Inner,
    pub side: &'a mut Side,
    pub todo: &'a mut Todo,
}

impl Linux<'_> {
    fn journal(&mut self, entry: Entry) {
        if let Some(journal) = &mut self.side.journal {
            journal.write(&entry);
        }
    }

    /// Memory that takes a buffer's place. If many tasks copy at once, this waits for one of them. A task that copies
    /// does not wait for the engine's lock before it has given its buffers back.
    fn spare(&mut self) -> usize {
        loop {
            if let Some(spare) = self.side.spare.pop() {
                return spare;
            }
            std::mem::swap(&mut self.side.spare, &mut *self.pager.returned.lock());
            if self.side.spare.is_empty() {
                sys::sleep_us(1);
            }
        }
    }

    fn load(&mut self, load: Load) {
        self.todo.loads.push(load);
        let number = self.todo.loads.len() - 1;
        if *self.pager.rings.get() {
            let ring = self.pager.ring(self.todo.task);
            self.pager.ask(ring, &mut self.todo.loads[number], number);
            if !self.todo.together {
                self.pager.start_loads(self.todo);
            }
        }
    }

    fn owner(&self) -> Owner {
        Owner::task(self.todo.task)
    }

    /// Waits until the page is at rest, and takes it. After this, every write to the page is in the final bytes.
    fn protect(&mut self, page: usize) {
        loop {
            let (was, mine) = self.pager.pages.states().look(page, self.owner());
            match was {
                Where::Clean | Where::Dirty | Where::Unsure => {
                    if self.pager.pages.acquire(page, was, Where::Leaving, self.owner()) {
                        self.side.protected = Some((page, was));
                        return;
                    }
                }
                Where::Busy | Where::Leaving | Where::Refused => self.settle(page, mine),
                other => fatal::stop(format_args!("internal error: page {page} is {other:?}, not mapped")),
            }
        }
    }

    /// Waits until a page that a thread is changing is at rest. If it is this thread, the noted commands for the page
    /// are done now. If it is another thread, that thread does not wait for the engine's lock, which this thread
    /// holds.
    fn settle(&mut self, page: usize, mine: bool) {
        match mine {
            true => self.pager.do_noted(self.todo, page),
            false => self.pager.pages.wait(page),
        }
    }

    /// Moves the page to the shelf. While it is on its way it is `Leaving`.
    fn unmap(&mut self, page: usize) {
        let (protected, was) = self.side.protected.take().expect("a page is protected before it is unmapped");
        debug_assert_eq!(protected, page);
        if self.todo.moves.len() == MOVES {
            self.pager.move_each(self.todo);
        }
        self.todo.moves.push(Move::Shelve { page, clean: was == Where::Clean });
    }

    fn evict(&mut self, page: usize) {
        let compressing = self.side.compressing.take().filter(|(compressed, _)| *compressed == page);
        let write = self.side.written.take() == Some(page) || compressing.is_some_and(|(_, dirty)| dirty);
        let compress = compressing.is_some();
        let protected = self.side.protected.take().is_some_and(|(p, _)| p == page);
        let shelved = !(protected || self.stays(page)) && self.rest(page);
        let address = if shelved { self.pager.shelf(page) } else { self.pager.address(page) };
        Stats::add(&self.pager.stats().evictions, 1);
        Stats::add(&self.pager.stats().dirty_evictions, u64::from(write));
        if self.todo.victims.len() == VICTIMS {
            fatal::stop("internal error: more pages leave at once than there is room for");
        }
        self.todo.victims.push(Victim { page, address, shelved, write, compress, ..Victim::default() });
        if !self.pager.reserve.has_room() {
            self.pager.zap(self.todo);
        }
    }

    /// Whether the page was about to go to the shelf for this very fault; then it can stay.
    fn stays(&mut self, page: usize) -> bool {
        let of = |m: &Move| matches!(m, Move::Shelve { page: p, .. } if *p == page);
        let found = self.todo.moves.iter().position(of);
        found.map(|i| self.todo.moves.remove(i)).is_some()
    }

    /// Takes a page at rest that has not been protected. Returns true if it is on the shelf. A released page
    /// may be in the page table instead.
    fn rest(&mut self, page: usize) -> bool {
        loop {
            let (was, mine) = self.pager.pages.states().look(page, self.owner());
            match was {
                Where::Shelved if self.pager.pages.acquire(page, was, Where::Leaving, self.owner()) => return true,
                Where::Shelved => {}
                Where::Kept if self.pager.pages.acquire(page, was, Where::Leaving, self.owner()) => return false,
                Where::Kept => {}
                Where::Busy | Where::Leaving | Where::Refused => self.settle(page, mine),
                _ => {
                    self.protect(page);
                    self.side.protected = None;
                    return false;
                }
            }
        }
    }

    /// Takes a page at rest, where the engine knows it to be, to bring it into the page table. Returns true if it is
    /// there: it could not leave.
    fn take(&mut self, page: usize) -> bool {
        loop {
            let (was, mine) = self.pager.pages.states().look(page, self.owner());
            match was {
                Where::Out | Where::Shelved | Where::Kept => {
                    if self.pager.pages.acquire(page, was, Where::Busy, self.owner()) {
                        return was == Where::Kept;
                    }
                }
                Where::Busy | Where::Leaving | Where::Refused => self.settle(page, mine),
                other => fatal::stop(format_args!("internal error: page {page} is {other:?}, but to be mapped")),
            }
        }
    }

    /// Through the task's scratch page; its content is always used at once.
    fn copy(&mut self, page: usize, to: SlotId) {
        let (pager, scratch) = (self.pager, self.pager.tasks().get(self.todo.task).scratch());
        pager.log.get().copy(page, to, scratch, &pager.pages, pager.stats());
    }

    fn map(&mut self, page: usize) {
        let write = self.todo.fault == Some((page, true));
        match self.side.moved.take() {
            Some((moved, from)) if moved == page => {
                if self.take(page) {
                    self.todo.spare.push(from);
                    self.pager.note_resident();
                    return self.pager.pages.release(page, self.owner(), Where::Dirty);
                }
                let content = self.pager.pages.slot(page).is_some();
                self.todo.copies.push(CopyIn { page, from, write, content, shared: self.todo.shared });
            }
            _ => {
                if self.take(page) {
                    return self.pager.pages.release(page, self.owner(), Where::Dirty);
                }
                if self.todo.moves.len() == MOVES {
                    self.pager.move_each(self.todo);
                }
                self.todo.moves.push(Move::Back { page, write });
            }
        }
    }
}

impl Machine for Linux<'_> {
    fn issue(&mut self, command: Command) {
        self.journal(Entry::Command(command));
        match command {
            Command::Stage { work, .. } => Stats::add(&self.pager.stats().walk_sum, work.walk.0),
            Command::Load { ticket, page, into, from: _from } => {
                let (page, into) = (page.index(), self.side.buffers[into.index()]);
                #[cfg(debug_assertions)]
                debug_assert!(self.pager.log.get().lies_in(page, _from), "page {page} is not in {_from:?}");
                self.load(Load::new(ticket, page, into));
            }
            Command::Move { page, from, .. } => {
                let spare = self.spare();
                let loaded = std::mem::replace(&mut self.side.buffers[from.index()], spare);
                self.side.moved = Some((page.index(), loaded));
            }
            Command::Protect { page } => self.protect(page.index()),
            Command::Write { page, from: Some(_), to } => {
                self.pager.log.get().send(page.index(), to, &self.pager.pages);
                self.side.written = Some(page.index());
            }
            Command::Write { page, from: None, .. } => self.pager.write_taken(self.todo, page.index()),
            Command::Unmap { page } => self.unmap(page.index()),
            Command::Evict { page, .. } => self.evict(page.index()),
            Command::Map { page, place: Place::Frame(_), .. } => self.map(page.index()),
            Command::Map { page, place, .. } => {
                fatal::stop(format_args!("internal error: page {} is mapped at {place:?}", page.0))
            }
            Command::Kill { .. } => {
                fatal::stop(format_args!("internal error: {command:?}, but there are no slots to run out of"))
            }
            Command::Pool(op) => self.pool(op),
            Command::CopySlot { page, to, .. } => self.copy(page.index(), to),
            Command::EraseBlock { block } => self.pager.log.get().erase(block),
            Command::Resume { task } => self.pager.resume(task.index()),
            Command::Halt { page, .. } => self.pager.lost(page.index()),
        }
    }

    fn referenced(&mut self, page: PageId, _: After) -> bool {
        fatal::stop(format_args!("internal error: the reference bit of page {} is asked for", page.0))
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.side.protected.is_some_and(|(p, was)| p == page.index() && was != Where::Clean);
        self.journal(Entry::Dirty { page, value });
        value
    }
}
