//! The result of any driver, as `sim --format json` writes it and `report` reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::slots::SlotMap;

/// A section of a result: each field with its value, made from what the driver has found.
macro_rules! section {
    ($(#[$about:meta])+ $name:ident($($found:ident: $of:ty),+) { $($(#[$meta:meta])+ $field:ident: $kind:ty = $value:expr;)+ }) => {
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$meta])+ pub $field: $kind,)+
        }

        impl $name {
            pub fn new($($found: $of),+) -> $name {
                $name { $($field: $value),+ }
            }
        }
    };
}

mod one_string;
mod sections;
mod swap_trace;
mod tasks;

pub use one_string::{
    Counts, DataCache, EngineCounts, FaultLatencies, Host, InstructionCache, LedgerTimes, MemoryCounts, OneString,
    PagingEnergy, PricedLedger, Stages, Times,
};
pub use sections::{Distribution, Failed, Latencies, Prefetched, SwapArea, Terms, WearMap};
pub use swap_trace::{DeviceTimes, SwapCounts, SwapTrace, Wear};
pub use tasks::{
    AllPrefetched, AreaEnergy, Foreground, ForegroundCounts, ForegroundTimes, Predictions, SlotWrites, Switch, Task,
    Tasks, TasksCounts, TasksTimes, Waits,
};

pub use crate::in_force::{Area, Backed, InForce, Machine};
pub use crate::traced::Trace;

pub const SCHEMA_VERSION: u32 = 1;

/// The result of one configuration: a head that all drivers share, and the sections of its driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimResult {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the program.
    pub version: String,
    /// The trace.
    pub trace: Trace,
    /// Every setting in force.
    pub config: InForce,
    /// The findings; `driver` gives their kind.
    #[serde(flatten)]
    pub sections: Sections,
}

/// The findings, by driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "driver", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a program makes one")]
pub enum Sections {
    /// One string of references.
    String(Box<OneString>),
    /// Several tasks under a scheduler, or in the foreground in turn.
    Tasks(Box<Tasks>),
    /// A kernel's swaps, from a swap trace.
    SwapTrace(SwapTrace),
}

impl SimResult {
    pub fn new(trace: Trace, config: InForce, sections: Sections) -> SimResult {
        let version = env!("CARGO_PKG_VERSION").into();
        SimResult { schema_version: SCHEMA_VERSION, version, trace, config, sections }
    }

    pub fn json(&self) -> Value {
        serde_json::to_value(self).expect("results are plain data")
    }

    /// The sections of one string of references.
    pub fn string(&self) -> Option<&OneString> {
        match &self.sections {
            Sections::String(string) => Some(string),
            _ => None,
        }
    }

    /// The sections of several tasks.
    pub fn tasks(&self) -> Option<&Tasks> {
        match &self.sections {
            Sections::Tasks(tasks) => Some(tasks),
            _ => None,
        }
    }

    /// The sections of tasks that take turns in the foreground.
    pub fn foreground(&self) -> Option<&Foreground> {
        self.tasks()?.foreground.as_ref()
    }

    /// Energy by term, in picojoules; `None` if no sheet has energies.
    pub fn energy_terms(&self) -> Option<&Terms> {
        match &self.sections {
            Sections::String(string) => string.energy_pj.as_ref().map(|energy| &energy.terms),
            Sections::Tasks(tasks) => tasks.foreground.as_ref().map(|foreground| &foreground.energy_pj.terms),
            Sections::SwapTrace(_) => None,
        }
    }

    /// The work of its swap area; `None` without a log.
    pub fn area(&self) -> Option<AreaView<'_>> {
        match &self.sections {
            Sections::String(string) => string.swap.as_ref().map(AreaView::from),
            Sections::Tasks(tasks) => tasks.swap.as_ref().map(AreaView::from),
            Sections::SwapTrace(trace) => Some(trace.into()),
        }
    }
}

/// The work of a swap area on flash, from either simulator.
#[derive(Clone, Copy, Debug)]
pub struct AreaView<'a> {
    /// Slots programmed from RAM.
    pub programs: u64,
    /// Slots copied by collections.
    pub copies: u64,
    pub erases: u64,
    /// Erases of the most worn block.
    pub most_worn: u32,
    /// By the slides' formula; only for a swap trace.
    pub cost: Option<u64>,
    /// Erases over the blocks.
    pub wear: &'a WearMap,
    /// The owner of each slot, if it was recorded.
    pub slots: Option<&'a SlotMap>,
}

impl<'a> From<&'a SwapArea> for AreaView<'a> {
    fn from(area: &'a SwapArea) -> AreaView<'a> {
        let SwapArea { programs, copies, erases, erases_max: most_worn, .. } = *area;
        AreaView { programs, copies, erases, most_worn, cost: None, wear: &area.wear_map, slots: area.slots.as_ref() }
    }
}

impl<'a> From<&'a SwapTrace> for AreaView<'a> {
    fn from(trace: &'a SwapTrace) -> AreaView<'a> {
        AreaView {
            programs: trace.counts.programs,
            copies: trace.counts.copies,
            erases: trace.counts.erases,
            most_worn: trace.wear.max,
            cost: Some(trace.cost),
            wear: &trace.wear_map,
            slots: Some(&trace.slots),
        }
    }
}
