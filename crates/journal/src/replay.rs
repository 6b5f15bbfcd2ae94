//! Replay: a new engine gets a journal's events and bits, and must issue its commands.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use core::fmt;

use coldframe_core::{After, Command, Machine, PageId};

use crate::{area, open, Entries, Entry, JournalError, Replayed};

/// Gives the journal's events and bits to a fresh engine, or to a fresh swap area, and compares the commands.
///
/// # Errors
/// A journal that cannot be read, or the first difference.
pub fn replay(bytes: &[u8]) -> Result<Replayed, JournalError> {
    if bytes.starts_with(area::MAGIC.as_bytes()) {
        return area::replay(bytes);
    }
    let (head, mut entries) = open(bytes)?;
    let mut engine = head.engine()?;
    let mut entry = entries.next_entry()?;
    let mut replayed = Replayed::default();
    while let Some(expected) = entry {
        let at = entries.at;
        if let Entry::Thread { .. } = expected {
            entry = entries.next_entry()?;
            continue;
        }
        let Entry::Event { event, .. } = expected else {
            return Err(JournalError::Differs {
                byte: at,
                entries: replayed.events + replayed.bits + replayed.commands,
                journal: format!("{expected:?}"),
                engine: "has nothing more to do for the last event".to_string(),
            });
        };
        if !engine.accepts(&event) {
            return Err(JournalError::Entry { byte: at, reason: "the event cannot come at this point" });
        }
        replayed.events += 1;
        let mut machine = Replayer { entries, replayed, error: None };
        engine.handle(event, &mut machine);
        (entries, replayed) = (machine.entries, machine.replayed);
        if let Some(error) = machine.error {
            return Err(*error);
        }
        entry = entries.next_entry()?;
    }
    Ok(replayed)
}

struct Replayer<'a> {
    entries: Entries<'a>,
    replayed: Replayed,
    error: Option<Box<JournalError>>,
}

impl Replayer<'_> {
    fn next(&mut self, engine: &dyn fmt::Debug, same: impl FnOnce(&Entry) -> bool) -> Option<Entry> {
        if self.error.is_some() {
            return None;
        }
        let at = self.entries.at;
        let entries = self.replayed.events + self.replayed.bits + self.replayed.commands;
        match self.entries.next_entry() {
            Ok(Some(entry)) if same(&entry) => return Some(entry),
            Ok(entry) => {
                let journal = entry.map_or_else(|| "its end".to_string(), |e| format!("{e:?}"));
                let engine = format!("{engine:?}");
                self.error = Some(Box::new(JournalError::Differs { byte: at, entries, journal, engine }));
            }
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
}
