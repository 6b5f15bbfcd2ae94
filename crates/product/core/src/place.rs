//! Places where the processor can reach a page.

use crate::ids::{BufferId, FrameId, SlotId};

/// A place that the page table can point at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In RAM, the ordinary case.
    Frame(FrameId),
    /// In a stopover buffer of the device; the processor executes or reads it there (XIP; DDB).
    Buffer(BufferId),
    /// On the device itself, where that is byte-addressable (direct read; DR.Swap).
    Slot(SlotId),
}
