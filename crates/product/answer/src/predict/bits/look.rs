//! What was counted of referenced bits. `device --save` writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was referenced between a clearing and a count.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// From the clearing to the count: processor time for a program, time of the clock for a machine. The middle of
    /// what is possible.
    pub seconds: f64,
    /// How far that may be off, either way: clearing and counting take time in which programs run.
    #[serde(default)]
    pub spread: f64,
    /// Bytes of the programs' own memory.
    #[serde(rename = "own_bytes")]
    pub referenced_bytes: u64,
    /// Bytes of files that are mapped.
    pub file_bytes: u64,
    /// Of the programs' own, bytes that were there before they were referenced: they would have had to come back.
    #[serde(default)]
    pub again_bytes: u64,
}

/// A time after a clearing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// The most bytes of the programs' own memory; of a machine, also those in swap.
    #[serde(rename = "own_bytes")]
    pub private_bytes: u64,
    /// In order of time.
    pub looks: Vec<Look>,
}

impl Stretch {
    /// Seconds from the clearing to the last count.
    pub fn seconds(&self) -> f64 {
        self.looks.last().map_or(0.0, |look| look.seconds)
    }
}
