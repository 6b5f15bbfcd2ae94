//! # coldframe-boards: what the memory of a board costs
//!
//! - [`energy`] adds up times and energies by term.
//! - [`flash`] gives the time, wear and life of flash as a swap device; [`used`] gives what a measured run would have
//!   cost such a flash.
//! - [`swap_energy`] gives the energy of a swap area in DRAM, NVM or eMMC.
//!
//! The numbers come from the data sheets of `coldframe-sheet`. This crate knows no engine, no trace and no system.
#![forbid(unsafe_code)]

pub mod energy;
pub mod flash;
pub mod swap_energy;
pub mod used;
