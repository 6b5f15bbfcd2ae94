//! Replay: a new engine gets a journal's events and bits, and must issue its commands.

use crate::area;
use crate::head::{self, open};
use crate::replayer::{Replayed, Replayer};
use crate::{Entry, JournalError};

/// Gives the journal's events and bits to a fresh engine, or to a fresh swap area, and compares the commands.
///
/// # Errors
/// A journal that cannot be read, or the first difference.
pub fn replay(bytes: &[u8]) -> Result<Replayed, JournalError> {
    if head::is_of_area(bytes) {
        return area::replay(bytes);
    }
    let (head, entries) = open(bytes)?;
    let mut engine = head.engine()?;
    let mut replayer = Replayer::new(entries);
    while let Some((at, entry)) = replayer.next_input()? {
        match entry {
            Entry::Thread { .. } => {}
            Entry::Event { event, .. } if engine.accepts(&event) => {
                replayer.replayed.events += 1;
                engine.handle(event, &mut replayer);
            }
            Entry::Event { .. } => {
                return Err(JournalError::Entry { byte: at, reason: "the event cannot come at this point" });
            }
            _ => replayer.differs(at, Some(entry), &format_args!("has nothing more to do for the last event")),
        }
    }
    Ok(replayer.replayed)
}
