//! The journal of a swap area without an engine, driven by a swap trace.
//!
//! ```text
//! "coldframe journal 10 of a swap area\n"   key=value\n ...   "\n"   entries
//! ```
//! Input: a page goes out or is released. Output: programs, copies and erases. If a page goes out and is not
//! programmed, a full area has refused it.

use alloc::string::ToString;

use coldframe_core::swap::{Flash, Order, Refused, Swap};
use coldframe_core::Event;

use crate::head::{Lines, OF_AREA, SLOTS_MAX};
use crate::replayer::{command_of, Replayed, Replayer};
use crate::{Entries, Entry, Journal, JournalError};

/// A flash whose orders and failures are all noted.
pub struct Noted<'a, F> {
    /// The flash.
    pub flash: &'a mut F,
    /// The journal.
    pub journal: &'a mut Journal,
    /// When, in picoseconds.
    pub now: u64,
}

impl<F: Flash> Flash for Noted<'_, F> {
    fn carry_out(&mut self, order: Order) -> Result<(), Refused> {
        let (command, transfer) = command_of(order);
        self.journal.write(&Entry::Command(command));
        let done = self.flash.carry_out(order);
        if done.is_err() {
            self.journal.write(&Entry::Event { now: self.now, event: Event::Failed { transfer } });
        }
        done
    }
}

fn open(bytes: &[u8]) -> Result<(Swap, Entries<'_>), JournalError> {
    let mut lines = Lines::open(bytes, OF_AREA)?;
    let pages = lines.number("pages", SLOTS_MAX)?;
    let areas = lines.areas()?;
    lines.end()?;
    let bad = |e: &dyn ToString| JournalError::Head { line: 4, field: "areas", reason: e.to_string() };
    let swap = Swap::new(pages, areas.slots_per_block, &areas.areas).map_err(|e| bad(&e))?;
    Ok((swap, lines.entries()))
}

/// Gives a journal's input to a fresh area, and compares the output.
pub(crate) fn replay(bytes: &[u8]) -> Result<Replayed, JournalError> {
    let (mut swap, entries) = open(bytes)?;
    let mut replayer = Replayer::new(entries);
    while let Some((at, entry)) = replayer.next_input()? {
        let (Entry::Out { page, .. } | Entry::Event { event: Event::Released { page }, .. }) = entry else {
            replayer.differs(at, Some(entry), &format_args!("has nothing more to do for the last page"));
            continue;
        };
        if page.index() >= swap.pages() {
            return Err(JournalError::Entry { byte: at, reason: "there is no such page" });
        }
        replayer.replayed.events += 1;
        match entry {
            Entry::Out { .. } => drop(swap.swap_out(page, &mut replayer)),
            _ => drop(swap.release(page)),
        }
    }
    Ok(replayer.replayed)
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use coldframe_core::swap::{AreaConfig, SwapAreas};
    use coldframe_core::PageId;

    /// Every n-th order fails.
    struct Failing(u32, u32);

    impl Flash for Failing {
        fn carry_out(&mut self, _: Order) -> Result<(), Refused> {
            self.0 += 1;
            if self.0.is_multiple_of(self.1) {
                Err(Refused)
            } else {
                Ok(())
            }
        }
    }

    fn journal(every: u32) -> Vec<u8> {
        let mut flash = Failing(0, every);
        let head = SwapAreas { slots_per_block: 4, areas: alloc::vec![AreaConfig::log(9)] };
        let mut swap = Swap::new(16, 4, &head.areas).unwrap();
        let mut journal = Journal::of_area(16, &head);
        for i in 0..400u32 {
            let (page, now) = (PageId(if i % 4 == 0 { i / 4 % 16 } else { i % 3 }), u64::from(i) * 1000);
            journal.out(page, now);
            let _ = swap.swap_out(page, &mut Noted { flash: &mut flash, journal: &mut journal, now });
            if i % 5 == 0 {
                journal.write(&Entry::Event { now, event: Event::Released { page } });
                swap.release(page);
            }
        }
        assert!(swap.counts().copies > 0 && swap.counts().erases > 0);
        journal.drain()
    }

    #[test]
    fn an_area_does_the_same_again() {
        let replayed = super::super::replay(&journal(u32::MAX)).unwrap();
        assert_eq!(replayed.events, 400 + 80);
        assert!(replayed.commands > 400);
        let failing = super::super::replay(&journal(250)).unwrap();
        assert!(failing.events > replayed.events, "failures are in the journal");
    }

    #[test]
    fn what_is_damaged_is_named() {
        let good = journal(u32::MAX);
        let end = good.windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
        // Another slot in the first program, and a byte less at the end.
        let mut other = good.clone();
        other[end + 6] ^= 1;
        assert!(matches!(replay(&other), Err(JournalError::Differs { .. } | JournalError::Entry { .. })));
        assert!(replay(&good[..good.len() - 1]).is_err());
        for at in 0..end {
            let mut bad = good.clone();
            bad[at] = b'x';
            let _ = super::super::replay(&bad);
        }
        let text = String::from_utf8_lossy(&good[..end]).replace("pages=16", "pages=x");
        let error = replay(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("pages"), "{error}");
    }
}
