//! The settings in force, as results show them.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;
use crate::phone::MachineParameters;
use crate::settings::{self, is_default, Settings, Swap};

/// Every setting in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// As `-c` takes them, without the two tables that can have more.
    #[serde(flatten)]
    pub settings: Settings,
    /// The machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub machine: Machine,
    /// The swap area.
    #[serde(default, skip_serializing_if = "is_default")]
    pub swap: Area,
}

/// The machine in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The phone on which tasks take turns in the foreground.
    #[serde(flatten)]
    pub phone: Option<MachineParameters>,
    /// Its settings.
    #[serde(flatten)]
    pub settings: settings::Machine,
}

/// The swap area in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = the_ratio_is_a_number)]
pub struct Area {
    /// Its place, if it has a backing.
    #[serde(flatten)]
    pub backed: Option<Backed>,
    /// Settings of a log of erase blocks, or of Linux's slots.
    #[serde(flatten)]
    pub log: Swap,
}

/// Not the text that the setting is.
fn the_ratio_is_a_number(schema: &mut Schema) {
    if let Some(kind) = schema.pointer_mut("/properties/ratio/type") {
        *kind = serde_json::json!(["number", "null"]);
    }
}

/// The settings of an area with a backing that are in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Backed {
    pub backing: String,
    pub device: String,
    pub size: String,
    pub direct_read: bool,
    pub reads_max: Option<u32>,
    /// RAM that a full area takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_ram: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

impl From<Settings> for InForce {
    fn from(mut settings: Settings) -> InForce {
        let machine = Machine { phone: None, settings: std::mem::take(&mut settings.machine) };
        let swap = Area { backed: None, log: std::mem::take(&mut settings.swap) };
        InForce { settings, machine, swap }
    }
}

impl InForce {
    /// As `-c` takes them.
    pub fn settings(&self) -> Result<Settings, ExperimentError> {
        if let Some(Backed { backing, .. }) = &self.swap.backed {
            return Err(ExperimentError::setting("swap.backing", format!("{backing} is resolved; give it once more")));
        }
        let (machine, swap) = (self.machine.settings.clone(), self.swap.log.clone());
        Ok(Settings { machine, swap, ..self.settings.clone() })
    }

    pub fn read_ahead(&self) -> Option<u32> {
        self.machine.settings.read_ahead.filter(|pages| *pages > 0)
    }
}
