//! Tests the driver alone, without the engine: each operation, both DataRAMs, status, the chip's rule, execution.
//! `self-test` on the command line runs it. It stops the board at the first error.

use crate::chip::{Chip, Operation, BLOCK_SECTORS, CHIP_PAGE, SECTOR};
use crate::mmu::{self, PageTable, PAGED};
use crate::{io, println, quirks, start};

/// A block that nothing else uses.
const BLOCK: u32 = 1000 * BLOCK_SECTORS;
/// Sectors of a chip page.
const SECTORS: u32 = CHIP_PAGE / SECTOR;

/// Tests the chip.
///
/// # Panics
/// If something is wrong.
pub fn run(table: &PageTable) {
    let mut chip = Chip::new();
    erases_to_ones(&mut chip);
    programs_and_loads_through_both(&mut chip);
    programs_clear_bits_only(&mut chip);
    if table.page() < CHIP_PAGE {
        executes_what_was_loaded_last(&mut chip, table);
    }
    println!("self-test: ok");
}

fn operate(chip: &mut Chip, operation: Operation, page: u32, sectors: u32, data_ram: u32) {
    chip.start(operation, BLOCK + page * SECTORS, sectors, (data_ram, 0));
    while !chip.ready() {}
    assert!(!chip.failed(), "{operation:?} of page {page} with DataRAM {data_ram} failed");
}

/// A word that is different at each place and in each page.
fn pattern(page: u32, offset: u32) -> u32 {
    (page << 16 | offset).wrapping_mul(0x9e37_79b9)
}

fn fill(data_ram: u32, word: impl Fn(u32) -> u32) {
    (0..CHIP_PAGE).step_by(4).for_each(|offset| io::write32(Chip::data_ram(data_ram) + offset, word(offset)));
}

fn expect(data_ram: u32, word: impl Fn(u32) -> u32) {
    for offset in (0..CHIP_PAGE).step_by(4) {
        assert_eq!(io::read32(Chip::data_ram(data_ram) + offset), word(offset), "DataRAM {data_ram} at {offset}");
    }
}

/// QEMU's chip starts as zeros, which is programmed, so that ones can only come from the erase.
fn erases_to_ones(chip: &mut Chip) {
    chip.unlock(BLOCK);
    operate(chip, Operation::Load, 3, SECTORS, 0);
    expect(0, |_| 0);
    operate(chip, Operation::Erase, 0, SECTORS, 0);
    operate(chip, Operation::Load, 3, SECTORS, 0);
    expect(0, |_| u32::MAX);
}

/// Each page is programmed from one DataRAM and loaded into the other. A load of half a page does not change the other
/// half.
fn programs_and_loads_through_both(chip: &mut Chip) {
    for data_ram in 0..2 {
        fill(data_ram, |offset| pattern(data_ram, offset));
        operate(chip, Operation::Program, data_ram, SECTORS, data_ram);
    }
    for data_ram in 0..2 {
        operate(chip, Operation::Load, 1 - data_ram, SECTORS, data_ram);
        expect(data_ram, |offset| pattern(1 - data_ram, offset));
    }
    operate(chip, Operation::Load, 0, SECTORS / 2, 0);
    expect(0, |offset| pattern(u32::from(offset >= CHIP_PAGE / 2), offset));
}

/// A second program without an erase leaves only the bits that both have set: this is how a slot that is programmed
/// twice would be detected.
fn programs_clear_bits_only(chip: &mut Chip) {
    fill(0, |offset| pattern(7, offset));
    operate(chip, Operation::Program, 1, SECTORS, 0);
    operate(chip, Operation::Load, 1, SECTORS, 1);
    expect(1, |offset| pattern(1, offset) & pattern(7, offset));
}

/// Three pages of code at one address, one after the other, from each DataRAM.
fn executes_what_was_loaded_last(chip: &mut Chip, table: &PageTable) {
    for number in 1..=3 {
        // mov r0, #number; mov r7, #0; svc 0
        let code = [0xe3a0_0000 | number, 0xe3a0_7000, 0xef00_0000];
        fill(0, |offset| code.get(offset as usize / 4).copied().unwrap_or(0));
        operate(chip, Operation::Program, 10 + number, SECTORS, 0);
    }
    for data_ram in 0..2 {
        for number in 1..=3 {
            operate(chip, Operation::Load, 10 + number, SECTORS, data_ram);
            quirks::drop_stale_translations(Chip::data_ram(data_ram), CHIP_PAGE);
            table.map(PAGED, Chip::data_ram(data_ram), false);
            mmu::invalidate_instructions();
            // SAFETY: three instructions that end the program, mapped where it starts.
            let ran = unsafe { start::run_user(PAGED) };
            assert_eq!(ran, number, "DataRAM {data_ram} ran other code than it holds");
            table.unmap(PAGED);
        }
    }
}
