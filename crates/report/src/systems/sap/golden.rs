//! The printed figures, read from `golden.toml`. Field names are those of the file; units are in the names.

use serde::Deserialize;

/// Table 1: [major, total].
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Table1 {
    pub prefetch_75: [f64; 2],
    pub prefetch_50: [f64; 2],
}

/// Section 5.3.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct LessRam {
    pub vanilla: f64,
    pub prefetch_50: f64,
}

/// The figures.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Golden {
    pub ram_mb: [u64; 2],
    pub page_bytes: u64,
    pub list_max: usize,
    pub activation: [f64; 2],
    pub workers: u32,
    pub worker_mb: u32,
    pub table1_change_percent: Table1,
    pub total_faults_64MB_to_32MB_percent: LessRam,
}

/// The printed figures.
///
/// # Panics
/// Never: the file is part of the program and tested.
pub fn read() -> Golden {
    toml::from_str(include_str!("golden.toml")).expect("golden.toml is tested")
}
