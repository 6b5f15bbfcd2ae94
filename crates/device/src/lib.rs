//! # coldframe-device: what a device costs
//!
//! - Data [`sheet`]s hold the numbers, each with its source.
//! - [`time`] turns these numbers and the engine's counts into times, by pure functions.
//! - [`energy`] adds up times and energies by term.
//! - [`flash`] gives the time, wear and life of flash as a swap device; [`used`] gives what a measured run would have
//!   cost such a flash.
//! - [`swap_energy`] gives the energy of a swap area in DRAM, NVM or eMMC.
//! - [`prices`] gives the processor's time for each stage of a fault.
//! - [`quantity`] reads `30us` and `2KiB`.
//!
//! This crate knows no engine, no trace and no system.
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
