//! OneNAND: a NAND array behind a NOR bus, as QEMU 7.2 models it (`hw/block/onenand.c`) and as the KFG1G16Q2M's sheet
//! describes it.
//!
//! ```text
//! +0x0_0000  BootRAM 1 KiB     +0x0_0400  DataRAM0 2 KiB    +0x0_0c00  DataRAM1 2 KiB
//! +0x1_e000  registers, 16 bits each
//! ```
//!
//! The chip ignores a command while the interrupt bit of the command before is set, so `start` clears the bit.

use crate::chip::{Operation, BLOCK_SECTORS};
use crate::io::{read16, write16};

/// Where the boot code of the n8x0 boards has put chip select 0 (QEMU: `n8x0_boot_init`).
const BASE: u32 = 0x0400_0000;
const DATA_RAM: [u32; 2] = [BASE + 0x400, BASE + 0xc00];

/// Byte address of a register that the sheet names by its word address.
const fn register(word: u32) -> u32 {
    BASE + word * 2
}
/// Manufacturer; 0xec is Samsung.
const MANUFACTURER: u32 = register(0xf000);
/// Start address 1: the block.
const BLOCK: u32 = register(0xf100);
/// Start address 8: page << 2 | sector.
const PAGE_SECTOR: u32 = register(0xf107);
/// Start buffer: DataRAM and its sector << 8 | number of sectors, where 0 is 4.
const BUFFER: u32 = register(0xf200);
const COMMAND: u32 = register(0xf220);
/// Bit 10: the last operation has failed.
const STATUS: u32 = register(0xf240);
/// Bit 15: the last operation has ended.
const INTERRUPT: u32 = register(0xf241);
/// Block to unlock.
const UNLOCK_START: u32 = register(0xf24c);

/// The chip.
pub struct Chip(());

impl Chip {
    /// Finds it.
    ///
    /// # Panics
    /// If there is none.
    pub fn new() -> Chip {
        let manufacturer = read16(MANUFACTURER);
        assert_eq!(manufacturer, 0xec, "there is no OneNAND; give QEMU -drive if=mtd,...");
        Chip(())
    }

    /// Address of a DataRAM.
    pub fn data_ram(number: u32) -> u32 {
        DATA_RAM[number as usize]
    }

    /// Starts an operation on `sectors` (1 to 4) sectors from `sector` on, with a DataRAM from a sector of it on.
    pub fn start(&mut self, operation: Operation, sector: u32, sectors: u32, (data_ram, first): (u32, u32)) {
        write16(BLOCK, (sector / BLOCK_SECTORS) as u16);
        write16(PAGE_SECTOR, (sector % BLOCK_SECTORS) as u16);
        write16(BUFFER, ((8 | data_ram << 2 | first) << 8 | sectors & 3) as u16);
        self.command(match operation {
            Operation::Load => 0x00,
            Operation::Program => 0x80,
            Operation::Erase => 0x94,
        });
    }

    /// Unlocks the block of a sector; after reset all are locked.
    pub fn unlock(&mut self, sector: u32) {
        write16(UNLOCK_START, (sector / BLOCK_SECTORS) as u16);
        self.command(0x23);
    }

    fn command(&mut self, command: u16) {
        write16(INTERRUPT, 0);
        write16(COMMAND, command);
    }

    /// Whether the operation has ended.
    pub fn ready(&self) -> bool {
        read16(INTERRUPT) & 1 << 15 != 0
    }

    /// Whether the ended operation has failed.
    pub fn failed(&self) -> bool {
        read16(STATUS) & 1 << 10 != 0
    }
}
