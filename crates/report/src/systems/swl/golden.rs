//! The printed figures, read from `golden.toml`. Field names are those of the file; units are in the names.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Two ends of a curve.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Ends {
    /// At walk 1.
    pub walk_1: f64,
    /// At walk 60.
    pub walk_60: f64,
}

/// First and last value of a curve.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Range {
    /// First.
    pub from: f64,
    /// Last.
    pub to: f64,
}

/// One value for each of the two policies.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Pair {
    /// FIFO-SC.
    pub fifo_sc: f64,
    /// PA-FIFO-SC.
    pub pa_fifo_sc: f64,
}

/// Figure 6: one page fault, walk count 2.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Fig6 {
    pub clock_sequential_us: f64,
    pub clock_parallel_us: f64,
    pub fifo_sc_sequential_us: f64,
    pub fifo_sc_parallel_us: f64,
}

/// Figure 7: Clock against walk count.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Fig7 {
    pub sequential_us: Ends,
    pub parallel_constant_until_walk: u64,
    pub gain_at_walk_13_percent: f64,
}

/// Figure 8: Clock and PA-Clock, parallel.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Fig8 {
    pub clock_us: Range,
    pub pa_clock_us: f64,
}

/// Figure 9: the false fault.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Fig9 {
    pub fifo_sc_us: f64,
    pub pa_fifo_sc_us: f64,
    pub reference_step_us: Pair,
}

/// Table 3.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Table3 {
    pub icache_hit_ratio: BTreeMap<String, f64>,
}

/// The figures.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Golden {
    pub fig6: Fig6,
    pub fig7: Fig7,
    pub fig8: Fig8,
    pub fig9: Fig9,
    pub table3: Table3,
    /// Table 4: trace, page cache in KB, [Clock, PA-Clock].
    pub table4: BTreeMap<String, BTreeMap<String, [f64; 2]>>,
    /// Figures 10 to 12: trace, [least, most] reduction in percent.
    pub fig10_12: BTreeMap<String, [f64; 2]>,
}

/// The printed figures.
///
/// # Panics
/// Never: the file is part of the program and tested.
pub fn read() -> Golden {
    toml::from_str(include_str!("golden.toml")).expect("golden.toml is tested")
}
