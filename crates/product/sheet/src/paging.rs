//! What a paging system costs, term by term, in time and in energy: pure functions over counts (equations 1 to 3 of
//! DDB, 2007).
//!
//! ```text
//! (1)  t_paging = t_pl N_pl + t_pm N_pm          + t_rdmain N_rdmain + t_rdxip N_rdxip + t_wrmain N_wrmain
//! (2)  t_total  = t_paging + t_idle
//! (3)  e_paging = e_pl N_pl + e_pm (N_pm + N_pmdual) + e_rdmain N_rdmain + e_rdxip N_rdxip + e_wrmain N_wrmain
//! ```
//!
//! Equation 1 counts no time for a move during a load, since on the paper's device a load takes longer than a move.
//! If a move takes longer, the part of it that outlasts the load is counted. All counts and prices are integers, so
//! nothing is rounded.

use std::ops::{Add, Mul};

use coldframe_core::{Bytes, Pj, Ps};

use crate::sheet::{Sheet, SheetError};
use crate::time;

/// How often each thing happened (table 2 of the paper).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessCounts {
    /// `N_pl`: pages loaded into a buffer.
    pub page_loads: u64,
    /// `N_pm`: pages moved to main memory while the device did nothing.
    pub page_moves: u64,
    /// `N_pmdual`: pages moved while the device loaded another.
    pub page_moves_dual: u64,
    /// `N_rdmain`: cache blocks read from main memory.
    pub main_reads: u64,
    /// `N_rdxip`: cache blocks read in place, from a buffer.
    pub xip_reads: u64,
    /// `N_wrmain`: cache blocks written to main memory.
    pub main_writes: u64,
}

/// The cost of each event (table 1 of the paper): in time `Price<Ps>`, in energy `Price<Pj>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Price<T> {
    /// A page from the cell array to a buffer.
    pub page_load: T,
    /// A page from a buffer to main memory.
    pub page_move: T,
    /// A cache block read from main memory.
    pub main_read: T,
    /// A cache block read in place.
    pub xip_read: T,
    /// A cache block written to main memory.
    pub main_write: T,
}

/// The total cost, by term.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger<T> {
    /// Page loads.
    pub page_load: T,
    /// Page moves; in time, only the part that no load hides.
    pub page_move: T,
    /// Reads from main memory.
    pub main_read: T,
    /// Reads in place.
    pub xip_read: T,
    /// Writes to main memory.
    pub main_write: T,
}

impl<T: Copy + Add<Output = T>> Ledger<T> {
    /// The sum: `t_paging` or `e_paging`.
    pub fn total(&self) -> T {
        self.page_load + self.page_move + self.main_read + self.xip_read + self.main_write
    }

    /// Each term with its name.
    pub fn terms(&self) -> [(&'static str, T); 5] {
        [
            ("page_load", self.page_load),
            ("page_move", self.page_move),
            ("main_read", self.main_read),
            ("xip_read", self.xip_read),
            ("main_write", self.main_write),
        ]
    }
}

/// The times of one page of `page` bytes on `flash` above main memory `ram`.
///
/// # Errors
/// One of the sheets lacks a time, or the size of a page.
pub fn times(flash: &Sheet, ram: &Sheet, page: Bytes) -> Result<Price<Ps>, SheetError> {
    Ok(Price {
        page_load: time::load(flash, page)?,
        page_move: time::transfer(flash, page)?,
        main_read: ram.read()?,
        xip_read: flash.read()?,
        main_write: ram.write()?,
    })
}

/// The energies of one page. A load senses whole flash pages; a move is in proportion to the bytes, as in [`time`].
///
/// # Errors
/// One of the sheets lacks an energy, or the size of a page.
pub fn energies(flash: &Sheet, ram: &Sheet, page: Bytes) -> Result<Price<Pj>, SheetError> {
    let flash_page = flash.page()?.0;
    Ok(Price {
        page_load: flash.load_energy()? * page.0.div_ceil(flash_page),
        page_move: Pj((flash.transfer_energy()?.0 * page.0).div_ceil(flash_page)),
        main_read: ram.read_energy()?,
        xip_read: flash.read_energy()?,
        main_write: ram.write_energy()?,
    })
}

fn ledger<T: Mul<u64, Output = T> + Copy>(n: &AccessCounts, price: &Price<T>, page_move: T) -> Ledger<T> {
    Ledger {
        page_load: price.page_load * n.page_loads,
        page_move,
        main_read: price.main_read * n.main_reads,
        xip_read: price.xip_read * n.xip_reads,
        main_write: price.main_write * n.main_writes,
    }
}

/// Equation 1: the paging system's time.
pub fn t_paging(n: &AccessCounts, price: &Price<Ps>) -> Ledger<Ps> {
    let outlasts = price.page_move.saturating_sub(price.page_load);
    ledger(n, price, price.page_move * n.page_moves + outlasts * n.page_moves_dual)
}

/// Equation 2: the program's time.
pub fn t_total(paging: &Ledger<Ps>, t_idle: Ps) -> Ps {
    paging.total() + t_idle
}

/// Equation 3: the paging system's energy. A hidden move costs as much energy as any other.
pub fn e_paging(n: &AccessCounts, price: &Price<Pj>) -> Ledger<Pj> {
    ledger(n, price, price.page_move * (n.page_moves + n.page_moves_dual))
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: AccessCounts = AccessCounts {
        page_loads: 10,
        page_moves: 2,
        page_moves_dual: 7,
        main_reads: 100,
        xip_reads: 30,
        main_writes: 50,
    };

    fn price(page_load: u64, page_move: u64) -> Price<Ps> {
        Price {
            page_load: Ps(page_load),
            page_move: Ps(page_move),
            main_read: Ps(4),
            xip_read: Ps(22),
            main_write: Ps(5),
        }
    }

    #[test]
    fn a_hidden_move_costs_no_time_but_its_energy() {
        let time = t_paging(&N, &price(2933, 1286));
        assert_eq!((time.page_load, time.page_move), (Ps(29330), Ps(2572)));
        assert_eq!(t_total(&time, Ps(1000)), Ps(29330 + 2572 + 400 + 660 + 250 + 1000));
        let energy = Price { page_move: Pj(3), ..Price::default() };
        assert_eq!(e_paging(&N, &energy).total(), Pj(27));
    }

    #[test]
    fn a_move_that_outlasts_the_load_costs_what_is_left_of_it() {
        assert_eq!(t_paging(&N, &price(1000, 1286)).page_move, Ps(2 * 1286 + 7 * 286));
    }
}
