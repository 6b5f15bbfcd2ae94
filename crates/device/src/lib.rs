//! # coldframe-device: what a device takes
//!
//! Data [`sheet`]s hold the numbers, each with its source; [`time`] turns them and the engine's counts into times, by pure
//! functions; [`energy`] sums times and energies up by term; [`flash`] says what swapping to it costs in time and life, and [`used`]
//! what a measured run would have cost it; [`swap_energy`] what a swap area in DRAM, NVM or eMMC costs in energy; [`prices`] say what each
//! stage of a fault costs a processor. [`quantity`] reads `30us` and `2KiB`.
//!
//! Nothing here knows an engine, a trace or a system.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod energy;
pub mod flash;
pub mod here;
pub mod prices;
pub mod quantity;
pub mod sheet;
pub mod start_gap;
pub mod swap_energy;
pub mod time;
pub mod used;

pub use prices::StagePrices;
pub use sheet::{Sheet, SheetError};
