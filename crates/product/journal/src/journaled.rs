//! An engine and a machine with a journal between them.

use coldframe_core::{After, Command, Engine, Event, Machine, PageId};

use crate::{Entry, Journal};

/// A machine with a journal: every command and every bit is noted.
pub struct Journaled<'a> {
    /// The machine.
    pub machine: &'a mut dyn Machine,
    /// Its journal.
    pub journal: &'a mut Journal,
}

impl Machine for Journaled<'_> {
    fn issue(&mut self, command: Command) {
        self.journal.write(&Entry::Command(command));
        self.machine.issue(command);
    }

    fn referenced(&mut self, page: PageId, after: After) -> bool {
        let value = self.machine.referenced(page, after);
        self.journal.write(&Entry::Referenced { page, after, value });
        value
    }

    fn dirty(&mut self, page: PageId) -> bool {
        let value = self.machine.dirty(page);
        self.journal.write(&Entry::Dirty { page, value });
        value
    }

    fn filled(&mut self, page: PageId) -> bool {
        let value = self.machine.filled(page);
        self.journal.write(&Entry::Filled { page, value });
        value
    }
}

/// Gives the event to the engine. If a journal is kept, notes the event and everything that follows from it. `now` is
/// in picoseconds.
pub fn handle(engine: &mut Engine, event: Event, now: u64, machine: &mut dyn Machine, journal: Option<&mut Journal>) {
    match journal {
        None => engine.handle(event, machine),
        Some(journal) => {
            journal.write(&Entry::Event { now, event });
            engine.handle(event, &mut Journaled { machine, journal });
        }
    }
}
