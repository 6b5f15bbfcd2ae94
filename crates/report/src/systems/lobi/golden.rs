//! The printed figures, read from `golden.toml`. Field names are those of the file; units are in the names.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Linux as the slides describe it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Linux {
    pub cluster_slots: u32,
    pub read_ahead_slots: u32,
}

/// The trace's statistics.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Trace {
    pub ram_mb: u64,
    pub swap_mb: u64,
    pub swap_outs: u64,
    pub swap_ins: u64,
    pub processes: u64,
}

/// The figures.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Golden {
    pub slot_bytes: u64,
    pub slots_per_erase_block: u32,
    pub max_swap_areas: usize,
    pub linux: Linux,
    pub trace: Trace,
    pub block_aligned_read_ahead: Vec<u32>,
    pub gc: Vec<String>,
    pub swap_area_blocks: Vec<u32>,
    pub cost: String,
    /// Method with its read-ahead: [least, most].
    pub cost_1024_blocks: BTreeMap<String, [u64; 2]>,
}

/// The printed figures.
///
/// # Panics
/// Never: the file is part of the program and tested.
pub fn read() -> Golden {
    toml::from_str(include_str!("golden.toml")).expect("golden.toml is tested")
}
