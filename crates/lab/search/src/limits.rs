//! The limits, and which of them a price misses.

use coldframe_core::{Bytes, Pj, Ps};
use coldframe_sheet::quantity::{human_size, human_time, show_bytes, show_energy, show_time};

use crate::cost::Cost;
use crate::point::Point;
use coldframe_experiment::error::ExperimentError;

/// The limits. Each applies to the bad end of a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Upper limit of the slowdown compared with a run with all the RAM that it can use, in percent of the program's
    /// own time.
    pub slowdown: Option<f64>,
    /// Longest 99th percentile of a true fault's latency.
    pub p99: Option<Ps>,
    /// Lower limit of the device's life in years, if the program runs without a pause.
    pub life: Option<f64>,
    /// Upper limit of the energy of paging for the whole run.
    pub energy: Option<Pj>,
    pub ram: Option<Bytes>,
}

impl Limits {
    /// Whether nothing but RAM is limited.
    pub fn is_empty(&self) -> bool {
        let Limits { slowdown, p99, life, energy, ram: _ } = self;
        slowdown.is_none() && p99.is_none() && life.is_none() && energy.is_none()
    }

    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.slowdown.map(|s| format!("slowdown at most {s} %")));
        parts.extend(self.p99.map(|t| format!("p99 of a fault at most {}", show_time(t))));
        parts.extend(self.life.map(|y| format!("life at least {y} years")));
        parts.extend(self.energy.map(|e| format!("energy of paging at most {}", show_energy(e))));
        parts.extend(self.ram.map(|b| format!("RAM at most {}", show_bytes(b))));
        parts.join(", ")
    }
}

/// Reads `5%` or `5`.
pub fn percent(field: &str, text: &str) -> Result<f64, ExperimentError> {
    number(field, text, '%', "a share such as 5%", |n| n >= 0.0)
}

/// Reads `5y` or `5`.
pub fn years(field: &str, text: &str) -> Result<f64, ExperimentError> {
    number(field, text, 'y', "years such as 5y", |n| n > 0.0)
}

fn number(field: &str, text: &str, unit: char, example: &str, fits: fn(f64) -> bool) -> Result<f64, ExperimentError> {
    let number = text.strip_suffix(unit).unwrap_or(text).trim().parse().ok();
    let number = number.filter(|n: &f64| n.is_finite() && fits(*n));
    number.ok_or_else(|| ExperimentError::setting(field, format!("`{text}` cannot be read; give {example}")))
}

/// The limits that a price misses, or that cannot be checked for lack of a price.
pub(super) fn misses(limits: &Limits, point: &Point, cost: &Cost) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(limit) = limits.slowdown {
        match &cost.slowdown {
            Ok(value) if value.high <= limit => {}
            Ok(value) => all.push(format!("slowdown is {:.1} %, above {limit} %", value.high)),
            Err(reason) => all.push(format!("slowdown is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.p99 {
        let shown = human_time;
        match &cost.p99 {
            Ok(value) if *value <= limit => {}
            Ok(value) => all.push(format!("p99 of a fault is {}, above {}", shown(*value), shown(limit))),
            Err(reason) => all.push(format!("p99 of a fault is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.life {
        match &cost.life {
            Ok(None) => {}
            Ok(Some(value)) if value.low >= limit => {}
            Ok(Some(value)) => all.push(format!("life is {:.3} years, below {limit} years", value.low)),
            Err(reason) => all.push(format!("life is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.energy {
        let limit = limit.0 as f64 / 1e12;
        match &cost.energy {
            Ok(value) if value.high <= limit => {}
            Ok(value) => all.push(format!("energy is {:.3} mJ, above {:.3} mJ", value.high * 1e3, limit * 1e3)),
            Err(reason) => all.push(format!("energy is not known: {reason}")),
        }
    }
    if let Some(limit) = limits.ram.filter(|limit| point.ram() > *limit) {
        all.push(format!("RAM is {}, above {}", human_size(point.ram().0), human_size(limit.0)));
    }
    all
}
