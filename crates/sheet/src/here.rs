//! This machine as a device: the time that a program waits for paging here. `coldframe doctor --calibrate` measures these
//! times with the live pager and keeps them as a sheet. Each number says when and how it was measured.

use crate::sheet::machine::Spread;
use crate::{Sheet, SheetError};

/// The cost of each paging event on this machine, as time of the thread that causes the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Here {
    /// The first touch of a page without the pager: the kernel's own zero-fill fault.
    pub zero_fill_native: Spread,
    /// The first touch of a page under the pager, while no page has to leave.
    pub zero_fill: Spread,
    /// A page loaded from the device, one at a time, while clean pages are evicted.
    pub device_fault: Spread,
    /// Each page of a sequential stream that is read ahead, while clean pages are evicted.
    pub read_ahead: Spread,
    /// A page that is needed again before it was written to the device.
    pub memory_fault: Spread,
    /// A touch of a page in RAM that was unmapped.
    pub false_fault: Spread,
    /// The first write to a page that was mapped read-only.
    pub first_write: Spread,
    /// The extra time of a fault for each clean page evicted with it, if no device time hides it.
    pub evict_clean: Spread,
    /// The extra time of a fault for each dirty page evicted with it, including the write to the device.
    pub evict_dirty: Spread,
    /// The entry of a page into the recorder's window, while another page leaves the window.
    pub entry: Spread,
}

impl Here {
    /// The costs in the sheet of a machine.
    ///
    /// # Errors
    /// The sheet lacks one of the costs. The sheet of a device on a board lacks all of them.
    pub fn of(sheet: &Sheet) -> Result<Here, SheetError> {
        Ok(Here {
            zero_fill_native: sheet.cost("live.zero_fill_native")?,
            zero_fill: sheet.cost("live.zero_fill")?,
            device_fault: sheet.cost("live.device_fault")?,
            read_ahead: sheet.cost("live.read_ahead")?,
            memory_fault: sheet.cost("live.memory_fault")?,
            false_fault: sheet.cost("live.false_fault")?,
            first_write: sheet.cost("live.first_write")?,
            evict_clean: sheet.cost("live.evict_clean")?,
            evict_dirty: sheet.cost("live.evict_dirty")?,
            entry: sheet.cost("live.entry")?,
        })
    }
}
