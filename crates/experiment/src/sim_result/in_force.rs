//! The settings in force, as tables and pages show them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings in force that distinguish results; `None` for a setting that the driver does not have.
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

/// The machine's settings that are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Pages that are read ahead.
    pub read_ahead: Option<u64>,
}

/// The scheduler's settings that are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduled {
    /// Scheduler.
    pub scheduler: Option<String>,
    /// When the next task's pages are loaded.
    pub prefetch: Option<String>,
}

/// The swap area's settings that are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Area {
    /// How slots are allocated.
    pub layout: Option<String>,
    /// Collector.
    pub collector: Option<String>,
    /// Erase blocks.
    pub blocks: Option<String>,
    /// Its place.
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
