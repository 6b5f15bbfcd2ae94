//! # coldframe-systems: the papers
//!
//! One folder a paper: its parts, its numbers, and its printed figures as data. A system is a set of defaults for the engine, the
//! device and the front end; it runs nothing itself.
//!
//! To add one: copy `swl/`, and add it to [`ALL`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use coldframe_core::{Bytes, Ps};
use coldframe_device::StagePrices;

pub mod ddb;
pub mod drswap;
pub mod lobi;
pub mod sap;
pub mod swl;

/// Every system.
pub const ALL: &[&System] = &[&swl::SYSTEM, &ddb::SYSTEM, &lobi::SYSTEM, &drswap::SYSTEM];

/// A paper's system.
pub struct System {
    /// The name on the command line.
    pub name: &'static str,
    /// Title, authors, where it appeared.
    pub paper: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Its defaults.
    pub defaults: fn() -> Defaults,
    /// What the stages cost under a policy of this name, on the paper's platform with its own page size.
    pub prices: fn(policy: &str) -> StagePrices,
}

/// Defaults that a system brings, in the words of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// Policy.
    pub policy: &'static str,
    /// Handler.
    pub handler: &'static str,
    /// Page size.
    pub page: Bytes,
    /// `I`, `D` or `ID`.
    pub stream: &'static str,
    /// Front end.
    pub front_end: &'static str,
    /// Device.
    pub device: &'static str,
    /// LoadStopover of one page as measured on the paper's platform, where that differs from the sheet.
    pub load_stopover: Option<Ps>,
    /// TransHostMem of one page as measured on the paper's platform; `None`: the sheet's transfer.
    pub trans_host_mem: Option<Ps>,
    /// Main memory, where accesses to it have a price.
    pub main_memory: Option<&'static str>,
}

/// The system of this name.
pub fn find(name: &str) -> Option<&'static System> {
    ALL.iter().copied().find(|system| system.name == name)
}
