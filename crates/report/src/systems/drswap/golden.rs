//! The printed figures, read from `golden.toml`. Field names are those of the file and of the paper's tables; units are
//! in the names.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Table II, powers of a memory on the bus.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)] // The table's own names.
pub struct Powers {
    pub PRE_PDN: f64,
    pub PRE_STBY: f64,
    pub ACT_PDN: f64,
    pub ACT_STBY: f64,
    pub REF: f64,
    pub ACT: f64,
    pub RD: f64,
    pub WR: f64,
    pub DQ: f64,
}

/// Table II, timing of a memory on the bus.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Timing {
    pub tCK_ns: f64,
    pub tRCD_ns: f64,
    pub tWR_ns: f64,
    pub RL_cycles: u64,
    pub WL_cycles: u64,
    pub BL: u64,
    pub BW_bits: u64,
}

/// Table II, the eMMC.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Emmc {
    pub f_MHz: u64,
    pub V: f64,
    pub RL_cycles: u64,
    pub I_read_mA: u64,
    pub read_block_bytes: u64,
    pub WL_cycles: u64,
    pub I_write_mA: u64,
    pub write_block_bytes: u64,
    pub BW_bits: u64,
    pub I_standby_uA: u64,
}

/// Table II's timing part.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Timings {
    pub dram: Timing,
    pub pcm: Timing,
    pub emmc: Emmc,
}

/// Table II's power part.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct PowerTable {
    pub dram: Powers,
    pub pcm: Powers,
}

/// Joules of 15 minutes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Joules {
    pub dram: f64,
    pub pcm: f64,
}

/// An application of table V.
#[derive(Clone, Debug, Deserialize)]
pub struct Switching {
    /// Its name.
    pub app: String,
    /// By swap size: milliseconds with the area in DRAM, NVM (DR.Swap) and flash.
    pub ms: [[f64; 3]; 3],
    /// By swap size: DR.Swap's improvement over flash as printed, in percent.
    pub printed: [f64; 3],
}

/// Results that follow from table II and table IV.
#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Derived {
    pub energy_J: BTreeMap<String, Joules>,
    pub saving_percent: BTreeMap<String, f64>,
}

/// Killed processes, section II.A and figure 2.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Killed {
    pub no_swap: u64,
    pub flash_swap_128MB: u64,
}

/// Emulation of PCM by DRAM, section V.A.
#[derive(Clone, Copy, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Emulation {
    pub read_slowdown: u64,
    pub write_slowdown: u64,
}

/// Values in the text.
#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Results {
    pub energy_saving_over_dram_swap_percent_at_least: BTreeMap<String, f64>,
    pub pcm_emulation: Emulation,
    pub switching_delay_improvement_over_flash_percent_about: f64,
    pub killed_processes_1GB_memory: Killed,
}

/// The figures.
#[derive(Clone, Debug, Deserialize)]
#[allow(non_snake_case, missing_docs)]
pub struct Golden {
    pub table2_mW: PowerTable,
    pub table2_timing: Timings,
    /// By category, then swap size in MB: swap-ins with direct read disabled and enabled.
    pub table4_swap_ins: BTreeMap<String, BTreeMap<String, [u64; 2]>>,
    /// By category, in the order of table III.
    pub table5_ms: BTreeMap<String, Vec<Switching>>,
    pub results: Results,
    pub derived: Derived,
}

/// The printed figures.
///
/// # Panics
/// Never: the file is part of the program and tested.
pub fn read() -> Golden {
    toml::from_str(include_str!("golden.toml")).expect("golden.toml is tested")
}
