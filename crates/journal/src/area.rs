//! The journal of a swap area without an engine, driven by a swap trace.
//!
//! ```text
//! "coldframe journal 10 of a swap area\n"   key=value\n ...   "\n"   entries
//! ```
//! Input: a page goes out or is released. Output: programs, copies and erases. If a page goes out and is not
//! programmed, a full area has refused it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use coldframe_core::swap::{Flash, Refused, Swap, SwapAreas, AREAS_MAX};
use coldframe_core::{BlockId, Command, Event, PageId, SlotId, Transfer};

use crate::head::{area_line, read_area};
use crate::{Entries, Entry, Journal, JournalError, Replayed};

pub(crate) const MAGIC: &str = "coldframe journal 10 of a swap area";

/// Most slots of a journal's area, and pages.
const MAX: u64 = 1 << 28;

impl Journal {
    /// A journal of an area for that many pages.
    pub fn of_area(pages: usize, swap: &SwapAreas) -> Journal {
        let lines: String = swap.areas.iter().map(area_line).collect();
        let (slots, areas) = (swap.slots_per_block, swap.areas.len());
        let text = format!("{MAGIC}\npages={pages}\nslots_per_block={slots}\nareas={areas}\n{lines}\n");
        Journal { bytes: text.into_bytes(), now: 0 }
    }

    /// The page goes out at this time, in picoseconds.
    pub fn out(&mut self, page: PageId, now: u64) {
        self.write(&Entry::Out { now, page });
    }
}

/// A flash whose orders and failures are all noted.
pub struct Noted<'a, F> {
    /// The flash.
    pub flash: &'a mut F,
    /// The journal.
    pub journal: &'a mut Journal,
    /// When, in picoseconds.
    pub now: u64,
}

impl<F> Noted<'_, F> {
    fn note(
        &mut self,
        command: Command,
        transfer: Transfer,
        done: impl FnOnce(&mut F) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.journal.write(&Entry::Command(command));
        let done = done(self.flash);
        if done.is_err() {
            self.journal.write(&Entry::Event { now: self.now, event: Event::Failed { transfer } });
        }
        done
    }
}

impl<F: Flash> Flash for Noted<'_, F> {
    fn program(&mut self, to: SlotId, page: PageId) -> Result<(), Refused> {
        let command = Command::Write { page, from: None, to };
        self.note(command, Transfer::Write(page), |flash| flash.program(to, page))
    }

    fn copy(&mut self, from: SlotId, to: SlotId, page: PageId) -> Result<(), Refused> {
        let command = Command::CopySlot { page, from: Some(from), to };
        self.note(command, Transfer::Copy { page, to }, |flash| flash.copy(from, to, page))
    }

    fn erase(&mut self, block: BlockId) -> Result<(), Refused> {
        self.note(Command::EraseBlock { block }, Transfer::Erase(block), |flash| flash.erase(block))
    }
}

fn open(bytes: &[u8]) -> Result<(Swap, Entries<'_>), JournalError> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").map(|at| at + 2);
    let head = end.and_then(|end| core::str::from_utf8(&bytes[..end]).ok()).unwrap_or_default();
    let mut lines = head.lines().skip(1);
    let mut number = |line: usize, field: &'static str, max: u64| -> Result<u64, JournalError> {
        let value = lines.next().and_then(|text| text.strip_prefix(field)?.strip_prefix('=')?.parse().ok());
        let reason = || format!("is missing, or is no number up to {max}");
        value.filter(|n| *n <= max).ok_or_else(|| JournalError::Head { line, field, reason: reason() })
    };
    let pages = number(2, "pages", MAX)? as usize;
    let slots_per_block = number(3, "slots_per_block", MAX)?;
    let count = number(4, "areas", AREAS_MAX as u64)? as usize;
    let bad = |line, reason: String| JournalError::Head { line, field: "area", reason };
    let areas: Option<Vec<_>> = lines.take(count).map(|line| read_area(line.strip_prefix("area=")?)).collect();
    let areas = areas.filter(|all| all.len() == count).ok_or_else(|| bad(5, "cannot be read".to_string()))?;
    let blocks: u64 = areas.iter().map(|area| u64::from(area.blocks)).sum();
    if blocks.saturating_mul(slots_per_block) > MAX {
        return Err(bad(5, "there are fewer than 2^28 slots".to_string()));
    }
    let swap = Swap::new(pages, slots_per_block as u32, &areas).map_err(|e| bad(5, e.to_string()))?;
    Ok((swap, Entries { bytes, at: end.unwrap_or_default(), now: 0 }))
}

/// Gives a journal's input to a fresh area, and compares the output.
pub(crate) fn replay(bytes: &[u8]) -> Result<Replayed, JournalError> {
    let (mut swap, entries) = open(bytes)?;
    let mut replayer = Replayer { entries, replayed: Replayed::default(), error: None };
    loop {
        let at = replayer.entries.at;
        let entry = replayer.entries.next_entry()?;
        let (Entry::Out { page, .. } | Entry::Event { event: Event::Released { page }, .. }) = (match entry {
            None => return Ok(replayer.replayed),
            Some(entry) => entry,
        }) else {
            replayer.differs(at, entry, &"has nothing more to do for the last page");
            return Err(*replayer.error.expect("it differs"));
        };
        if page.index() >= swap.pages() {
            return Err(JournalError::Entry { byte: at, reason: "there is no such page" });
        }
        replayer.replayed.events += 1;
        match entry {
            Some(Entry::Out { .. }) => drop(swap.swap_out(page, &mut replayer)),
            _ => drop(swap.release(page)),
        }
        if let Some(error) = replayer.error {
            return Err(*error);
        }
    }
}

/// A flash that compares orders with those of the journal, and fails where they failed.
struct Replayer<'a> {
    entries: Entries<'a>,
    replayed: Replayed,
    error: Option<Box<JournalError>>,
}

impl Replayer<'_> {
    fn differs(&mut self, byte: usize, entry: Option<Entry>, engine: &dyn fmt::Debug) {
        let journal = entry.map_or_else(|| "its end".to_string(), |entry| format!("{entry:?}"));
        let entries = self.replayed.events + self.replayed.commands;
        self.error = Some(Box::new(JournalError::Differs { byte, entries, journal, engine: format!("{engine:?}") }));
    }

    fn order(&mut self, command: Command, transfer: Transfer) -> Result<(), Refused> {
        if self.error.is_some() {
            return Ok(());
        }
        let at = self.entries.at;
        match self.entries.next_entry() {
            Ok(entry) if entry == Some(Entry::Command(command)) => self.replayed.commands += 1,
            Ok(entry) => self.differs(at, entry, &command),
            Err(error) => self.error = Some(Box::new(error)),
        }
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

impl Flash for Replayer<'_> {
    fn program(&mut self, to: SlotId, page: PageId) -> Result<(), Refused> {
        self.order(Command::Write { page, from: None, to }, Transfer::Write(page))
    }

    fn copy(&mut self, from: SlotId, to: SlotId, page: PageId) -> Result<(), Refused> {
        self.order(Command::CopySlot { page, from: Some(from), to }, Transfer::Copy { page, to })
    }

    fn erase(&mut self, block: BlockId) -> Result<(), Refused> {
        self.order(Command::EraseBlock { block }, Transfer::Erase(block))
    }
}

/// The tag of a page that goes out.
pub(crate) const OUT: u8 = 27;

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::swap::{collect, AreaConfig, Layout, WearLevelling};

    /// Every n-th order fails.
    struct Failing(u32, u32);

    impl Failing {
        fn order(&mut self) -> Result<(), Refused> {
            self.0 += 1;
            if self.0.is_multiple_of(self.1) {
                Err(Refused)
            } else {
                Ok(())
            }
        }
    }

    impl Flash for Failing {
        fn program(&mut self, _: SlotId, _: PageId) -> Result<(), Refused> {
            self.order()
        }

        fn copy(&mut self, _: SlotId, _: SlotId, _: PageId) -> Result<(), Refused> {
            self.order()
        }

        fn erase(&mut self, _: BlockId) -> Result<(), Refused> {
            self.order()
        }
    }

    fn journal(every: u32) -> Vec<u8> {
        let mut flash = Failing(0, every);
        let wear = WearLevelling { dynamic: true, spread_max: None };
        let (collector, layout) = (collect::ALL[0], Layout::Log);
        let area = AreaConfig { blocks: 9, priority: 0, layout, collector, victims: 1, start: 2, stop: 2, wear };
        let head = SwapAreas { slots_per_block: 4, areas: alloc::vec![area] };
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
