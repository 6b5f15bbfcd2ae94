//! The machine of a replay: it compares what is done anew with a journal, and gives the journal's bits.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use core::fmt::Debug;

use coldframe_core::swap::{Flash, Order, Refused};
use coldframe_core::{After, Command, Event, Machine, PageId, Transfer};

use crate::{Entries, Entry, JournalError};

/// The result of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Events delivered.
    pub events: u64,
    /// Bits answered.
    pub bits: u64,
    /// Commands that were the same.
    pub commands: u64,
}

/// What is done anew, compared with a journal.
pub(crate) struct Replayer<'a> {
    pub(crate) entries: Entries<'a>,
    pub(crate) replayed: Replayed,
    error: Option<Box<JournalError>>,
}

impl<'a> Replayer<'a> {
    pub(crate) fn new(entries: Entries<'a>) -> Replayer<'a> {
        Replayer { entries, replayed: Replayed::default(), error: None }
    }

    /// The next input and its place; `None` at the end.
    ///
    /// # Errors
    /// The input before it had another output, or the entry cannot be read.
    pub(crate) fn next_input(&mut self) -> Result<Option<(usize, Entry)>, JournalError> {
        match self.error.take() {
            Some(error) => Err(*error),
            None => {
                let at = self.entries.at();
                Ok(self.entries.next_entry()?.map(|entry| (at, entry)))
            }
        }
    }

    /// The journal has this entry here, and the engine does something else.
    pub(crate) fn differs(&mut self, byte: usize, entry: Option<Entry>, engine: &dyn Debug) {
        let journal = entry.map_or_else(|| "its end".to_string(), |entry| format!("{entry:?}"));
        let Replayed { events, bits, commands } = self.replayed;
        let (entries, engine) = (events + bits + commands, format!("{engine:?}"));
        self.error = Some(Box::new(JournalError::Differs { byte, entries, journal, engine }));
    }

    /// The next entry, if nothing has differed and this is the same.
    pub(crate) fn next(&mut self, engine: &dyn Debug, same: impl FnOnce(&Entry) -> bool) -> Option<Entry> {
        if self.error.is_some() {
            return None;
        }
        let at = self.entries.at();
        match self.entries.next_entry() {
            Ok(Some(entry)) if same(&entry) => return Some(entry),
            Ok(entry) => self.differs(at, entry, engine),
            Err(error) => self.error = Some(Box::new(error)),
        }
        None
    }
}

impl Machine for Replayer<'_> {
    fn issue(&mut self, command: Command) {
        if self.next(&command, |entry| *entry == Entry::Command(command)).is_some() {
            self.replayed.commands += 1;
        }
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let is_expected =
            |e: &Entry| matches!(e, Entry::Referenced { page: p, after: a, .. } if *p == page && *a == after);
        let entry = self.next(&("a reference bit is asked for", page, after), is_expected);
        self.replayed.bits += 1;
        matches!(entry, Some(Entry::Referenced { value: true, .. }))
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let entry =
            self.next(&("a dirty bit is asked for", page), |e| matches!(e, Entry::Dirty { page: p, .. } if *p == page));
        self.replayed.bits += 1;
        matches!(entry, Some(Entry::Dirty { value: true, .. }))
    }

    fn filled(&mut self, page: PageId) -> bool {
        let is_expected = |e: &Entry| matches!(e, Entry::Filled { page: p, .. } if *p == page);
        let entry = self.next(&("whether the page was written to", page), is_expected);
        self.replayed.bits += 1;
        matches!(entry, Some(Entry::Filled { value: true, .. }))
    }
}

/// An order as the command of an engine, and the transfer that fails with it.
pub(crate) fn command_of(order: Order) -> (Command, Transfer) {
    match order {
        Order::Program { page, from: None, to } => (Command::Write { page, from: None, to }, Transfer::Write(page)),
        Order::Program { page, from, to } => (Command::CopySlot { page, from, to }, Transfer::Copy { page, to }),
        Order::Erase(block) => (Command::EraseBlock { block }, Transfer::Erase(block)),
    }
}

/// A flash that compares orders with those of the journal, and fails where they failed.
impl Flash for Replayer<'_> {
    fn carry_out(&mut self, order: Order) -> Result<(), Refused> {
        let (command, transfer) = command_of(order);
        self.issue(command);
        let mut ahead = self.entries.clone();
        match ahead.next_entry() {
            Ok(Some(Entry::Event { event: Event::Failed { transfer: failed }, .. })) if failed == transfer => {
                self.entries = ahead;
                self.replayed.events += 1;
                Err(Refused)
            }
            _ => Ok(()),
        }
    }
}
