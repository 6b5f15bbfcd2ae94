//! The result of any driver, as `sim --format json` writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A section of a result: each field with its value, made from what the driver has found.
#[macro_export]
macro_rules! section {
    (
        $(#[$about:meta])+
        $name:ident($($from:ident: $of:ty),+) { $($(#[$meta:meta])+ $field:ident: $kind:ty = $value:expr;)+ }
    ) => {
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            $($(#[$meta])+ pub $field: $kind,)+
        }

        impl $name {
            pub fn new($($from: $of),+) -> $name {
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
pub use sections::{Distribution, Failed, Latencies, Prefetched, SwapArea, Terms};
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
}
