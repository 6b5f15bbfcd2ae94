//! STAND-IN until `coldframe calibrate` measures this machine; goes with the merge. Costs from the JSON file that COLDFRAME_COSTS names:
//! `{"device_fault": [low, mean, high], ...}` in nanoseconds, else rough figures of a virtual machine's disk.

use coldframe_core::Ps;
use coldframe_device::here::{Here, Spread};
use serde_json::{json, Value};

use crate::failure::Failure;

/// Costs, and where they come from.
pub fn costs() -> Result<(Here, String), Failure> {
    let rough = json!({
        "zero_fill_native": [200, 250, 600], "zero_fill": [3000, 4000, 6000], "device_fault": [40000, 60000, 120000],
        "read_ahead": [8000, 12000, 25000], "memory_fault": [5000, 7000, 10000], "false_fault": [4000, 5000, 8000],
        "first_write": [3000, 4000, 6000], "evict_clean": [1000, 1500, 2500], "evict_dirty": [4000, 6000, 20000],
        "entry": [4000, 6000, 9000]
    });
    let Some(path) = std::env::var_os("COLDFRAME_COSTS") else {
        return Ok((read(&rough), "rough figures, not measured here".into()));
    };
    let failed = |reason: String| Failure::Other { message: format!("{}: {reason}", path.to_string_lossy()), code: 3 };
    let text = std::fs::read_to_string(&path).map_err(|e| failed(e.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
    Ok((read(&value), format!("from {}", path.to_string_lossy())))
}

fn read(value: &Value) -> Here {
    let spread = |name: &str| {
        let ns = |i: usize| Ps((value[name][i].as_f64().unwrap_or(0.0) * 1e3) as u64);
        Spread { low: ns(0), mean: ns(1), high: ns(2) }
    };
    Here {
        zero_fill_native: spread("zero_fill_native"),
        zero_fill: spread("zero_fill"),
        device_fault: spread("device_fault"),
        read_ahead: spread("read_ahead"),
        memory_fault: spread("memory_fault"),
        false_fault: spread("false_fault"),
        first_write: spread("first_write"),
        evict_clean: spread("evict_clean"),
        evict_dirty: spread("evict_dirty"),
        entry: spread("entry"),
    }
}
