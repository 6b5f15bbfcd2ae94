//! The configuration of an engine: its bounds, the abilities of the machine, and what is below its frames.

use core::fmt;

use crate::machine::Caps;
use crate::swap::slots::SlotsConfig;
use crate::swap::{SwapAreas, SwapError};

/// The bounds of an engine, all known at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Frames of RAM, at least 1.
    pub frames: usize,
    /// Pages the machine can name, at least 1.
    pub pages: usize,
    /// Tasks that can fault, at least 1.
    pub tasks: usize,
    /// Victims that are evicted together when a frame is needed, as long as there are that many. At least 1. The
    /// papers evict one. A machine on which an eviction is expensive (a TLB flush for each call) uses more.
    pub evict_batch: usize,
    /// What the machine can do.
    pub caps: Caps,
}

/// What is below the frames: where a page goes that leaves them. Slots of an area are numbered after the home slots.
/// Without an area there are home slots only, one for each page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Below {
    /// A swap area whose slots are rewritten in place.
    pub slots: Option<SlotsConfig>,
    /// Swap areas on flash, erased, for what the slots have no room for. Their slots have the higher numbers.
    pub swap: Option<SwapAreas>,
}

impl From<SwapAreas> for Below {
    fn from(areas: SwapAreas) -> Below {
        Below { slots: None, swap: Some(areas) }
    }
}

impl From<SlotsConfig> for Below {
    fn from(slots: SlotsConfig) -> Below {
        Below { slots: Some(slots), swap: None }
    }
}

/// Why an engine cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum ConfigError {
    /// A bound is zero.
    Zero { field: &'static str },
    /// A bound does not fit into 29 bits.
    TooLarge { field: &'static str, value: usize },
    /// The machine places pages itself (`Caps::places`), and there is a swap area.
    Placed,
    /// The swap areas are not possible.
    Swap(SwapError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Zero { field } => write!(f, "`{field}` is 0; give at least 1"),
            ConfigError::TooLarge { field, value } => write!(f, "`{field}` is {value}; give less than 2^29"),
            ConfigError::Placed => f.write_str("a machine that places pages itself has no swap area"),
            ConfigError::Swap(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ConfigError {}
