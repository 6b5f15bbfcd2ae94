//! The settings in force that tables and pages show.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Of all settings in force those that distinguish results; what a driver has not is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InForce {
    /// System.
    pub system: Option<String>,
    /// Policy, or the name of an oracle.
    pub policy: Option<String>,
    /// Handler; none for an oracle.
    pub handler: Option<String>,
    /// Device.
    pub device: Option<String>,
    /// Frames.
    pub frames: Option<u64>,
    /// Size of a page, as `4KiB`.
    pub page: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// Tasks under a scheduler.
    pub tasks: Scheduled,
    /// The swap area.
    pub swap: Area,
}

/// The machine, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Pages that are read ahead.
    pub read_ahead: Option<u64>,
}

/// How tasks are scheduled, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduled {
    /// Scheduler.
    pub scheduler: Option<String>,
    /// When the next task's pages are loaded.
    pub prefetch: Option<String>,
}

/// A swap area, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Area {
    /// How slots are given out.
    pub layout: Option<String>,
    /// Collector.
    pub collector: Option<String>,
    /// Erase blocks.
    pub blocks: Option<String>,
    /// Where it lies.
    pub backing: Option<String>,
    /// Its size, as `64MiB`.
    pub size: Option<String>,
}

impl InForce {
    /// Of all settings.
    ///
    /// # Errors
    /// One of them is of another type.
    pub fn of(config: &Value) -> Result<InForce, serde_json::Error> {
        InForce::deserialize(config)
    }

    /// Pages that are read ahead, if any are.
    pub fn read_ahead(&self) -> Option<u64> {
        self.machine.read_ahead.filter(|pages| *pages > 0)
    }
}
