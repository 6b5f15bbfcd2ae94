//! The printed figures, read from `golden.toml`. Field names are those of the file and of the paper's tables; units are
//! in the names.

use std::collections::BTreeMap;

use coldframe_device::energy::AccessCounts;
use serde::Deserialize;

/// Table 5: [before, after] of each line; times in milliseconds, energies in millijoules.
#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)] // The table's own names.
pub struct Table5 {
    pub N_pl: [u64; 2],
    pub N_pm: [u64; 2],
    pub N_pmdual: [u64; 2],
    pub N_rdmain: [u64; 2],
    pub N_rdxip: [u64; 2],
    pub N_wrmain: [u64; 2],
    pub t_idle: [f64; 2],
    pub t_pl_N: [f64; 2],
    pub t_pm_N: [f64; 2],
    pub t_rdmain_N: [f64; 2],
    pub t_rdxip_N: [f64; 2],
    pub t_wrmain_N: [f64; 2],
    pub t_paging: [f64; 2],
    pub t_total: [f64; 2],
    pub e_pl_N: [f64; 2],
    pub e_pm_N: [f64; 2],
    pub e_rdmain_N: [f64; 2],
    pub e_rdxip_N: [f64; 2],
    pub e_wrmain_N: [f64; 2],
    pub e_paging: [f64; 2],
}

impl Table5 {
    /// The counts of column 0 (before) or 1 (after).
    pub fn counts(&self, column: usize) -> AccessCounts {
        AccessCounts {
            page_loads: self.N_pl[column],
            page_moves: self.N_pm[column],
            page_moves_dual: self.N_pmdual[column],
            main_reads: self.N_rdmain[column],
            xip_reads: self.N_rdxip[column],
            main_writes: self.N_wrmain[column],
        }
    }

    /// The terms of equation 1 in the order of `Ledger::terms`, milliseconds.
    pub fn time_terms(&self, column: usize) -> [f64; 5] {
        [&self.t_pl_N, &self.t_pm_N, &self.t_rdmain_N, &self.t_rdxip_N, &self.t_wrmain_N].map(|term| term[column])
    }

    /// The terms of equation 3 in the order of `Ledger::terms`, millijoules.
    pub fn energy_terms(&self, column: usize) -> [f64; 5] {
        [&self.e_pl_N, &self.e_pm_N, &self.e_rdmain_N, &self.e_rdxip_N, &self.e_wrmain_N].map(|term| term[column])
    }
}

/// Values in the text about table 5.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Text {
    pub xip_costs_ms: f64,
    pub xip_costs_mJ: f64,
    pub fewer_loads_percent: f64,
}

/// One range of table 7.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Table7 {
    /// Least and most main memory, as a share of the working set.
    pub memory: [f64; 2],
    /// t_total, percent of that without the scheme.
    pub time: f64,
    /// e_paging, percent of that without the scheme.
    pub energy: f64,
}

/// Table 3 in microseconds or nanojoules, by the paper's names.
pub type Table3 = BTreeMap<String, f64>;

/// The figures.
#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Golden {
    pub table3_us: Table3,
    pub table3_nJ: Table3,
    pub table5: Table5,
    pub text: Text,
    /// Table 6, by program.
    pub working_set_KB: BTreeMap<String, f64>,
    /// Table 7, by range.
    pub table7_percent: BTreeMap<String, Table7>,
}

/// The printed figures.
///
/// # Panics
/// Never: the file is part of the program and tested.
pub fn read() -> Golden {
    toml::from_str(include_str!("golden.toml")).expect("golden.toml is tested")
}
