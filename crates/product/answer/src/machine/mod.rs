//! This machine: what it allows, what paging costs here, and the sheet that keeps these costs.

pub mod asker;
pub mod calibrate;
#[allow(unsafe_code, reason = "it maps memory and asks the kernel to push it out")]
pub mod costs;
pub mod doctor;
pub mod killers;
pub mod prices;
pub mod setup;
pub mod sheet;
