//! The chip that stores the pages: an array of 512-byte sectors and two DataRAMs of 2 KiB. It does one operation at a
//! time.
//!
//! `start` an operation, wait until the chip is `ready`, then check whether the operation has `failed`. Each board has
//! its own file for its chip.

#[cfg_attr(not(feature = "versatilepb"), path = "chip/onenand.rs")]
#[cfg_attr(feature = "versatilepb", path = "chip/ram.rs")]
mod driver;

pub use driver::Chip;

/// Bytes of a sector (KFG1G16Q2M: 512 B main area a sector).
pub const SECTOR: u32 = 512;
/// Bytes of a page of the chip and of a DataRAM (SWL section 4.1.1).
pub const CHIP_PAGE: u32 = 2048;
/// Sectors of a block: 64 pages, 128 KiB (SWL section 4.1.1).
pub const BLOCK_SECTORS: u32 = 256;
/// The first sector of the program's image: the block after the ones that a boot loader would take.
pub const IMAGE: u32 = 32 * BLOCK_SECTORS;

/// An operation of the chip on sectors within one of its pages, and a DataRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Array to DataRAM.
    Load,
    /// DataRAM to array.
    Program,
    /// The block in which the sector lies becomes all ones.
    Erase,
}
