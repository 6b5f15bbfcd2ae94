//! # coldframe-sheet: what a device costs
//!
//! - Data [`sheet`]s hold the numbers, each with its source.
//! - [`time`] turns these numbers and the engine's counts into times, by pure functions.
//! - [`flash`] gives the time, energy, wear and life of flash as a swap device.
//! - [`paging`] adds up the times and energies of a paging system by term; [`swap_energy`] gives the energy of a swap
//!   area in DRAM, NVM or eMMC.
//! - [`prices`] gives the processor's time for each stage of a fault.
//! - [`here`] is this machine as a device.
//! - [`quantity`] reads `30us` and `2KiB`.
//!
//! This crate knows no engine, no trace and no system.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod flash;
pub mod here;
pub mod paging;
pub mod prices;
pub mod quantity;
pub mod sheet;
pub mod swap_energy;
pub mod time;

pub use prices::StagePrices;
pub use sheet::{Sheet, SheetError};
