//! The conditions for every stored row, checked on writing and again on reading.
//!
//! The checks run over whole columns as reductions without branches, so that the compiler can vectorise them. Only if
//! one fails is the bad row looked for.

use super::schema::{Field, Wanted, SIZE_MAX};
use crate::block::Block;

/// The first bad row of a block: its index, its column, and its value in words.
pub(super) type Bad = (usize, Field, String);

/// Checks the columns of `block` that `suspect` names (the others are known to be good); the address always.
pub(super) fn check(block: &Block, suspect: Wanted) -> Result<(), Bad> {
    // Each closure gives 0 for a good value and something else for a bad one, with arithmetic that every vector unit
    // has.
    if suspect.size {
        column(block.size(), Field::Size, |size| size.wrapping_sub(1) >> SIZE_MAX.trailing_zeros())?;
    }
    if suspect.kind {
        column(block.kind(), Field::Kind, kind_fault)?;
    }
    if suspect.count {
        column(block.count(), Field::Count, |count| (count.wrapping_sub(1) & !count) >> 31)?;
    }
    wrap(block)
}

/// 3 has both low bits, anything greater a high one.
fn kind_fault(kind: u32) -> u32 {
    (kind & !3) | (kind & (kind >> 1))
}

fn column(values: &[u32], field: Field, fault: impl Fn(u32) -> u32) -> Result<(), Bad> {
    if values.iter().fold(0, |any, &value| any | fault(value)) == 0 {
        return Ok(());
    }
    match values.iter().position(|&value| fault(value) != 0) {
        Some(row) => Err((row, field, values[row].to_string())),
        None => Ok(()),
    }
}

/// No access may run past the end of the address space. One whose last byte is the very last is fine.
fn wrap(block: &Block) -> Result<(), Bad> {
    let addresses = block.address();
    // SIZE_MAX is far below 2^63, so an access can only wrap if its address has the top bit.
    if addresses.iter().fold(0, |any, &address| any | address) >> 63 == 0 {
        return Ok(());
    }
    let past = |(address, size): (&u64, &u32)| address.checked_add(u64::from(*size) - 1).is_none();
    match addresses.iter().zip(block.size()).position(past) {
        Some(row) => {
            let (address, size) = (addresses[row], block.size()[row]);
            Err((row, Field::Address, format!("{address:#x} with size {size} runs past 2^64")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{Kind, Reference};

    fn verdict(address: u64, size: u32) -> Option<Field> {
        let block: Block =
            [Reference::new(0, 1, Kind::Read), Reference::new(address, size, Kind::Read)].into_iter().collect();
        check(&block, Wanted::ALL).err().map(|(row, field, _)| {
            assert_eq!(row, 1);
            field
        })
    }

    #[test]
    fn the_last_byte_of_memory_may_be_touched_but_not_the_one_after() {
        assert_eq!(verdict(u64::MAX, 1), None);
        assert_eq!(verdict(u64::MAX - 7, 8), None);
        assert_eq!(verdict(u64::MAX - 7, 9), Some(Field::Address));
        assert_eq!(verdict(1 << 63, SIZE_MAX), None);
    }

    #[test]
    fn kinds_are_0_to_2_and_counts_not_0() {
        let kind = |value| column(&[0, value], Field::Kind, kind_fault).is_ok();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, u32::MAX].map(kind), [true, true, true, false, false, false, false, false]);
        let count = |value| {
            let block: Block = [Reference { count: value, ..Reference::new(0, 1, Kind::Read) }].into_iter().collect();
            check(&block, Wanted::ALL).is_ok()
        };
        assert_eq!([0, 1, 2, 1 << 31, u32::MAX].map(count), [false, true, true, true, true]);
    }

    #[test]
    fn sizes_are_1_to_1_gib() {
        assert_eq!(verdict(0, 0), Some(Field::Size));
        assert_eq!(verdict(0, SIZE_MAX), None);
        assert_eq!(verdict(0, SIZE_MAX + 1), Some(Field::Size));
    }
}
