//! No chip: the array is RAM into which QEMU has loaded the program, and a load is a copy. For the versatilepb, which
//! has no OneNAND: a smoke test of MMU and aborts.

use core::cell::UnsafeCell;

use crate::chip::{Operation, CHIP_PAGE, IMAGE, SECTOR};
use crate::io;

/// Where `-device loader` has put the program (`scripts/board.sh`).
const PROGRAM: u32 = 0x0400_0000;

#[repr(C, align(4096))]
struct DataRam(UnsafeCell<[[u8; CHIP_PAGE as usize]; 2]>);
// SAFETY: read and written through `io` only; one processor.
unsafe impl Sync for DataRam {}
static DATA_RAM: DataRam = DataRam(UnsafeCell::new([[0; CHIP_PAGE as usize]; 2]));

/// The chip.
pub struct Chip(());

impl Chip {
    /// It is there.
    pub fn new() -> Chip {
        Chip(())
    }

    /// Address of a DataRAM.
    pub fn data_ram(number: u32) -> u32 {
        DATA_RAM.0.get() as u32 + number * CHIP_PAGE
    }

    /// Does an operation.
    ///
    /// # Panics
    /// If it is not a load.
    pub fn start(&mut self, operation: Operation, sector: u32, sectors: u32, (data_ram, first): (u32, u32)) {
        assert_eq!(operation, Operation::Load, "this board has nothing to write to");
        io::copy(PROGRAM + (sector - IMAGE) * SECTOR, Chip::data_ram(data_ram) + first * SECTOR, sectors * SECTOR);
    }

    /// Nothing is locked.
    pub fn unlock(&mut self, _: u32) {}

    /// It has ended with `start`.
    pub fn ready(&self) -> bool {
        true
    }

    /// A copy does not fail.
    pub fn failed(&self) -> bool {
        false
    }
}
