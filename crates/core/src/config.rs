//! The configuration of an engine: its bounds, and the abilities of the machine.

use core::fmt;

use crate::machine::Caps;

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

/// Why an engine cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// A bound is zero.
    Zero {
        /// Which.
        field: &'static str,
    },
    /// A bound does not fit into 29 bits.
    TooLarge {
        /// Which.
        field: &'static str,
        /// What it was.
        value: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Zero { field } => write!(f, "`{field}` is 0; give at least 1"),
            ConfigError::TooLarge { field, value } => write!(f, "`{field}` is {value}; give less than 2^29"),
        }
    }
}

impl core::error::Error for ConfigError {}
