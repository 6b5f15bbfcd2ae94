//! Systems: one file each, with its part, defaults, prices, front end and backings.
//!
//! A system is a set of defaults for the engine, the device and the front end, and names its driver; it runs nothing
//! itself. Everything else uses [`ALL`] and names no system.
//!
//! To add one: copy `zram.rs`, and add it to [`ALL`].

use coldframe_core::{Bytes, Ps};
use coldframe_drivers::tasks::TasksResult;
use coldframe_sheet::flash::Operations;
use coldframe_sheet::StagePrices;

pub mod backing;
pub mod ddb;
pub mod drswap;
pub mod front_end;
pub mod lobi;
pub mod sap;
pub mod swl;
pub mod zram;

use backing::Backing;
use front_end::FrontEnd;

pub const ALL: &[&System] = &[&swl::SYSTEM, &ddb::SYSTEM, &lobi::SYSTEM, &drswap::SYSTEM, &sap::SYSTEM, &zram::SYSTEM];

pub struct System {
    /// The name on the command line.
    pub name: &'static str,
    /// Title, authors, where it appeared.
    pub paper: &'static str,
    /// One line for help.
    pub summary: &'static str,
    pub defaults: Defaults,
    /// The costs of the stages under a policy of this name, on the system's platform with its own page size.
    pub prices: fn(policy: &str) -> StagePrices,
    pub driver: Driver,
    /// The place of pages that leave RAM.
    pub area: AreaKind,
    pub front_end: Option<&'static FrontEnd>,
    /// The command that runs it on Linux, where `run --system` does not.
    pub live: Option<&'static str>,
    /// Its parts that a machine without the other systems can use, one at a time.
    pub parts: &'static [Part],
}

/// A system's part for a machine of tasks, as settings. Parts can be tried alone and together.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub name: &'static str,
    /// What it does, in at most 20 characters.
    pub text: &'static str,
    /// Sets it, in addition to the parts of the systems before it in [`ALL`]. The settings have frames, and the part
    /// takes no more memory than they have.
    pub apply: fn(&mut crate::settings::Settings),
    /// The least number of tasks for which it has an effect.
    pub tasks_min: usize,
    /// Whether its paper requires a device that moves pages by itself.
    pub needs_dma: bool,
    /// Why a run with it alone was as without it.
    pub idle: fn(&TasksResult) -> &'static str,
}

#[derive(Clone, Copy, Debug)]
pub enum Driver {
    String,
    /// Several tasks under a scheduler.
    Tasks(&'static TasksDefaults),
    /// Tasks that take turns in the foreground.
    Foreground(&'static ForegroundDefaults),
}

#[derive(Clone, Copy, Debug)]
pub struct TasksDefaults {
    pub reference: Ps,
    /// Period of the scheduler tick.
    pub tick: Ps,
    /// Loads in the background at the same time.
    pub depth: u32,
    /// Ready tasks, including the running one, below which nothing is prefetched.
    pub ready_min: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct ForegroundDefaults {
    /// Bytes of the swap area.
    pub area: Bytes,
}

/// The place of pages that leave RAM.
#[derive(Clone, Copy, Debug)]
pub enum AreaKind {
    Home,
    /// To a log of erase blocks; swap traces can be run through it.
    Log(&'static LogDefaults),
    /// To an area with a backing: the name of the default backing, and all backings of the system.
    Backed(&'static str, &'static [Backing]),
}

/// Defaults of a log of erase blocks.
#[derive(Clone, Copy, Debug)]
pub struct LogDefaults {
    /// Bytes of a slot.
    pub slot: Bytes,
    pub slots_per_block: u32,
    pub blocks: u32,
    /// A collection starts below this many blocks of erased slots.
    pub start: u32,
    pub device: &'static str,
    /// The cost of a run, in reads.
    pub cost: fn(&Operations) -> u64,
}

/// Defaults that a system brings, in the words of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    pub policy: &'static str,
    pub handler: &'static str,
    pub page: Bytes,
    /// `I`, `D` or `ID`.
    pub stream: &'static str,
    pub front_end: &'static str,
    pub device: &'static str,
    /// LoadStopover of one page as measured on the system's platform, if that differs from the sheet.
    pub load_stopover: Option<Ps>,
    /// TransHostMem of one page as measured on the system's platform; `None`: the sheet's transfer.
    pub trans_host_mem: Option<Ps>,
    /// Main memory, if accesses to it have a price.
    pub main_memory: Option<&'static str>,
}

impl Defaults {
    /// Those of a system without a board and a front end of its own.
    const PLAIN: Defaults = Defaults {
        policy: "clock",
        handler: "sequential",
        page: backing::PAGE,
        stream: "ID",
        front_end: "none",
        device: "LOBI-NAND",
        load_stopover: None,
        trans_host_mem: None,
        main_memory: None,
    };
}

pub fn find(name: &str) -> Option<&'static System> {
    ALL.iter().copied().find(|system| system.name == name)
}

pub fn of(settings: &crate::settings::Settings) -> Option<&'static System> {
    settings.system.as_deref().and_then(find)
}

fn first<T>(of: impl Fn(&'static System) -> Option<T>) -> T {
    ALL.iter().find_map(|system| of(system)).expect("a system has it")
}

/// The system whose stages were measured on its own board. Its prices are used if no system is named.
pub fn measured() -> &'static System {
    ALL[0]
}

/// The time of an instruction on the board where they were measured.
pub fn instruction() -> Ps {
    measured().front_end.map_or(Ps::ZERO, |front_end| front_end.instruction)
}

/// The first system of tasks under a scheduler, which is the default, and its defaults.
pub fn of_tasks() -> (&'static System, &'static TasksDefaults) {
    first(|system| match system.driver {
        Driver::Tasks(defaults) => Some((system, defaults)),
        Driver::String | Driver::Foreground(_) => None,
    })
}

/// The same for tasks in the foreground.
pub fn of_foreground() -> (&'static System, &'static ForegroundDefaults) {
    first(|system| match system.driver {
        Driver::Foreground(defaults) => Some((system, defaults)),
        Driver::String | Driver::Tasks(_) => None,
    })
}

/// The same for a log of erase blocks.
pub fn of_log() -> (&'static System, &'static LogDefaults) {
    first(|system| match system.area {
        AreaKind::Log(defaults) => Some((system, defaults)),
        AreaKind::Home | AreaKind::Backed(..) => None,
    })
}

pub fn names(which: impl Fn(&System) -> bool) -> String {
    let names: Vec<&str> = ALL.iter().filter(|system| which(system)).map(|system| system.name).collect();
    names.join(" or ")
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl System {
    /// Whether a log of erase blocks is its swap area.
    pub fn has_log(&self) -> bool {
        matches!(self.area, AreaKind::Log(_))
    }

    /// Whether its swap area has a backing.
    pub fn has_backing(&self) -> bool {
        matches!(self.area, AreaKind::Backed(..))
    }

    /// Whether tasks run under a scheduler.
    pub fn schedules(&self) -> bool {
        matches!(self.driver, Driver::Tasks(_))
    }

    /// Whether tasks take turns in the foreground.
    pub fn takes_turns(&self) -> bool {
        matches!(self.driver, Driver::Foreground(_))
    }
}
