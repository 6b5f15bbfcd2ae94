//! A journal that is being written: a head, then entries as bytes. `entries.rs` reads them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use coldframe_core::swap::SwapAreas;
use coldframe_core::{Access, After, Backed, Below, Caps, Command, Config, Event, PageId, Place, Transfer};

use crate::entry::{Entry, OUT};
use crate::head::{area_line, Head, ARRIVALS, OF_AREA, VERSION};

/// A journal in memory that is being written. A machine that cannot hold all of it calls [`Journal::drain`] from time
/// to time.
#[derive(Clone, Debug)]
pub struct Journal {
    bytes: Vec<u8>,
    now: u64,
}

impl Journal {
    /// A journal with this head.
    pub fn new(head: &Head) -> Journal {
        let Config { frames, pages, tasks, evict_batch, caps } = head.config;
        let Caps { reference_bit, dirty_bit, buffers, direct_read, places } = caps;
        let Below { slots, swap } = &head.below;
        // One more than the number of slots, so that 0 means that there is no such area.
        let (slots, files_min) = slots.map_or((0, 0), |s| (s.slots + 1, s.files_min));
        let arrival = ARRIVALS.iter().find(|(_, arrival)| *arrival == head.arrival).map_or("", |(name, _)| name);
        let (slots_per_block, areas) =
            swap.as_ref().map_or((0, &[][..]), |swap| (swap.slots_per_block, &swap.areas[..]));
        let lines: String = areas.iter().map(area_line).collect();
        let text = format!(
            "{VERSION}\npolicy={}\nhandler={}\n\
             frames={frames}\npages={pages}\ntasks={tasks}\nevict_batch={evict_batch}\n\
             reference_bit={reference_bit}\ndirty_bit={dirty_bit}\nbuffers={buffers}\n\
             direct_read={direct_read}\nplaces={places}\nslots={slots}\nfiles_min={files_min}\n\
             arrival={arrival}\nslots_per_block={slots_per_block}\nareas={}\n{lines}\n",
            head.policy,
            head.handler,
            areas.len()
        );
        Journal { bytes: text.into_bytes(), now: 0 }
    }

    /// A journal of an area for that many pages.
    pub fn of_area(pages: usize, swap: &SwapAreas) -> Journal {
        let lines: String = swap.areas.iter().map(area_line).collect();
        let (slots, areas) = (swap.slots_per_block, swap.areas.len());
        let text = format!("{VERSION}{OF_AREA}\npages={pages}\nslots_per_block={slots}\nareas={areas}\n{lines}\n");
        Journal { bytes: text.into_bytes(), now: 0 }
    }

    /// The page goes out at this time, in picoseconds.
    pub fn out(&mut self, page: PageId, now: u64) {
        self.write(&Entry::Out { now, page });
    }

    /// Appends an entry.
    pub fn write(&mut self, entry: &Entry) {
        let mut tag = |tag: u8, numbers: &[u64]| {
            self.bytes.push(tag);
            numbers.iter().for_each(|n| put(&mut self.bytes, *n));
        };
        match *entry {
            Entry::Event { now, event } => {
                let since = now.wrapping_sub(self.now);
                match event {
                    Event::Fault { task, page, access: Access::Read } => tag(1, &[since, task.0.into(), page.0.into()]),
                    Event::Fault { task, page, access: Access::Write } => {
                        tag(2, &[since, task.0.into(), page.0.into()])
                    }
                    Event::Loaded { ticket } => tag(3, &[since, ticket.0.into()]),
                    Event::Written { page } => tag(4, &[since, page.0.into()]),
                    Event::Failed { transfer: Transfer::Load(ticket) } => tag(5, &[since, ticket.0.into()]),
                    Event::Failed { transfer: Transfer::Write(page) } => tag(6, &[since, page.0.into()]),
                    Event::Failed { transfer: Transfer::Copy { page, to } } => {
                        tag(25, &[since, page.0.into(), to.0.into()])
                    }
                    Event::Failed { transfer: Transfer::Erase(block) } => tag(26, &[since, block.0.into()]),
                    Event::Slice => tag(24, &[since]),
                    Event::Released { page } => tag(7, &[since, page.0.into()]),
                    Event::WillNeed { page } => tag(10, &[since, page.0.into()]),
                    Event::FirstTouchNeighbour { page } => tag(28, &[since, page.0.into()]),
                    Event::Pinned { page } => tag(11, &[since, page.0.into()]),
                    Event::Unpinned { page } => tag(12, &[since, page.0.into()]),
                    Event::Lend { frames } => tag(22, &[since, frames.into()]),
                    Event::Borrow { frames } => tag(29, &[since, frames.into()]),
                    Event::Owned { task, page, backed: Backed::Anonymous } => {
                        tag(13, &[since, task.0.into(), page.0.into()])
                    }
                    Event::Owned { task, page, backed: Backed::File } => {
                        tag(14, &[since, task.0.into(), page.0.into()])
                    }
                    Event::Foreground { task } => tag(15, &[since, task.0.into()]),
                    Event::ReadOften { page } => tag(23, &[since, page.0.into()]),
                }
                self.now = now;
            }
            Entry::Command(command) => match command {
                Command::Stage { stage, work } => {
                    tag(16 + stage as u8, &[work.walk.0, work.delayed_downgrades.into(), u64::from(work.false_fault)])
                }
                Command::Load { ticket, page, from, into } => {
                    tag(32, &[ticket.0.into(), page.0.into(), from.0.into(), into.0.into()])
                }
                Command::Move { page, from, to } => tag(33, &[page.0.into(), from.0.into(), to.0.into()]),
                Command::Protect { page } => tag(34, &[page.0.into()]),
                Command::Write { page, from, to } => {
                    tag(35, &[page.0.into(), from.map_or(0, |f| u64::from(f.0) + 1), to.0.into()])
                }
                Command::Unmap { page } => tag(36, &[page.0.into()]),
                Command::Evict { page, from } => tag(40, &[page.0.into(), from.0.into()]),
                Command::Map { page, place, writable, referenced } => {
                    let (kind, number) = match place {
                        Place::Frame(frame) => (0, frame.0),
                        Place::Buffer(buffer) => (1, buffer.0),
                        Place::Slot(slot) => (2, slot.0),
                    };
                    tag(
                        37,
                        &[page.0.into(), kind | u64::from(writable) << 2 | u64::from(referenced) << 3, number.into()],
                    )
                }
                Command::Zero { page, frame } => tag(44, &[page.0.into(), frame.0.into()]),
                Command::Resume { task } => tag(38, &[task.0.into()]),
                Command::CopySlot { page, from, to } => {
                    tag(42, &[page.0.into(), from.map_or(0, |s| u64::from(s.0) + 1), to.0.into()])
                }
                Command::EraseBlock { block } => tag(43, &[block.0.into()]),
                Command::Kill { task } => tag(41, &[task.0.into()]),
                Command::Halt { task, page } => tag(39, &[task.0.into(), page.0.into()]),
            },
            Entry::Referenced { page, after, value } => {
                tag(8, &[page.0.into(), u64::from(value) | u64::from(after == After::Clear) << 1])
            }
            Entry::Dirty { page, value } => tag(9, &[page.0.into(), u64::from(value)]),
            Entry::Filled { page, value } => tag(30, &[page.0.into(), u64::from(value)]),
            Entry::Thread { thread } => tag(50, &[thread.into()]),
            Entry::Out { now, page } => {
                tag(OUT, &[now.wrapping_sub(self.now), page.0.into()]);
                self.now = now;
            }
        }
    }

    /// What has been written since the last call.
    pub fn drain(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// Bytes written since the last call of [`Journal::drain`] or [`Journal::drain_with`].
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that it can hold between two such calls without allocating more memory.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes room for that many bytes between two calls of [`Journal::drain_with`], so that nothing is allocated later.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    /// Passes on the bytes written since the last call, and keeps the memory for later bytes.
    pub fn drain_with(&mut self, write: impl FnOnce(&[u8])) {
        write(&self.bytes);
        self.bytes.clear();
    }
}

fn put(bytes: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}
