//! Systems: one folder each, with all its parts, defaults, prices, printed figures and what is put beside them.
//!
//! A system is a set of defaults for the engine, the device and the front end, and says which driver feeds it; it runs nothing itself.
//! Everything else goes through [`ALL`] and names no system.
//!
//! To add one: copy `zram/`, and add it to [`ALL`].

use std::path::Path;

use coldframe_core::{Bytes, Ps};
use coldframe_device::StagePrices;

use crate::error::ReportError;
use crate::papers::Row;
use crate::plot::Plot;

pub mod backing;
pub mod ddb;
pub mod drswap;
pub mod lobi;
pub mod sap;
pub mod swl;
pub mod zram;

use backing::Backing;

/// Every system.
pub const ALL: &[&System] = &[&swl::SYSTEM, &ddb::SYSTEM, &lobi::SYSTEM, &drswap::SYSTEM, &sap::SYSTEM, &zram::SYSTEM];

/// A system.
pub struct System {
    /// The name on the command line.
    pub name: &'static str,
    /// Title, authors, where it appeared.
    pub paper: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Its defaults.
    pub defaults: fn() -> Defaults,
    /// What the stages cost under a policy of this name, on the system's platform with its own page size.
    pub prices: fn(policy: &str) -> StagePrices,
    /// What feeds it if nothing else is said.
    pub driver: Driver,
    /// Where pages go that leave RAM.
    pub area: Area,
    /// Printed figures beside ours, if there are some.
    pub figures: Option<Figures>,
}

/// What feeds the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// One string of references.
    String,
    /// Several tasks under a scheduler.
    Tasks,
    /// Tasks that take turns in the foreground.
    Foreground,
}

/// Where pages go that leave RAM.
#[derive(Clone, Copy, Debug)]
pub enum Area {
    /// To their home slots.
    Home,
    /// To a log of erase blocks; swap traces can be run through it.
    Log,
    /// To an area with a backing: the one that is meant if none is named, and all that the system brings.
    Backed(&'static str, &'static [Backing]),
}

/// All rows of a paper, from the folder with the shipped traces; told which trace it is at.
pub type Rows = fn(&Path, &mut dyn FnMut(&str)) -> Result<Vec<Row>, ReportError>;

/// A paper's printed figures beside ours.
pub struct Figures {
    /// All rows.
    pub rows: Rows,
    /// Curves that are better looked at than read.
    pub plots: fn(&Path) -> Result<Vec<Plot>, ReportError>,
    /// Bars of text; empty: none.
    pub bars: fn(&Path) -> Result<String, ReportError>,
}

impl Figures {
    /// Rows and nothing to look at.
    pub const fn rows(rows: Rows) -> Figures {
        Figures { rows, plots: |_| Ok(Vec::new()), bars: |_| Ok(String::new()) }
    }
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
    /// LoadStopover of one page as measured on the system's platform, where that differs from the sheet.
    pub load_stopover: Option<Ps>,
    /// TransHostMem of one page as measured on the system's platform; `None`: the sheet's transfer.
    pub trans_host_mem: Option<Ps>,
    /// Main memory, where accesses to it have a price.
    pub main_memory: Option<&'static str>,
}

/// The system of this name.
pub fn find(name: &str) -> Option<&'static System> {
    ALL.iter().copied().find(|system| system.name == name)
}

/// The system of these settings, if they name one that there is.
pub fn of(settings: &crate::Settings) -> Option<&'static System> {
    settings.system.as_deref().and_then(find)
}

/// The first system with this driver, which is the one meant where none is named.
///
/// # Panics
/// If there is none.
pub fn with_driver(driver: Driver) -> &'static System {
    ALL.iter().copied().find(|system| system.driver == driver).expect("each driver has a system")
}

impl System {
    /// Whether a log of erase blocks is its swap area.
    pub fn has_log(&self) -> bool {
        matches!(self.area, Area::Log)
    }
}
