//! The tables of a swap area whose slots the engine assigns (`coldframe_core::swap`): the file segment of each erase
//! block, and the next place of each page.
//!
//! ```text
//!   Write{page, to}           old slot freed; the page is on its way, to `to`            bytes are final later
//!   CopySlot{page, from, to}  on its way: to `to` instead; otherwise its bytes are copied now
//!   append                    the bytes go to the segment of the block of `to`, which gets one with its first page
//!   EraseBlock{block}         the block has no segment any more; its segment is free when no page and no child sees
//!                             its slots
//! ```
//! As in the log, a slot of the file is written once, and what a forked child sees stays unchanged: the child's
//! blocks have no segments, and its pages stay in place until the engine writes or copies them. A page that does not
//! fit into the area goes to the log outside of it.
//!
//! All functions here only change the tables, as in `segments.rs`.

use crate::sys::table::Table;
use crate::LiveError;

/// Flag of a page's place: its bytes have not arrived yet.
const COMES: u32 = 1 << 31;
const SLOT: u32 = COMES - 1;

#[derive(Debug)]
pub struct Blocks {
    homes: u32,
    /// By page: its slot of the area plus 1, and `COMES`. A page without a slot has its place in the log.
    place: Table<u32>,
    /// By block: its segment plus 1; 0: none.
    segment: Table<u32>,
    /// By segment: 1 if it belongs to a block.
    owned: Table<u8>,
}

impl Blocks {
    /// `blocks` erased blocks for `pages` pages, in a file of `segments` segments.
    pub fn new(pages: usize, blocks: usize, segments: usize) -> Result<Blocks, LiveError> {
        let (place, segment, owned) = (Table::new(pages)?, Table::new(blocks)?, Table::new(segments)?);
        Ok(Blocks { homes: pages as u32, place, segment, owned })
    }

    /// The blocks of a forked child, in a file of its own. Pages keep their slots, but the child's blocks have other
    /// segments.
    pub fn inherited(self) -> Result<Blocks, LiveError> {
        let (blocks, segments) = (self.segment.as_slice().len(), self.owned.as_slice().len());
        Ok(Blocks { segment: Table::new(blocks)?, owned: Table::new(segments)?, ..self })
    }

    /// The page's bytes are on their way to the slot.
    pub fn send(&mut self, page: u32, to: u32) {
        self.place.as_mut_slice()[page as usize] = self.stored(to) | COMES;
    }

    /// The page goes to another slot. Returns true if its bytes are still on their way; they then go there.
    pub fn redirect(&mut self, page: u32, to: u32) -> bool {
        let comes = self.place[page as usize] & COMES;
        self.place.as_mut_slice()[page as usize] = self.stored(to) | comes;
        comes != 0
    }

    pub fn arrived(&mut self, page: u32) {
        self.place.as_mut_slice()[page as usize] &= SLOT;
    }

    pub fn forget(&mut self, page: u32) {
        if self.place[page as usize] != 0 {
            self.place.as_mut_slice()[page as usize] = 0;
        }
    }

    /// The slot of the area that the engine has given the page.
    pub fn slot_of(&self, page: u32) -> Option<u32> {
        (self.place[page as usize] & SLOT).checked_sub(1)
    }

    /// Whether the engine may look for the page there.
    #[cfg(debug_assertions)]
    pub fn lies_in(&self, page: u32, slot: u32) -> bool {
        self.place[page as usize] & COMES == 0 && self.slot_of(page) == slot.checked_sub(self.homes)
    }

    pub fn own(&self, segment: usize) -> bool {
        self.owned[segment] != 0
    }

    fn stored(&self, slot: u32) -> u32 {
        slot.checked_sub(self.homes).map_or(0, |slot| slot + 1)
    }

    pub(super) fn segment_of(&self, block: usize) -> Option<usize> {
        self.segment[block].checked_sub(1).map(|segment| segment as usize)
    }

    pub(super) fn give(&mut self, block: usize, segment: usize) {
        self.segment.as_mut_slice()[block] = segment as u32 + 1;
        self.owned.as_mut_slice()[segment] = 1;
    }

    pub(super) fn take_back(&mut self, block: usize) -> Option<usize> {
        let segment = self.segment_of(block)?;
        self.segment.as_mut_slice()[block] = 0;
        self.owned.as_mut_slice()[segment] = 0;
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::super::segments::{Inside, Job, Refused};
    use super::super::SEGMENT;
    use super::*;

    const PAGES: usize = 256;
    const BLOCKS: usize = 8;

    fn books(segments: usize) -> Inside {
        let mut books = Inside::new(segments).unwrap();
        books.blocks = Some(Blocks::new(PAGES, BLOCKS, segments).unwrap());
        books
    }

    fn blocks(books: &mut Inside) -> &mut Blocks {
        books.blocks.as_mut().unwrap()
    }

    /// Does the waiting work. Returns the number of pages written.
    fn work(books: &mut Inside) -> usize {
        let mut written = 0;
        while let Some(job) = books.job() {
            match job {
                Job::Reserve(_, to) => books.reserved(Some(to)),
                Job::Bury => books.bury(|_| false),
                Job::Write(b) => {
                    written += books.buffers[b].used();
                    books.written(b, true);
                }
            }
        }
        written
    }

    /// Sends a page to a slot of the area. Returns its slot in the file.
    fn send(books: &mut Inside, page: u32, slot: u32) -> usize {
        blocks(books).send(page, PAGES as u32 + slot);
        arrive(books, page)
    }

    fn arrive(books: &mut Inside, page: u32) -> usize {
        loop {
            match books.place(page) {
                Ok((slot, _)) => {
                    blocks(books).arrived(page);
                    return slot;
                }
                Err(Refused::Wait) => _ = work(books),
                Err(Refused::Full) => panic!("full"),
            }
        }
    }

    #[test]
    fn the_slots_of_a_block_lie_together_in_whatever_order_they_come_and_leave_with_one_write() {
        let mut books = books(64);
        let slots: Vec<usize> = (0..32).map(|i| send(&mut books, i, 64 + i * 7 % 32)).collect();
        let first = slots[0] / SEGMENT * SEGMENT;
        assert!(slots.iter().enumerate().all(|(i, slot)| *slot == first + i * 7 % 32));
        let Some(Job::Write(b)) = books.job() else { panic!("a full block is written") };
        assert_eq!((books.buffers[b].run(0), books.buffered(slots[5]).is_some()), (SEGMENT, true));
        books.written(b, true);
    }

    #[test]
    fn a_page_whose_slot_moves_before_its_bytes_come_goes_to_the_new_one() {
        let mut books = books(64);
        blocks(&mut books).send(3, PAGES as u32 + 5);
        assert!(blocks(&mut books).redirect(3, PAGES as u32 + 40));
        books.erase(0);
        let slot = arrive(&mut books, 3);
        assert_eq!((slot % SEGMENT, blocks(&mut books).slot_of(3)), (8, Some(40)));
        assert!(!blocks(&mut books).redirect(3, PAGES as u32 + 7), "its bytes are there");
    }

    #[test]
    fn an_erased_block_gets_another_segment_and_the_old_one_is_free_once_nobody_sees_it() {
        let mut books = books(64);
        let old = send(&mut books, 1, 0);
        work(&mut books);
        books.adopt(7);
        books.release(old);
        books.erase(0);
        let new = send(&mut books, 1, 0);
        assert_ne!(old / SEGMENT, new / SEGMENT, "a child sees it for ever");
        books.release(new);
        books.erase(0);
        let again = send(&mut books, 1, 0);
        assert_eq!(new / SEGMENT, again / SEGMENT, "no process reads it");
        assert_eq!(work(&mut books), 0, "a page that is not needed is not written");
    }

    #[test]
    fn more_open_blocks_than_buffers_are_written_in_parts() {
        let mut books = books(64);
        let mut blocks_of = Blocks::new(4096, 64, 64).unwrap();
        blocks_of.homes = PAGES as u32;
        books.blocks = Some(blocks_of);
        let mut slots = Vec::new();
        for round in 0..32u32 {
            for block in 0..20u32 {
                slots.push(send(&mut books, round * 20 + block, block * 32 + round));
            }
        }
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 640, "each page has a slot of its own");
        books.retire_all();
        work(&mut books);
        assert!(books.is_settled());
    }

    #[test]
    fn a_page_without_a_slot_goes_into_the_log_and_not_into_a_block() {
        let mut books = books(64);
        let in_block = send(&mut books, 1, 0);
        blocks(&mut books).send(2, 2);
        let slot = arrive(&mut books, 2);
        assert!(blocks(&mut books).slot_of(2).is_none() && slot / SEGMENT != in_block / SEGMENT);
        work(&mut books);
        books.release(in_block);
        let slot = |i: u32| {
            blocks(&mut books).send(100 + i, 100 + i);
            arrive(&mut books, 100 + i)
        };
        let slots: Vec<usize> = (0..100).map(slot).collect();
        assert!(slots.iter().all(|slot| slot / SEGMENT != in_block / SEGMENT), "the block's segment is its own");
    }

    #[test]
    fn a_child_has_the_slots_and_no_segments() {
        let mut books = books(64);
        let slot = send(&mut books, 1, 3);
        let mut child = Inside::new(64).unwrap();
        child.blocks = Some(books.blocks.take().unwrap().inherited().unwrap());
        assert_eq!(blocks(&mut child).slot_of(1), Some(3));
        child.erase(0);
        assert_eq!(send(&mut child, 2, 4) % SEGMENT, slot % SEGMENT + 1);
    }
}
