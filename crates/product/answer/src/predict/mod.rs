//! The run time of a program in less RAM, predicted.
//!
//! ```text
//!   window trace ─ rows ─► processes ─ simulate ─► counts by RAM ─ price (Here) ─► run time by RAM ─► words, JSON
//!                          (dense pages)  (lane, no time)                       (curve: knee, thrash, advice)
//!   referenced bits ─ working set by time ─► faults by RAM ─ price of a fault ─► run time by RAM
//! ```
//! RAM here is the RAM of `coldframe run --ram`: RAM for paged memory, for each process. Memory that is not paged
//! comes on top and is printed separately.

pub mod bits;
pub mod common;
pub mod counts;
pub mod curve;
pub mod kinds;
pub mod machine;
pub mod measured;
pub mod memory_use;
pub mod not_paged;
pub mod price;
pub mod question;
pub mod record;
pub mod recorded;
pub mod rows;
pub mod simulate;
pub mod since_start;
pub mod stand_alone;
pub mod swap;
pub mod watch;
pub mod watched;
