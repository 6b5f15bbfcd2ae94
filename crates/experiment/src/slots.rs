//! The owner of each slot of a swap area over time, in a grid of fixed size for any length of run and size of area.
//!
//! Call [`SlotPicture::look`] at any time while the area works. When the grid is full, every other column is dropped,
//! and from then on every other look is skipped, so that columns stay evenly spaced.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The owner of each slot over time. Each text is a row, from the lowest slots on; each
/// letter is a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlotMap {
    /// Slots of the area.
    pub slots: u32,
    /// Names of owners with a letter of their own, `a` first; all others together are `z`.
    pub owners: Vec<String>,
    /// The letter of the owner with most copies in each cell, `.` for none.
    pub owner: Vec<String>,
    /// Tenths of a cell's slots that hold a copy, rounded up, 9 for all.
    pub filled: Vec<String>,
}

/// The final number of columns is between half of this and this.
const COLUMNS_MAX: usize = 64;
/// Rows, each for an equal range of slots.
const ROWS: u32 = 32;
/// Slots that are looked at in each row; evenly spaced if it has more.
const LOOKED_AT: u32 = 256;
/// Owners with a letter of their own, `a` first; all others together are `z`.
const OWNERS: usize = 7;

/// A cell: slots by owner, and the number of slots looked at.
#[derive(Clone, Debug, Default)]
struct Cell {
    owned: BTreeMap<u32, u32>,
    looked_at: u32,
}

/// The grid so far.
#[derive(Clone, Debug)]
pub struct SlotPicture {
    columns: Vec<Vec<Cell>>,
    slots: u32,
    looks: u64,
    each: u64,
}

impl SlotPicture {
    /// For an area of `slots` slots.
    pub fn new(slots: u32) -> SlotPicture {
        SlotPicture { columns: Vec::new(), slots, looks: 0, each: 1 }
    }

    /// A look at the area: `owner` gives the owner of the copy in a slot.
    pub fn look(&mut self, owner: impl Fn(u32) -> Option<u32>) {
        self.looks += 1;
        if self.columns.len() == COLUMNS_MAX {
            let mut keep = true;
            self.columns.retain(|_| {
                keep = !keep;
                keep
            });
            self.each *= 2;
        }
        if !self.looks.is_multiple_of(self.each) {
            return;
        }
        self.columns.push((0..self.rows()).map(|row| self.cell(row, &owner)).collect());
    }

    fn rows(&self) -> u32 {
        self.slots.min(ROWS)
    }

    fn cell(&self, row: u32, owner: &impl Fn(u32) -> Option<u32>) -> Cell {
        let edge = |row: u32| (u64::from(self.slots) * u64::from(row) / u64::from(self.rows())) as u32;
        let (from, to) = (edge(row), edge(row + 1));
        let step = (to - from).div_ceil(LOOKED_AT).max(1);
        let mut cell = Cell::default();
        for slot in (from..to).step_by(step as usize) {
            cell.looked_at += 1;
            if let Some(owner) = owner(slot) {
                *cell.owned.entry(owner).or_default() += 1;
            }
        }
        cell
    }

    /// The owners with most slots over the whole time, the largest first.
    fn largest(&self) -> Vec<u32> {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for (owner, slots) in self.columns.iter().flatten().flat_map(|cell| &cell.owned) {
            *sums.entry(*owner).or_default() += u64::from(*slots);
        }
        let mut owners: Vec<u32> = sums.keys().copied().collect();
        owners.sort_by_key(|owner| (std::cmp::Reverse(sums[owner]), *owner));
        owners.truncate(OWNERS);
        owners
    }

    pub fn map(&self, name: impl Fn(u32) -> String) -> SlotMap {
        let largest = self.largest();
        let letter = |cell: &Cell| {
            let most = cell.owned.iter().max_by_key(|(owner, slots)| (**slots, std::cmp::Reverse(**owner)));
            let rank = most.map(|(owner, _)| largest.iter().position(|one| one == owner));
            rank.map_or('.', |rank| rank.map_or('z', |rank| (b'a' + rank as u8) as char))
        };
        let tenths = |cell: &Cell| {
            let filled = cell.owned.values().sum::<u32>() * 10;
            char::from_digit(filled.div_ceil(cell.looked_at.max(1)).min(9), 10).unwrap_or('0')
        };
        let rows = |of: &dyn Fn(&Cell) -> char| -> Vec<String> {
            let row = |row: u32| self.columns.iter().map(|column| of(&column[row as usize])).collect();
            (0..self.rows()).map(row).collect()
        };
        let owners = largest.iter().map(|owner| name(*owner)).collect();
        SlotMap { slots: self.slots, owners, owner: rows(&letter), filled: rows(&tenths) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_show_the_owner_of_most_copies_and_how_full_they_are() {
        let mut picture = SlotPicture::new(64);
        // Two slots in each row: the first row is 7's, half of the second is 9's, the third is empty; later all are
        // 7's.
        picture.look(|slot| [Some(7), Some(7), Some(9)].get(slot as usize).copied().flatten());
        picture.look(|_| Some(7));
        let map = picture.map(|owner| format!("pid {owner}"));
        assert_eq!(map.owners, ["pid 7", "pid 9"]);
        assert_eq!(map.owner[..3], ["aa", "ba", ".a"]);
        assert_eq!(map.filled[..3], ["99", "59", "09"]);
    }

    #[test]
    fn a_long_run_keeps_evenly_spaced_columns() {
        let mut picture = SlotPicture::new(1);
        (1..=1000u32).for_each(|time| picture.look(|_| Some(time)));
        let times: Vec<u32> = picture.columns.iter().map(|column| *column[0].owned.keys().next().unwrap()).collect();
        assert!((COLUMNS_MAX / 2..=COLUMNS_MAX).contains(&times.len()), "{times:?}");
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == times[1] - times[0]), "{times:?}");
    }

    #[test]
    fn many_owners_share_the_last_letter() {
        let mut picture = SlotPicture::new(32);
        picture.look(Some);
        let map = picture.map(|owner| owner.to_string());
        assert_eq!(map.owners.len(), OWNERS);
        assert_eq!((&map.owner[0][..], &map.owner[6][..], &map.owner[7][..]), ("a", "g", "z"));
    }
}
