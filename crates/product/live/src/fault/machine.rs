//! Linux as a machine. A short command is carried out at once; other commands are noted. The thread that serves the
//! fault carries out the noted commands when it has released the engine's lock.
//!
//! ```text
//!   lock   Event::Fault ─► engine ─► Load (submitted), Protect, Unmap, Write, Evict (noted), Stage
//!   ─────────────────────────────────────────────────────────────────────────────────────
//!   no lock   move unmapped pages to the aside mapping; put the dirty victims into a pipe, zap them, read the final
//!             bytes back; wait for the page
//!   lock   Event::Written..., Event::Loaded ─► engine ─► Move, Map (noted), Resume
//!   ─────────────────────────────────────────────────────────────────────────────────────
//!   no lock   copy the page in
//! ```
//! Between `Evict` and the zap, the engine takes the page as gone, but the hardware still has it. A touch in this
//! time is a hit that the engine does not see; a write in this time is in the bytes that are read back. The same
//! holds between `Unmap` and the move. A fault in this time finds the page `Leaving` and sleeps. A search that wants
//! the page as a victim sleeps too; that is safe, because the thread that moves the page waits for no lock before the
//! move. If that thread is the searching thread itself, it first carries out the noted commands for the page.

use std::ops::Range;

use coldframe_core::{After, Command, Machine, PageId, Place, SlotId};
use coldframe_journal::Entry;

use crate::page::pages::{Owner, Where};
use crate::record::journal::JournalFile;
use crate::stats::Stats;
use crate::swap::area::Reported;
use crate::sys::{self, fatal};
use crate::task::{CopyIn, Load, Move, Todo, Victim, MOVES, VICTIMS};
use crate::work::Work;
use crate::PAGE;

/// The part of the machine that the engine's lock guards.
pub struct UnderLock {
    /// The memory of each of the engine's buffers.
    buffers: Vec<usize>,
    /// Memory that takes a buffer's place while its page is being copied in.
    pub(super) spare: Vec<usize>,
    pub(super) journal: Option<JournalFile>,
    pub(super) reported: Reported,
}

impl UnderLock {
    /// `buffers` of them; the other pages of the memory are spare.
    pub fn new(memory: Range<usize>, buffers: usize, journal: Option<JournalFile>) -> UnderLock {
        let mut spare = Vec::with_capacity(memory.len() / PAGE);
        spare.extend(memory.clone().step_by(PAGE).skip(buffers));
        UnderLock {
            buffers: memory.step_by(PAGE).take(buffers).collect(),
            spare,
            journal,
            reported: Reported::default(),
        }
    }
}

/// The machine for the time of one event.
pub struct Linux<'a> {
    work: &'a Work,
    under_lock: &'a mut UnderLock,
    todo: &'a mut Todo,
    /// Other events follow at once, and their loads go to the device together.
    more_follow: bool,
    last: LastCommands,
}

/// The last command of each kind in this event: commands for a page come in a row.
#[derive(Default)]
struct LastCommands {
    /// What a page was before `Protect`.
    protected: Option<(usize, Where)>,
    /// The last page of `Move`, and its buffer's memory.
    moved: Option<(usize, usize)>,
    /// The last page of `Write`.
    written: Option<usize>,
}

impl<'a> Linux<'a> {
    pub fn new(work: &'a Work, under_lock: &'a mut UnderLock, todo: &'a mut Todo, more_follow: bool) -> Linux<'a> {
        Linux { work, under_lock, todo, more_follow, last: LastCommands::default() }
    }

    fn journal(&mut self, entry: Entry) {
        if let Some(journal) = &mut self.under_lock.journal {
            journal.write(&entry);
        }
    }

    /// Memory that takes a buffer's place. If many tasks copy at once, this waits for one of them. A task that copies
    /// does not wait for the engine's lock before it has given its buffers back.
    fn spare(&mut self) -> usize {
        loop {
            if let Some(spare) = self.under_lock.spare.pop() {
                return spare;
            }
            self.work.take_returned(&mut self.under_lock.spare);
            if self.under_lock.spare.is_empty() {
                sys::sleep_us(1);
            }
        }
    }

    fn owner(&self) -> Owner {
        Owner::task(self.todo.task)
    }

    /// Waits until the page is at rest, and takes it as what `to` makes of its state. Returns that state. While this
    /// thread itself is changing it, the noted commands for the page are done. While another thread is, that thread
    /// does not wait for the engine's lock, which this thread holds.
    fn seize(&mut self, page: usize, to: impl Fn(Where) -> Option<Where>) -> Where {
        loop {
            let (was, mine) = self.work.pages().look(page, self.owner());
            match to(was) {
                _ if was.is_owned() && mine => self.work.do_noted(self.todo, page),
                _ if was.is_owned() => self.work.pages().wait(page),
                Some(to) if self.work.pages().acquire(page, was, to, self.owner()) => return was,
                Some(_) => {}
                None => {
                    fatal::stop(format_args!("internal error: page {page} is {was:?}, and the engine has it elsewhere"))
                }
            }
        }
    }

    /// Takes a page that is mapped. After this, every write to the page is in the final bytes.
    fn protect(&mut self, page: usize) {
        let was = self.seize(page, |was| was.is_mapped().then_some(Where::Leaving));
        self.last.protected = Some((page, was));
    }

    /// Moves the page to the aside mapping. While it is on its way it is `Leaving`.
    fn unmap(&mut self, page: usize) {
        let Some((_, was)) = self.last.protected.take_if(|(protected, _)| *protected == page) else {
            // In slow memory; no other page is unmapped that was not protected.
            let here = |was| matches!(was, Where::InSlot | Where::InPlace);
            if self.seize(page, |was| here(was).then_some(Where::Leaving)) == Where::InPlace {
                let scratch = self.work.tasks().get(self.todo.task).scratch();
                self.work.memory.peek(page, scratch);
                self.work.log().write_slot(page, scratch, self.work.pages());
            }
            self.work.memory.unmap_slots(self.work.memory.space.addresses_of(&(page..page + 1)));
            return self.work.pages().release(page, self.owner(), Where::Out);
        };
        if self.todo.moves.len() == MOVES {
            self.work.move_each(self.todo);
        }
        self.todo.moves.push(Move::SetAside { page, clean: was == Where::Clean });
    }

    fn evict(&mut self, page: usize) {
        let write = self.last.written.take() == Some(page);
        let protected = self.last.protected.take().is_some_and(|(p, _)| p == page);
        let was = if protected || self.stays(page) { Where::Leaving } else { self.rest(page) };
        let (is_aside, released) = (was == Where::Aside, was.is_mapped());
        // It could not leave and can be written to since; the engine does not know yet.
        let refused = was == Where::Unevicted && !write;
        let address = if is_aside { self.work.memory.aside(page) } else { self.work.memory.address(page) };
        Stats::add(&self.work.stats.evictions, 1);
        self.work.samples.leaves();
        Stats::add(&self.work.stats.dirty_evictions, u64::from(write));
        if self.todo.victims.len() == VICTIMS {
            fatal::stop("internal error: more pages leave at once than there is room for");
        }
        self.todo.victims.push(Victim { page, address, is_aside, write, released, refused, ..Victim::default() });
        if !self.work.memory.reserve.has_room() {
            self.work.zap(self.todo);
        }
    }

    /// Whether the page was about to go to the aside mapping for this very fault; then it can stay.
    fn stays(&mut self, page: usize) -> bool {
        let of = |m: &Move| matches!(m, Move::SetAside { page: p, .. } if *p == page);
        let position = self.todo.moves.iter().position(of);
        position.map(|i| self.todo.moves.remove(i)).is_some()
    }

    /// Takes a page that has not been protected. Returns where it was: only a released page is in the page table.
    fn rest(&mut self, page: usize) -> Where {
        let here = |was: Where| was.is_mapped() || matches!(was, Where::Aside | Where::Unevicted);
        self.seize(page, |was| here(was).then_some(Where::Leaving))
    }

    /// Takes a page, where the engine knows it to be, to bring it into the page table. Returns true if it is there: it
    /// could not leave.
    fn take(&mut self, page: usize) -> bool {
        let out = |was| matches!(was, Where::Out | Where::Aside | Where::Unevicted);
        self.seize(page, |was| out(was).then_some(Where::Busy)) == Where::Unevicted
    }

    /// Through the task's scratch page; its content is always used at once.
    fn copy(&mut self, page: usize, to: SlotId) {
        let scratch = self.work.tasks().get(self.todo.task).scratch();
        self.work.log().copy(page, to, scratch, self.work.pages(), self.work.stats);
    }

    /// Takes a page that came in beside another one, if it is still zeros. Writes to it fault then.
    fn is_unfilled(&mut self, page: usize) -> bool {
        let was = self.seize(page, |was| was.is_mapped().then_some(Where::Leaving));
        let scratch = self.work.tasks().get(self.todo.task).scratch();
        // Otherwise the kernel could write to it after this look, and let go of it before it is moved.
        let unfilled = !self.work.finds_pinned() && self.work.memory.is_zeros(page, scratch);
        match unfilled {
            true => self.last.protected = Some((page, Where::Clean)),
            false => self.work.pages().release(page, self.owner(), was),
        }
        unfilled
    }

    fn map(&mut self, page: usize) {
        let write = self.todo.fault == Some((page, true));
        match self.last.moved.take() {
            Some((moved, from)) if moved == page => {
                if self.take(page) {
                    self.todo.spare.push(from);
                    self.work.memory.count_in(1);
                    return self.work.pages().release(page, self.owner(), Where::Dirty);
                }
                let content = self.work.pages().slot(page).is_some();
                self.todo.copies.push(CopyIn { page, from, write, content });
            }
            _ => {
                if self.take(page) {
                    return self.work.pages().release(page, self.owner(), Where::Dirty);
                }
                if self.todo.moves.len() == MOVES {
                    self.work.move_each(self.todo);
                }
                self.todo.moves.push(Move::Restore { page, write });
            }
        }
    }
}

impl Machine for Linux<'_> {
    fn issue(&mut self, command: Command) {
        self.journal(Entry::Command(command));
        match command {
            Command::Stage { work, .. } => Stats::add(&self.work.stats.walk_sum, work.walk.0),
            Command::Load { ticket, page, into, from: _from } => {
                let (page, into) = (page.index(), self.under_lock.buffers[into.index()]);
                #[cfg(debug_assertions)]
                debug_assert!(self.work.log().lies_in(page, _from), "page {page} is not in {_from:?}");
                self.work.note_load(self.todo, Load::new(ticket, page, into), self.more_follow);
            }
            Command::Move { page, from, .. } => {
                let spare = self.spare();
                let loaded = std::mem::replace(&mut self.under_lock.buffers[from.index()], spare);
                self.last.moved = Some((page.index(), loaded));
            }
            Command::Protect { page } => self.protect(page.index()),
            Command::Write { page, from: Some(_), to } => {
                self.work.log().send(page.index(), to, self.work.pages());
                self.last.written = Some(page.index());
            }
            Command::Write { from: None, .. } => {
                fatal::stop(format_args!("internal error: {command:?}, but no write has failed"))
            }
            Command::Unmap { page } => self.unmap(page.index()),
            Command::Evict { page, .. } => self.evict(page.index()),
            Command::Map { page, place: Place::Frame(_), .. } => self.map(page.index()),
            Command::Map { page, place: Place::Slot(_), .. } => {
                let page = page.index();
                self.seize(page, |was| matches!(was, Where::Out | Where::InSlot).then_some(Where::Busy));
                self.work.log().fill_slot(page, self.work.memory.space.zeros, self.work.pages());
                self.work.memory.map_slot(page);
                self.work.pages().release(page, self.owner(), Where::InSlot);
            }
            Command::Map { page, place, .. } => {
                fatal::stop(format_args!("internal error: page {} is mapped at {place:?}", page.0))
            }
            Command::Zero { page, .. } => {
                let page = page.index();
                match self.take(page) {
                    true => {
                        self.work.memory.count_in(1);
                        self.work.pages().release(page, self.owner(), Where::Dirty);
                    }
                    false => self.todo.zeros.push(page),
                }
            }
            Command::Kill { .. } => {
                fatal::stop(format_args!("internal error: {command:?}, but there are no slots to run out of"))
            }
            Command::CopySlot { page, to, .. } => self.copy(page.index(), to),
            Command::EraseBlock { block } => self.work.log().erase(block),
            Command::Resume { task } => self.work.tasks().get(task.index()).resume(),
            Command::Halt { page, .. } => self.work.lost(page.index()),
        }
    }

    fn referenced(&mut self, page: PageId, _: After) -> bool {
        fatal::stop(format_args!("internal error: the reference bit of page {} is asked for", page.0))
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.last.protected.is_some_and(|(p, was)| p == page.index() && was != Where::Clean);
        self.journal(Entry::Dirty { page, value });
        value
    }

    fn filled(&mut self, page: PageId) -> bool {
        let value = !self.is_unfilled(page.index());
        self.journal(Entry::Filled { page, value });
        value
    }
}
