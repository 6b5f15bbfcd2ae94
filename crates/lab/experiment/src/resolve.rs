//! From settings to what the simulator runs. Every name, size and default is resolved here, and only here.
//!
//! ```text
//!   Settings ──► string      one string of references            Plan            ─┐
//!            ──► tasks       tasks under a scheduler             TasksPlan        ├─► shown(): every setting in force
//!            ──► foreground  tasks in the foreground in turn     TasksPlan        │
//!            ──► swaps       a swap trace                        SwapPlan        ─┘
//! ```
//!
//! Parts of several drivers are resolved by the same functions: names, page and front end, sizes, the log of erase
//! blocks, the area with a backing, failures. [`drive`] chooses the driver for settings.

use coldframe_core::Bytes;
use coldframe_lane::Failures;
use coldframe_sheet::quantity;

use crate::error::ExperimentError;
use crate::settings::{Settings, Tasks};
use crate::systems::front_end::FrontKey;
use crate::systems::{self, Defaults, System};

mod backed;
mod foreground;
mod front;
mod log;
mod names;
pub(crate) mod size;
mod string;
mod tasks;

pub use foreground::{foreground, on_phone};
pub use log::{swaps, LogArea, SwapPlan, LAYOUTS};
pub use names::collector;
pub(crate) use string::names_device;
pub use string::{string, Engine, Plan};
pub use tasks::{tasks, Base, ForegroundPlan, TasksPlan};

/// The number of pages that a trace touches behind a front end, for sizes in percent.
pub type Pages<'a> = &'a mut dyn FnMut(&FrontKey) -> Result<usize, ExperimentError>;

/// The source of a run's references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drive {
    String,
    Tasks,
    /// Tasks in the foreground in turn.
    Foreground,
    /// A kernel, as recorded in a swap trace.
    SwapTrace,
}

/// The driver for the settings: that of their system; tasks, if there is a setting of tasks; the foreground, if there
/// is a backing.
pub fn drive(settings: &Settings) -> Drive {
    let system = systems::of(settings);
    match system {
        _ if settings.tasks != Tasks::default() || system.is_some_and(System::schedules) => Drive::Tasks,
        _ if settings.swap.backing.is_some() || system.is_some_and(System::takes_turns) => Drive::Foreground,
        _ => Drive::String,
    }
}

/// The driver of all configurations of a sweep: tasks if one needs them, the foreground if all do.
pub fn drive_of(all: &[Settings]) -> Drive {
    match all.iter().any(|settings| drive(settings) == Drive::Tasks) {
        true => Drive::Tasks,
        false if all.iter().all(|settings| drive(settings) == Drive::Foreground) => Drive::Foreground,
        false => Drive::String,
    }
}

/// The page size of the settings or the system.
fn page(settings: &Settings, defaults: Option<Defaults>) -> Result<Bytes, ExperimentError> {
    match &settings.page {
        Some(text) => quantity::bytes(text).map_err(|e| ExperimentError::quantity("page", e)),
        None => Ok(defaults.map_or(Bytes(4096), |d| d.page)),
    }
}

fn bad<T>(field: &str, reason: impl Into<String>) -> Result<T, ExperimentError> {
    Err(ExperimentError::setting(field, reason))
}

/// Refuses the first given field of these, with its reason.
pub(crate) fn refuse(fields: &[(&str, bool, &str)]) -> Result<(), ExperimentError> {
    match fields.iter().find(|(_, given, _)| *given) {
        Some((field, _, why)) => bad(field, *why),
        None => Ok(()),
    }
}

/// The transfers of the device that fail.
fn failures(settings: &Settings) -> Result<Option<Failures>, ExperimentError> {
    let Some(text) = &settings.fail.rate else {
        return match settings.fail.seed {
            Some(_) => bad("fail.seed", "says which transfers fail, but none do; give fail.rate"),
            None => Ok(None),
        };
    };
    let rate = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    let bad = || {
        ExperimentError::setting(
            "fail.rate",
            format!("`{text}` is not known; give 0 to 1, such as 0.001, or 0% to 100%"),
        )
    };
    let rate = rate.ok().filter(|rate| (0.0..=1.0).contains(rate)).ok_or_else(bad)?;
    Ok(Some(Failures { rate, seed: settings.fail.seed.unwrap_or(1) }))
}
