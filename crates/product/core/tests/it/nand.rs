//! A small, slow NAND that checks its rules and can fail.

use coldframe_core::swap::{Flash, Order, Refused};
use coldframe_core::{PageId, SlotId};

/// The next failure.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The next program fails; the block stays bad.
    Program,
    /// The next erase fails; the block stays bad.
    Erase,
}

#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Erased,
    Torn,
    Page { page: PageId, content: u64 },
}

/// The device.
pub struct Nand {
    slots_per_block: u32,
    cells: Vec<Cell>,
    erases: Vec<u32>,
    bad: Vec<bool>,
    /// The bytes in RAM that the next program writes.
    pub writing: u64,
    program_fails: bool,
    erase_fails: bool,
}

impl Nand {
    pub fn new(blocks: usize, slots_per_block: u32) -> Nand {
        Nand {
            slots_per_block,
            cells: vec![Cell::Erased; blocks * slots_per_block as usize],
            erases: vec![0; blocks],
            bad: vec![false; blocks],
            writing: 0,
            program_fails: false,
            erase_fails: false,
        }
    }

    /// At most a quarter of the blocks becomes bad, so the area stays usable.
    pub fn plan(&mut self, fault: Fault) {
        let bad = self.bad.iter().filter(|bad| **bad).count();
        let may_fail = (bad + 1) * 4 <= self.bad.len();
        match fault {
            Fault::Program => self.program_fails = may_fail,
            Fault::Erase => self.erase_fails = may_fail,
        }
    }

    pub fn content(&self, slot: SlotId) -> Option<u64> {
        match self.cells[slot.index()] {
            Cell::Page { content, .. } => Some(content),
            _ => None,
        }
    }

    fn block(&self, block: usize) -> std::ops::Range<usize> {
        let n = self.slots_per_block as usize;
        block * n..(block + 1) * n
    }

    fn put(&mut self, slot: SlotId, page: PageId, content: u64) -> Result<(), Refused> {
        let block = slot.index() / self.slots_per_block as usize;
        assert!(!self.bad[block], "a bad block is programmed");
        let later = &self.cells[slot.index()..self.block(block).end];
        assert!(later.iter().all(|cell| *cell == Cell::Erased), "programmed twice, or out of order");
        if std::mem::take(&mut self.program_fails) {
            (self.cells[slot.index()], self.bad[block]) = (Cell::Torn, true);
            return Err(Refused);
        }
        self.cells[slot.index()] = Cell::Page { page, content };
        Ok(())
    }
}

impl Flash for Nand {
    fn carry_out(&mut self, order: Order) -> Result<(), Refused> {
        let block = match order {
            Order::Program { page, from: None, to } => return self.put(to, page, self.writing),
            Order::Program { page, from: Some(from), to } => {
                let Cell::Page { page: there, content } = self.cells[from.index()] else { panic!("nothing to copy") };
                assert_eq!(there, page, "another page is copied");
                return self.put(to, page, content);
            }
            Order::Erase(block) => block,
        };
        assert!(!self.bad[block.index()], "a bad block is erased");
        let cells = self.block(block.index());
        if std::mem::take(&mut self.erase_fails) {
            self.bad[block.index()] = true;
            return Err(Refused);
        }
        self.cells[cells].fill(Cell::Erased);
        self.erases[block.index()] += 1;
        Ok(())
    }
}
