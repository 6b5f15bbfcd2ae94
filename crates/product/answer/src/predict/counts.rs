//! The events that a run pays for. They are fractional, since a sample of the pages stands for all of them.

use std::ops::AddAssign;

use coldframe_lane::SourceCounts;
use serde::{Deserialize, Serialize};

/// The events that a run pays for.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Faults on pages that had to be brought into RAM.
    pub true_faults: f64,
    /// Of those, on pages without bytes: filled with zeros.
    pub zero_fills: f64,
    /// Of those, while all memory still fits: our pager leaves them to the kernel.
    pub kernel_fills: f64,
    /// Of those, single pages from the device.
    pub device_alone: f64,
    /// Pages of sequential streams: that of the fault and those read ahead with it.
    pub device_ahead: f64,
    /// Pages that were needed again before they were written to the device.
    pub memory_loads: f64,
    /// Touches of pages in RAM that were not mapped.
    pub false_faults: f64,
    /// Clean pages evicted while no device time hides it.
    pub clean_exposed: f64,
    /// Clean pages evicted while another page comes from the device.
    pub clean_hidden: f64,
    /// Dirty pages evicted while no device time hides it.
    pub dirty_exposed: f64,
    /// Dirty pages evicted while another page comes from the device.
    pub dirty_hidden: f64,
}

impl Counts {
    /// Of a lane.
    pub fn of(engine: &coldframe_core::Counts, sources: &SourceCounts) -> Counts {
        Counts {
            true_faults: engine.true_faults as f64,
            zero_fills: sources.zeros as f64,
            kernel_fills: 0.0,
            device_alone: sources.alone as f64,
            device_ahead: sources.ahead as f64,
            memory_loads: sources.memory as f64,
            false_faults: engine.false_faults as f64,
            clean_exposed: sources.clean_exposed as f64,
            clean_hidden: sources.clean_hidden as f64,
            dirty_exposed: sources.dirty_exposed as f64,
            dirty_hidden: sources.dirty_hidden as f64,
        }
    }

    /// Pages from the device.
    pub fn device_reads(&self) -> f64 {
        self.device_alone + self.device_ahead
    }

    /// Dirty pages evicted.
    pub fn dirty(&self) -> f64 {
        self.dirty_exposed + self.dirty_hidden
    }

    /// Pages evicted.
    pub fn evictions(&self) -> f64 {
        self.clean_exposed + self.clean_hidden + self.dirty()
    }

    /// Combines each count with that of `other`.
    pub fn with(&self, other: &Counts, of: impl Fn(f64, f64) -> f64) -> Counts {
        Counts {
            true_faults: of(self.true_faults, other.true_faults),
            zero_fills: of(self.zero_fills, other.zero_fills),
            kernel_fills: of(self.kernel_fills, other.kernel_fills),
            device_alone: of(self.device_alone, other.device_alone),
            device_ahead: of(self.device_ahead, other.device_ahead),
            memory_loads: of(self.memory_loads, other.memory_loads),
            false_faults: of(self.false_faults, other.false_faults),
            clean_exposed: of(self.clean_exposed, other.clean_exposed),
            clean_hidden: of(self.clean_hidden, other.clean_hidden),
            dirty_exposed: of(self.dirty_exposed, other.dirty_exposed),
            dirty_hidden: of(self.dirty_hidden, other.dirty_hidden),
        }
    }

    /// Multiplies all counts.
    pub fn times(&self, factor: f64) -> Counts {
        self.with(self, |count, _| count * factor)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        *self = self.with(&other, |a, b| a + b);
    }
}
