//! The paper's three effects (section III.3) as shares of the difference between a run without and one with the scheme.
//!
//! Both runs make the same accesses, so by equations 1 and 3 the difference splits without a remainder. `before`
//! moves every page that it loads. `after` pays only for the moves that no load hides; it hides the others, or still
//! holds the pages at the end:
//!
//! ```text
//! more memory    (price of load + price of move) * (loads before - loads after)
//! hidden moves    price of move * (loads after - moves after that cost something)
//! slower reads   -(price of XIP read - price of main read) * XIP reads
//! ```

use coldframe_core::{Pj, Ps};
use coldframe_device::energy::{e_paging, t_paging, AccessCounts, Price};

/// The savings of each effect, in picoseconds or picojoules; negative if it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effects {
    /// The buffers are code memory, too: fewer pages are loaded and moved.
    pub more_memory: i64,
    /// Moves during a load cost no time. In energy, only the pages still held at the end have not moved.
    pub hidden_moves: i64,
    /// Reads from a buffer take more time and energy than reads from main memory.
    pub slower_reads: i64,
}

impl Effects {
    /// The sum.
    pub fn total(&self) -> i64 {
        self.more_memory + self.hidden_moves + self.slower_reads
    }
}

fn effects(before: &AccessCounts, after: &AccessCounts, price: [u64; 4], moves_paid: u64) -> Effects {
    let [load, move_, main, xip] = price.map(|p| p as i64);
    Effects {
        more_memory: (load + move_) * (before.page_loads as i64 - after.page_loads as i64),
        hidden_moves: move_ * after.page_loads as i64 - moves_paid as i64,
        slower_reads: -(xip - main) * after.xip_reads as i64,
    }
}

/// The effects in time.
pub fn in_time(before: &AccessCounts, after: &AccessCounts, price: &Price<Ps>) -> Effects {
    let paid = t_paging(after, price).page_move;
    let price = [price.page_load, price.page_move, price.main_read, price.xip_read].map(|t| t.0);
    effects(before, after, price, paid.0)
}

/// The effects in energy.
pub fn in_energy(before: &AccessCounts, after: &AccessCounts, price: &Price<Pj>) -> Effects {
    let paid = e_paging(after, price).page_move;
    let price = [price.page_load, price.page_move, price.main_read, price.xip_read].map(|e| e.0);
    effects(before, after, price, paid.0)
}
