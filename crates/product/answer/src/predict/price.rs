//! Prices the counts on this machine.

use coldframe_core::Ps;
use coldframe_sheet::here::Here;
use coldframe_sheet::sheet::machine::Spread;
use serde::{Deserialize, Serialize};

use crate::predict::counts::Counts;

/// Seconds, with a range.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// With the costs of the best stretches.
    pub low: f64,
    /// With the mean costs.
    pub mean: f64,
    /// With the costs of the worst stretches.
    pub high: f64,
}

/// The costs of paging here.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Costs {
    /// The cost of each event.
    pub here: Here,
    /// The extra time of a fault that waits for the device, if a dirty page is evicted instead of a clean one;
    /// `None`: the same as without a device.
    pub evict_dirty_read: Option<Spread>,
}

impl Costs {
    /// The time that paging adds to a program's own run time. The kernel's time for zero-filling the same pages is
    /// subtracted:
    ///
    /// ```text
    ///   (zero fills - fills by the kernel) x (zero_fill - zero_fill_native) + alone x device_fault
    ///   + of streams x read_ahead + out of the log's buffers x memory_fault + false faults x false_fault
    ///   + clean victims without a load x evict_clean
    ///   + written victims without a load x evict_dirty, written ones during a load x evict_dirty_read
    /// ```
    /// The price of a load includes a clean victim next to it (see [`Here::device_fault`]). At the high end, no page
    /// is found in the log's buffers: a page written with unchanged bytes stays where it was, and a trace does not
    /// show that; and no first touch is served by the kernel: a program may ask for all of its memory at once.
    pub fn paging(&self, counts: &Counts, native_fills: f64) -> Seconds {
        let of = |side: fn(&Spread) -> Ps, worst: bool| {
            let here = &self.here;
            let price = |spread: &Spread| side(spread).0 as f64 / 1e12;
            let memory = price(&here.memory_fault);
            let memory = if worst { memory.max(price(&here.device_fault)) } else { memory };
            let kernel_fills = if worst { 0.0 } else { counts.kernel_fills };
            (counts.zero_fills - kernel_fills) * price(&here.zero_fill)
                - (native_fills - kernel_fills) * price(&here.zero_fill_native)
                + counts.device_alone * price(&here.device_fault)
                + counts.device_ahead * price(&here.read_ahead)
                + counts.memory_loads * memory
                + counts.false_faults * price(&here.false_fault)
                + counts.clean_exposed * price(&here.evict_clean)
                + counts.dirty_exposed * price(&here.evict_dirty)
                + counts.dirty_hidden * price(self.evict_dirty_read.as_ref().unwrap_or(&here.evict_dirty))
        };
        Seconds { low: of(|s| s.low, false), mean: of(|s| s.mean, false), high: of(|s| s.high, true) }
    }
}
