//! The entries of a journal, read from its bytes: a tag, then numbers as LEB128. `journal.rs` writes them.

use coldframe_core::{
    Access, After, Backed, BlockId, BufferId, Command, Event, FrameId, PageId, Place, SlotId, Stage, TaskId, Ticket,
    Transfer, Walk, Work,
};

use crate::entry::{Entry, OUT};
use crate::JournalError;

/// A journal being read.
#[derive(Clone)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
    now: u64,
}

impl<'a> Entries<'a> {
    /// The entries from this byte on.
    pub(crate) fn from(bytes: &'a [u8], byte: usize) -> Entries<'a> {
        Entries { bytes, at: byte, now: 0 }
    }

    /// The entries of a part of a journal after its head, if the event before that part was at `now`.
    pub fn resume(bytes: &'a [u8], now: u64) -> Entries<'a> {
        Entries { bytes, at: 0, now }
    }

    /// The time of the last event, in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl Entries<'_> {
    fn byte(&mut self) -> Result<u8, JournalError> {
        let byte =
            *self.bytes.get(self.at).ok_or(JournalError::Entry { byte: self.at, reason: "an entry has no end" })?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, JournalError> {
        let start = self.at;
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(JournalError::Entry { byte: start, reason: "a number is too long" })
    }

    fn index(&mut self) -> Result<u32, JournalError> {
        let start = self.at;
        u32::try_from(self.number()?).map_err(|_| JournalError::Entry { byte: start, reason: "an index is too large" })
    }

    /// The next entry; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, JournalError> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let bad = |reason| JournalError::Entry { byte: start, reason };
        let tag = self.byte()?;
        if let 1..=7 | 10..=15 | 22..=29 = tag {
            self.now = self.now.wrapping_add(self.number()?);
        }
        let event = match tag {
            1 | 2 => {
                let access = if tag == 1 { Access::Read } else { Access::Write };
                Some(Event::Fault { task: TaskId(self.index()?), page: PageId(self.index()?), access })
            }
            3 => Some(Event::Loaded { ticket: Ticket(self.index()?) }),
            4 => Some(Event::Written { page: PageId(self.index()?) }),
            5 => Some(Event::Failed { transfer: Transfer::Load(Ticket(self.index()?)) }),
            6 => Some(Event::Failed { transfer: Transfer::Write(PageId(self.index()?)) }),
            7 => Some(Event::Released { page: PageId(self.index()?) }),
            10 => Some(Event::WillNeed { page: PageId(self.index()?) }),
            28 => Some(Event::FirstTouchNeighbour { page: PageId(self.index()?) }),
            11 => Some(Event::Pinned { page: PageId(self.index()?) }),
            12 => Some(Event::Unpinned { page: PageId(self.index()?) }),
            22 => Some(Event::Lend { frames: self.index()? }),
            29 => Some(Event::Borrow { frames: self.index()? }),
            13 | 14 => {
                let backed = if tag == 13 { Backed::Anonymous } else { Backed::File };
                Some(Event::Owned { task: TaskId(self.index()?), page: PageId(self.index()?), backed })
            }
            15 => Some(Event::Foreground { task: TaskId(self.index()?) }),
            24 => Some(Event::Slice),
            25 => Some(Event::Failed {
                transfer: Transfer::Copy { page: PageId(self.index()?), to: SlotId(self.index()?) },
            }),
            26 => Some(Event::Failed { transfer: Transfer::Erase(BlockId(self.index()?)) }),
            23 => Some(Event::ReadOften { page: PageId(self.index()?) }),
            _ => None,
        };
        if let Some(event) = event {
            return Ok(Some(Entry::Event { now: self.now, event }));
        }
        let page = |entries: &mut Self| entries.index().map(PageId);
        let command = match tag {
            8 => {
                let (page, bits) = (page(self)?, self.number()?);
                let after = if bits & 2 == 0 { After::Keep } else { After::Clear };
                return Ok(Some(Entry::Referenced { page, after, value: bits & 1 != 0 }));
            }
            9 => return Ok(Some(Entry::Dirty { page: page(self)?, value: self.number()? != 0 })),
            30 => return Ok(Some(Entry::Filled { page: page(self)?, value: self.number()? != 0 })),
            OUT => return Ok(Some(Entry::Out { now: self.now, page: page(self)? })),
            50 => return Ok(Some(Entry::Thread { thread: self.index()? })),
            16..=21 => {
                let stage = Stage::ALL[usize::from(tag - 16)];
                let work = Work {
                    walk: Walk(self.number()?),
                    delayed_downgrades: self.index()?,
                    false_fault: self.number()? != 0,
                };
                Command::Stage { stage, work }
            }
            32 => Command::Load {
                ticket: Ticket(self.index()?),
                page: page(self)?,
                from: SlotId(self.index()?),
                into: BufferId(self.index()?),
            },
            33 => Command::Move { page: page(self)?, from: BufferId(self.index()?), to: FrameId(self.index()?) },
            34 => Command::Protect { page: page(self)? },
            35 => Command::Write {
                page: page(self)?,
                from: self.index()?.checked_sub(1).map(FrameId),
                to: SlotId(self.index()?),
            },
            36 => Command::Unmap { page: page(self)? },
            40 => Command::Evict { page: page(self)?, from: FrameId(self.index()?) },
            37 => {
                let (page, bits, number) = (page(self)?, self.number()?, self.index()?);
                let place = match bits & 3 {
                    0 => Place::Frame(FrameId(number)),
                    1 => Place::Buffer(BufferId(number)),
                    2 => Place::Slot(SlotId(number)),
                    _ => return Err(bad("a page is mapped nowhere")),
                };
                Command::Map { page, place, writable: bits & 4 != 0, referenced: bits & 8 != 0 }
            }
            44 => Command::Zero { page: page(self)?, frame: FrameId(self.index()?) },
            38 => Command::Resume { task: TaskId(self.index()?) },
            42 => Command::CopySlot {
                page: page(self)?,
                from: self.index()?.checked_sub(1).map(SlotId),
                to: SlotId(self.index()?),
            },
            43 => Command::EraseBlock { block: BlockId(self.index()?) },
            41 => Command::Kill { task: TaskId(self.index()?) },
            39 => Command::Halt { task: TaskId(self.index()?), page: page(self)? },
            _ => return Err(bad("there is no such kind of entry")),
        };
        Ok(Some(Entry::Command(command)))
    }
}
